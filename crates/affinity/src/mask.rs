//! The system calls of affinity masks, for the library and the command alike.
//!
//! Each function does one call and turns its errno into [`std::io::Error`].

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;

use pinwise_topology::CpuSet;

/// Words of a mask that holds every CPU a [`CpuSet`] can.
pub const MASK_WORDS: usize = CpuSet::MAX_CPU / 64 + 1;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The calling thread's affinity mask.
pub fn affinity() -> io::Result<CpuSet> {
    affinity_of(0)
}

/// A thread's affinity mask; 0 is the calling thread.
pub fn affinity_of(thread: libc::pid_t) -> io::Result<CpuSet> {
    let mut words = vec![0u64; MASK_WORDS];
    // SAFETY: the buffer has the length passed and outlives the call.
    let bytes = check(unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            words.len() * 8,
            words.as_mut_ptr(),
        )
    })?;
    words.truncate(usize::try_from(bytes).unwrap_or(0).div_ceil(8));
    Ok(CpuSet::from_words(words))
}

/// Sets the calling thread's affinity mask.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Sets a thread's affinity mask; 0 is the calling thread.
pub fn set_affinity_of(thread: libc::pid_t, cpus: &CpuSet) -> io::Result<()> {
    let words = cpus.words();
    // SAFETY: the kernel only reads the words, which outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            size_of_val(words),
            words.as_ptr(),
        )
    })?;
    Ok(())
}

/// The CPU that the calling thread is on; it may be on another one by the time the answer is read.
/// `None` if the kernel does not report it.
pub(super) fn current_cpu() -> Option<usize> {
    // SAFETY: the call has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}
