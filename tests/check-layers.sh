#!/bin/sh
# The include graph is the architecture, so it is a test. room: rooms it may open | libraries
allow() { case $1 in
  base)   echo "base" ;;
  num)    echo "base num cblas" ;;
  tensor) echo "base num tensor jansson" ;;
  stream) echo "base num tensor stream" ;;
  memory) echo "base num tensor memory" ;;
  model)  echo "base num tensor memory model jansson pcre2" ;;
  patch)  echo "base num tensor model patch" ;;
  store)  echo "base store sqlite3" ;;
  engine) echo "base num tensor stream memory model patch store engine" ;;
  http)   echo "base http microhttpd" ;;
  api)    echo "base tensor engine http api jansson" ;;
  web)    echo "http" ;;
  daemon) echo "base num tensor stream memory model patch store engine http api web daemon" ;;
esac; }
room_of() { case $1 in
  err|log|buf|pool|clock|hash|params|utf8) echo base ;; level|fmath|activation|kernel|project) echo num ;;
  safetensors|arena) echo tensor ;; models|tokenizer) echo model ;; learner|request|report|sampling) echo engine ;; *) echo "$1" ;; esac; }

cd "${top_srcdir:-.}" || exit 99
bad=0
for f in src/*/*.c src/*/*.h include/fastweight/*.h; do
  [ -f "$f" ] || continue
  case $f in
    *_test.c) continue ;;
    src/*) own=${f#src/}; own=${own%%/*} ;;
    *) own=$(room_of "$(basename "$f" .h)") ;;
  esac
  ok=" $(allow "$own") "
  for h in $(sed -n 's,^#include "fastweight/\([a-z0-9]*\)\.h".*,\1,p' "$f"); do
    case $ok in *" $(room_of "$h") "*) ;; *) echo "$f: $own may not open fastweight/$h.h"; bad=1 ;; esac
  done
  for l in $(sed -n 's,^#include <\(cblas\|jansson\|pcre2\|sqlite3\|microhttpd\)\.h>.*,\1,p' "$f"); do
    case $ok in *" $l "*) ;; *) echo "$f: $own may not use <$l.h>"; bad=1 ;; esac
  done
  if grep '#include ".*/' "$f" | grep -v '"fastweight/'; then echo "$f: reaches into another room"; bad=1; fi
done
exit $bad
