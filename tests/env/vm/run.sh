#!/usr/bin/env bash
# run.sh [OPTION…] SMP NUMA PROGRAM [ARG…] - run a program on an emulated machine.
#
#   SMP      as for QEMU's -smp: 8,sockets=2,cores=2,threads=2
#   NUMA     the CPUs of each node: "0-3;4-7"; "0-3;4-7;-" with a node of memory alone;
#            "-" for a machine without nodes
#   PROGRAM  of this system; its shared libraries go with it
#
#   --devices       network cards of several queues, and a disk, at each node (root)
#   --append ARGS   more kernel arguments: nosmt, isolcpus=2,3, maxcpus=4 …
#   --interleave    number siblings 0,N/2 as most servers do, not 0,1
#                   (NUMA names CPUs as QEMU numbers them, without this)
#   --mem MIB       memory of the guest (default 256)
#   --sched-ext     a kernel that takes schedulers written in BPF; not with --devices
#   --timeout S     seconds for everything (default 180)
#   --with FILE     one more program for the guest, by its name on the PATH; repeatable
#
# Standard output, standard error and exit status are those of PROGRAM, whose
# standard input is empty and whose folder is the guest's /root.
# 124: out of time   125: no machine or no result   64: wrong usage
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinwise-vm
attempts=3

die() { # status, words
  echo "run.sh: $2" >&2
  exit "$1"
}

append='' devices='' feature='' interleave='' mem=256 timeout=180 with=()
while [ $# -gt 0 ]; do
  case $1 in
  --append | --mem | --timeout | --with) [ $# -ge 2 ] || die 64 "$1 wants a value" ;;&
  --append) append=$2 && shift 2 ;;
  --mem) mem=$2 && shift 2 ;;
  --timeout) timeout=$2 && shift 2 ;;
  --with) with+=("$2") && shift 2 ;;
  --devices) devices=yes && shift ;;
  --interleave) interleave=yes && shift ;;
  --sched-ext) feature=sched_ext && shift ;;
  --*) die 64 "no option $1; the head of $0 lists them" ;;
  *) break ;;
  esac
