#!/usr/bin/env python3
"""Print the frequency of this host's time stamp counter in kHz, to 1 MHz.

QEMU's emulation passes the host's counter through. A guest that measures it
while the host is busy can be wrong by a factor of three, and so would be its
clock; run.sh tells it the frequency instead (tsc_early_khz=).
"""

import ctypes
import mmap
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
CODE = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(CODE)
rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(
    ctypes.addressof(ctypes.c_char.from_buffer(page))
)


def reading():
    """One (nanoseconds, ticks) pair: the tightest of fifty."""
    pairs = []
    for _ in range(50):
        before = time.perf_counter_ns()
        ticks = rdtsc()
        after = time.perf_counter_ns()
        pairs.append((after - before, (before + after) / 2, ticks))
    return min(pairs)[1:]


start, first = reading()
time.sleep(0.1)
end, last = reading()
print(round((last - first) / (end - start) * 1000) * 1000)
