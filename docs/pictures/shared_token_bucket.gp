set ylabel 'tokens left'
set yrange [-4:34]
plot data index 0 using 1:3 with steps lw 1.5 dt 2 lc rgb grey title 'burst, as it is set in the store', \
  data index 0 using 1:2 with lines lw 2 lc rgb blue title 'tokens: 10, then 3, then 12 a second come back', \
  data index 1 using 1:(-2) with points pt 2 ps 0.5 lc rgb red title 'refused'
