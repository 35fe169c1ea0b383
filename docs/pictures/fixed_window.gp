set ylabel 'units'
set yrange [-8:220]
set xtics 60
plot 100 title 'limit of a window' @limit_line, \
  data index 0 using 1:2 with steps lw 2 lc rgb blue title 'used in this minute', \
  data index 0 using 1:3 with lines lw 1.5 lc rgb orange title 'admitted in the last 60 s', \
  data index 1 using 1:(-4) with points pt 2 ps 0.4 lc rgb red title 'refused'