done
[ $# -ge 3 ] || die 64 "want SMP, NUMA and PROGRAM; the head of $0 explains them"
smp=$1 numa=$2 program=$3
shift 3

for tool in qemu-system-x86_64 busybox cpio python3 setpriv; do
  command -v "$tool" >/dev/null ||
    die 125 "$tool is missing; on Debian: apt-get install qemu-system-x86 busybox-static cpio python3"
done
# The guest has no libraries but those of the program.
! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
  die 125 "busybox is not a static program; on Debian: apt-get install busybox-static"
for file in "$program" ${with[@]+"${with[@]}"}; do
  command -v "$file" >/dev/null || die 64 "no program $file"
done
[ -z "$feature" ] || [ -z "$devices" ] || die 64 "--devices takes the usual kernel's modules"
"$here/prepare.sh" ${feature:+"$feature"} || exit 125

work=$(mktemp -d "${TMPDIR:-/tmp}/pinwise-vm.XXXXXX")
machine=
# shellcheck disable=SC2317 # the traps call it
cleanup() {
  # Waiting keeps bash from announcing the kill.
  [ -z "$machine" ] || { kill -KILL "$machine" && wait "$machine"; } 2>/dev/null || :
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- The guest's files: busybox, the programs with their libraries, the quoted command line.
root=$work/root
mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,proc,sys,dev,tmp,run,root,payload}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/init" "$root/init"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"

add() { # a program of this system
  local file to library
  file=$(command -v "$1")
  to=$root/payload/$(basename "$file")
  # Most of a test build is debugging information, which would only fill the guest's memory.
  strip --strip-debug -o "$to" "$file" 2>/dev/null || cp -L "$file" "$to"
  chmod 755 "$to"
  for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}
for file in "$program" ${with[@]+"${with[@]}"}; do add "$file"; done
[ -z "$devices" ] || cp -r "$cache/modules" "$root/modules"

quoted() { # for the guest's shell
  printf " '%s'" "${1//\'/\'\\\'\'}"
}
{
  echo '#!/bin/sh'
  printf exec
  for argument in "/payload/$(basename "$(command -v "$program")")" "$@"; do quoted "$argument"; done
  echo
} >"$root/payload/.run"
chmod 755 "$root/payload/.run" "$root/init"

archive() { # a folder
  (cd "$1" && find . -mindepth 1 -printf '%P\n' | cpio -o -H newc --quiet -R 0:0)
}
if [ -n "$interleave" ]; then
  # The machine's own table is needed first, which takes a boot; it depends on SMP alone.
  table=$cache/madt-$smp-$(qemu-system-x86_64 --version | sha256sum | cut -c 1-8)
  if [ ! -e "$table" ]; then
    setpriv --pdeathsig TERM "$0" --timeout "$timeout" --mem "$mem" "$smp" - \
      busybox cat /sys/firmware/acpi/tables/APIC >"$table.$$" ||
      { rm -f "$table.$$"; die 125 "the machine's table of CPUs could not be read"; }
    mv "$table.$$" "$table"
  fi
  threads=$(sed -n 's/.*threads=\([0-9]*\).*/\1/p' <<<"$smp")
  tables=$work/tables/kernel/firmware/acpi
  mkdir -p "$tables"
  python3 "$here/madt-interleave.py" "${threads:-1}" <"$table" >"$tables/madt.aml"
  archive "$work/tables" >"$work/initrd" # the kernel looks for tables in front of all else
fi
archive "$root" >>"$work/initrd"
rm -rf "$root"

# --- The machine.
nodes=() lists=()
if [ "$numa" != - ]; then
  IFS=';' read -r -a lists <<<"$numa"
  size=$((mem / ${#lists[@]}))
  mem=$((size * ${#lists[@]}))
  for id in "${!lists[@]}"; do
    cpus=,cpus=${lists[$id]//,/,cpus=}
    nodes+=(-object "memory-backend-ram,id=mem$id,size=${size}M"
      -numa "node,nodeid=$id,memdev=mem$id${cpus%,cpus=-}")
  done
fi
kernel_arguments=(
  console=ttyS0 quiet 8250.nr_uarts=4 rdinit=/init
  oops=panic panic=-1 reboot=t # a kernel that dies ends QEMU at once
  rcupdate.rcu_cpu_stall_suppress=1 nowatchdog tsc=reliable "tsc_early_khz=$(python3 "$here/tsc-khz.py")"
  mitigations=off nokaslr "$append"
)

# At each node a bridge of its own, as each package of a server has one, and below it a
# network card of four queues, one of a single queue, and a disk.
attached=() starter=()
if [ -n "$devices" ]; then
  # Only a tap gives a card several queues. In a namespace of its own it needs no rights,
  # and nobody sees it.
  starter=(unshare --map-root-user --net)
  [ -r /dev/net/tun ] && "${starter[@]}" true 2>/dev/null ||
    die 125 "no tap can be made: it takes /dev/net/tun and a network namespace"
  port=0
  slot() { # bridge, device
    port=$((port + 1))
    attached+=(-device "pcie-root-port,id=port$port,bus=$1,chassis=$port,slot=$port"
      -device "$2,bus=port$port")
  }
  for id in "${!lists[@]}"; do
    attached+=(-device "pxb-pcie,id=pxb$id,bus_nr=$((0x40 * (id + 1))),bus=pcie.0,numa_node=$id"
      -netdev "tap,id=queues$id,queues=4,script=no,downscript=no,vhost=off"
      -netdev "hubport,id=single$id,hubid=$id"
      -drive "if=none,id=disk$id,driver=null-co,read-zeroes=on,size=64M")
    slot "pxb$id" "virtio-net-pci,netdev=queues$id,mq=on,vectors=10,romfile="
    slot "pxb$id" "virtio-net-pci,netdev=single$id,romfile="
    slot "pxb$id" "nvme,serial=disk$id,drive=disk$id"
    for other in "${!lists[@]}"; do
      [ "$id" = "$other" ] || attached+=(-numa "dist,src=$id,dst=$other,val=21")
    done
  done
fi
qemu=(
  # Guests crash now and then with a host thread for each CPU, and are slower besides.
  -accel "tcg,thread=single"
  -M "q35,smm=off"
  # Its CPUID leaves let the guest see threads, dies and L3 groups without KVM; those of others do not.
  -cpu Skylake-Server
  -smp "$smp" -m "$mem" ${nodes[@]+"${nodes[@]}"} ${attached[@]+"${attached[@]}"}
  -nodefaults -no-user-config -display none -no-reboot
  -kernel "$cache/kernel${feature:+-$feature}" -initrd "$work/initrd" -append "${kernel_arguments[*]}"
)

complain() { # words; what the guest and QEMU said goes first
  { grep -v "TCG doesn't support" "$work/qemu" || :; tail -n 15 "$work/console" || :; } >&2 2>/dev/null
  die "$1" "$2"
}

for attempt in $(seq "$attempts"); do
  left=$((timeout - SECONDS))
  [ "$left" -gt 0 ] || die 124 "out of time after $timeout s"
  for port in console out err status; do : >"$work/$port"; done
  # Should this script be killed, timeout goes with it, and QEMU with timeout.
  setpriv --pdeathsig KILL timeout --kill-after 5 "$left" setpriv --pdeathsig KILL \
    ${starter[@]+"${starter[@]}"} qemu-system-x86_64 "${qemu[@]}" \
    -serial "file:$work/console" -serial "file:$work/out" -serial "file:$work/err" -serial "file:$work/status" \
    </dev/null >"$work/qemu" 2>&1 &
  machine=$!
  ended=0
  wait "$machine" || ended=$?
  machine=
  status=$(sed -n 's/^status //p' "$work/status")
  if [ -n "$status" ] || [ "$ended" = 124 ]; then
    cat "$work/out"
    cat "$work/err" >&2
    [ -z "$status" ] || exit "$status"
    complain 124 "out of time after $timeout s"
  fi
  [ "$ended" = 0 ] || complain 125 "QEMU ended with status $ended"
  reason=$(grep -m 1 -oE '(BUG|Oops|int3|general protection|Kernel panic).*' "$work/console" || echo 'no message')
  echo "run.sh: the guest's kernel died, attempt $attempt of $attempts: $reason" >&2
done
complain 125 "the guest's kernel died $attempts times"
