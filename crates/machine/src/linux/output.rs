//! A command's output.
//!
//! Pipes are made once and drained while the command runs. The kept output is bounded: a command
//! that prints gigabytes costs its own time, not our memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use super::{daemon, sys};
use crate::Output;

/// Bytes kept of each stream, from its beginning and from its end.
const KEPT_HEAD: usize = 8 * 1024 * 1024;
const KEPT_TAIL: usize = 8 * 1024 * 1024;
/// If output is discarded, only the end of standard error is kept.
const STDERR_TAIL: usize = 16 * 1024;
/// Larger pipes stop a chatty command less often.
const PIPE_BYTES: libc::c_int = 1024 * 1024;

/// A pipe that commands write into.
#[derive(Debug)]
pub(super) struct Stream {
    read: OwnedFd,
    write: OwnedFd,
    head: Vec<u8>,
    tail: Vec<u8>,
    limits: (usize, usize),
    buffer: Vec<u8>,
}

impl Stream {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = sys::pipe(0)?;
        set_nonblocking(&read)?;
        enlarge(&read);
        Ok(Self {
            read,
            write,
            head: Vec::new(),
            tail: Vec::new(),
            limits: (0, 0),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Starts again, keeping this much of the beginning and of the end.
    fn reset(&mut self, limits: (usize, usize)) {
        self.drain();
        self.head.clear();
        self.tail.clear();
        self.limits = limits;
    }

    /// Reads what is available.
    pub(super) fn drain(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let read = sys::read_some(&self.read, &mut buffer);
            if read == 0 {
                break;
            }
            self.keep(&buffer[..read]);
        }
        self.buffer = buffer;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, tail) = self.limits;
        let room = head.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > 2 * tail.max(STDERR_TAIL) {
            self.tail.drain(..self.tail.len() - tail);
        }
    }

    fn take(&mut self) -> Vec<u8> {
        self.drain();
        let excess = self.tail.len().saturating_sub(self.limits.1);
        let mut kept = std::mem::take(&mut self.head);
        kept.extend_from_slice(&self.tail[excess..]);
        self.tail.clear();
        kept
    }
}

/// Both streams of a run, and that of a companion.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) out: Stream,
    pub(super) err: Stream,
    /// Made when the first companion's output is kept.
    companion: Option<Stream>,
    null: File,
}

/// Descriptors for one run; files stay open until this is dropped.
#[derive(Debug)]
pub(super) struct RunDescriptors {
    pub(super) numbers: [RawFd; 3],
    files: Vec<File>,
    stderr_file: Option<PathBuf>,
}

