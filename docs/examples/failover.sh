#!/usr/bin/env bash
# Runs two workers behind three Sentinels, a master and a replica of their own, and fails the master over meanwhile.
set -euo pipefail

if [[ ${SLUICE_NO_REDIS:-} == 1 ]]; then
  echo "left out, because SLUICE_NO_REDIS=1"
  exit 77
fi
server=${SLUICE_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)}
client=$(command -v redis-cli || command -v valkey-cli)
folder=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$folder"' EXIT

free_ports() {  # as many as asked for; the system's own range is left to clients
  local port found=0
  while ((found < $1)); do
    port=$((20000 + RANDOM % 12000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
    echo "$port"
    found=$((found + 1))
  done
}
ask() { "$client" -p "$1" "${@:2}" 2>/dev/null || true; }
await() {  # port, command, and a part of the reply
  for _ in {1..600}; do
    [[ $(ask "$1" $2) == *"$3"* ]] && return
    sleep 0.05
  done
  echo "no '$3' from port $1" >&2
  exit 1
}

ports=($(free_ports 5))
start() {  # port, further arguments
  mkdir "$folder/$1"
  "$server" --port "$1" --bind 127.0.0.1 --save '' --dir "$folder/$1" "${@:2}" >"$folder/$1.log" &
  pids+=($!)
}
start "${ports[0]}"
await "${ports[0]}" ping PONG
start "${ports[1]}" --replicaof "127.0.0.1 ${ports[0]}" --repl-diskless-sync-delay 0
await "${ports[1]}" "info replication" "master_link_status:up"
for port in "${ports[@]:2}"; do
  mkdir "$folder/$port"
  printf '%s\n' "port $port" "bind 127.0.0.1" "dir $folder/$port" "sentinel monitor mymaster 127.0.0.1 ${ports[0]} 2" \
    "sentinel down-after-milliseconds mymaster 500" "sentinel failover-timeout mymaster 2000" >"$folder/$port.conf"
  "$server" "$folder/$port.conf" --sentinel >"$folder/$port.log" &
  pids+=($!)
done
for port in "${ports[@]:2}"; do
  await "$port" "sentinel master mymaster" $'num-other-sentinels\n2'
  await "$port" "sentinel master mymaster" $'num-slaves\n1'
done

url=redis+sentinel://127.0.0.1:${ports[2]},127.0.0.1:${ports[3]}/mymaster
"$1" first "$url" &
first=$!
"$1" second "$url" &
second=$!
pids+=("$first" "$second")
sleep 2
has_replaced_master() { [[ $(ask "${ports[1]}" role) == master* ]]; }
for _ in {1..10}; do  # Sentinels give up if no replica seems good at that moment
  ask "${ports[2]}" sentinel failover mymaster >/dev/null
  for _ in {1..50}; do
    has_replaced_master && break 2
    sleep 0.05
  done
done
wait "$first" "$second"
echo "the replica is the $(ask "${ports[1]}" role | head -n 1)"
