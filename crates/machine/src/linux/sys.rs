//! System calls, wrapped once so that the rest of the Edge is safe code.
//!
//! Each wrapper does one call and turns its errno into [`std::io::Error`].

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use perf_event_open_sys::bindings as perf;

pub(super) use pinwise_affinity::mask::{
    MASK_WORDS, affinity, affinity_of, set_affinity, set_affinity_of,
};
use pinwise_topology::CpuSet;

/// Turns −1 into the thread's errno.
pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`check`], for `syscall(2)`.
pub(super) fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Sets the calling thread's memory policy for future allocations.
pub(super) fn set_memory_policy(mode: libc::c_int, nodes: &CpuSet) -> io::Result<()> {
    let words = nodes.words();
    // SAFETY: the kernel reads only the given number of bits.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            mode,
            words.as_ptr(),
            words.len() * 64 + 1,
        )
    })?;
    Ok(())
}

/// Sets a policy on an unused page, to see whether the kernel accepts it.
pub(super) fn try_memory_policy(mode: libc::c_int, nodes: &CpuSet) -> io::Result<()> {
    let words = nodes.words();
    let bytes = page_bytes();
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the mapping is new and ours alone, and is never accessed; the kernel reads only the
    // given number of bits.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_NONE,
            anonymous,
            -1,
            0,
        );
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let set = check_long(libc::syscall(
            libc::SYS_mbind,
            page,
            bytes,
            mode,
            words.as_ptr(),
            words.len() * 64 + 1,
            0,
        ));
        libc::munmap(page, bytes);
        set.map(|_| ())
    }
}

/// Queries the node of each of these pages of a process. A negative status is that page's error,
/// for example that it does not exist.
pub(super) fn query_page_nodes(
    process: libc::pid_t,
    addresses: &[u64],
    statuses: &mut [libc::c_int],
) -> io::Result<()> {
    query_or_move_pages(process, addresses, None, statuses)
}

/// Moves pages that only the process uses to one node each. Some may stay, which is not an error.
pub(super) fn move_pages(
    process: libc::pid_t,
    addresses: &[u64],
    nodes: &[libc::c_int],
) -> io::Result<()> {
    let mut statuses = vec![0; addresses.len()];
    query_or_move_pages(process, addresses, Some(nodes), &mut statuses)
}

/// Calls `move_pages(2)`, which only queries if no nodes are given.
fn query_or_move_pages(
    process: libc::pid_t,
    addresses: &[u64],
    nodes: Option<&[libc::c_int]>,
    statuses: &mut [libc::c_int],
) -> io::Result<()> {
    // From linux/mempolicy.h; libc does not have it.
    const MPOL_MF_MOVE: libc::c_int = 1 << 1;
    let nodes_len = nodes.map_or(addresses.len(), <[_]>::len);
    let count = addresses.len().min(statuses.len()).min(nodes_len);
    // SAFETY: the kernel reads that many addresses, which belong to the other process and are not
    // accessed, and nodes if any, and writes as many statuses.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            count,
            addresses.as_ptr(),
            nodes.map_or(std::ptr::null(), <[_]>::as_ptr),
            statuses.as_mut_ptr(),
            if nodes.is_some() { MPOL_MF_MOVE } else { 0 },
        )
    })?;
    Ok(())
}

/// Reads `CLOCK_MONOTONIC`.
pub(super) fn monotonic() -> Duration {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Reads memory of a process, up to the end of the mapping; returns the number of bytes read.
/// `None` if the memory does not exist or may not be read.
pub(super) fn read_memory(pid: libc::pid_t, address: u64, buffer: &mut [u8]) -> Option<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: usize::try_from(address).ok()? as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    // SAFETY: the kernel writes at most `iov_len` bytes into the buffer, and
    // only reads at the other process's address, which it checks.
    let length =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(length).ok().filter(|&length| length > 0)
}

/// The address of the kernel's code that is mapped into this program (vDSO); 0: none.
pub(super) fn vdso_address() -> u64 {
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}

