set ylabel 'units in 10 s'
set yrange [0:260]
plot 200 title 'limit' @limit_line, \
  data index 0 using 1:2 with lines lw 2 lc rgb blue title 'as it is counted', \
  data index 0 using 1:3 with lines lw 2 lc rgb green title 'really admitted in the last 10 s'
