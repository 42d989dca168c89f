//! Starts a program whose CPU mask, memory policy, descriptors and process group are set before its
//! first instruction.
//!
//! The child is made the way `posix_spawn` makes one: it borrows the parent's memory until it
//! executes (`CLONE_VM | CLONE_VFORK`), so that starting costs the same however much memory pinwise
//! uses. It reports back through that memory: the mask that the kernel granted, or which step
//! failed and why. The parent of a traced child does not sleep meanwhile (`CLONE_VM` alone), so
//! both have only shared references to what both use.

#![expect(
    unsafe_code,
    reason = "a child that borrows the parent's memory has no safe form"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::bind::ptrace::{self, Orphans};
use super::scheduling::{SchedulingAttributes, set_scheduling, take_own_cookie};
use super::signals;
use super::sys::{self, MASK_WORDS};
use pinwise_topology::CpuSet;

/// The borrowed child needs little stack: it only makes system calls.
const STACK_BYTES: usize = 256 * 1024;

/// The parameters of a child.
pub(super) struct ChildPlan<'a> {
    /// Files of cgroups that the child joins.
    pub(super) groups: &'a [RawFd],
    /// Path of the program.
    pub(super) program: &'a CString,
    /// Arguments, the program's name first.
    pub(super) arguments: &'a [CString],
    /// `NAME=VALUE` strings.
    pub(super) environment: &'a [CString],
    /// Its working folder; `None`: pinwise's own.
    pub(super) folder: Option<&'a CString>,
    /// Standard input, output and error.
    pub(super) descriptors: [RawFd; 3],
    /// The mask to start with.
    pub(super) cpus: &'a CpuSet,
    /// Memory policy and its nodes.
    pub(super) memory: Option<(libc::c_int, &'a CpuSet)>,
    /// Signal mask to start with.
    pub(super) signals: &'a libc::sigset_t,
    /// The child writes its process id here before it executes, so that a guardian in another
    /// process knows what to kill.
    pub(super) slot: &'a AtomicI32,
    /// Is it traced, with its descendants? Then `spawn` returns while it is stopped before the
    /// program's first instruction.
    pub(super) is_traced: bool,
    /// Do orphans of its descendants become its children, instead of pinwise's?
    pub(super) is_subreaper: bool,
    /// Its scheduling attributes; `None`: pinwise's own.
    pub(super) scheduling: Option<SchedulingAttributes>,
    /// Does it get its own core-scheduling cookie, so that no other program's thread runs on its
    /// core at the same time?
    pub(super) has_own_cookie: bool,
}

/// A running child, or a stopped one if traced.
pub(super) struct Child {
    pub(super) pid: libc::pid_t,
    /// The mask that the kernel granted.
    pub(super) granted: CpuSet,
    /// When it had joined its cgroups, which can take the kernel some ms; `None` if it joined none.
    pub(super) joined: Option<Duration>,
}

/// The step at which starting failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Clone,
    Trace,
    Group,
    Descriptors,
    Folder,
    Affinity,
    Memory,
    Scheduling,
    Cookie,
    Execute,
}

impl Step {
    const ALL: [Self; 10] = [
        Self::Clone,
        Self::Trace,
        Self::Group,
        Self::Descriptors,
        Self::Folder,
        Self::Affinity,
        Self::Memory,
        Self::Scheduling,
        Self::Cookie,
        Self::Execute,
    ];
}

/// Everything that the borrowed child may access, made in advance because the child must not
/// allocate. The child writes only atomics, since its parent may run meanwhile.
struct Shared<'a> {
    groups: &'a [RawFd],
    program: &'a CStr,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    /// Null to stay in pinwise's folder.
    folder: *const libc::c_char,
    descriptors: [RawFd; 3],
    mask: Vec<u64>,
    memory_mode: libc::c_int,
    memory_nodes: Vec<u64>,
    signals: &'a libc::sigset_t,
    is_subreaper: bool,
    scheduling: Option<SchedulingAttributes>,
    has_own_cookie: bool,
    parent: libc::pid_t,
    slot: &'a AtomicI32,
    granted: Vec<AtomicU64>,
    granted_bytes: AtomicI64,
    /// [`Child::joined`], ns; 0: never.
    joined_ns: AtomicU64,
    /// Index in [`Step::ALL`], or [`NO_STEP`].
    failed_step: AtomicI32,
    failed_errno: AtomicI32,
    /// [`WAIT`], [`GO_ON`] or [`GIVE_UP`]. The child waits for it before anything else.
    gate: AtomicI32,
}

