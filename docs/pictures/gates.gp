set ylabel ''
set yrange [-0.6:4.6]
unset ytics
set ytics ('refused' 0, 'passed' 1, 'closed' 3)
set lmargin 10
plot data index 2 using 1:(3.5 - 0.4 * $0):($2-$1):(0) with vectors nohead lw 6 lc rgb grey title 'the upstream says: closed from, until', \
  data index 0 using 1:(1) with points pt 7 ps 0.5 lc rgb green title 'passed', \
  data index 1 using 1:(0) with points pt 2 ps 0.6 lc rgb red title 'refused'
