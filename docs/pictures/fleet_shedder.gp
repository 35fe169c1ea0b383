set ylabel 'places in use'
set yrange [-12:112]
plot 100 title 'fleet' lw 1.5 dt 2 lc rgb blue, 80 title 'share of sheddable work' lw 1.5 dt 2 lc rgb orange, \
  data index 0 using 1:2 with steps lw 2 lc rgb blue title 'in use', \
  data index 0 using 1:3 with steps lw 2 lc rgb green title 'by critical work', \
  data index 0 using 1:($5 > 0 ? -4 : 1/0) with points pt 2 ps 0.6 lc rgb orange title 'sheddable refused', \
  data index 0 using 1:($4 > 0 ? -8 : 1/0) with points pt 2 ps 0.6 lc rgb red title 'critical refused'
