#!/bin/sh
# report.sh <sluice-sim> <sim/report> <folder>: makes reports, and opens them in headless Chromium. 77: skipped.
set -eu
program=$1 page=$2 folder=$3
if [ ! -e "$page/dist/report.html" ] || ! command -v node >/dev/null; then
  echo "skipped: the page of the report was not built; ./dev report builds it"
  exit 77
fi
rm -rf "$folder"
mkdir -p "$folder"
for scenario in fleet window-edge redis-failover your-log; do
  "$program" run "$scenario" --replications 3 --out "$folder/$scenario" >/dev/null || [ $? -le 3 ]
  cp "$folder/$scenario/report.html" "$folder/$scenario.html"
done
cd "$page"
exec node check.mjs --out "$folder/pictures" "$folder"/*.html