/// [`Shared::failed_step`] if no step failed.
const NO_STEP: i32 = -1;

impl Shared<'_> {
    fn failure(&self) -> Option<(Step, io::Error)> {
        let step = usize::try_from(self.failed_step.load(Ordering::SeqCst)).ok()?;
        let errno = self.failed_errno.load(Ordering::SeqCst);
        Some((*Step::ALL.get(step)?, io::Error::from_raw_os_error(errno)))
    }

    /// The mask that the kernel granted.
    fn granted(&self) -> CpuSet {
        let bytes = self.granted_bytes.load(Ordering::SeqCst);
        let words = usize::try_from(bytes).unwrap_or(0).div_ceil(8);
        let granted = self.granted.iter().take(words);
        CpuSet::from_words(granted.map(|word| word.load(Ordering::SeqCst)).collect())
    }
}

/// States of a child's gate.
const WAIT: i32 = 0;
const GO_ON: i32 = 1;
const GIVE_UP: i32 = 2;

/// The stack of borrowed children, reused.
pub(super) struct Spawner {
    stack: *mut libc::c_void,
}

impl Spawner {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: an anonymous private mapping; the result is checked.
        let stack = unsafe {
            libc::mmap(
                ptr::null_mut(),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if stack == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { stack })
    }

    /// Starts a program; an error says which step failed. Call with signals blocked, so that no
    /// handler runs in the borrowed child.
    pub(super) fn spawn(&self, plan: &ChildPlan<'_>) -> Result<Child, (Step, io::Error)> {
        let shared = Shared {
            groups: plan.groups,
            program: plan.program,
            arguments: c_pointers(plan.arguments),
            environment: c_pointers(plan.environment),
            folder: plan.folder.map_or(ptr::null(), |folder| folder.as_ptr()),
            descriptors: plan.descriptors,
            mask: plan.cpus.words().to_vec(),
            memory_mode: plan.memory.map_or(-1, |(mode, _)| mode),
            memory_nodes: plan
                .memory
                .map_or(Vec::new(), |(_, nodes)| nodes.words().to_vec()),
            signals: plan.signals,
            is_subreaper: plan.is_subreaper,
            scheduling: plan.scheduling,
            has_own_cookie: plan.has_own_cookie,
            // SAFETY: the call has no preconditions.
            parent: unsafe { libc::getpid() },
            slot: plan.slot,
            granted: (0..MASK_WORDS).map(|_| AtomicU64::new(0)).collect(),
            granted_bytes: AtomicI64::new(0),
            joined_ns: AtomicU64::new(0),
            failed_step: AtomicI32::new(NO_STEP),
            failed_errno: AtomicI32::new(0),
            gate: AtomicI32::new(if plan.is_traced { WAIT } else { GO_ON }),
        };
        // With CLONE_VFORK the parent sleeps and could not begin to trace.
        let vfork = if plan.is_traced { 0 } else { libc::CLONE_VFORK };
        let flags = libc::CLONE_VM | vfork | libc::SIGCHLD;
        let argument = (&raw const shared).cast_mut().cast();
        // SAFETY: the child runs `child_main` on its own stack, whose top is aligned as mmap aligns
        // pages; this function returns after the child has executed or exited (CLONE_VFORK, or
        // `trace_child` below), so `shared` outlives its use. Both only read it, but for the
        // atomics.
        let pid = unsafe {
            let top = self.stack.byte_add(STACK_BYTES);
            libc::clone(child_main, top, flags, argument)
        };
        if pid < 0 {
            return Err((Step::Clone, io::Error::last_os_error()));
        }
        if plan.is_traced {
            trace_child(pid, &shared.gate).map_err(|error| (Step::Trace, error))?;
        }
        if let Some(failure) = shared.failure() {
            reap_failed(pid);
            plan.slot.store(0, Ordering::SeqCst);
            return Err(failure);
        }
        Ok(Child {
            pid,
            granted: shared.granted(),
            joined: match shared.joined_ns.load(Ordering::SeqCst) {
                0 => None,
                ns => Some(Duration::from_nanos(ns)),
            },
        })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and no child uses it: each
        // has executed or exited before `spawn` returned.
        unsafe { libc::munmap(self.stack, STACK_BYTES) };
    }
}

