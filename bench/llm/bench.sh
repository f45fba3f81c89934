#!/bin/sh
# bench.sh - 1,000 sequential and 64 parallel calls against the local server: overhead, memory, leaks.
# With SANITIZE=1 it is built with ASan and UBSan (leaks end it with an error; times then mean nothing).
set -eu
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'kill $server 2>/dev/null; rm -rf "$out"' EXIT
flags="-O2 -g"
[ -z "${SANITIZE:-}" ] || flags="-O1 -g -fsanitize=address,undefined"
cc $flags -std=gnu17 -D_GNU_SOURCE -DCUTEGEN_VERSION='"bench"' -Isrc -Iinclude bench/llm/bench.c src/llm/*.c src/llm/*/*.c src/model.c \
    src/base/*.c -ljansson -lcurl -lsqlite3 -lpthread -lm -o "$out/bench"
mkfifo "$out/in"
python3 tests/llm/fault_server.py - <"$out/in" >"$out/port" &
server=$!
exec 9>"$out/in"
while [ ! -s "$out/port" ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat "$out/port")/ok/bench
unset OPENAI_API_KEY http_proxy
"$out/bench" "$url" sequential "${1:-1000}"
"$out/bench" "$url" parallel 64 "${2:-16}"
