#!/bin/sh
# The page of the parameters is what sluice-sim prints: reference.sh SLUICE-SIM PAGE FOLDER
set -e
"$1" parameters >"$3/reference"
"$1" metrics >>"$3/reference"
awk '/^```/ { inside = !inside; next } inside' "$2" | diff "$3/reference" -
