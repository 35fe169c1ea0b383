#!/usr/bin/env bash
# Runs a program with the path of a fresh redis-server's unix socket as its argument, behind $PREFIX.
set -euo pipefail

if [[ ${SLUICE_NO_REDIS:-} == 1 ]]; then
  echo "left out, because SLUICE_NO_REDIS=1"
  exit 77
fi
server=${SLUICE_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)}
folder=$(mktemp -d)
"$server" --port 0 --unixsocket "$folder/redis.sock" --save '' --dir "$folder" >"$folder/log" &
trap 'kill $!; wait; rm -rf "$folder"' EXIT
for _ in {1..500}; do
  [[ -S $folder/redis.sock ]] && break
  sleep 0.02
done
"$@" "${PREFIX:-}$folder/redis.sock"
