# Error before each update over the tokens; the truth changes at token 300.
set datafile separator "\t"
set key outside right autotitle columnhead
set xlabel "tokens (the truth changes at 300)"
set ylabel "relative squared error of the prediction"
set logscale y
set yrange [0.01:10]
plot for [i=3:14] table using 1:i with lines linewidth 1.5 title columnhead(i)
