#!/bin/sh
# The house rules that a program can check, as a test: sizes, columns, banned functions, essays,
# form. Prints FILE:LINE: what is wrong; fails when anything is.
cd "${top_srcdir:-.}" || exit 99
LC_ALL=C
export LC_ALL
bad=0

say() { # LINES, each FILE:LINE: ...
  [ -z "$1" ] && return
  printf '%s\n' "$1"
  bad=1
}

sources=$(find src include -name '*.[ch]' | sort)
[ -n "$sources" ] || { echo "no sources found in $PWD"; exit 99; }

# Lengths; a character in UTF-8 counts once. Headers are front doors: short.
# shellcheck disable=SC2086
say "$(awk '
  FNR == 1 { if (file != "") size(); file = FILENAME; essay = config = start = 0 }
  FNR == 1 { essay = /^\/\*/ }
  /^#include "config.h"/ { config = 1 }
  { lines = FNR; line = $0; gsub(/[\200-\277]/, "", line) }
  length(line) > 96 { print FILENAME ":" FNR ": " length(line) " columns, at most 96" }
  /^\{$/ { start = FNR }
  /^\}/ && start { if (FNR - start > 61 && FILENAME !~ /_test\.c$/)
      print FILENAME ":" start ": a function of " FNR - start - 1 " lines, at most 60"
    start = 0 }
  /\t/ { print FILENAME ":" FNR ": a tab" }
  /[ \t\r]$/ { print FILENAME ":" FNR ": a space at the end" }
  function size(   max) {
    max = file ~ /\.h$/ && file !~ /_testing\.h$/ ? 150 : 500
    if (lines > max) print file ":" lines ": a file of " lines " lines, at most " max
    if (file !~ /\.c$/) return
    if (!config) print file ":1: does not include \"config.h\""
    if (!essay && file !~ /_test\.c$/) print file ":1: no essay at the top"
  }
  END { size() }' $sources)"

# shellcheck disable=SC2086
say "$(grep -nE '(^|[^A-Za-z0-9_])(strcpy|strcat|sprintf|vsprintf|atoi|strtok|rand|srand|gets|alloca)[[:space:]]*\(' \
  $sources /dev/null | sed 's/$/   <- a banned function/')"
# shellcheck disable=SC2086
say "$(grep -nwE 'TODO|FIXME|XXX' $sources /dev/null | sed 's/$/   <- not finished/')"

# The form is one version's opinion: another would move lines nobody touched.
case $(clang-format --version 2>/dev/null) in
  *version\ 14.*)
    all=$(find src include clients bench tests -name '*.[ch]' | sort)
    # shellcheck disable=SC2086
    say "$(clang-format --dry-run -Werror $all 2>&1 | grep 'error:')" ;;
  *) echo "form not checked: no clang-format 14 here" ;;
esac
exit $bad
