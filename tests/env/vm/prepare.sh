#!/usr/bin/env bash
# prepare.sh [sched_ext] - fetch the kernel that run.sh boots, with the modules that it may
# load, and unpack it into the cache; or a kernel that has sched_ext. Idempotent.
#
# Cache: ${XDG_CACHE_HOME:-$HOME/.cache}/pinwise-vm; remove it to have a newer kernel.
# Nothing is installed: apt only downloads the kernel's package.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinwise-vm
mkdir -p "$cache"
# Tests may run in parallel: one prepares, the others wait and then find it done.
exec 9>"$cache/lock"
flock 9
case ${1:-} in
'') kernel=kernel && { [ ! -e "$cache/kernel" ] || [ ! -d "$cache/modules" ] || exit 0; } ;;
sched_ext) kernel=kernel-sched_ext && [ ! -e "$cache/$kernel" ] || exit 0 ;;
*) echo "prepare.sh: no kernel with $1" >&2 && exit 64 ;;
esac

die() { # what is wrong; what to do
  echo "prepare.sh: $1; $2" >&2
  exit 1
}

for tool in apt-get apt-cache dpkg-deb xz zstd; do
  command -v "$tool" >/dev/null || die "$tool is missing" "on Debian: apt-get install xz-utils zstd"
done
rm -rf "$cache"/work.* # of one that was killed
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Cloud kernels are a third of the size of the others and have nearly all that is needed built in.
# Debian's 6.12 has no sched_ext, its backports do: they are read into a state of their own, so that
# this system's apt does not change.
kind=image options=()
if [ "$kernel" != kernel ]; then
  kind=binary
  mkdir -p "$work/lists/partial" "$work/archives/partial"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie-backports main" >"$work/sources.list"
  options=(-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work" -o "Dir::Etc::SourceList=$work/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o APT::Architectures=amd64 -o Acquire::Languages=none)
  apt-get "${options[@]}" update >"$work/apt.log" 2>&1 ||
    die "$(tail -n 1 "$work/apt.log")" "it takes a network"
fi
package=$(apt-cache ${options[@]+"${options[@]}"} search --names-only \
  "^linux-$kind-[0-9]+[.][0-9]+[.][0-9].*-cloud-amd64\$" | cut -d ' ' -f 1 | sort -V | tail -n 1)
[ -n "$package" ] || die "apt knows no linux-$kind-*-cloud-amd64" "run apt-get update first"
echo "prepare.sh: fetching $package" >&2
(cd "$work" && apt-get ${options[@]+"${options[@]}"} download "$package" >apt.log 2>&1) ||
  die "$(tail -n 1 "$work/apt.log")" "run apt-get update first"
dpkg-deb --extract "$work/$package"_*.deb "$work/files"
packed=$(find "$work/files" -name 'vmlinuz*')

number() { # the unsigned number of $2 bytes at offset $1 of the packed kernel
  od -An -v -t "u$2" -j "$(($1))" -N "$2" "$packed" | tr -d ' '
}

unpack() { # to the file $1
  # The header of the packed kernel says where the kernel proper lies: setup_sects,
  # payload_offset and payload_length in Linux's Documentation/arch/x86/boot.rst.
  local start=$((($(number 0x1f1 1) + 1) * 512 + $(number 0x248 4)))
  tail -c "+$((start + 1))" "$packed" >"$work/rest"
  head -c "$(number 0x24c 4)" "$work/rest" >"$work/payload"
  # The unpacked size follows the packed data. Decompressors complain of it after
  # they have written everything, so look at what they wrote, not at their status.
  local decompress
  for decompress in 'xz -dc --single-stream' 'zstd -dcq' 'gzip -dcq' 'lz4 -dcq'; do
    $decompress <"$work/payload" >"$1" 2>/dev/null || :
    [ "$(head -c 4 "$1" | tail -c 3)" != ELF ] || return 0
  done
  return 1
}

# Booting the kernel proper, through its PVH note, spares the guest unpacking it
# under emulation: a fifth of a boot. The packed kernel works as well.
if ! unpack "$work/kernel"; then
  echo "prepare.sh: $package cannot be unpacked here; boots take a little longer" >&2
  cp "$packed" "$work/kernel"
fi
if [ "$kernel" != kernel ]; then
  mv "$work/kernel" "$cache/$kernel"
  exit 0
fi
# What is not built in: network cards of the emulator, and what their driver needs.
mkdir "$work/modules"
for module in failover net_failover virtio_net; do
  file=$(find "$work/files" -name "$module.ko*")
  case $file in
  *.xz) xz -dc "$file" >"$work/modules/$module.ko" ;;
  *.ko) cp "$file" "$work/modules/$module.ko" ;;
  *) die "$package has no module $module" "another kernel may have it" ;;
  esac
done
rm -rf "$cache/modules"
mv "$work/kernel" "$cache/kernel"
mv "$work/modules" "$cache/modules"
