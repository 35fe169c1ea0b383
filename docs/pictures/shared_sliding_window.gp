set ylabel 'permits in 10 s'
set yrange [-6:58]
plot data index 0 using 1:3 with steps lw 1.5 dt 2 lc rgb grey title 'rate, as it is set in the store', \
  data index 0 using 1:2 with steps lw 2 lc rgb blue title 'permits of the last 10 s, all clients', \
  data index 1 using 1:(-3) with points pt 2 ps 0.5 lc rgb red title 'refused'
