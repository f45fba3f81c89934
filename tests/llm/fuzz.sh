#!/bin/sh
# fuzz.sh [SECONDS] - runs every libFuzzer target of the llm room for that long (default 60). Needs clang with
# libFuzzer. tests/llm/corpus/TARGET/ has seeds written by hand, TARGET.tar.xz what earlier runs found worth keeping; what this
# run finds is merged into it. Ends with status 1 at the first finding.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
corpus=tests/llm/corpus
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for target in edit fence stream; do
    upper=$(echo $target | tr a-z A-Z)
    clang -g -O1 -std=gnu17 -D_GNU_SOURCE -DCUTEGEN_VERSION='"fuzz"' -DTARGET_$upper -Isrc -Iinclude \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        tests/llm/fuzz.c src/llm/*.c src/model.c src/base/*.c -ljansson -lcurl -lsqlite3 -lpthread -lm -o "$out/$target"
    mkdir "$out/new" "$out/kept"
    tar -C "$out/new" -xJf $corpus/$target.tar.xz
    "$out/$target" -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=2048 -print_final_stats=1 \
        -dict=$corpus/$target.dict -artifact_prefix="$PWD/fuzz-$target-" "$out/new" $corpus/$target 2>"$out/log" || {
        tail -40 "$out/log"
        exit 1
    }
    echo "$target: $(grep -a DONE "$out/log"), $(grep -a number_of_executed_units "$out/log")"
    "$out/$target" -merge=1 -max_len=8192 "$out/kept" "$out/new" $corpus/$target 2>/dev/null
    tar -C "$out/kept" --sort=name --owner=0 --group=0 --mtime=@0 -cJf $corpus/$target.tar.xz .
    rm -rf "$out/new" "$out/kept"
done