/// Begins to trace a child that waits at its gate, opens the gate, and waits until the child stops
/// at the program's first instruction or has exited.
fn trace_child(pid: libc::pid_t, gate: &AtomicI32) -> io::Result<()> {
    let seized = ptrace::seize(pid, Orphans::Die);
    let word = if seized.is_ok() { GO_ON } else { GIVE_UP };
    gate.store(word, Ordering::SeqCst);
    // SAFETY: wakes waiters at that address; it is valid.
    unsafe { libc::syscall(libc::SYS_futex, gate.as_ptr(), libc::FUTEX_WAKE, 1) };
    match seized {
        Ok(()) => {
            ptrace::wait_for_program(pid);
            Ok(())
        }
        Err(error) => {
            reap_failed(pid);
            Err(error)
        }
    }
}

/// Reaps a child that exited without executing.
fn reap_failed(pid: libc::pid_t) {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is valid.
        let waited = sys::check(unsafe { libc::waitpid(pid, &raw mut status, 0) });
        if !waited.is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            return;
        }
    }
}

/// The borrowed child. It must not allocate, lock, panic or return to Rust
/// code of the parent: system calls only.
extern "C" fn child_main(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `argument` is the `Shared` of `spawn`, which has shared references
    // to it only and does not return before this child has executed or exited.
    let shared = unsafe { &*argument.cast_const().cast::<Shared<'_>>() };
    while shared.gate.load(Ordering::SeqCst) == WAIT {
        // SAFETY: the address is valid; without a time-out.
        unsafe {
            let (gate, wait) = (shared.gate.as_ptr(), libc::FUTEX_WAIT);
            libc::syscall(libc::SYS_futex, gate, wait, WAIT, ptr::null::<u8>());
        }
    }
    if shared.gate.load(Ordering::SeqCst) == GIVE_UP {
        // SAFETY: ends the child only.
        unsafe { libc::_exit(127) }
    }
    let step = prepare_and_execute(shared);
    // SAFETY: errno is the parent thread's, which sleeps in the kernel meanwhile;
    // reading it is what the parent would do.
    let errno = unsafe { *libc::__errno_location() };
    shared.failed_errno.store(errno, Ordering::SeqCst);
    shared.failed_step.store(step as i32, Ordering::SeqCst);
    // SAFETY: ends the child only.
    unsafe { libc::_exit(127) }
}

/// Makes all settings and executes the program. Returns only if a step failed.
fn prepare_and_execute(shared: &Shared<'_>) -> Step {
    // SAFETY: system calls on plain integers and on buffers of `shared` that
    // are as long as said; dup2 onto 0 to 2 affects the child's own table.
    unsafe {
        // Its own group, so that the whole tree can be signalled.
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != shared.parent {
            libc::_exit(127);
        }
        shared.slot.store(libc::getpid(), Ordering::SeqCst);
        if shared.is_subreaper {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
        if !join_groups(shared) {
            return Step::Group;
        }
        // Rust programs ignore SIGPIPE; the command must not inherit that.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        signals::remove_handlers();
        for (target, &from) in (0..).zip(&shared.descriptors) {
            let copied = if from == target {
                libc::fcntl(from, libc::F_SETFD, 0)
            } else {
                libc::dup2(from, target)
            };
            if copied < 0 {
                return Step::Descriptors;
            }
        }
        if !shared.folder.is_null() && libc::chdir(shared.folder) < 0 {
            return Step::Folder;
        }
        let set = libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            shared.mask.len() * 8,
            shared.mask.as_ptr(),
        );
        if set < 0 {
            return Step::Affinity;
        }
        let granted_bytes = libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            shared.granted.len() * 8,
            shared.granted.as_ptr(),
        );
        shared.granted_bytes.store(granted_bytes, Ordering::SeqCst);
        if shared.memory_mode >= 0 {
            let set = libc::syscall(
                libc::SYS_set_mempolicy,
                shared.memory_mode,
                shared.memory_nodes.as_ptr(),
                shared.memory_nodes.len() * 64 + 1,
            );
            if set < 0 {
                return Step::Memory;
            }
        }
        if shared
            .scheduling
            .as_ref()
            .is_some_and(|attributes| !set_scheduling(attributes))
        {
            return Step::Scheduling;
        }
        if shared.has_own_cookie && !take_own_cookie() {
            return Step::Cookie;
        }
        libc::sigprocmask(libc::SIG_SETMASK, shared.signals, ptr::null_mut());
        libc::execve(
            shared.program.as_ptr(),
            shared.arguments.as_ptr(),
            shared.environment.as_ptr(),
        );
    }
    Step::Execute
}

