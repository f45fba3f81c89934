#!/usr/bin/env bash
# format.sh - every C file looks as clang-format 14 would write it.
#
#     tests/format.sh            names the files that differ, and how
#     tests/format.sh --write    rewrites them
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}

format=
for f in clang-format-14 clang-format "$TOOLS/venv/bin/clang-format"; do
    if command -v "$f" >/dev/null && "$f" --version | grep -q 'version 14\.'; then
        format=$f
        break
    fi
done
[ -n "$format" ] || { echo "format: no clang-format 14; run setup/setup.sh test" >&2; exit 3; }

mapfile -t files < <(find src tests include -name '*.[ch]' | sort)
if [ "${1:-}" = --write ]; then
    "$format" -i "${files[@]}"
    exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! printf '%s\0' "${files[@]}" | xargs -0 -n 40 -P "$(nproc)" "$format" --dry-run --Werror 2>"$log"; then
    grep -E 'error:' "$log" | cut -d: -f1 | sort | uniq -c
    echo "format: run make format" >&2
    exit 1
fi
