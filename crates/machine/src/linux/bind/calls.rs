//! System calls that only binding needs.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::super::sys;

/// CPU time of a process so far, including its ended threads. `None` if the process was reaped.
pub(super) fn process_cpu_time(pid: libc::pid_t) -> Option<Duration> {
    let mut id: libc::clockid_t = 0;
    // SAFETY: the pointer is valid.
    let found = unsafe { libc::clock_getcpuclockid(pid, &raw mut id) };
    (found == 0).then(|| sys::read_clock(id))
}

/// The group whose rights this process has.
pub(super) fn effective_group() -> libc::gid_t {
    // SAFETY: it takes null and cannot fail.
    unsafe { libc::getegid() }
}

/// Is the file on a mount that ignores setuid bits and file capabilities?
pub(super) fn is_without_setuid(file: &Path) -> bool {
    let Ok(file) = CString::new(file.as_os_str().as_bytes()) else {
        return false;
    };
    let mut found = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is NUL-terminated, the pointer valid; the structure is
    // plain integers, for which zeros are valid.
    unsafe {
        libc::statvfs(file.as_ptr(), found.as_mut_ptr()) == 0
            && found.assume_init().f_flag & libc::ST_NOSUID != 0
    }
}

/// Does a file have this extended attribute?
pub(super) fn has_attribute(file: &Path, name: &CStr) -> bool {
    let Ok(file) = CString::new(file.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both strings are NUL-terminated; null is written to a buffer
    // of length 0.
    unsafe { libc::getxattr(file.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Permits every process of this user to trace this one under Yama, or withdraws the permission.
pub(in crate::linux) fn permit_tracers(is_permitted: bool) {
    const PR_SET_PTRACER_ANY: libc::c_ulong = libc::c_ulong::MAX;
    let who = if is_permitted { PR_SET_PTRACER_ANY } else { 0 };
    // SAFETY: plain integers; without Yama it fails and is not needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, who, 0, 0, 0) };
}

/// Reads a number that another process of ours writes into a pipe.
pub(in crate::linux) fn read_number(pipe: &OwnedFd) -> io::Result<libc::c_int> {
    let mut bytes = [0u8; size_of::<libc::c_int>()];
    loop {
        // SAFETY: the buffer has the length passed.
        let read = unsafe { libc::read(pipe.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(read) {
            Ok(length) if length == bytes.len() => return Ok(libc::c_int::from_ne_bytes(bytes)),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Redirects these descriptors to `/dev/null`.
pub(in crate::linux) fn redirect_to_null(descriptors: &[RawFd]) {
    // SAFETY: the path is NUL-terminated; the descriptors are this process's
    // own, and what is opened is closed again.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for &descriptor in descriptors {
            if null < 0 {
                libc::close(descriptor);
            } else {
                libc::dup2(null, descriptor);
            }
        }
        if null > 2 {
            libc::close(null);
        }
    }
}

/// Closes all descriptors except the standard ones and this one. Only for a forked child that uses
/// none of them.
pub(in crate::linux) fn close_others(kept: RawFd) {
    let Ok(kept) = libc::c_uint::try_from(kept) else {
        return;
    };
    // SAFETY: plain integers; null in this process uses the descriptors.
    unsafe {
        if kept > 3 {
            libc::syscall(libc::SYS_close_range, 3, kept - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, kept + 1, libc::c_uint::MAX, 0);
    }
}
