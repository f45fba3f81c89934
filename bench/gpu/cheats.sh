#!/usr/bin/env bash
# cheats.sh - every cheat of tests/cheats on a GPU; the table goes to OUT.
#
#     bench/gpu/cheats.sh PATH-TO-CUTEGEN OUT.md [--quick] [NAME...]
#
# Several at a time: verdicts are wanted here, not times. Exit code 1: one got away.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
cutegen=$1 out=$2
shift 2
exec python3 "$here/tests/cheats/run.py" "$cutegen" --device cuda:0 --jobs "${JOBS:-6}" --table "$out" "$@"
