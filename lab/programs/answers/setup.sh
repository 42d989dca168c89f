#!/bin/sh
# Makes what the programs of `answers` read and run, in the folder that this stands in.
set -eu
head -c 6000000 /usr/bin/perf > xz.in || head -c 6000000 /dev/urandom > xz.in
head -c 2000000 xz.in > bzip2.in
mkdir -p tar && for i in $(seq 40); do head -c 150000 xz.in > tar/$i; done
seq 400000 | awk '{ print ($1 * 7919) % 1000003 }' > sort.in
(mkdir -p make && cd make && for i in 1 2 3 4; do
for k in $(seq 120); do echo "int f${i}_$k(int x) { for (int i = 0; i < x; i++) x += i * $k; return x; }"; done > $i.c; done
printf 'all: 1.o 2.o 3.o 4.o\n%%.o: %%.c again\n\tcc -O1 -c $< -o $@\nagain:\n' > Makefile)
go build -o pair pair.go
javac Sum.java
redis-server --version > /dev/null
