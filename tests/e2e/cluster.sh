#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cluster.sh CUTEGEN [TASKS [KILLS [MEAN_S]]] - cluster_test.py beside a PostgreSQL and a Slurm of its own, with faults.c
# loaded into the server (a disk that can be full) and into some workers (a clock that is wrong).
set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/cutegen-faults.XXXXXX")
chmod 755 "$folder" # the server is another user where the test is root
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
if ${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE "$here/faults.c" -o "$folder/faults.so" -ldl; then
    FAULTS_LIBRARY=$folder/faults.so FAULTS_FULL_FLAG=$folder/full
    POSTGRES_ENV="LD_PRELOAD=$FAULTS_LIBRARY FAULTS_FULL=$FAULTS_FULL_FLAG"
    export FAULTS_LIBRARY FAULTS_FULL_FLAG POSTGRES_ENV
else
    echo "# no full disk and no wrong clock: faults.c does not compile"
fi
"$here/../store/postgres.sh" "$here/slurm.sh" python3 "$here/cluster_test.py" "$@"
