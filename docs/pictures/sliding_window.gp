set ylabel 'units used'
set yrange [-6:58]
plot 20 title 'limit in 5 s' lw 1.5 dt 2 lc rgb orange, 50 title 'limit in 20 s' lw 1.5 dt 2 lc rgb blue, \
  data index 0 using 1:2 with steps lw 2 lc rgb orange title 'last 5 s', \
  data index 0 using 1:3 with steps lw 2 lc rgb blue title 'last 20 s', \
  data index 1 using 1:(-3) with points pt 2 ps 0.5 lc rgb red title 'refused'
