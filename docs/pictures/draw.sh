#!/usr/bin/env bash
# Draws every picture anew, without what a viewer does not need, and notes the hash of its data: draw.sh PROGRAM, the
# built docs/pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for plot in *.gp; do
  stem=${plot%.gp}
  [[ $stem != style ]] || continue
  data=$scratch/$stem
  "$1" "$stem" >"$data"
  gnuplot -e "load 'style.gp'; stem = '$stem'; set output stem . '.svg'; data = '$data'" "$plot"
  echo "docs/pictures/$stem.svg"
done
npx --yes svgo@4 --quiet --final-newline --folder .
(cd "$scratch" && sha256sum -- *) >data.sha256
