#!/usr/bin/env bash
# cheats.sh - every cheat of tests/cheats on a GPU; rows go into the table OUT, with the commit they were judged at.
#
#     [JOBS=8] [COMMIT=abc1234] bench/gpu/cheats.sh PATH-TO-CUTEGEN OUT.md [--quick] [NAME...]
#
# Several at a time, each with a server and a lease of its own: verdicts are wanted here, not times. Those named come first, in
# that order, and alone unless ALL=1. Cheats whose times are compared with the honest kernel's follow one by one. Each row
# is in OUT as soon as it is judged. Exit code 1: one got away.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
cutegen=$1 out=$2
shift 2
commit=${COMMIT:-$(git -C "$here" rev-parse --short HEAD 2>/dev/null)}
if [ "${ALL:-0}" = 1 ]; then
    cd "$here/tests/cheats" || exit 3
    for file in *.cu foreign/*.py; do
        name=$(basename "${file%.*}")
        case " $* " in *" $name "*) ;; *) set -- "$@" "$name" ;; esac
    done
    cd "$here" || exit 3
fi
exec python3 "$here/tests/cheats/run.py" "$cutegen" --device cuda:0 --jobs "${JOBS:-8}" --apart --at "$commit" --table "$out" "$@"
