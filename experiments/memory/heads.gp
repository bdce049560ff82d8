# Held-out error (solid) and the error on the pairs learned (dashed) over the number of heads.
set datafile separator "\t"
set key outside right noenhanced
set xlabel "heads (64 elements shared among them)"
set ylabel "relative squared error"
set logscale x 2
set logscale y
set xrange [1:32]
of(truth, n) = sprintf("< awk -F'\\t' '$1 == \"%s\" && $2 == %s' '%s'", truth, n, table)
plot for [t=1:2] for [n=1:3] of(t == 1 ? "dense" : "8 blocks", word("64 128 512", n)) using 3:6 \
    with linespoints linewidth 1.5 linecolor 3 * t + n - 3 pointtype t \
    title (t == 1 ? "dense, " : "8 blocks, ").word("64 128 512", n)." pairs", \
  for [t=1:2] for [n=1:3] of(t == 1 ? "dense" : "8 blocks", word("64 128 512", n)) using 3:5 \
    with lines dashtype 2 linecolor 3 * t + n - 3 notitle
