set xlabel 'minutes'
set xrange [0:15]
set ylabel 'calls sent a second'
set yrange [0:*]
limit(x) = x < 5 ? 100 : x < 10 ? 50 : 100
set samples 1500
plot data index 1 using 1:2 with lines lw 1.2 lc rgb red title 'each process adapts, as the AWS SDKs', \
  data index 0 using 1:2 with lines lw 2 lc rgb blue title 'a learned rate', \
  limit(x) with lines lw 1.5 dt 2 lc rgb '#777777' title 'what the API takes'
