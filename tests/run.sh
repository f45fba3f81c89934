#!/usr/bin/env bash
# run.sh - all tests: format, lint, clang's warnings, then every test in release and under sanitizers.
#
# What no test waits for (lint, the other builds) is done beside the release tests, at the lowest priority: there is
# always a test that waits. Tests that want a warm server and are not about it share one ($CUTEGEN_TEST_RUNTIME).
# Each step counts as one or more tests; the last line is `N passed, N failed`.
# Logs: build/*/meson-logs/. Called by `make test`, after set-up.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
MESON=${MESON:-meson}
passed=0
failed=0
bad=()
old_torch=() # skipped by name, since this torch is too old for them
no_triton=() # skipped by name, since Triton is not here
no_dsl=()    # likewise the CuTe DSL

say() { printf '\n== %s\n' "$*"; }
count()
{
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        bad+=("$1")
    fi
}

# configure DIR CC ARGUMENTS... : once; ninja looks after the rest.
configure()
{
    local dir=$1 cc=$2
    shift 2
    [ -f "$dir/build.ninja" ] || CC=$cc "$MESON" setup "$dir" "$@" >"$dir.log" 2>&1 || { tail -20 "$dir.log"; return 1; }
}

compile()
{
    ninja -C "$1" >"$1/compile.log" 2>&1 || { grep -E 'error|warning|FAILED' "$1/compile.log" | head -20; return 1; }
}

# Runs Meson's tests and adds its counts to ours.
run_tests()
{
    local dir=$1 log=$1/meson-logs/testlog.json name before=$failed rc
    shift
    rm -f "$log"
    export CUTEGEN_TEST_RUNTIME=$shared/${dir##*/} CUTEGEN_TEST_CLUSTER=$shared/postgres
    "$MESON" test -C "$dir" --no-rebuild --print-errorlogs "$@" | grep --line-buffered -vE '^(ninja:|$)'
    rc=${PIPESTATUS[0]}
    CUTEGEN_RUNTIME=$CUTEGEN_TEST_RUNTIME "$dir/src/cutegen" server stop >/dev/null 2>&1
    [ -s "$log" ] || { count "$dir: no test ran" 1; return; }
    while IFS=$'\t' read -r result name; do
        case $result in
        OK | EXPECTEDFAIL) count "$name" 0 ;;
        "OLD TORCH") old_torch+=("$dir: $name") ;;
        "NO TRITON") no_triton+=("$dir: $name") ;;
        "NO DSL") no_dsl+=("$dir: $name") ;;
        SKIP) case $name in *"a tarball runs from anywhere") ;; *) count "$dir: $name was skipped" 1 ;; esac ;;
        *) count "$dir: $name ($result)" 1 ;;
        esac
    done < <(tests/results.py "$log" "$new_torch")
    # What Meson itself says counts too: its log may be unreadable.
    [ "$rc" = 0 ] || [ $failed -gt $before ] || count "$dir: meson test ended with $rc" 1
}

# The Python that set-up found or made: with it named, no test may skip for want of torch.
CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(cat "${TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}/python" 2>/dev/null || true)}
export CUTEGEN_PYTHON
tests/torch_at_least.sh 2.4 && new_torch=yes || new_torch=no
jobs=$(($(nproc) + 3)) # some always wait: for a deadline, for a server

# The builds that the release tests do not need, and lint; called in a process of its own, by `run.sh --others`. The
# sanitizer build comes first: its tests need not wait for the rest.
build_others()
{
    # Lines for the traces, nothing for a debugger, few passes: half of the compiler's time, and the tests are no slower.
    configure build/debug "${CC:-gcc}" -Ddebug=true -Dc_args=-g1 -Doptimization=g -Db_sanitize=address,undefined \
        -Db_lundef=false && compile build/debug
    echo $? >build/debug.rc
    tests/lint.sh >build/lint.log 2>&1 &
    tests/clang.sh build/release >build/clang.log 2>&1
    echo $? >build/clang.rc
    wait
}

mkdir -p build
[ "${1:-}" != --others ] || { build_others; exit; }
shared=$(mktemp -d /tmp/cutegen-test.XXXXXX) # sockets of servers: their paths must be short
others=
trap '[ -z "$others" ] || kill -- "-$others" 2>/dev/null; rm -rf "$shared"' EXIT
rm -f build/clang.rc build/debug.rc build/lint.log

tests/format.sh >build/format.log 2>&1 &
format=$!

say "release: gcc build and tests"
configure build/release "${CC:-gcc}" && compile build/release
released=$?
count "gcc, -Werror" $released
setsid nice -n 19 tests/run.sh --others >build/others.log 2>&1 &
others=$!
[ $released != 0 ] || run_tests build/release --num-processes "$jobs"

say "format"
wait $format
formatted=$?
cat build/format.log
count "format" $formatted

say "sanitizers: build"
while [ ! -s build/debug.rc ] && kill -0 $others 2>/dev/null; do sleep 1; done
sanitized=$(cat build/debug.rc 2>/dev/null || echo 1)
count "sanitizers, -Werror" "$sanitized"

if [ "$sanitized" = 0 ]; then
    say "sanitizers: tests"
    # The translator runs again, sanitized; what the compiler makes of the same C is known (the key is the C itself).
    for room in simt oracle abi; do
        mkdir -p build/debug/tests/$room && cp -a build/release/tests/$room/cache build/debug/tests/$room/ 2>/dev/null
    done
    # Traces of allocations are cut at eight calls: walking the stack takes a part of every malloc().
    ASAN_OPTIONS=detect_leaks=1:malloc_context_size=8 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        run_tests build/debug --no-suite sampled --num-processes "$jobs"
fi

say "clang: warnings"
wait $others
others=
cat build/others.log
[ "$(cat build/clang.rc 2>/dev/null)" = 0 ] || grep -hE -A 4 'error|warning' build/clang.log | head -20
count "clang, -Werror" "$(cat build/clang.rc 2>/dev/null || echo 1)"

say "lint"
while read -r line; do
    echo "$line"
    case $line in
    ok*) count "$line" 0 ;;
    "not ok"*) count "lint: ${line#not ok}" 1 ;;
    esac
done <build/lint.log
grep -q '^ok' build/lint.log || count "lint: no check ran" 1

echo
for name in "${old_torch[@]}"; do echo "skipped: $name: needs torch 2.4 or newer (make torch)"; done
for name in "${no_triton[@]}"; do echo "skipped: $name: needs Triton 3.5 or newer (make torch on x86_64)"; done
for name in "${no_dsl[@]}"; do echo "skipped: $name: needs nvidia-cutlass-dsl (docs/cutedsl.md)"; done
for name in "${bad[@]}"; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
