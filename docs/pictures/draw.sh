#!/usr/bin/env bash
# Writes the data of every picture anew and draws it: draw.sh PROGRAM, the built docs/pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for plot in *.gp; do
  stem=${plot%.gp}
  [[ $stem != style ]] || continue
  "$1" "$stem" >"$stem.tsv"
  gnuplot -e "load 'style.gp'; stem = '$stem'; set output stem . '.svg'; data = stem . '.tsv'" "$plot"
  echo "docs/pictures/$stem.svg"
done
