# devices.sh - what `devices_vm` runs in a guest of `run.sh --devices`: $0 is pinwise, FAULTS
# names where it is ended. Each case begins with a line "@@ CASE".
export PINWISE_STORE=none
# The card of several queues at node 0.
card=/sys/bus/pci/devices/0000:41:00.0
n=$(basename $card/virtio*/net/*)
export card n
# Drivers look for disks side by side: the names are not always in the order of the nodes.
for block in /sys/block/nvme*; do
  case $(readlink -f $block) in */0000:43:00.0/*) disk=$(basename $block) ;; esac
done

echo '@@ kernel'
for d in /sys/bus/pci/devices/*; do
  case $(cat $d/class) in 0x0200* | 0x0108*) echo "$(basename $d) $(cat $d/numa_node) $(cat $d/local_cpulist)" ;; esac
done
echo '@@ topology'
"$0" topology --format json
for place in near:$disk far:$disk near:pci:0000:81:00.0 far:$n; do
  echo "@@ place $(echo $place | sed "s/$disk/disk/;s/$n/card/")"
  "$0" run --place $place -- grep Cpus_allowed_list /proc/self/status
done

cat >/tmp/values <<'END'
echo "@@ $1"
for i in $card/msi_irqs/*; do cat /proc/irq/${i##*/}/smp_affinity_list; done
for q in /sys/class/net/$n/queues/*/?ps_cpus; do echo "$(basename ${q%/*}) $(cat $q)"; done
END
values() { sh /tmp/values "$1"; }
for q in 0 1; do echo 80 >/sys/class/net/$n/queues/rx-$q/rps_cpus; done
values before
echo '@@ text'
"$0" topology

# Arms of a command and of a service: each run writes down what it finds.
echo 'sh /tmp/values run >>/tmp/seen; echo 5 req' >/tmp/figure
seen() { echo "@@ seen by $1"; sed 's/^@@ run/;/' /tmp/seen; rm /tmp/seen; values "after $1"; }
"$0" -q compare --irq $n=local --irq $n=4-5+xps --max-runs 1 --warmup 0 -- sh /tmp/figure >/tmp/out 2>&1
echo "status $?" >>/tmp/out
seen command
sed 's/^/# /' /tmp/out
sleep 9000 & p=$!
"$0" -q compare --pid $p --irq $n=far --max-runs 1 --warmup 0 --sample 10ms --settle 1ms \
  --metric-command 'sh /tmp/figure' --metric 'regex:([0-9]+) req higher' >/tmp/out 2>&1
echo "status $?" >>/tmp/out
seen service
sed 's/^/# /' /tmp/out

apply() { # interrupts, options
  irq=$1
  shift
  rm -f /tmp/out
  "$0" apply --pid $p --irq $n=$irq "$@" >/tmp/out 2>&1 & a=$!
  until grep -qs irqs /tmp/out || ! kill -0 $a 2>/dev/null; do sleep 0.1; done
}
apply local+xps --place far:$n
values applied
grep Cpus_allowed_list /proc/$p/status | sed 's/^/# /'
sed 's/^/# /' /tmp/out
kill -9 $(pidof pinwise-ledger) $a
wait $a
values unguarded
"$0" apply restore --dry-run | sed 's/^/# /'
values 'dry run'
"$0" apply restore | sed 's/^/# /'
values restored
taskset -p f $p >/dev/null
apply away
values alone
grep Cpus_allowed_list /proc/$p/status | sed 's/^/# /'
kill -9 $p
wait $a
echo "status $?" >>/tmp/out
values ended
sed 's/^/# /' /tmp/out

sleep 9000 & p=$!
echo '@@ record'
"$0" apply --pid $p --irq $n=0 --for 1ms --format json 2>/dev/null
for fault in $FAULTS; do
  PINWISE_FAULT=$fault "$0" apply --pid $p --place near:$n --irq $n=1+xps --for 1ms >/tmp/out 2>&1
  echo "status $?" >>/tmp/out
  t=0
  while pidof pinwise-ledger >/dev/null && [ $t -lt 200 ]; do sleep 0.1; t=$((t + 1)); done
  values $fault
  sed 's/^/# /' /tmp/out
done

echo '@@ refused'
refused() { "$0" "$@" 2>&1; echo "status $?"; }
dd if=/dev/$disk of=/dev/null bs=4k count=256 iflag=direct 2>/dev/null
refused compare --irq $disk=local -- true
refused apply --pid $p --irq $disk=local
refused apply --pid $p --irq $n=local,$n=far
refused apply --pid $p --irq $n=away --place os-default
refused apply --pid $p --irq $n=local+rps
printf '#!/bin/sh\nread -r line\n' >/tmp/irqbalance
chmod +x /tmp/irqbalance
mkfifo /tmp/hold
/tmp/irqbalance </tmp/hold &
exec 3>/tmp/hold
until grep -qs irqbalance /proc/$!/comm; do sleep 0.1; done
refused apply --pid $p --irq $n=local
refused compare --pid $p --irq $n=local --metric-command true --metric 'regex:(1) higher'
values 'all refused'
if command -v lstopo-no-graphics >/dev/null; then
  echo '@@ hwloc'
  lstopo-no-graphics --whole-io --of xml
fi
