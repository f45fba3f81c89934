#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# claims.sh [JOBS [CLIENTS...]] - claims a second on a PostgreSQL server of its own and on a SQLite file.
#
# A claim is a whole job: claimed in one transaction, ended in another. Once with every commit on the disk, as a server
# comes, and once with synchronous_commit=off, which shows what the disk costs.
set -eu
cd "$(dirname "$0")/../.."
jobs=${1:-8000}
[ $# = 0 ] || shift
clients=${*:-1 4 16}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cc -O2 -std=gnu17 -D_GNU_SOURCE -DCUTEGEN_VERSION='"bench"' -Isrc -Iinclude bench/store/claims.c src/store/*.c src/model.c \
    src/base/*.c -ljansson -lsqlite3 -lpthread -ldl -lm -o "$top/claims"
nproc | sed 's/$/ cores/'
echo "clients     jobs       ms     jobs/s  client ms  server ms   of CPU time for a job"
for how in on off; do
    echo "PostgreSQL, synchronous_commit=$how"
    for n in $clients; do
        POSTGRES_OPTIONS="-c synchronous_commit=$how" tests/store/postgres.sh "$top/claims" "$top/runs" "$jobs" "$n"
    done
done
echo "SQLite"
for n in $clients; do
    rm -rf "$top/runs"
    "$top/claims" "$top/runs" "$((jobs / 8))" "$n"
done
