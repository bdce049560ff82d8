# Error on held-out keys over the pairs of the stream; one line a rule.
set datafile separator "\t"
set key outside right noenhanced
set xlabel "pairs of the stream (evicting memories keep 16)"
set ylabel "relative squared error, held-out keys"
set logscale xy
set yrange [0.008:2]
set xrange [16:1024]
rows = int(system("wc -l < '".table."'")) - 1
name(i) = system(sprintf("sed -n %dp '%s' | cut -f1", i + 1, table))
plot for [i=1:rows] "< sed -n '1p;".(i + 1)."p' '".table."' | cut -f3-9 | tr '\\t' '\\n' | awk '{a[NR]=$1} END {for (j=1; j<=NR/2; j++) print a[j] \"\\t\" a[j+NR/2]}'" \
  using 1:2 with linespoints linewidth 1.5 pointtype i title name(i), 0.01 with lines dashtype 2 linecolor "black" title "noise"
