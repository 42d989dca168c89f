#!/bin/sh
cat >nginx.conf <<END
pid nginx.pid;
error_log stderr;
worker_processes 2;
events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
  server { listen 127.0.0.1:18089; location / { return 200 hello; } } }
END
nginx -p . -c nginx.conf -g 'daemon off;' 2>/dev/null &
server=$!
until ab -q -n 1 http://127.0.0.1:18089/ >/dev/null 2>&1; do sleep 0.1; done
ab -q -n 20000 -c 8 http://127.0.0.1:18089/ >/dev/null
kill $server
wait $server || true