/// CPU time of the calling thread so far.
pub(super) fn thread_cpu_time() -> Duration {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Reads a clock.
pub(super) fn read_clock(id: libc::clockid_t) -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for a timespec, of which all bit patterns
    // are valid.
    let time = unsafe {
        libc::clock_gettime(id, time.as_mut_ptr());
        time.assume_init()
    };
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// The architecture, as `uname -m` prints it.
pub(super) fn architecture() -> Option<String> {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the pointer is valid; on success the fields are NUL-terminated.
    let names = unsafe { (libc::uname(names.as_mut_ptr()) == 0).then(|| names.assume_init()) }?;
    // SAFETY: `machine` is NUL-terminated within its array.
    let machine = unsafe { CStr::from_ptr(names.machine.as_ptr()) };
    machine.to_str().ok().map(str::to_owned)
}

/// The id of the calling thread.
pub(super) fn own_thread() -> libc::pid_t {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

/// Is the effective user root?
pub(super) fn is_root() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Makes this process the parent of orphans among its descendants.
pub(super) fn become_subreaper() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    Ok(())
}

/// Signals a process, or a group if `pid` is negative. A missing target is not an error.
pub(super) fn kill(pid: libc::pid_t, signal: libc::c_int) {
    if pid == 0 || pid == -1 {
        return;
    }
    // SAFETY: plain integers; 0 and −1, which mean many processes, are
    // excluded above.
    unsafe { libc::kill(pid, signal) };
}

/// A child that was reaped.
pub(super) struct Reaped {
    pub(super) pid: libc::pid_t,
    pub(super) status: libc::c_int,
    pub(super) usage: libc::rusage,
}

/// Finds an ended child that is not reaped yet: until then `/proc` describes it.
pub(super) fn find_ended_child() -> Option<libc::pid_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is valid; if no child has ended, the structure stays zero, which is valid
    // for all fields.
    let pid = unsafe {
        let result = libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options);
        check(result).ok()?;
        info.assume_init().si_pid()
    };
    (pid != 0).then_some(pid)
}

/// Reaps one ended child; `None` if none has ended. The error `ECHILD` means that there are no
/// children.
pub(super) fn reap() -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid; rusage is plain integers.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (check(pid)?, usage.assume_init())
    };
    Ok((pid != 0).then_some(Reaped { pid, status, usage }))
}

/// CPU time of this process so far, user and system.
pub(super) fn own_cpu_time() -> Duration {
    let usage = own_usage();
    timeval_to_duration(usage.ru_utime) + timeval_to_duration(usage.ru_stime)
}

/// Largest resident size of this process so far, bytes.
pub(super) fn own_peak_bytes() -> u64 {
    u64::try_from(own_usage().ru_maxrss).unwrap_or(0) * 1024
}

fn own_usage() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid; rusage is plain integers.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Converts a timeval to a duration.
pub(super) fn timeval_to_duration(time: libc::timeval) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_usec).unwrap_or(0) * 1000,
    )
}

/// Makes a pipe whose ends close on exec: (read, write).
pub(super) fn pipe(flags: libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the array holds two descriptors; on success both are open and
    // ours alone.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | flags))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Waits until one of the descriptors is readable or `timeout` is over; says for each whether it
/// is.
pub(super) fn poll<const N: usize>(
    descriptors: [RawFd; N],
    timeout: Option<Duration>,
) -> [bool; N] {
    let ready = poll_all(&descriptors, timeout);
    std::array::from_fn(|index| ready[index])
}

/// As [`poll`], for any number of descriptors.
pub(super) fn poll_all(descriptors: &[RawFd], timeout: Option<Duration>) -> Vec<bool> {
    let entries = descriptors.iter().map(|&fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let mut polled: Vec<libc::pollfd> = entries.collect();
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    });
    let limit_pointer = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array has the number of entries passed; the timespec outlives the
    // call.
    unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            libc::nfds_t::try_from(polled.len()).unwrap_or(0),
            limit_pointer,
            std::ptr::null(),
        );
    }
    polled.iter().map(|entry| entry.revents != 0).collect()
}

