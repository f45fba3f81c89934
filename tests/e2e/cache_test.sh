#!/usr/bin/env bash
# cache_test.sh - nothing in the cache is believed: whatever is swapped or changed there, the verdicts are right.
#
#     tests/e2e/cache_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_CACHE=$work/cache
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
n=0
failed=0

# judge SENTENCE FILE EXIT-CODE PATTERN
judge()
{
    local out code
    out=$("$program" eval "$root/tests/cheats/tasks/gate.py" "$root/tests/cheats/$2" 2>&1)
    code=$?
    n=$((n + 1))
    if [[ $code == "$3" ]] && grep -qE -- "$4" <<<"$out"; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    echo "# exit $code, wanted $3, pattern: $4"
    tail -15 <<<"$out" | sed 's/^/# /'
    failed=1
}

# The entry with a module that is not $1.
module_besides()
{
    local e
    for e in cache/sealed/*/; do
        [ -e "$e/kernel.so" ] && [ "$e" != "$1" ] && echo "$e"
    done
}

judge "an honest kernel passes" honest.cu 0 '^pass'
good=$(module_besides none)
judge "a wrong one does not" zeros.cu 1 'wrong'
bad=$(module_besides "$good")
n=$((n + 1))
if [ -n "$good" ] && [ -n "$bad" ]; then echo "ok $n - both left a module in the cache"; else echo "not ok $n - both left a module in the cache"; failed=1; fi

cp "$good/kernel.so" "$bad/kernel.so"
judge "the right module in the place of the wrong one: the wrong kernel still fails" zeros.cu 1 'does not match its seal'
judge "and was built again" zeros.cu 1 'wrong'
bad=$(module_besides "$good")
rm -rf "$bad"
cp -r "$good" "$bad"
judge "the whole entry of the right kernel under the name of the wrong one" zeros.cu 1 'does not match its seal'
for e in cache/sealed/*/; do for f in "$e"*; do printf 'x' | dd of="$f" bs=1 seek=30 conv=notrunc 2>/dev/null; done; done
judge "a byte changed in every file: everything is built again" honest.cu 0 'does not match its seal'
judge "and then found" honest.cu 0 '^pass'
rm cache/seal.key
judge "without the key nothing is believed" honest.cu 0 '^pass'
n=$((n + 1))
mode=$(stat -c %a cache)
if [ "$mode" = 700 ]; then echo "ok $n - the cache is nobody else's"; else echo "not ok $n - mode $mode"; failed=1; fi

echo "1..$n"
exit $failed
