#!/bin/sh
# experiments/memory/run.sh [OUT]: every experiment about memory, from the build directory. Tables
# (TSV) go to OUT (default: experiments-memory); a figure of each (SVG, PNG) where there is gnuplot.
out=${1:-experiments-memory}
here=$(dirname "$0")
lab=${LAB:-experiments/memory/lab}
set -e
[ -x "$lab" ] || make -s "$lab"
mkdir -p "$out"
"$lab" "$out"
command -v gnuplot > /dev/null || { echo "no gnuplot: tables only"; exit 0; }

draw() { # SCRIPT NAME SETTINGS
  for form in svg png; do
    case $form in svg) term="svg size 760,460 font 'sans,12'" ;; png) term="pngcairo size 760,460" ;; esac
    gnuplot -e "set terminal $term; set output '$out/$2.$form'; table = '$out/$2.tsv'; $3" "$here/$1.gp"
  done
}
lines() { # NAME FROM TO XLABEL YLABEL SETTINGS
  draw lines "$1" "from = $2; to = $3; set xlabel '$4'; set ylabel '$5'; $6"
}
bars() { # NAME COLUMNS YLABEL SETTINGS
  draw bars "$1" "columns = '$2'; set ylabel '$3'; $4"
}
share="set yrange [0:1.05]; set logscale x 2"
lines capacity 3 9 "pairs learned (d = 64, one head)" "recalled, top 1" "$share; set xrange [16:1024]"
lines mqar 2 7 "keys learned (d = 64)" "recalled, top 1 of 4,096" "$share"
lines mqar_forgetting 2 7 "keys learned, half of them twice" "recalled, top 1 of 4,096" "$share"
lines schlag_capacity 2 9 "keys" "loss (0.5: nothing learned)" "set yrange [0:1]"
lines schlag_update 2 9 "keys, drawn with replacement" "loss (0.5: nothing learned)" "set yrange [0:1]"
lines words 3 8 "tokens of the word" "followed to its right end" \
  "$share; names = 2; set key title 'pairs a token, beta'"
lines evict 3 9 "pairs of the stream (evicting memories keep 16)" "relative squared error, held-out keys" \
  "set logscale xy; set xrange [16:1024]; set yrange [0.008:2]; floor_at = 0.01"
bars age "2 3 4 5" "recalled, top 1 (128 pairs, d = 64)" "set yrange [0:1.05]"
bars hard "2 3 4 5" "recalled, top 1" "set yrange [0:1.05]"
bars named "3 4 5" "recalled, top 1" "set yrange [0:1.05]; names = 2"
bars self "3 4 5 6" "squared error of the next element" "names = 2; set key title 'pairs, how many a token'"
bars four "2 6 7" "relative squared error; oldest: recalled" "set yrange [0:1.05]"
draw drift drift
draw heads heads