/// Opens a perf event of a thread (0: the calling one; −1: any) on a CPU (−1: any); it closes on
/// exec.
pub(super) fn open_perf_event(
    attributes: &perf::perf_event_attr,
    thread: libc::pid_t,
    cpu: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: the structure is as large as its size field says and outlives
    // the call; the new descriptor is ours alone.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread,
            cpu,
            -1,
            libc::c_ulong::from(perf::PERF_FLAG_FD_CLOEXEC),
        );
        let fd = check(libc::c_int::try_from(fd).unwrap_or(-1))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Has the other side of this descriptor gone for good?
pub(super) fn is_hung_up(descriptor: RawFd) -> bool {
    let mut polled = libc::pollfd {
        fd: descriptor,
        events: 0,
        revents: 0,
    };
    // SAFETY: one entry, as passed, which outlives the call.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    ready > 0 && polled.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Reads available bytes from a non-blocking descriptor; returns their number, 0 if none.
pub(super) fn read_some(descriptor: &OwnedFd, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer has the length passed.
    let read = unsafe {
        libc::read(
            descriptor.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    usize::try_from(read).unwrap_or(0)
}

/// Ticks per second, the unit of CPU time in `/proc/stat`.
pub(super) fn ticks_per_second() -> u64 {
    // SAFETY: the call has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&t| t > 0).unwrap_or(100)
}

/// A random number from the operating system.
pub(super) fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has the length passed.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_ne_bytes(bytes)
}

/// Random bytes from the operating system that are good enough for secrets.
pub(super) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    const {
        assert!(
            N <= 256,
            "getrandom may return fewer bytes than a larger buffer holds"
        )
    };
    let mut bytes = [0u8; N];
    // SAFETY: the buffer has the length passed.
    let found = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if usize::try_from(found) == Ok(N) {
        return Ok(bytes);
    }
    Err(io::Error::last_os_error())
}

/// The user whose rights this process has.
pub(super) fn effective_user() -> libc::uid_t {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Bytes of a page of memory.
pub(super) fn page_bytes() -> usize {
    // SAFETY: the call has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|&b| b > 0)
        .unwrap_or(4096)
}

/// Limit on open descriptors of this process.
pub(super) fn descriptor_limit() -> usize {
    usize::try_from(descriptor_limits().rlim_cur).unwrap_or(usize::MAX)
}

/// Raises the descriptor limit of this process and of later children as far as permitted; returns
/// the limit.
pub(super) fn raise_descriptor_limit() -> usize {
    let mut limits = descriptor_limits();
    limits.rlim_cur = limits.rlim_max;
    // SAFETY: the pointer is valid.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
    descriptor_limit()
}

fn descriptor_limits() -> libc::rlimit {
    let mut limits = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the pointer is valid; the structure is two plain integers.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, limits.as_mut_ptr());
        limits.assume_init()
    }
}

/// Gives the calling thread real-time priority (`SCHED_FIFO`), until it ends.
pub(super) fn become_realtime(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: plain integers; some C libraries have more of them than one.
    let mut parameters: libc::sched_param = unsafe { MaybeUninit::zeroed().assume_init() };
    parameters.sched_priority = priority;
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })?;
    Ok(())
}

/// A thread's scheduling policy, a number of `sched.h`.
pub(super) fn policy_of(thread: libc::pid_t) -> io::Result<libc::c_int> {
    // SAFETY: a plain integer.
    check(unsafe { libc::sched_getscheduler(thread) })
}

/// A thread's niceness.
pub(super) fn nice_of(thread: libc::pid_t) -> io::Result<libc::c_int> {
    // SAFETY: plain integers. The system call itself returns 20 less the
    // niceness, so that no value is taken for an error.
    let raw =
        check_long(unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, thread) })?;
    Ok(20 - libc::c_int::try_from(raw).unwrap_or(20))
}

/// Sets a thread's niceness.
pub(super) fn set_nice_of(thread: libc::pid_t, nice: libc::c_int) -> io::Result<()> {
    // SAFETY: plain integers.
    check_long(unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, thread, nice) })?;
    Ok(())
}
