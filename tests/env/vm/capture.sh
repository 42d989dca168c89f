#!/usr/bin/env bash
# capture.sh PINWISE [NAME…] - make the captures of emulated machines in tests/data/machines.
#
# Runs `PINWISE topology --save` on each machine, or on those named, and writes
# NAME.capture, and what hwloc reads there, NAME.xml. tests/it/machines.rs says what each must be read as.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../data/machines

machine() { # name: the options and the machine for run.sh, in the array `spec`
  case $1 in
  # What most small servers are, in both of the numberings that are found.
  2s2c2t) spec=("8,sockets=2,cores=2,threads=2" "0-3;4-7") ;;
  2s2c2t-interleaved) spec=(--interleave "8,sockets=2,cores=2,threads=2" "0-3;4-7") ;;
  # Half of the CPUs offline, and their files gone with them.
  2s2c2t-nosmt) spec=(--append nosmt "8,sockets=2,cores=2,threads=2" "0-3;4-7") ;;
  # More than one last-level cache in a package and in a node.
  1s2d4c2t) spec=("16,sockets=1,dies=2,cores=4,threads=2" -) ;;
  # Nodes smaller than packages, and masks of two words.
  64) spec=(--mem 512 "64,sockets=2,dies=2,cores=8,threads=2" "0-15;16-31;32-47;48-63") ;;
  *)
    echo "capture.sh: no machine $1; there are: ${all[*]}" >&2
    exit 64
    ;;
  esac
}
all=(2s2c2t 2s2c2t-interleaved 2s2c2t-nosmt 1s2d4c2t 64)

if [ $# -eq 0 ]; then
  echo "capture.sh: want the program, such as target/debug/pinwise, and perhaps names of: ${all[*]}" >&2
  exit 64
fi
pinwise=$1
shift
command -v lstopo-no-graphics >/dev/null || {
  echo "capture.sh: lstopo-no-graphics is missing: apt-get install hwloc-nox" >&2
  exit 1
}
[ $# -gt 0 ] || set -- "${all[@]}"
for name in "$@"; do machine "$name"; done # a wrong name is told before the first boot

file=$(mktemp)
trap 'rm -f "$file"' EXIT
# Saved in the guest first: only a capture that was saved whole gets out.
# shellcheck disable=SC2016 # the guest's shell is to expand it
save='"$0" topology --save /tmp/capture >&2 && cat /tmp/capture'
for name in "$@"; do
  machine "$name"
  "$here/run.sh" --with "$pinwise" "${spec[@]}" busybox sh -c "$save" "$(basename "$pinwise")" >"$file" || {
    echo "capture.sh: $name was not captured; its capture is left as it was" >&2
    exit 1
  }
  mkdir -p "$data"
  cat "$file" >"$data/$name.capture" # keeps the modes of a new file, which mktemp restricts
  # What hwloc says of the same machine: the oracle of the tests.
  "$here/run.sh" "${spec[@]}" lstopo-no-graphics --no-io --of xml >"$file" || {
    echo "capture.sh: hwloc could not read $name; its XML is left as it was" >&2
    exit 1
  }
  cat "$file" >"$data/$name.xml"
  echo "$name captured in $SECONDS s since the start" >&2
done
