#!/usr/bin/env bash
# help_test.sh - every command is in help, man page, docs and completion; every flag in its help.
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        failed=1
    fi
}

commands=$("$program" help | sed -n 's/^  cutegen \([a-z]*\( run\| apply\| status\| stop\)\{0,1\}\) .*/\1/p' | sort -u)
[ "$(wc -l <<<"$commands")" -ge 15 ]
ok "the list of commands is there" $?
while IFS= read -r name; do
    # shellcheck disable=SC2086  # two words are two arguments
    "$program" help $name | head -1 | grep -q "^cutegen $name"
    ok "help $name" $?
    grep -qE "(^|[\" ,])\.?[BIR]*\"? ?\"?${name//-/\\\\-}" "$root/data/cutegen.1.in"
    ok "the man page has $name" $?
    grep -q "cutegen $name" "$root/docs/commands.md"
    ok "docs/commands.md has $name" $?
done <<<"$commands"

switches=$("$program" help eval | grep -o -- '--\[no-\][a-z-]*' | sort)
[ -n "$switches" ] && [ -z "$(uniq -d <<<"$switches")" ]
ok "each switch has its own name" $?

# shellcheck source=/dev/null
complete_at()
{
    (
        PATH=$(dirname "$program"):$PATH
        . "$root/data/cutegen.bash"
        COMP_WORDS=(cutegen "$@")
        COMP_CWORD=$#
        _cutegen
        printf '%s\n' "${COMPREPLY[@]}"
    )
}
complete_at "do" | grep -qx doctor
ok "completion knows the commands" $?
complete_at run --budget-u | grep -qx -- --budget-usd
ok "completion knows the flags of a command" $?
complete_at edit ap | grep -qx apply
ok "completion knows the second word" $?

echo "1..$n"
exit $failed
