# What the pictures have in common: dark on white, thin grid, labels that can be read in a page.
set terminal svg size 760,380 dynamic enhanced background rgb 'white' font 'Helvetica,Arial,sans-serif,14' linewidth 1
set border 3 lc rgb '#333333'
set tics nomirror out textcolor rgb '#222222'
set grid lc rgb '#dddddd' lt 1
set key outside top center horizontal samplen 2 textcolor rgb '#222222'
set xlabel 'seconds' textcolor rgb '#222222'
set lmargin 9
blue = '#1f4e9e'; red = '#c22f2f'; green = '#1c7a3c'; grey = '#777777'; orange = '#c46a00'
limit_line = "lw 1.5 dt 2 lc rgb '#777777'"
