# Recall over the number of pairs; one line a rule. `table` is the TSV, its first row the names.
set datafile separator "\t"
set key outside right noenhanced
set xlabel "pairs learned (d = 64, one head)"
set ylabel "recalled, top 1"
set yrange [0:1.05]
rows = int(system("wc -l < '".table."'")) - 1
name(i) = system(sprintf("sed -n %dp '%s' | cut -f1", i + 1, table))
set logscale x 2
set xrange [16:1024]
plot for [i=1:rows] "< sed -n '1p;".(i + 1)."p' '".table."' | cut -f3- | tr '\\t' '\\n' | awk '{a[NR]=$1} END {for (j=1; j<=NR/2; j++) print a[j] \"\\t\" a[j+NR/2]}'" \
  using 1:2 with linespoints linewidth 1.5 pointtype i title name(i)
