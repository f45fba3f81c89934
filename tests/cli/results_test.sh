#!/usr/bin/env bash
# results_test.sh - a skip for want of a newer torch is taken on an old one only, for want of Triton or the CuTe DSL always; any other never.
set -u
here=$(cd "$(dirname "$0")" && pwd)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cat >"$log" <<'END'
{"name": "passes", "result": "OK", "stdout": "ok 1 - a # SKIP no user namespaces\n"}
{"name": "part", "result": "OK", "stdout": "ok 1 - a\nok 2 - compiles # SKIP needs torch 2.4 or newer\n"}
{"name": "whole", "result": "SKIP", "stderr": "needs torch 2.4 or newer\n"}
{"name": "other", "result": "SKIP", "stderr": "no compiler\n"}
{"name": "silent", "result": "SKIP"}
{"name": "tl", "result": "SKIP", "stdout": "python3 needs Triton 3.5 or newer\n"}
{"name": "dsl", "result": "SKIP", "stdout": "1..0 # SKIP needs nvidia-cutlass-dsl (CUTEGEN_DSL_PYTHON)\n"}
END
n=0
failed=0
same() # SENTENCE NEW_TORCH WANTED
{
    n=$((n + 1))
    got=$("$here/../results.py" "$log" "$2" | tr '\t\n' '=,')
    [ "$got" = "$3" ] && echo "ok $n - $1" && return
    echo "not ok $n - $1"
    echo "# $got"
    failed=1
}
same "an old torch excuses what names it" no \
    "OK=passes,OK=part,OLD TORCH=part: compiles,OLD TORCH=whole,SKIP=other,SKIP=silent,NO TRITON=tl,NO DSL=dsl,"
same "a new torch excuses nothing" yes "OK=passes,OK=part,SKIP=part: compiles,SKIP=whole,SKIP=other,SKIP=silent,NO TRITON=tl,NO DSL=dsl,"
echo "1..$n"
exit $failed
