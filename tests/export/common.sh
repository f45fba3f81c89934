# common.sh - sourced by the tests of exports: a folder of their own, the suite's warm server or one of their own, TAP.
# shellcheck shell=bash disable=SC2034,SC2154  # a test sets $here and reads $failed at its end
#
#     . "$here/common.sh"                          $1 is the path to cutegen; sets $program and $work
#     ok "it is exported" 'pattern' "$said"        about a text
#     skip "another one" "why"
#     echo "1..$n"; exit $failed                   at the end
program=$(readlink -f "$1")
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_PROGRAM=$program
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt}
export PYTHONDONTWRITEBYTECODE=1 # verify refuses a folder with a __pycache__
n=0
failed=0

ok()
{
    n=$((n + 1))
    if grep -qE -- "$2" <<<"$3"; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf '%s\n' "# wanted $2 in:" "$3" | head -15 | sed '2,$s/^/# /'
        failed=1
    fi
}

skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

python() { "$here/../oracle/run.sh" "$@" 2>&1; }
