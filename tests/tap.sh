# tap.sh - sourced by tests in shell: a command, and a line of TAP about it.
# shellcheck shell=bash disable=SC2034  # a test reads $failed at its end
#
#     run cutegen runs                                 sets $out and $code
#     ok "the list has the run" 0 'pattern'            about the last command; an exit code may be a pattern
#     skip "another one" "why"
#     echo "1..$n"; exit $failed                       at the end
n=0
failed=0
out=
code=0

run() { out=$("$@" 2>&1); code=$?; }

ok()
{
    n=$((n + 1))
    # shellcheck disable=SC2053  # a pattern
    if [[ $code == $2 ]] && grep -qE -- "$3" <<<"$out"; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    echo "# exit $code, wanted $2, pattern: $3"
    tail -30 <<<"$out" | sed 's/^/# /'
    failed=1
}

skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
