//! The limit of a process on the size of files (`ulimit -f`).

#![expect(
    unsafe_code,
    reason = "signals and limits have no safe form; each block says why it is sound"
)]

/// A file that reaches `ulimit -f` would end pinwise by SIGXFSZ; with this the write fails and is
/// reported, as on a full disk. A handler is needed, since commands would inherit an ignored
/// signal; an already ignored one stays so.
pub fn fail_writes_beyond_file_limit() {
    extern "C" fn do_nothing(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = do_nothing;
    // SAFETY: the handler does nothing, so that it is safe at any moment.
    unsafe {
        if libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
    }
}

/// Makes all writes to files fail, as on a full disk, for tests.
#[cfg(debug_assertions)]
pub(super) fn forbid_files_to_grow() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: libc::RLIM_INFINITY,
    };
    fail_writes_beyond_file_limit();
    // SAFETY: the pointer is valid.
    unsafe {
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none);
    }
}
