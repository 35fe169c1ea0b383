set terminal svg size 760,620 dynamic enhanced background rgb 'white' font 'Helvetica,Arial,sans-serif,14' linewidth 1
set multiplot layout 2,1
set xrange [0:900]
set ylabel 'part of the capacity'
set yrange [0:4.4]
set xlabel ''
plot data index 0 using 1:2 with steps lw 1.5 lc rgb grey title 'offered load', \
  data index 0 using 1:3 with lines lw 1 lc rgb green title 'admitted', \
  data index 0 using 1:4 with steps lw 2 lc rgb blue title 'utilization', \
  0.7 title 'good, bad' lw 1 dt 2 lc rgb orange, 0.8 notitle lw 1 dt 2 lc rgb orange
set ylabel 'shed'
set yrange [-0.3:1.1]
set xlabel 'seconds'
plot data index 0 using 1:5 with lines lw 2 lc rgb blue title 'amount (below 0: grace)', \
  data index 0 using 1:6 with lines lw 1 lc rgb red title 'test', \
  data index 0 using 1:7 with lines lw 1 lc rgb orange title 'analytics', \
  data index 0 using 1:8 with lines lw 2 lc rgb green title 'payments'
unset multiplot
