//! System calls for probes.
//!
//! Short time slices, exact timers and huge pages are requested, but probes work without them.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::linux::scheduling::SchedulingAttributes;

/// Counts the preemptions of the calling thread so far.
pub(in crate::linux) fn count_preemptions() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid; rusage is plain integers.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// The CPU that the calling thread runs on.
pub(super) fn current_cpu() -> Option<usize> {
    // SAFETY: the call has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Makes the calling thread's timers exact; by default they may be 50 µs late.
pub(in crate::linux) fn ask_for_exact_timers() {
    // SAFETY: plain integers; 1 ns is the smallest slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Requests time slices of this length. Since Linux 6.12 a woken thread with a shorter slice runs
/// before threads with longer ones, without privilege. Older kernels ignore it, and so do other
/// scheduling policies.
pub(in crate::linux) fn ask_for_short_slices(slice: Duration) {
    // SAFETY: plain integers; 0 is the calling thread.
    let (policy, nice) = unsafe {
        (
            libc::sched_getscheduler(0),
            libc::getpriority(libc::PRIO_PROCESS, 0),
        )
    };
    if policy != libc::SCHED_OTHER {
        return;
    }
    let attributes = SchedulingAttributes::with_slice(nice, slice);
    // SAFETY: the structure is as large as it says and outlives the call.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Sleeps until `CLOCK_MONOTONIC` reads this many nanoseconds.
pub(in crate::linux) fn sleep_until(ns: u64) {
    let until = libc::timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::try_from(ns % 1_000_000_000).unwrap_or(0),
    };
    // SAFETY: the pointer is valid; an interrupted sleep only ends early.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null_mut(),
        );
    }
}

/// Sleeps while the word holds `expected`, for at most `limit`. May return early.
pub(in crate::linux) fn futex_wait(word: &AtomicU32, expected: u32, limit: Duration) {
    let limit = libc::timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    };
    // SAFETY: word and time-out are valid for the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const limit,
        );
    }
}

/// Wakes one sleeping thread; returns how many it woke.
pub(in crate::linux) fn futex_wake(word: &AtomicU32) -> usize {
    // SAFETY: the kernel only compares the address with those of sleepers.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
    usize::try_from(woken).unwrap_or(0)
}

/// Maps zeroed memory that nothing has touched yet.
pub(super) fn map(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new private mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(address.cast())
}

/// Unmaps memory.
///
/// # Safety
/// Address and length must be those of a mapping that nothing uses any more.
pub(super) unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(address.cast(), bytes) };
}

/// Requests huge pages in a mapping.
pub(super) fn ask_for_huge_pages(address: *mut u8, bytes: usize) {
    // SAFETY: advice changes no content; a range that is not mapped is refused.
    unsafe { libc::madvise(address.cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Restricts a mapping's memory to these nodes.
pub(super) fn bind_memory(address: *mut u8, bytes: usize, nodes: &[u64]) -> io::Result<()> {
    // SAFETY: the kernel reads only the given number of bits; an unmapped range is refused.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            address,
            bytes,
            libc::MPOL_BIND,
            nodes.as_ptr(),
            nodes.len() * 64 + 1,
            0,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
