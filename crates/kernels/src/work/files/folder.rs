//! An open folder: its files by their short names, without resolving the whole path and without
//! allocating.

#![expect(
    unsafe_code,
    reason = "calls relative to a folder that std does not have"
)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A folder that stays open.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        Self::open_in(libc::AT_FDCWD, &name)
    }

    /// Creates a folder in this one and opens it.
    pub(super) fn make(&self, name: &CStr) -> io::Result<Self> {
        // SAFETY: the name ends with a null byte and outlives the call.
        check_status(unsafe { libc::mkdirat(self.0.as_raw_fd(), name.as_ptr(), 0o700) })?;
        Self::open_in(self.0.as_raw_fd(), name)
    }

    /// Opens a folder of this one.
    pub(super) fn open_below(&self, name: &CStr) -> io::Result<Self> {
        Self::open_in(self.0.as_raw_fd(), name)
    }

    fn open_in(folder: libc::c_int, name: &CStr) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: as above.
        let fd = check_status(unsafe { libc::openat(folder, name.as_ptr(), flags) })?;
        // SAFETY: the descriptor is new and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Opens a file for reading.
    pub(super) fn open_to_read(&self, name: &CStr) -> io::Result<File> {
        self.open_file(name, libc::O_RDONLY)
    }

    /// Creates a file that does not exist yet.
    pub(super) fn create(&self, name: &CStr) -> io::Result<File> {
        self.open_file(name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)
    }

    /// Opens a file to overwrite its content.
    pub(super) fn open_to_overwrite(&self, name: &CStr) -> io::Result<File> {
        self.open_file(name, libc::O_WRONLY)
    }

    fn open_file(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        let (folder, flags) = (self.0.as_raw_fd(), flags | libc::O_CLOEXEC);
        let mode: libc::c_uint = 0o600;
        // SAFETY: as above; the mode is read if a file is made.
        let fd = check_status(unsafe { libc::openat(folder, name.as_ptr(), flags, mode) })?;
        // SAFETY: the descriptor is new and nothing else owns it.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// Bytes that an unprivileged user may still write here.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let mut stats = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the pointer is valid; the structure is plain integers.
        let stats = unsafe {
            check_status(libc::fstatvfs(self.0.as_raw_fd(), stats.as_mut_ptr()))?;
            stats.assume_init()
        };
        Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
    }
}

fn check_status(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(status)
}
