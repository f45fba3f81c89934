#!/usr/bin/env bash
# check.sh - what a contributor runs between edits: format, lint, unit tests; at most 2 minutes on 2 cores.
#
# Left out are end-to-end tests (suite e2e) and the unit tests below, which compile or run many kernels, start
# PyTorch or PostgreSQL, or wait on purpose; `make test` runs them all. The last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
MESON=${MESON:-meson}
build=build/release
passed=0
failed=0
SLOW='^(simt_ (bugs|checks|kernels|vectors|engine.*|fuzz|hopper|blackwell|low|count|programs|triton)|abi_ (plan|hostile|export)|'
SLOW+='toolchain_ (builder|tools|cache|errors by .*)|runner_ .*|oracle.*|eval_ (real|judge|oracle|evidence|a task is .*)|'
SLOW+='store_ (a writer|a full|.*on a server).*|llm (http|retrieve|edit property)|server_ .*|confine_ layers|set-up .*|'
SLOW+='command line|the room check.*|base_ proc)$'

count()
{
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $1"
    fi
}

tests/format.sh
count format $?
while IFS= read -r line; do
    case $line in
    ok*) count "$line" 0 ;;
    *) echo "$line" ;;
    esac
    case $line in "not ok"*) count "lint: ${line#not ok}" 1 ;; esac
done < <(tests/lint.sh)

mapfile -t names < <("$MESON" introspect $build --tests |
    python3 -c 'import json, sys; [print(t["name"]) for t in json.load(sys.stdin) if not any(s.endswith(":e2e") for s in t["suite"])]' |
    grep -vE "$SLOW")
[ ${#names[@]} -ge 20 ]
count "unit tests are found" $?
"$MESON" test -C $build --no-rebuild --num-processes "$(nproc)" --print-errorlogs "${names[@]}" |
    grep -E '(FAIL|TIMEOUT|ERROR|SKIP|^Ok:)'
count "${#names[@]} unit tests" "${PIPESTATUS[0]}"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
