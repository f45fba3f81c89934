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

commands=$("$program" help | sed -n 's/^  cutegen \([a-z]*\( run\| exec\| apply\| status\| stop\| install\)\{0,1\}\) .*/\1/p' | sort -u)
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

# A line ends where the next word would not fit, or a paragraph ends; what is indented stands for itself.
ragged=$(while IFS= read -r name; do
    # shellcheck disable=SC2086  # two words are two arguments
    "$program" help $name | sed '1,/^$/d; /^Flags/,$d' |
        awk '/^[^ ]/ { if (before && before + 1 + length($1) <= 80) print; before = length($0); next } { before = 0 }'
done <<<"$commands")
[ -z "$ragged" ]
ok "paragraphs of help fill their lines" $?

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

# What zsh and fish offer for the words "cutegen WORD...". Where the shell is not installed, what the file's own
# sed makes of the help stands for it.
zsh_at()
{
    # shellcheck disable=SC2016  # zsh's own variables
    zsh -f -c 'compdef() { :; }; compadd() { shift; print -rl -- "$@"; }; _files() { :; }
        source "$1"; shift; words=("$@"); CURRENT=$#words; _cutegen' zsh "$root/data/cutegen.zsh" "$program" "$@"
}

fish_at()
{
    local line="cutegen $*"
    HOME=$home PATH=$(dirname "$program"):$PATH \
        fish --no-config -c "source $root/data/cutegen.fish; complete -C '$line'" 2>/dev/null | cut -f1
}

commands_by_sed()
{
    local script
    script=$(sed -n "s/.*sed -n '\(s[^']*cutegen [^']*\)'.*/\1/p" "$1" | head -1)
    "$program" help | sed -n "$script"
}

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
first_words=$(sed 's/ .*//' <<<"$commands" | sort -u)
for shell in zsh fish; do
    if command -v "$shell" >/dev/null; then
        offered=$("${shell}_at" "" | sort -u)
        "${shell}_at" run --budget-u | grep -qx -- --budget-usd
        ok "completion of $shell knows the flags of a command" $?
        "${shell}_at" server st | grep -qx stop
        ok "completion of $shell knows the second word" $?
    else
        offered=$(commands_by_sed "$root/data/cutegen.$shell" | sort -u)
    fi
    while IFS= read -r name; do
        grep -qx -- "$name" <<<"$offered"
        ok "completion of $shell knows $name" $?
    done <<<"$first_words"
done

version=$("$program" version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+')
grep -q "version: '$version'" "$root/meson.build" && ! grep -q "$version" "$root/data/cutegen.1.in"
ok "the version stands in one place" $?

echo "1..$n"
exit $failed
