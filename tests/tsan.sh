#!/usr/bin/env bash
# tsan.sh - what has threads, under ThreadSanitizer: simt's workers and fibers, the loop (parallel calls, builds ahead, work
# while a model thinks, suites), the store, the MCP server, the live line, the doctor's probes.
#
#     tests/tsan.sh      builds build/tsan and runs them; the last line is `N passed, N failed`
#
# Fibers are annotated (src/simt/device/fiber.c). Kernels are compiled without the sanitizer: their own races are found
# by simt's checker, and tests/tsan.supp names the functions that touch their memory. The programs that cutegen starts are
# those of build/release: they have no threads of their own, and ThreadSanitizer does not survive their confinement. A
# forked child does not join the threads of its parent, so leaked threads are not reported.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
MESON=${MESON:-meson}
build=build/tsan
passed=0
failed=0
mkdir -p build
[ -f $build/build.ninja ] || CC=gcc "$MESON" setup $build --buildtype=debugoptimized -Db_sanitize=thread \
    -Db_lundef=false >$build.log 2>&1 || { tail -20 $build.log; exit 3; }
ninja -C $build src/cutegen tests/simt/test_simt_device tests/simt/test_simt_checks tests/cli/progress_test tests/store/store_store_test \
    >$build/compile.log 2>&1 || { grep -E 'error|FAILED' $build/compile.log | head; exit 3; }
mkdir -p $build/tests/simt
cp -a build/release/tests/simt/cache $build/tests/simt/ 2>/dev/null
export CUTEGEN_HOME=$PWD CUTEGEN_SERVER=no CUTEGEN_DEVICE=simt CUTEGEN_DRAWS=1 CUTEGEN_CACHE=$PWD/$build/tests/simt/cache
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:exitcode=66:die_after_fork=0:report_thread_leaks=0:log_path=$PWD/$build/report"

# cutegen with ThreadSanitizer among the other programs without it.
mixed=$PWD/$build/mixed
rm -rf "$mixed" && mkdir "$mixed" && cp $build/src/cutegen "$mixed" || exit 3
for program in build/release/src/*/cutegen-*; do
    [ ! -f "$program" ] || ln -s "$PWD/$program" "$mixed"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs

run()
{
    local name=$1
    shift
    rm -f $build/report.*
    if "$@" >$build/tsan.out 2>&1 && ! ls $build/report.* >/dev/null 2>&1; then
        echo "ok      $name"
        passed=$((passed + 1))
    else
        echo "not ok  $name"
        cat $build/report.* 2>/dev/null | head -60
        tail -5 $build/tsan.out
        failed=$((failed + 1))
    fi
}

# The sanitizer itself: a race is found, or nothing below says anything.
found()
{
    printf '%s\n' '#include <pthread.h>' 'static int x; static void *f(void *a) { x++; return a; }' \
        'int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); x++; return pthread_join(t, 0); }' >$build/race.c
    gcc -fsanitize=thread -g -o $build/race $build/race.c || return 1
    ! $build/race || return 1
    rm $build/report.*
}

# Candidates of a step asked for together and built at the same time, by a model that draws faults and steps.
parallel_calls()
{
    "$mixed/cutegen" run examples/swish.py --model "exec:python3 $PWD/bench/loop/stochastic.py 2 $work/draws" --no-report \
        --depth 1 --floor-stop 0 --search beam --parallel-calls 3
}
suite()
{
    printf '%s\n' examples/relu.py examples/swish.py examples/sigmoid.py >"$work/list"
    sed -i "s|^|$PWD/|" "$work/list"
    "$mixed/cutegen" suite "$work/list" --jobs 2 --depth 0
}

run "a race is found" found
run "the loop: parallel calls and builds" parallel_calls
run "the loop: work while the model thinks" tests/e2e/background_test.sh "$mixed/cutegen"
run "the loop: a suite, two tasks at a time" suite
run "the store: threads that share one" $build/tests/store/store_store_test
run "simt: workers and fibers" $build/tests/simt/test_simt_device
run "simt: the checker's shared state" $build/tests/simt/test_simt_checks
run "the MCP server: requests, streams, ten clients" python3 tests/mcp/protocol_test.py "$mixed/cutegen"
run "the live line" $build/tests/cli/progress_test
run "the doctor's probes" $build/src/cutegen doctor
echo "$passed passed, $failed failed"
[ $failed = 0 ]
