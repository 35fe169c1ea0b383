#!/usr/bin/env bash
# A real Prometheus scrapes the HTTP server of the examples, and answers each query of the dashboard:
# prometheus.sh SERVER DASHBOARD. Without a Prometheus, in SLUICE_PROMETHEUS (a folder) or on PATH, it is left out.
set -euo pipefail

PATH=${SLUICE_PROMETHEUS:+$SLUICE_PROMETHEUS:}$PATH
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
  echo "left out: there is no prometheus"
  exit 77
fi
folder=$(mktemp -d)
children=()
trap 'kill "${children[@]}" 2>/dev/null; wait; rm -rf "$folder"' EXIT

"$1" 0 1 5 >"$folder/server" &  # 1 call a second, with a burst of 5
children+=($!)
until grep -qs listening "$folder/server"; do sleep 0.02; done
port=$(sed 's/.*://' "$folder/server")

# ask TARGET KEY: the status of the answer, and its body in $folder/answer
ask() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\nConnection: close\r\n\r\n' "$1" "$2" >&3
  cat <&3 >"$folder/answer"
  exec 3<&-
  sed -n '1s/HTTP[^ ]* \([0-9]*\).*/\1/p' "$folder/answer"
}

[[ $(ask / alice) == 200 ]]
[[ $(ask /metrics nobody) == 200 ]]
grep -qi '^content-type: text/plain; version=0.0.4' "$folder/answer"
sed '1,/^\r$/d' "$folder/answer" | promtool check metrics

cat >"$folder/prometheus.yml" <<EOF
global: {scrape_interval: 1s}
scrape_configs: [{job_name: sluice, static_configs: [{targets: ["127.0.0.1:$port"]}]}]
EOF
for ((attempt = 0; ; ++attempt)); do
  at=127.0.0.1:$((20000 + RANDOM))
  prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" --web.listen-address="$at" \
    >"$folder/log" 2>&1 &
  children+=($!)
  until grep -q 'ready to receive web requests' "$folder/log" || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
  ! kill -0 $! 2>/dev/null || break
  ((attempt < 5)) || { cat "$folder/log"; exit 1; }
done
query() { promtool query instant "http://$at" "$1"; }

# Two scrapes with refusals between them.
for ((i = 0; i < 300; ++i)); do
  (ask / alice; ask / alice; ask / bob) >/dev/null
  [[ -z $(query 'rate(sluice_decisions_total{limiter="api",result="refused"}[1m]) > 0') ]] || break
  sleep 0.2
done
query 'sluice_decisions_total{limiter="api",result="refused",source="memory"} > 3' | grep -q 'limiter="api"'
query 'sluice_near_limit_total{limiter="api"} > 0' | grep -q 'limiter="api"'
[[ -z $(query '{__name__=~"sluice_.*",limiter="alice"}') ]]  # keys are no labels

queries=0
while IFS= read -r expression; do
  query "$(printf '%b' "$expression")" >"$folder/result" || { echo "the query fails: $expression"; exit 1; }
  queries=$((queries + 1))
done < <(sed -n 's/^ *"expr": "\(.*\)"$/\1/p' "$2" | sed 's/\\"/"/g')
((queries == 14)) || { echo "the dashboard has $queries queries"; exit 1; }
echo "$queries queries"