impl Streams {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            out: Stream::new()?,
            err: Stream::new()?,
            companion: None,
            null: OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/null")?,
        })
    }

    /// Descriptors of a command that reads nothing and whose output is discarded.
    pub(super) fn closed(&self) -> [i32; 3] {
        [self.null.as_raw_fd(); 3]
    }

    /// Descriptors of a companion whose output is kept, both streams as one.
    pub(super) fn keep_companion(&mut self) -> io::Result<[RawFd; 3]> {
        let stream = match self.companion.take() {
            Some(stream) => stream,
            None => Stream::new()?,
        };
        let write = stream.write.as_raw_fd();
        self.companion = Some(stream);
        Ok([self.null.as_raw_fd(), write, write])
    }

    /// From now on a companion's output counts.
    pub(super) fn forget_companion(&mut self) {
        if let Some(stream) = &mut self.companion {
            stream.reset((KEPT_HEAD, KEPT_TAIL));
        }
    }

    pub(super) fn take_companion(&mut self) -> Option<Vec<u8>> {
        self.companion.as_mut().map(Stream::take)
    }

    pub(super) fn prepare(
        &mut self,
        input: Option<File>,
        output: &Output,
    ) -> Result<RunDescriptors, (PathBuf, io::Error)> {
        let mut run = RunDescriptors {
            numbers: [self.null.as_raw_fd(); 3],
            files: Vec::new(),
            stderr_file: None,
        };
        if let Some(file) = input {
            run.numbers[0] = file.as_raw_fd();
            run.files.push(file);
        }
        match output {
            Output::Discard => {
                self.err.reset((0, STDERR_TAIL));
                run.numbers[2] = self.err.write.as_raw_fd();
            }
            Output::Keep => {
                self.out.reset((KEPT_HEAD, KEPT_TAIL));
                self.err.reset((KEPT_HEAD, KEPT_TAIL));
                run.numbers[1] = self.out.write.as_raw_fd();
                run.numbers[2] = self.err.write.as_raw_fd();
            }
            Output::Files(stem) => {
                for (index, ending) in [(1, "stdout"), (2, "stderr")] {
                    let path = add_suffix(stem, ending);
                    let file = create(&path).map_err(|error| (path.clone(), error))?;
                    run.numbers[index] = file.as_raw_fd();
                    run.files.push(file);
                    run.stderr_file = Some(path);
                }
            }
            Output::Inherit => {
                run.numbers[1] = 1;
                run.numbers[2] = 2;
            }
        }
        Ok(run)
    }

    /// The output of the run: both streams if kept, and the end of standard error.
    pub(super) fn collect(
        &mut self,
        output: &Output,
        run: &RunDescriptors,
    ) -> (Option<Vec<u8>>, Vec<u8>) {
        match output {
            Output::Discard => (None, self.err.take()),
            Output::Keep => {
                let err = self.err.take();
                let mut all = self.out.take();
                all.extend_from_slice(&err);
                let from = err.len().saturating_sub(STDERR_TAIL);
                (Some(all), err[from..].to_vec())
            }
            Output::Files(_) => (None, file_tail(run.stderr_file.as_deref())),
            Output::Inherit => (None, Vec::new()),
        }
    }

    pub(super) fn drain(&mut self) {
        for stream in [
            Some(&mut self.out),
            Some(&mut self.err),
            self.companion.as_mut(),
        ] {
            stream.into_iter().for_each(Stream::drain);
        }
    }

    /// The ends that [`Self::drain`] reads.
    pub(super) fn reading_ends(&self) -> [Option<RawFd>; 3] {
        let streams = [Some(&self.out), Some(&self.err), self.companion.as_ref()];
        streams.map(|stream| stream.map(|stream| stream.read.as_raw_fd()))
    }

    /// Keeps the pipes working after pinwise ends: a process empties them until the last writer is
    /// gone.
    pub(super) fn outlive(&self) {
        for stream in [&self.out, &self.err] {
            let Ok(read) = stream.read.try_clone() else {
                continue;
            };
            // If no process can be made for it, writers get SIGPIPE.
            let _ = daemon::start(
                daemon::DRAIN,
                Some(&File::from(read)),
                daemon::drain_held_file,
            );
        }
    }
}

fn add_suffix(stem: &Path, ending: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

fn file_tail(path: Option<&Path>) -> Vec<u8> {
    let content = path.and_then(super::capture::read_file).unwrap_or_default();
    let from = content.len().saturating_sub(STDERR_TAIL);
    content[from..].to_vec()
}

#[expect(unsafe_code, reason = "fcntl has no safe form")]
fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain integers on a descriptor we own.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: as above.
    let set = unsafe {
        libc::fcntl(
            descriptor.as_raw_fd(),
            libc::F_SETFL,
            flags | libc::O_NONBLOCK,
        )
    };
    sys::check(set).map(|_| ())
}

/// Optional: unprivileged users have a limit.
#[expect(unsafe_code, reason = "fcntl has no safe form")]
fn enlarge(descriptor: &OwnedFd) {
    // SAFETY: plain integers on a descriptor we own.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut stream = Stream::new().unwrap();
        stream.reset((4, 3));
        for _ in 0..100_000 {
            stream.keep(b"abc");
        }
        stream.keep(b"XYZ");
        assert_eq!(stream.take(), b"abcaXYZ");
        stream.reset((0, 2));
        stream.keep(b"12345");
        assert_eq!(stream.take(), b"45");
    }
}
