#!/bin/sh
redis-server --port 0 --unixsocket "$PWD/r.sock" --save '' --daemonize no > /dev/null & server=$!
until [ -S r.sock ]; do sleep 0.01; done
redis-benchmark -q -s "$PWD/r.sock" -n 6000 -c 4 -t set,get > /dev/null
kill $server; wait $server; rm -f r.sock
