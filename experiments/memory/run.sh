#!/bin/sh
# experiments/memory/run.sh [OUT]: every experiment about memory, from the build directory. Tables
# (TSV) go to OUT (default: experiments-memory); figures (SVG, PNG) too where gnuplot is installed.
out=${1:-experiments-memory}
here=$(dirname "$0")
lab=${LAB:-experiments/memory/lab}
set -e
[ -x "$lab" ] || make -s "$lab"
mkdir -p "$out"
"$lab" "$out"
command -v gnuplot > /dev/null || { echo "no gnuplot: tables only"; exit 0; }
for form in svg png; do
  case $form in svg) term="svg size 760,460 font 'sans,12'" ;; png) term="pngcairo size 760,460" ;; esac
  for figure in capacity drift evict; do
    [ -f "$out/$figure.tsv" ] || continue
    gnuplot -e "set terminal $term; set output '$out/$figure.$form'; table = '$out/$figure.tsv'" \
      "$here/$figure.gp"
  done
done
