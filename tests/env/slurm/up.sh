#!/usr/bin/env bash
# up.sh DIR [NODE…] - start a throw-away Slurm cluster on this host: a slurmctld
# and several slurmd on loopback. No systemd, no cgroups, no root.
#
# Then: . DIR/env (sets SLURM_CONF), and sinfo, srun, sbatch … talk to it.
# A cluster that runs in DIR already is left alone, half of one is ended first.
# With NODEs: start these anew, whose slurmd was killed, in a cluster that runs.
#
#   SLURM_NODES=2:2:2:2;2:1:4:1   COUNT:PACKAGES:CORES:THREADS of nodes n1, n2 …
#                                 (default 4:2:2:2)
#   SLURM_CAPTURES="n2=FILE …"    what `pinwise topology --save` wrote: the node
#                                 shows that machine's CPUs in /sys and /proc/cpuinfo
#   SLURM_EXTRA                   more lines of slurm.conf; of two settings of one
#                                 name the later counts
#   SLURM_OWNER=PID               end the cluster when this process has ended
#
# 1: the cluster did not start   64: wrong usage   69: a program is missing
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
attempts=4

die() { # status, words
  echo "up.sh: $2" >&2
  exit "$1"
}

[ $# -ge 1 ] || die 64 "up.sh DIR [NODE…]"
for program in munged slurmctld slurmd sbatch scontrol; do
  command -v "$program" >/dev/null || die 69 "$program is not there: apt-get install --no-install-recommends slurm-wlm munge"
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
[[ $dir != *[[:space:]%\"\\]* ]] || die 64 "Slurm takes no such path: $dir"
conf=$dir/slurm.conf
export SLURM_CONF=$conf

runs() { # name of a pid file
  local pid
  pid=$(cat "$dir/$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null &&
    ! grep -qs '^State:.Z' "/proc/$pid/status"
}

all_run() {
  runs munged && runs slurmctld && [ -e "$dir/nodes" ] || return 1
  local node
  while read -r node; do runs "$node" || return 1; done <"$dir/nodes"
  scontrol ping 2>/dev/null | grep -q 'is UP'
}

# A port is taken from /proc/net/tcp{,6}, where every listener of this network
# namespace stands in hexadecimal.
free_ports() { # how many: the first of so many free ones in a row
  local taken first port
  taken=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk 'NR > 1 { sub(/.*:/, "", $2); print $2 }')
  for _ in $(seq 50); do
    first=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    for port in $(seq "$first" $((first + $1 - 1))); do
      ! grep -qix "$(printf %04X "$port")" <<<"$taken" || continue 2
    done
    echo "$first"
    return
  done
  die 1 "no free ports"
}

write_conf() { # first port
  local i=0 group count packages cores threads
  : >"$dir/nodes"
  {
    cat <<END
ClusterName=pinwise
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
# A job that lost its node starts anew after cred_expire, 120 s unless told.
AuthInfo=socket=$dir/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
EnforcePartLimits=ALL
ReturnToService=2
SlurmdTimeout=5
SlurmctldTimeout=10
MessageTimeout=10
KillWait=2
MinJobAge=3600
JobRequeue=1
MpiDefault=none
SwitchType=switch/none
PropagateResourceLimits=NONE
END
    IFS=';' read -ra machines <<<"${SLURM_NODES:-4:2:2:2}"
    for group in "${machines[@]}"; do
      IFS=: read -r count packages cores threads <<<"$group"
      for _ in $(seq "$count"); do
        i=$((i + 1))
        echo "n$i" >>"$dir/nodes"
        echo "NodeName=n$i NodeHostname=localhost NodeAddr=127.0.0.1 Port=$(($1 + i)) Sockets=$packages CoresPerSocket=$cores ThreadsPerCore=$threads RealMemory=1000 Feature=f$i,any State=UNKNOWN"
      done
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
    echo "PartitionName=short Nodes=ALL MaxTime=1 State=UP"
    echo "${SLURM_EXTRA:-}"
  } >"$conf"
}

# A capture is lines of PATH, tab, content with \n and \t written out.
unpack() { # capture, folder
  local path content
  while IFS=$'\t' read -r path content; do
    case $path in
    sys/devices/system/cpu/* | sys/devices/system/node/* | proc/cpuinfo)
      mkdir -p "$2/$(dirname "$path")"
      printf '%b' "$content" >"$2/$path"
      ;;
    esac
  done <"$1"
}

start_node() { # name
  local node=$1 pair tree='' space=()
  mkdir -p "$dir/spool/$node"
  for pair in ${SLURM_CAPTURES:-}; do
    if [ "${pair%%=*}" = "$node" ]; then
      tree=$dir/machine/$node
      unpack "${pair#*=}" "$tree"
    fi
  done
  # With namespaces each node has its own host name, and its own /sys.
  if unshare -u -m true 2>/dev/null; then
    space=(unshare -u -m)
  elif unshare -U --map-current-user --keep-caps -u -m true 2>/dev/null; then
    space=(unshare -U --map-current-user --keep-caps -u -m)
  else
    echo "up.sh: no namespaces here: all nodes have this host's name and CPUs" >&2
    slurmd -N "$node" -f "$conf"
    return
  fi
  "${space[@]}" sh -euc 'hostname "$1"
    for part in sys/devices/system/cpu sys/devices/system/node proc/cpuinfo; do
      [ -z "$3" ] || [ ! -e "$3/$part" ] || mount --bind "$3/$part" "/$part"
    done
    exec slurmd -N "$1" -f "$2"' sh "$node" "$conf" "$tree"
}

start() {
  mkdir -p "$dir"/{state,spool,log,jobs,munge}
  chmod 700 "$dir/munge"
  (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge.sock" \
    --pid-file="$dir/munged.pid" --log-file="$dir/munge/log" \
    --seed-file="$dir/munge/seed" --num-threads=2 2>>"$dir/log/munged.err"
  local group count=0
  IFS=';' read -ra machines <<<"${SLURM_NODES:-4:2:2:2}"
  for group in "${machines[@]}"; do count=$((count + ${group%%:*})); done
  write_conf "$(free_ports $((count + 1)))"
  slurmctld -f "$conf" -i >>"$dir/log/slurmctld.out" 2>&1
  local node
  while read -r node; do
    start_node "$node" >>"$dir/log/$node.out" 2>&1 </dev/null
  done <"$dir/nodes"
  # Another may have taken a port in between; then a daemon is not there.
  for _ in $(seq 150); do
    [ "$(sinfo -h -N -p all -o %T 2>/dev/null | grep -c '^idle$')" != "$count" ] || return 0
    runs slurmctld || return 1
    sleep 0.2
  done
  return 1
}

watch_owner() {
  [ -n "${SLURM_OWNER:-}" ] || return 0
  setsid sh -c 'while kill -0 "$1" 2>/dev/null && [ -e "$3/slurm.conf" ]; do sleep 1; done
    exec "$2/down.sh" "$3"' sh "$SLURM_OWNER" "$here" "$dir" </dev/null >/dev/null 2>&1 &
}

if [ $# -gt 0 ]; then
  for node in "$@"; do
    grep -qxF -- "$node" "$dir/nodes" || die 64 "no node $node in $dir"
    runs "$node" || start_node "$node" >>"$dir/log/$node.out" 2>&1 </dev/null
  done
  exit 0
fi
if all_run; then
  echo "runs already: $dir"
  exit 0
fi
for _ in $(seq "$attempts"); do
  "$here/down.sh" "$dir"
  if start; then
    echo "export SLURM_CONF=$conf" >"$dir/env"
    watch_owner
    echo "runs: $dir ($(tr '\n' ' ' <"$dir/nodes"))"
    exit 0
  fi
done
tail -n 4 "$dir"/log/* >&2
"$here/down.sh" "$dir"
die 1 "the cluster did not start"
