set ylabel 'tokens left'
set yrange [-1:22]
plot 20 title 'burst' @limit_line, \
  data index 0 using 1:2 with lines lw 2 lc rgb blue title 'tokens, 10 a second come back', \
  data index 1 using 1:2 with points pt 7 ps 0.4 lc rgb green title 'admitted', \
  data index 2 using 1:2 with points pt 2 ps 0.8 lc rgb red title 'refused'
