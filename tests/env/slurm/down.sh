#!/usr/bin/env bash
# down.sh DIR - end what up.sh started in DIR, and remove DIR. Safe to repeat.
#
# A process is ended only where this cluster's SLURM_CONF stands in its
# environment, or where its pid file is in DIR and DIR in its command line.
set -uo pipefail

[ $# = 1 ] || {
  echo "down.sh DIR" >&2
  exit 64
}
[ -e "$1" ] || exit 0
dir=$(cd "$1" && pwd) || exit 1
conf=$dir/slurm.conf
export SLURM_CONF=$conf

lives() { kill -0 "$1" 2>/dev/null && ! grep -qs '^State:.Z' "/proc/$1/status"; }

# munged clears no environment but takes no SLURM_CONF, either: its command line
# names the folder.
by_file() {
  local file pid
  for file in "$dir"/*.pid; do
    pid=$(cat "$file" 2>/dev/null) || continue
    [[ $pid =~ ^[0-9]+$ ]] || continue
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$dir/" && echo "$pid"
  done
}

# Steps, and what jobs have started: slurmstepd writes its own command line.
# grep reads what belongs to other users as empty.
by_environment() {
  grep -lzxsF -- "SLURM_CONF=$conf" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do
    [ "$pid" = $$ ] || case $(cat "/proc/$pid/comm" 2>/dev/null) in
    down.sh | up.sh) ;;
    slurm* | munged) echo "$pid" ;;
    *) grep -qzs '^SLURM_JOB_ID=' "/proc/$pid/environ" && echo "$pid" ;;
    esac
  done
}

# Jobs are told to end while there is someone who tells them.
if [ -e "$dir/slurmctld.pid" ] && lives "$(cat "$dir/slurmctld.pid")"; then
  timeout 5 scancel --user="$(id -un)" >/dev/null 2>&1
  for _ in $(seq 15); do
    [ -n "$(timeout 2 squeue -h -t running,completing 2>/dev/null)" ] || break
    sleep 0.2
  done
fi
mapfile -t daemons < <(by_file)
for pid in ${daemons[@]+"${daemons[@]}"}; do kill "$pid" 2>/dev/null; done
for _ in $(seq 30); do
  left=
  for pid in ${daemons[@]+"${daemons[@]}"}; do ! lives "$pid" || left=yes; done
  [ -n "$left" ] || break
  sleep 0.1
done
for pid in ${daemons[@]+"${daemons[@]}"} $(by_environment); do
  ! lives "$pid" || kill -9 "$pid" 2>/dev/null
done
rm -rf "$dir" || { sleep 1 && rm -rf "$dir"; }
