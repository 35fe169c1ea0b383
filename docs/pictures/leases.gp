set ylabel 'places'
set yrange [0:24]
set arrow from 25,0 to 25,22 nohead dt 3 lc rgb grey
set label 'half of the holders die' at 25.4,22.7 textcolor rgb '#222222'
set arrow from 35,0 to 35,20 nohead dt 3 lc rgb grey
set label 'their leases have expired (TTL 10 s)' at 35.4,1 textcolor rgb '#222222'
plot 20 title 'limit' @limit_line, \
  data index 0 using 1:2 with steps lw 2 lc rgb blue title 'places taken', \
  data index 0 using 1:3 with steps lw 2 lc rgb green title 'holders alive', \
  data index 1 using 1:(21) with points pt 2 ps 0.5 lc rgb red title 'refused'
