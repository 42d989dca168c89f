//! Signals that end a process, held back until its files are removed.

#![expect(unsafe_code, reason = "signal masks have no safe form")]

use std::mem::MaybeUninit;

/// Blocks SIGINT, SIGTERM and SIGHUP for the calling thread and the threads it starts, until
/// dropped on the same thread. Signals ignored before stay ignored.
#[derive(Debug)]
pub(super) struct HeldSignals {
    before: Box<libc::sigset_t>,
}

impl HeldSignals {
    pub(super) fn hold() -> Self {
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        let held = list_held_signals();
        // SAFETY: both sets are initialised, as zeros are an empty set.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before: Box::new(before),
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the set is initialised.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const *self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Those of the three signals that would end this process.
fn list_held_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all pointers are valid for the calls; zeros are valid in both
    // structures.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            if action.assume_init().sa_sigaction == libc::SIG_DFL {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        set.assume_init()
    }
}

/// Whether a blocked signal is pending that would end this process.
pub(super) fn is_ending() -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is valid; zeros are an empty set.
    let pending = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        pending.assume_init()
    };
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        // SAFETY: the set is initialised.
        .any(|signal| unsafe { libc::sigismember(&raw const pending, signal) } == 1)
}
