//! Signals read from a descriptor: the first request to end is handled like any other event, and
//! ends pinwise properly.
//!
//! A second one kills it at once, like programs that handle no signals: a file system that hangs
//! must not keep the user waiting. Its guardians then end and undo what it leaves.

#![expect(
    unsafe_code,
    reason = "signal handlers and descriptors have no safe form"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use super::sys::check;

/// Signals that ask pinwise to end, unless ignored.
const ENDING: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];
/// Two signals this close count as one: a terminal and a shell, or `timeout`, send the same to a
/// process and to its group.
const TOGETHER_NS: i64 = 200_000_000;

/// Time of the first of [`ENDING`], ns of the monotonic clock; 0: none came yet.
static FIRST_SIGNAL_NS: AtomicI64 = AtomicI64::new(0);
/// The first of [`ENDING`] that came.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The thread that reads the descriptor: only there is [`forwarding_signal`] blocked.
static READER_THREAD: AtomicI32 = AtomicI32::new(0);
/// Signals that are read from a descriptor while this exists.
#[derive(Debug)]
pub(super) struct Signals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
    /// The replaced actions.
    replaced: Vec<(libc::c_int, libc::sigaction)>,
}

impl Signals {
    /// Takes these signals of the calling thread and of threads that it starts. A signal that its
    /// parent ignores stays ignored (`nohup`), except SIGINT: shells let background commands ignore
    /// it, and `kill -INT` must still end them.
    ///
    /// # Errors
    /// If the system has no descriptor for it.
    pub(super) fn take(wanted: &[libc::c_int]) -> io::Result<Self> {
        let is_taken = |signal: &&libc::c_int| **signal == libc::SIGINT || !is_ignored(**signal);
        let wanted: Vec<libc::c_int> = wanted.iter().filter(is_taken).copied().collect();
        let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset initialises the set before it is used; all
        // pointers are valid; the new descriptor is ours alone.
        let (descriptor, before) = unsafe {
            libc::sigemptyset(blocked.as_mut_ptr());
            for &signal in wanted.iter().chain(&[forwarding_signal()]) {
                libc::sigaddset(blocked.as_mut_ptr(), signal);
            }
            check(libc::sigprocmask(
                libc::SIG_BLOCK,
                blocked.as_ptr(),
                before.as_mut_ptr(),
            ))?;
            READER_THREAD.store(libc::gettid(), Ordering::SeqCst);
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = check(libc::signalfd(-1, blocked.as_ptr(), flags))?;
            (OwnedFd::from_raw_fd(descriptor), before.assume_init())
        };
        let replaced = ENDING
            .into_iter()
            .filter(|signal| wanted.contains(signal))
            .filter_map(|signal| Some((signal, install_handler(signal)?)))
            .collect();
        Ok(Self {
            descriptor,
            before,
            replaced,
        })
    }

    /// The signal mask from before, for commands.
    pub(super) const fn before(&self) -> &libc::sigset_t {
        &self.before
    }

    /// Blocks [`ENDING`] on this thread until the returned guard is dropped.
    pub(super) fn block() -> BlockedSignals {
        let mut ending = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset initialises the set before it is used; all
        // pointers are valid.
        unsafe {
            libc::sigemptyset(ending.as_mut_ptr());
            for signal in ENDING {
                libc::sigaddset(ending.as_mut_ptr(), signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, ending.as_ptr(), before.as_mut_ptr());
            BlockedSignals(before.assume_init())
        }
    }

    /// Reads the next pending signal; `None` if there is none.
    pub(super) fn next_pending(&self) -> Option<libc::c_int> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has the size given; the structure is plain
        // integers.
        let (read, info) = unsafe {
            let read = libc::read(self.as_raw_fd(), info.as_mut_ptr().cast(), size);
            (read, info.assume_init())
        };
        let signal = libc::c_int::try_from(info.ssi_signo).unwrap_or(0);
        // The handler passes on the signal that it was called for.
        let signal = if signal == forwarding_signal() {
            FIRST_SIGNAL.load(Ordering::SeqCst)
        } else {
            signal
        };
        (usize::try_from(read).ok() == Some(size)).then_some(signal)
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let late: Vec<libc::c_int> = std::iter::from_fn(|| self.next_pending()).collect();
        FIRST_SIGNAL_NS.store(0, Ordering::SeqCst);
        // SAFETY: the pointers are valid; null old values are allowed.
        unsafe {
            for (signal, action) in &self.replaced {
                libc::sigaction(*signal, action, std::ptr::null_mut());
            }
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            );
            // Nobody has handled them yet: raised again, they reach whoever handles signals next.
            for signal in late {
                libc::raise(signal);
            }
        }
    }
}

/// Signals that are blocked until this is dropped.
pub(super) struct BlockedSignals(libc::sigset_t);

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid; a null old mask is allowed.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// Restores the default actions in a child that shares memory with pinwise, before it may get
/// signals: they must not count as pinwise's.
pub(super) fn remove_handlers() {
    for signal in ENDING {
        if !is_ignored(signal) {
            // SAFETY: the default handler is not a function.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the pointers are valid; zeros are a valid action.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The signal by which the handler makes the descriptor readable.
fn forwarding_signal() -> libc::c_int {
    libc::SIGRTMAX()
}

/// Installs the handler for a signal; returns the former action. `None` if the signal is ignored:
/// it stays ignored for commands, and is read from the descriptor while blocked.
fn install_handler(signal: libc::c_int) -> Option<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    let mut only = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all pointers are valid, zeros are a valid action without flags,
    // and the handler calls only what signal handlers may.
    unsafe {
        check(libc::sigaction(
            signal,
            std::ptr::null(),
            before.as_mut_ptr(),
        ))
        .ok()?;
        let before = before.assume_init();
        if before.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction =
            handle_ending_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        check(libc::sigaction(
            signal,
            &raw const action,
            std::ptr::null_mut(),
        ))
        .ok()?;
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), std::ptr::null_mut());
        Some(before)
    }
}

/// Forwards the first signal to the descriptor; a later one ends the process.
extern "C" fn handle_ending_signal(signal: libc::c_int) {
    // SAFETY: these functions may be called in a signal handler, and errno is
    // left as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        let now = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        match FIRST_SIGNAL_NS.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst) {
            Err(first) if now - first > TOGETHER_NS => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            Err(_) => {}
            Ok(_) => {
                FIRST_SIGNAL.store(signal, Ordering::SeqCst);
                let reader = READER_THREAD.load(Ordering::SeqCst);
                libc::syscall(
                    libc::SYS_tgkill,
                    libc::getpid(),
                    reader,
                    forwarding_signal(),
                );
            }
        }
        *errno = before;
    }
}
