//! Reads `/sys` and `/proc` for [`Topology::from_files`], in as few system calls as possible.
//!
//! Files of CPUs are opened relative to their folder, which saves the walk from the root: a quarter
//! of the time. Opening a pipe does not block, and no file is read beyond 64 KiB.
//!
//! [`Topology::from_files`]: pinwise_topology::Topology::from_files

#![expect(
    unsafe_code,
    reason = "files are opened from a descriptor; each block says why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use pinwise_topology::Files;

/// Files are read up to this length.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// Files below `sys` are read in pieces of a page, so a shorter piece is the last. Pieces of files
/// below `proc` may have any length.
const SMALLEST_PAGE: usize = 4096;
const CPU_DIR: &str = "sys/devices/system/cpu/";

/// Files of the running system, or of a folder with a copy of them.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    root_descriptor: OwnedFd,
    cpus: Option<OwnedFd>,
    /// The thread's affinity mask as a list; `None` for a copy of another machine's files.
    affinity: Option<String>,
    path: Vec<u8>,
    content: Vec<u8>,
    attempts: usize,
}

impl Folder {
    /// # Errors
    /// [`io::Error`] if there is no such folder.
    pub(super) fn open(root: &Path, affinity: Option<String>) -> io::Result<Self> {
        let mut path = root.as_os_str().as_encoded_bytes().to_vec();
        path.push(0);
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let root_descriptor = open_at(libc::AT_FDCWD, &path, flags)?;
        let cpus = [CPU_DIR.as_bytes(), &[0]].concat();
        Ok(Self {
            root: root.to_owned(),
            cpus: open_at(root_descriptor.as_raw_fd(), &cpus, flags).ok(),
            root_descriptor,
            affinity,
            path: Vec::new(),
            content: vec![0; MAX_FILE_BYTES],
            attempts: 0,
        })
    }

    /// Calls so far that opened a file, listed a folder, or tried to.
    pub(super) const fn attempts(&self) -> usize {
        self.attempts
    }

    /// Reads a file; returns its length.
    fn read(&mut self, path: &str) -> Option<usize> {
        self.attempts += 1;
        let (start, rest) = match (&self.cpus, path.strip_prefix(CPU_DIR)) {
            (Some(cpus), Some(rest)) => (cpus, rest),
            _ => (&self.root_descriptor, path),
        };
        self.path.clear();
        self.path.extend_from_slice(rest.as_bytes());
        self.path.push(0);
        let file = open_at(start.as_raw_fd(), &self.path, libc::O_NONBLOCK).ok()?;
        let mut length = 0;
        while length < MAX_FILE_BYTES {
            let piece = read_piece(&file, &mut self.content[length..])?;
            length += piece;
            if piece == 0 || (piece < SMALLEST_PAGE && path.starts_with("sys/")) {
                break;
            }
        }
        Some(length)
    }
}

impl Files for Folder {
    fn text(&mut self, path: &str) -> Option<&str> {
        if path == "pinwise/affinity" {
            return self.affinity.as_deref();
        }
        let length = self.read(path)?;
        let text = std::str::from_utf8(&self.content[..length]).ok()?;
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0'))
    }

    fn children(&mut self, folder: &str) -> Vec<String> {
        self.attempts += 1;
        #[expect(
            clippy::disallowed_methods,
            reason = "this crate lists folders of /sys and of copies of it"
        )]
        let Ok(entries) = std::fs::read_dir(self.root.join(folder)) else {
            return Vec::new();
        };
        let name =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        entries.filter_map(name).collect()
    }
}

/// Opens a path that ends with NUL for reading.
fn open_at(start: RawFd, path: &[u8], flags: libc::c_int) -> io::Result<OwnedFd> {
    if path.iter().position(|&byte| byte == 0) != Some(path.len() - 1) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | flags;
    // SAFETY: the path ends with its only NUL, checked above, and outlives the
    // call; on success the descriptor is open and ours alone.
    unsafe {
        let descriptor = libc::openat(start, path.as_ptr().cast(), flags);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Reads the next piece of a file; `None` on failure.
fn read_piece(file: &OwnedFd, into: &mut [u8]) -> Option<usize> {
    // SAFETY: the kernel writes at most as many bytes as the slice has.
    let length = unsafe { libc::read(file.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(length).ok()
}
