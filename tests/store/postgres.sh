#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# postgres.sh COMMAND... - run a command beside a PostgreSQL server of its own.
#
# The server lives in a new folder, listens on a Unix socket there and nowhere else, runs as an ordinary user, and
# ends with the command. $CUTEGEN_TEST_STORE is its address. Exit 77 (a skip) where PostgreSQL is not installed.
# $CUTEGEN_TEST_CLUSTER: where a suite keeps an empty cluster, made by the first test, for the others to copy.
# $POSTGRES_OPTIONS are given to the server; $POSTGRES_ENV (NAME=VALUE ...) is its environment, not the command's.
set -u
bin=
for dir in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -V) "$(dirname "$(command -v postgres || echo /none/x)")"; do
    [ ! -x "$dir/initdb" ] || bin=$dir
done
[ -n "$bin" ] || { echo "1..0 # SKIP no PostgreSQL here: apt-get install postgresql"; exit 77; }

top=$(mktemp -d "${TMPDIR:-/tmp}/cutegen-pg.XXXXXX")
user=$(id -un)
as_user() { "$@"; }
if [ "$(id -u)" = 0 ]; then # initdb refuses root
    user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    chown "$user" "$top"
    chmod 755 "$top"
    as_user() { setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups -- "$@"; }
fi
as_server() { as_user env ${POSTGRES_ENV:-} "$@"; }
finish()
{
    as_user "$bin/pg_ctl" -D "$top/data" -m immediate -s stop >/dev/null 2>&1
    rm -rf "$top"
}
trap finish EXIT
trap 'exit 130' INT TERM

cluster=${CUTEGEN_TEST_CLUSTER:-}
make_cluster()
{
    if [ -n "$cluster" ] && [ -d "$cluster" ]; then
        cp -a "$cluster" "$top/data"
        return
    fi
    as_user "$bin/initdb" -D "$top/data" -U cutegen -A trust -E UTF8 --locale=C --no-sync || return 1
    [ -n "$cluster" ] || return 0
    cp -a "$top/data" "$cluster.$$" && mv -T "$cluster.$$" "$cluster" 2>/dev/null || rm -rf "$cluster.$$" # another was first
}

cd "$top" || exit 1
if ! make_cluster >"$top/log" 2>&1 ||
    ! as_server "$bin/pg_ctl" -D "$top/data" -s -w -t 1200 -l "$top/data/log" \
        -o "-c listen_addresses='' -c unix_socket_directories='$top' ${POSTGRES_OPTIONS:-}" start; then
    cat "$top/log" "$top/data/log" >&2
    exit 1
fi
CUTEGEN_TEST_STORE="postgres:///postgres?host=$top&user=cutegen"
export CUTEGEN_TEST_STORE
PGDATA_OF_TEST=$top/data
# For tests that kill the server: starts it again, once the last of its processes has noticed.
POSTGRES_RESTART=$top/restart
cat >"$POSTGRES_RESTART" <<END
#!/bin/sh
cd '$top'
i=0
until $([ "$(id -u)" != 0 ] || echo "setpriv --reuid=$user --regid=$(id -g "$user") --clear-groups --") env ${POSTGRES_ENV:-} \\
    '$bin/pg_ctl' -D '$top/data' -s -w -t 1200 -l '$top/data/log' \\
    -o "-c listen_addresses='' -c unix_socket_directories='$top' ${POSTGRES_OPTIONS:-}" start >'$top/restart.log' 2>&1
do
    [ \$i -lt 6000 ] || { cat '$top/restart.log' '$top/data/log' >&2; exit 1; }
    sleep 0.2
    i=\$((i + 1))
done
END
chmod +x "$POSTGRES_RESTART"
export PGDATA_OF_TEST POSTGRES_RESTART
cd "$OLDPWD" || exit 1
"$@"
