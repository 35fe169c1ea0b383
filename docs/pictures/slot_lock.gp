set xlabel 'asked at, seconds'
set ylabel 'slot at, seconds'
set xrange [0:40]
set yrange [0:45]
set key outside top center horizontal
plot x title 'at once' @limit_line, x + 8 title 'max\_wait, 8 s' lw 1.5 dt 3 lc rgb grey, \
  data index 0 using 1:1:(0):($2-$1) with vectors nohead lw 1 lc rgb '#9db7dd' title 'wait', \
  data index 0 using 1:2 with points pt 7 ps 0.5 lc rgb blue title 'slots, 1 s apart', \
  data index 1 using 1:2 with points pt 2 ps 0.7 lc rgb red title 'refused'
