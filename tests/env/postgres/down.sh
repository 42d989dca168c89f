#!/usr/bin/env bash
# down.sh DIR [--keep] - stops the server that up.sh started in DIR, at once and
# without goodbye to its clients, and removes DIR unless --keep. Safe to repeat.
set -uo pipefail
dir=${1:?down.sh DIR [--keep]}
[ -d "$dir" ] || exit 0
bin=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -V | tail -1 || true)}
[ -x "${bin:-}/pg_ctl" ] || bin=$(dirname "$(command -v pg_ctl || echo /nonexistent/pg_ctl)")
cd /
as() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=postgres --regid="$(id -g postgres)" --clear-groups "$@"
    else
        "$@"
    fi
}
as "$bin/pg_ctl" -D "$dir/data" -m immediate -w -t 30 -s stop 2>/dev/null
[ "${2:-}" = --keep ] || rm -rf "$dir"
exit 0
