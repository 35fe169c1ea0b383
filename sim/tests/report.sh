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

# report <name> <command> <argument>...: a report of any verdict.
report() {
  name=$1
  shift
  "$program" "$@" --replications 3 --out "$folder/$name" >/dev/null || [ $? -le 3 ]
  cp "$folder/$name/report.html" "$folder/$name.html"
}
for scenario in fleet window-edge redis-failover your-log redis-outage; do
  report "$scenario" run "$scenario"
done
report failing run fleet --set limiter.limit=150/s
report sweep sweep redis-failover store.lag 100ms 500ms
cat >"$folder/grid.toml" <<'END'
schema = 1
question = "What does holding units save, and who waits?"
[run]
duration = "20s"
[[variant]]
name = "one"
[[variant]]
name = "two"
limiter.burst = 20
[[sweep]]
parameter = "arrivals.load"
values = [0.5, 0.8, 0.9, 1.0, 1.2]
[[sweep]]
parameter = "limiter.hold"
values = ["0s", "500ms"]
END
report grid run "$folder/grid.toml"
cd "$page"
exec node check.mjs --out "$folder/pictures" "$folder"/*.html
