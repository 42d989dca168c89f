#!/usr/bin/env python3
"""madt-interleave.py THREADS <MADT >MADT: number siblings as most servers do.

Linux numbers CPUs in the order of the processor entries of the ACPI table
MADT. QEMU lists the threads of a core one after the other (siblings 0,1);
firmware of servers lists the first threads of all cores first (siblings 0,N/2).
"""

import struct
import sys

HEADER = 44  # the common ACPI header, then the APIC's address and flags
CHECKSUM, OEM_REVISION = 9, 24
LOCAL_APIC, LOCAL_X2APIC = 0, 9

threads = int(sys.argv[1])
thread_mask = (1 << (threads - 1).bit_length()) - 1
table = sys.stdin.buffer.read()
cpus, others, at = [], [], HEADER
while at < len(table):
    kind, length = table[at], table[at + 1]
    entry = table[at : at + length]
    at += length
    if kind == LOCAL_APIC:
        cpus.append((entry[3], entry))
    elif kind == LOCAL_X2APIC:
        cpus.append((struct.unpack_from("<I", entry, 4)[0], entry))
    else:
        others.append(entry)
cpus.sort(key=lambda cpu: (cpu[0] & thread_mask, cpu[0]))

out = bytearray(table[:HEADER] + b"".join(e for _, e in cpus) + b"".join(others))
# Linux takes a table from the initramfs in place of the firmware's only if it is newer.
revision = struct.unpack_from("<I", out, OEM_REVISION)[0]
struct.pack_into("<I", out, OEM_REVISION, revision + 1)
out[CHECKSUM] = 0
out[CHECKSUM] = -sum(out) & 0xFF
sys.stdout.buffer.write(out)
