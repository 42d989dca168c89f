#!/usr/bin/env bash
# Records every file of this folder again: record.sh PINWISE (a binary). It takes a few minutes.
#
# Needs root, Linux 5.8 or later, gcc, gzip, python3, xz, and util-linux (unshare, mount). It
# changes nothing outside this folder: it works in namespaces of its own, in which the host is named
# "vm", /home/user is an empty folder in memory, and the kernel's command line is a plain one.
# The records have figures of the machine at hand, and names of programs that are busy there: best
# run it on an idle one with two CPUs.
set -eu

if [ -z "${RECORDING:-}" ]; then
    RECORDING=$(cd "$(dirname "$0")" && pwd)
    export RECORDING
    exec unshare --uts --mount --ipc bash "$0" "$(realpath "$1")"
fi

hostname vm
mount -t tmpfs none /mnt
mkdir /mnt/records /mnt/bin
mount --bind "$RECORDING" /mnt/records
cp "$1" /mnt/bin/pinwise
echo 'BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro console=ttyS0' > /mnt/cmdline
mount --bind /mnt/cmdline /proc/cmdline
mount -t tmpfs none /home
mkdir /home/user
cd /home/user

export HOME=/home/user PATH=/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
export PINWISE_STORE=sqlite:/home/user/store.db
unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME OLDPWD

# Runs a command of pinwise that stores a record, and keeps it as FILE.json ("-": in the store only).
store() {
    local file=$1 begin=$SECONDS
    shift
    pinwise "$@" > said 2>&1 || [ $? = "${status:-0}" ] || { cat said; exit 1; }
    if [ "$file" != - ]; then pinwise record show last --format json > "/home/user/new/$file.json"; fi
    echo "$file: $((SECONDS - begin)) s"
}

# Runs a command of pinwise that stores nothing, and keeps what it prints as FILE.json.
print() {
    local file=$1
    shift
    pinwise -q --format json "$@" > "/home/user/new/$file.json"
    echo "$file"
}

# What the programs work on: the requests of a web server, and what they look for.
python3 - <<'PYTHON'
import random
chance = random.Random(1)
agents = ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64)", "Wget/1.21", "okhttp/4.12"]
with open("access.log", "w") as log:
    for second in range(60000):
        address = "10.%d.%d.%d" % (chance.randrange(4), chance.randrange(30), chance.randrange(250))
        page = "/item/%d" % min(int(chance.expovariate(0.002)), 4000)
        log.write('%s - - [%02d:%02d:%02d] "GET %s" %d %d "%s"\n' % (
            address, second // 3600, second // 60 % 60, second % 60, page,
            chance.choice([200, 200, 200, 304, 404]), chance.randrange(200, 90000),
            chance.choice(agents)))
PYTHON
cut -d' ' -f1 access.log | head -n 50000 | LC_ALL=C sort -u > known.txt

