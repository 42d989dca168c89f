#!/usr/bin/env bash
# traces.sh PINWISE - record what a real kernel's scheduler does with spinning threads
# on two packages of two cores with two CPUs each, for tests/data/traces.
#
# Boots once and writes 2s2c2t-CASE.txt.xz, ftrace's text, for each case of the list
# below. tests/it/trace_kernels.rs says what each must be judged as.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../data/traces

if [ $# -ne 1 ]; then
  echo "traces.sh: want the program, such as target/debug/pinwise" >&2
  exit 64
fi
pinwise=$1

# Cases: name, where the spinners may run, how many they are, for how long.
cases='free-3 0-7 3 1s
siblings-2 0-1 2 1s
cores-2 0,2 2 1s
package-4 0-3 4 1s
full-8 0-7 8 500ms'

# shellcheck disable=SC2016 # the guest's shell is to expand it
script='
traces=/sys/kernel/tracing
mount -t tracefs tracefs $traces
echo 0 >$traces/tracing_on
echo 4096 >$traces/buffer_size_kb
for event in switch wakeup wakeup_new process_fork process_exec process_exit migrate_task; do
  echo 1 >$traces/events/sched/sched_$event/enable
done
while read -r name cpus threads time; do
  echo >$traces/trace
  echo 1 >$traces/tracing_on
  "$0" run --place "cpu:$cpus" -- "$0" kernel pi --threads "$threads" --seconds "$time" >/dev/null || exit
  echo 0 >$traces/tracing_on
  echo "@@ $name"
  cat $traces/trace
done <<CASES
'$cases'
CASES'

file=$(mktemp)
trap 'rm -f "$file"' EXIT
"$here/run.sh" --with "$pinwise" "8,sockets=2,cores=2,threads=2" "0-3;4-7" \
  busybox sh -c "$script" "$(basename "$pinwise")" >"$file" || {
  echo "traces.sh: nothing was recorded; the traces are left as they were" >&2
  exit 1
}
mkdir -p "$data"
while read -r name _; do
  sed -n "/^@@ $name\$/,/^@@/{/^@@/!p}" "$file" | xz -9e >"$data/2s2c2t-$name.txt.xz"
done <<<"$cases"
