#!/bin/sh
set -e
rm -rf data
initdb -D data -A trust >/dev/null
postgres -D data -k $PWD -c listen_addresses= -c autovacuum=off >/dev/null 2>&1 &
server=$!
until pgbench -h $PWD -i -q postgres >/dev/null 2>&1; do sleep 0.1; done
pgbench -h $PWD -c 4 -t 1000 -n postgres >/dev/null 2>&1
kill -INT $server
wait $server || true
