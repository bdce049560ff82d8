# gnuplot -e "table='loss.tsv'; figure='loss.svg'" loss.gp: what byte_lm.py wrote, as a figure
set terminal svg size 720,360 font "sans,11"
set output figure
set datafile separator "\t"
set xlabel "million bytes read"
set ylabel "bits per byte"
set key top right
plot table using ($2/1e6):4 skip 1 with lines title "training (mean of about 100 steps)", \
  table using ($2/1e6):5 skip 1 with linespoints pointtype 7 pointsize 0.4 title "held-out books"
