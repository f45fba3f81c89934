#!/usr/bin/env bash
# tsan.sh - what has threads, under ThreadSanitizer: simt's workers and fibers, the live line, the doctor's probes.
#
#     tests/tsan.sh      builds build/tsan and runs them; the last line is `N passed, N failed`
#
# Fibers are annotated (src/simt/device/fiber.c). Kernels are compiled without the sanitizer: their own races are found
# by simt's checker, and tests/tsan.supp names the functions that touch their memory. Left out: programs inside the
# confinement and the loop's two threads (src/loop/ask.c, suite.c), whose children ThreadSanitizer does not survive.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
MESON=${MESON:-meson}
build=build/tsan
passed=0
failed=0
mkdir -p build
[ -f $build/build.ninja ] || CC=gcc "$MESON" setup $build --buildtype=debugoptimized -Db_sanitize=thread \
    -Db_lundef=false >$build.log 2>&1 || { tail -20 $build.log; exit 3; }
ninja -C $build src/cutegen tests/simt/test_simt_device tests/simt/test_simt_checks tests/cli/progress_test \
    >$build/compile.log 2>&1 || { grep -E 'error|FAILED' $build/compile.log | head; exit 3; }
mkdir -p $build/tests/simt
cp -a build/release/tests/simt/cache $build/tests/simt/ 2>/dev/null
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:halt_on_error=1:exitcode=66" CUTEGEN_HOME=$PWD CUTEGEN_SERVER=no
export CUTEGEN_CACHE=$PWD/$build/tests/simt/cache

run()
{
    local name=$1
    shift
    if "$@" >$build/tsan.out 2>&1; then
        echo "ok      $name"
        passed=$((passed + 1))
    else
        echo "not ok  $name"
        grep -A12 'WARNING: ThreadSanitizer' $build/tsan.out || tail -5 $build/tsan.out
        failed=$((failed + 1))
    fi
}

# The sanitizer itself: a race is found, or nothing below says anything.
found()
{
    printf '%s\n' '#include <pthread.h>' 'static int x; static void *f(void *a) { x++; return a; }' \
        'int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); x++; return pthread_join(t, 0); }' >$build/race.c
    gcc -fsanitize=thread -g -o $build/race $build/race.c || return 1
    ! $build/race
}

run "a race is found" found
run "simt: workers and fibers" $build/tests/simt/test_simt_device
run "simt: the checker's shared state" $build/tests/simt/test_simt_checks
run "the live line" $build/tests/cli/progress_test
run "the doctor's probes" $build/src/cutegen doctor
echo "$passed passed, $failed failed"
[ $failed = 0 ]
