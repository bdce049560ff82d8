# Error before each update over the tokens; the truth changes at token 300.
set datafile separator "\t"
set key outside right noenhanced
set xlabel "tokens (the truth changes at 300)"
set ylabel "relative squared error of the prediction"
set logscale y
set yrange [0.01:10]
# Hebb with decay, delta, gated delta, momentum, Omega, Mesa without and with decay.
plot for [i in "3 4 6 8 10 11 12"] table using 1:(column(int(i))) with lines linewidth 1.5 title columnhead(int(i))