# Threads that price orders and enter them in a ledger, under one lock.
cat > orders.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned ledger[4096];
static int orders_each;
static __attribute__((noinline)) unsigned price(unsigned order) {
    for (int step = 0; step < 1000000; step++) order = order * 1664525 + 1013904223;
    return order;
}
static __attribute__((noinline)) void book(unsigned value) {
    pthread_mutex_lock(&ledger_lock);
    for (int step = 0; step < 2000000; step++) ledger[(value + step) % 4096] += value ^ step;
    pthread_mutex_unlock(&ledger_lock);
}
static void *work(void *start) {
    for (int order = 0; order < orders_each; order++) book(price(order + *(int *)start));
    return NULL;
}
int main(int count, char **words) {
    int threads = atoi(words[1]), total = atoi(words[2]), starts[64];
    pthread_t ids[64];
    struct timespec begin, end;
    orders_each = total / threads;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < threads; i++) {
        starts[i] = i * 1000;
        pthread_create(&ids[i], NULL, work, &starts[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    printf("%.1f orders/s\n", orders_each * threads / seconds);
    return ledger[0] == 1;
}
C
gcc -g -O1 -pthread -o orders orders.c

# Two threads that hand numbers over a queue of one place, and spin until it is free or full.
cat > queue.c <<'C'
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static _Atomic int full;
static int place, total;
static __attribute__((noinline)) void wait_for(int state) {
    while (atomic_load_explicit(&full, memory_order_acquire) != state) _mm_pause();
}
static __attribute__((noinline)) int make(int number) {
    for (int step = 0; step < 150000; step++) number = number * 1103515245 + 12345;
    return number;
}
static void *produce(void *none) {
    for (int number = 0; number < total; number++) {
        int made = make(number);
        wait_for(0);
        place = made;
        atomic_store(&full, 1);
    }
    return none;
}
int main(int count, char **words) {
    pthread_t producer;
    unsigned sum = 0;
    total = atoi(words[1]);
    pthread_create(&producer, NULL, produce, NULL);
    for (int number = 0; number < total; number++) {
        wait_for(1);
        sum += place;
        atomic_store(&full, 0);
    }
    pthread_join(producer, NULL);
    return sum == 1;
}
C
gcc -g -O2 -pthread -o queue queue.c

# Counts the words of a file: in a list (the first version), in a table (the second).
cat > count.c <<'C'
#include <stdio.h>
#include <string.h>
struct word { struct word *next; const char *text; int times; };
#ifdef TABLE
#define LISTS 65536
#else
#define LISTS 512
#endif
static struct word *lists[LISTS], words[1000000];
static char text[16000000];
static int different;
static __attribute__((noinline)) unsigned hash(const char *word) {
    unsigned sum = 5381;
    while (*word) sum = sum * 33 + (unsigned char)*word++;
    return sum;
}
static __attribute__((noinline)) void add(const char *word) {
    struct word **at = &lists[hash(word) % LISTS];
    while (*at && strcmp((*at)->text, word)) at = &(*at)->next;
    if (!*at) {
        *at = &words[different++];
        **at = (struct word){ .text = word };
    }
    (*at)->times++;
}
static __attribute__((noinline)) void split(char *word) {
    for (char *end; *word; word = end + 1) {
        end = word + strcspn(word, " \n");
        if (!*end) break;
        *end = 0;
        add(word);
    }
}
int main(int count, char **names) {
    FILE *file = fopen(names[1], "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    split(text);
    printf("%d different words\n", different);
}
C

# A desktop with two last-level caches, whose system puts threads on any idle CPU.
cat > desktop.toml <<'TOML'
topology = "package:1 [numa(memory=64GB)] l3:2(size=16MB) l2:4(size=512KB) core:1 pu:2"
[performance]
policy = "random-idle"
rebalance_s = 0.05
[workload.default]
base_s = 1.2
threads = 8
[workload.default.demand]
issue_share = 0.75
memory_share = 0.1
gb_per_s = 1.0
private_bytes = 400000
exchanges_per_s = 20000.0
[noise]
sd = 0.02
[[jitter.cause]]
kind = "cpu-interrupt"
name = "local_timer"
rate = 250.0
median_us = 6.5
sd = 0.4
[[jitter.cause]]
kind = "interrupt"
name = "enp5s0-rx-0"
irq = 61
cpus = "2"
rate = 180.0
median_us = 14.0
sd = 0.5
[[jitter.cause]]
kind = "softirq"
name = "net_rx"
cpus = "2"
rate = 90.0
median_us = 32.0
sd = 0.6
[[jitter.cause]]
kind = "thread"
name = "kworker/u32:1"
rate = 4.0
median_us = 45.0
sd = 0.8
[[jitter.cause]]
kind = "hardware"
rate = 0.3
median_us = 160.0
sd = 0.2
TOML

# Two builds, of which the later is slower in one benchmark.
cat > builds.toml <<'TOML'
topology = "package:1 core:4 pu:1"
[workload.default]
base_s = 0.2
[workload."after/parse"]
base_s = 0.208
[noise]
kind = "lognormal"
sd = 0.02
TOML
mkdir before after
cat > bench.toml <<'TOML'
[[benchmark]]
name = "parse"
run = "parse big.json"
[[benchmark]]
name = "encode"
run = "encode big.json"
min_effect = "2%"
[[benchmark]]
name = "render"
run = "render page.html"
[[benchmark]]
name = "stats"
run = "stats access.log"
TOML

# Latencies between six cores of two last-level caches, as a tool for that prints them.
python3 - <<'PYTHON'
import random
chance = random.Random(2)
with open("matrix.csv", "w") as matrix:
    for a in range(12):
        near = [None if a == b else 8.5 if a % 6 == b % 6 else 41 if a % 6 // 3 == b % 6 // 3 else 118
                for b in range(12)]
        matrix.write(",".join("" if ns is None else "%.1f" % (ns * chance.gauss(1, 0.03))
                              for ns in near) + "\n")
PYTHON

# Programs that run together: a service that answers requests, and its client, which waits for each.
cat > server.py <<'PYTHON'
import os, socket
server = socket.socket(socket.AF_UNIX)
if os.path.exists("web.socket"):
    os.unlink("web.socket")
server.bind("web.socket")
server.listen()
while True:
    client, _ = server.accept()
    with client:
        while request := client.recv(64):
            client.sendall(b"%d\n" % sum(i * i for i in range(2000 + len(request))))
PYTHON
cat > ready.py <<'PYTHON'
import socket
socket.socket(socket.AF_UNIX).connect("web.socket")
PYTHON
cat > client.py <<'PYTHON'
import socket, time
server = socket.socket(socket.AF_UNIX)
server.connect("web.socket")
times = []
for request in range(300):
    begin = time.monotonic()
    server.sendall(b"item")
    server.recv(64)
    times.append(time.monotonic() - begin)
print("p99 %.3f ms" % (1e3 * sorted(times)[296]))
PYTHON
cat > plan.toml <<'TOML'
[[program]]
name = "web"
command = "python3 server.py"
ready = "python3 ready.py"
load = "python3 client.py"
metric = "regex:p99 ([0-9.]+) lower"
unit = "ms"
limit = "≤ 20 ms"
[[program]]
name = "backup"
command = "gzip -kf access.log"
TOML

mkdir new
desktop="--machine sim:desktop.toml"
pigz="pigz -p 8 -k access.log"
store comparison compare $desktop --seed 7 --max-runs 10 -- $pigz
store - compare $desktop --seed 5 --self --max-runs 8 -- $pigz
store comparison-undecided compare $desktop --seed 9 --max-runs 8 \
    --place os-default --place shape:llc=2,core=6,cpu=8 -- $pigz
store bench bench mandelbrot $desktop --seed 1 --threads 1,8 --max-runs 10
store search search $desktop --seed 1 --threads 8 --budget 60s -- ./heat -s 500 plate.grid
print prediction search predict last
store topology-measured topology --measure $desktop
print placements topology --placements 8 $desktop
store jitter bench jitter $desktop --for 2s
status=1 store gate gate before after --suite bench.toml --machine sim:builds.toml --seed 1 --budget 60s
store reproduction reproduce long-pause --simulated
# Two comparisons, between which the system learns to prefer idle cores.
store - compare $desktop --seed 1 --max-runs 12 -- $pigz
sed -i 's/random-idle/core-first/' desktop.toml
store - compare $desktop --seed 2 --max-runs 12 -- $pigz
print diff record diff last~1 last
store - fleet simulate --nodes 12 --seed 4 --faults 20%
store fleet-report fleet report sim-12-4
store - fleet simulate --nodes 8 --seed 5
print fleet-diff fleet diff sim-12-4 sim-8-5
PINWISE_STORE=none print spin-predict spin predict --from broadwell --to skylake-sp --cpu-count 24
print spin-advise spin advise --chip skylake-sp --cpu-count 48
print replay topology infer matrix.csv

# This machine.
print topology topology
cd new
print topology-diff topology diff topology.json topology-measured.json
cd ..
print doctor doctor
print kernel bench kernel pi --threads 2
store - topology --measure --budget 3s
store spin-pause spin pause --for 2s
store spin-replay spin replay --algorithm netfx_awarelock --delays 2ms,5ms --items 20 --realtime
store comparison-higher compare --max-runs 12 --place os-default --place one-core \
    --metric 'regex:([0-9.]+) orders/s higher' -- ./orders 2 40
store comparison-shell compare -i --shell sh --max-runs 8 \
    'cut -d" " -f1 access.log | sort -u | diff - known.txt' \
    'cut -d" " -f1 access.log | LC_ALL=C sort -u | diff - known.txt'
status=2 store comparison-failed compare --max-runs 6 'sort access.log' 'sort --parallel=two access.log'
store joint search --joint plan.toml --max-runs 30 --confirm 6 --seed 1
store trace trace -- ./orders 3 400
store - trace --tier proc -- ./orders 3 100
store spin-attach spin attach -- ./queue 400
print spin-scan spin scan ./queue
gcc -g -O1 -o count count.c
store profile profile -- ./count access.log
gcc -g -O1 -DTABLE -o count count.c
store after profile -- ./count access.log
PINWISE_STORE=none print profile-diff profile diff new/profile.json new/after.json
rm new/after.json

# A service that is placed, by rules and by hand, while it works.
./orders 3 100000 > /dev/null &
service=$!
cat > rules.toml <<'TOML'
[[rule]]
name = "orders"
executable = "/home/user/orders"
place = "cpu:0"
TOML
sleep 1
print top top --once --pid $$
print rules apply rules check rules.toml
print rule-change apply rules run --once rules.toml
print applied apply --pid $service --place cpu:0 --for 2s
kill $service

# Two nodes of a fleet, both on this machine.
cat > study.toml <<'TOML'
[[step]]
name = "gzip"
run = ["compare", "--max-runs", "6", "--place", "os-default", "--place", "one-core", "--", "gzip", "-kf", "/home/user/access.log"]
TOML
pinwise -q fleet submit --launcher local --nodes 2 --id nightly study.toml
until pinwise fleet status nightly --format json | grep -q '"done":2'; do sleep 1; done
print fleet-status fleet status nightly
pinwise -q fleet collect nightly > /dev/null
print fleet record show nightly
print fleet-node record show nightly.local-1

cp new/*.json /mnt/records
python3 -c 'import sqlite3; sqlite3.connect("store.db").execute("vacuum")'
xz -9e -c store.db > /mnt/records/store.db.xz
