set lmargin 10
set xlabel 'hold in seconds'
set logscale x
set xrange [0.01:5]
set ylabel 'operations per 1000 calls'
set yrange [0:*]
set logscale y2
set y2range [1:1000]
set y2tics
set y2label 'units beyond burst and rate'
plot data index 0 using 1:2 with linespoints lw 2 lc rgb blue title 'operations', \
  data index 0 using 1:($3 > 1 ? $3 : 1) axes x1y2 with linespoints lw 2 lc rgb red title 'overshoot', \
  data index 0 using 1:4 axes x1y2 with lines dt 3 lc rgb grey title 'bound: rate * hold'
