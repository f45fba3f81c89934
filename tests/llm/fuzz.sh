#!/bin/sh
# fuzz.sh [SECONDS] - runs every libFuzzer target of the llm room for that long (default 60), from and
# into tests/llm/corpus. Needs clang with libFuzzer. Ends with status 1 at the first finding.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
out=${TMPDIR:-/tmp}/cutegen-fuzz.$$
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
for target in edit fence stream; do
    upper=$(echo $target | tr a-z A-Z)
    clang -g -O1 -std=gnu17 -D_GNU_SOURCE -DCUTEGEN_VERSION='"fuzz"' -DTARGET_$upper -Isrc -Iinclude \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        tests/llm/fuzz.c src/llm/*.c src/model.c src/base/*.c -ljansson -lcurl -lsqlite3 -lpthread -lm -o "$out/$target"
    mkdir -p "$out/new-$target" tests/llm/corpus/$target
    "$out/$target" -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=2048 -print_final_stats=1 \
        -dict=tests/llm/corpus/$target.dict -artifact_prefix="$out/" \
        "$out/new-$target" tests/llm/corpus/$target 2>"$out/$target.log" || {
        tail -40 "$out/$target.log"
        exit 1
    }
    grep -E "stat::number_of_executed_units|cov:" "$out/$target.log" | tail -2
    # Keeps what reaches something new, small.
    "$out/$target" -merge=1 -max_len=8192 tests/llm/corpus/$target "$out/new-$target" 2>/dev/null || true
done
