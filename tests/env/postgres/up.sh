#!/usr/bin/env bash
# up.sh DIR [SETTING=VALUE...] - starts a throw-away PostgreSQL server in DIR and
# prints its URL. It listens on a Unix socket in DIR only. Safe to repeat: a
# server that runs is left alone, one that was stopped starts with its data.
# root drops to the user postgres. Without server binaries: exit status 69.
# Settings replace those below, such as fsync=on. A certificate in DIR/server.crt,
# with its key in DIR/server.key, turns TLS on.
set -euo pipefail
dir=${1:?up.sh DIR [SETTING=VALUE...]}
shift
bin=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -V | tail -1 || true)}
[ -x "${bin:-}/initdb" ] || bin=$(dirname "$(command -v initdb || echo /nonexistent/initdb)")
if [ ! -x "$bin/initdb" ]; then
    echo "no PostgreSQL server is installed (apt-get install postgresql)" >&2
    exit 69
fi
as() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=postgres --regid="$(id -g postgres)" --clear-groups \
            env -i PATH="$bin:/usr/bin:/bin" LC_ALL=C.UTF-8 HOME=/tmp "$@"
    else
        env LC_ALL=C.UTF-8 "$@"
    fi
}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
tls=
[ ! -e "$dir/server.key" ] || tls=" -c ssl=on -c ssl_cert_file='$dir/server.crt' -c ssl_key_file='$dir/server.key'"
[ "$(id -u)" != 0 ] || chown postgres "$dir" ${tls:+"$dir/server.key"}
cd /
if ! as "$bin/pg_ctl" -D "$dir/data" status >/dev/null 2>&1; then
    if [ ! -e "$dir/data/PG_VERSION" ]; then
        as "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-sync \
            --no-instructions >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
    fi
    settings="-c listen_addresses= -c unix_socket_directories='$dir' -c max_connections=200"
    # What was committed outlasts a server that is killed, not a machine.
    settings+=" -c fsync=off -c full_page_writes=off$tls"
    for setting in "$@"; do settings+=" -c $setting"; done
    as "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 -s start -o "$settings" \
        </dev/null || { tail -5 "$dir/log" >&2; exit 1; }
fi
echo "postgres://postgres@/postgres?host=$dir"
