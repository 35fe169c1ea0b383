#!/usr/bin/env bash
# promtool has no objection to a page of metrics on which every family has samples: promtool.sh PROGRAM, which prints it.
# Without a promtool, in SLUICE_PROMETHEUS (a folder) or on PATH, it is left out.
set -euo pipefail

PATH=${SLUICE_PROMETHEUS:+$SLUICE_PROMETHEUS:}$PATH
if ! command -v promtool >/dev/null; then
  echo "left out: there is no promtool"
  exit 77
fi
"$1" | promtool check metrics