/// Joins the child's cgroups, and records when. Called by the borrowed child.
fn join_groups(shared: &Shared<'_>) -> bool {
    for &group in shared.groups {
        // SAFETY: the buffer has the byte; 0 means the writing process.
        if unsafe { libc::write(group, c"0".as_ptr().cast(), 1) } < 0 {
            return false;
        }
    }
    if !shared.groups.is_empty() {
        let now = u64::try_from(sys::monotonic().as_nanos()).unwrap_or(u64::MAX);
        shared.joined_ns.store(now, Ordering::SeqCst);
    }
    true
}

/// The pointers to these strings and a final null pointer, as `execve` expects them.
fn c_pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let end = std::iter::once(ptr::null());
    strings.iter().map(|s| s.as_ptr()).chain(end).collect()
}

/// Replaces this process by a program with this environment; returns only on failure.
pub(super) fn replace(
    program: &CString,
    arguments: &[CString],
    environment: &[CString],
) -> io::Error {
    let (arguments, environment) = (c_pointers(arguments), c_pointers(environment));
    // SAFETY: the arrays of pointers end with null and outlive the call; resetting SIGPIPE affects
    // only what is about to be replaced.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    io::Error::last_os_error()
}

/// Finds the path of a program as the shell would.
pub(super) fn find_program(program: &str, search: &str) -> Result<CString, FindError> {
    find_program_in(None, program, search)
}

/// As [`find_program`], for a program that will start in `folder`, the base of relative paths.
pub(super) fn find_program_in(
    folder: Option<&Path>,
    program: &str,
    search: &str,
) -> Result<CString, FindError> {
    let as_c = |path: &str| CString::new(path).map_err(|_| FindError::NotFound);
    if program.contains('/') {
        let path = folder.map_or(Path::new(program).to_owned(), |folder| folder.join(program));
        check_executable(&path.to_string_lossy())?;
        return as_c(program);
    }
    let mut refused = None;
    for folder in search.split(':') {
        let folder = if folder.is_empty() { "." } else { folder };
        let path = format!("{folder}/{program}");
        match check_executable(&path) {
            Ok(()) => return as_c(&path),
            Err(error) if Path::new(&path).exists() => refused = refused.or(Some(error)),
            // Another folder may have the program, even if this one may not be searched.
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or(FindError::NotFound))
}

/// Why a program is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FindError {
    NotFound,
    NotExecutable(String),
}

fn check_executable(path: &str) -> Result<(), FindError> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FindError::NotFound,
        _ => FindError::NotExecutable(error.to_string()),
    })?;
    if metadata.is_dir() {
        return Err(FindError::NotExecutable("it is a folder".to_owned()));
    }
    let path = CString::new(path).map_err(|_| FindError::NotFound)?;
    // SAFETY: the path is NUL-terminated.
    sys::check(unsafe { libc::access(path.as_ptr(), libc::X_OK) })
        .map(|_| ())
        .map_err(|_| FindError::NotExecutable("it is not marked executable (chmod +x)".to_owned()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start processes")]
mod tests;
