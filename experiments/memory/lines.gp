# One line for each row of `table`: columns `from` to `to`, whose first row are the places on x;
# columns 1 to `names` (1) say which row. `floor_at`: a dashed line there.
set datafile separator "\t"
set key outside right noenhanced
if (!exists("names")) names = 1
rows = int(system("wc -l < '".table."'")) - 1
name(i) = system(sprintf("sed -n %dp '%s' | cut -f1-%d | tr '\\t' ','", i + 1, table, names))
turned(i) = sprintf("< sed -n '1p;%dp' '%s' | cut -f%d-%d | tr '\\t' '\\n'", i + 1, table, from, to). \
  " | awk '{a[NR]=$1} END {for (j=1; j<=NR/2; j++) print a[j] \"\\t\" a[j+NR/2]}'"
plot for [i=1:rows] turned(i) using 1:2 with linespoints linewidth 1.5 pointtype i title name(i), \
  exists("floor_at") ? floor_at : NaN with lines dashtype 2 linecolor "black" \
  title exists("floor_at") ? "noise" : ""
