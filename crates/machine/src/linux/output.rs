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

/// Most bytes that are kept of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct KeptBytes {
    /// From its beginning.
    head: usize,
    /// From its end.
    tail: usize,
}

/// What is kept of each stream if the output is wanted.
const KEPT: KeptBytes = KeptBytes {
    head: 8 * 1024 * 1024,
    tail: 8 * 1024 * 1024,
};
/// If output is discarded, only the end of standard error is kept.
const STDERR_TAIL: usize = 16 * 1024;
/// Wanted size of a pipe: a larger one blocks a command with much output less often.
const PIPE_BYTES: libc::c_int = 1024 * 1024;

/// A pipe that commands write into.
#[derive(Debug)]
pub(super) struct Stream {
    read: OwnedFd,
    write: OwnedFd,
    head: Vec<u8>,
    tail: Vec<u8>,
    limits: KeptBytes,
    buffer: Vec<u8>,
}

impl Stream {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = sys::pipe(0)?;
        set_nonblocking(&read)?;
        enlarge_pipe(&read);
        Ok(Self {
            read,
            write,
            head: Vec::new(),
            tail: Vec::new(),
            limits: KeptBytes::default(),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Discards everything so far and keeps up to `limits` from now on.
    fn restart(&mut self, limits: KeptBytes) {
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
        let KeptBytes { head, tail } = self.limits;
        let room = head.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > 2 * tail.max(STDERR_TAIL) {
            self.tail.drain(..self.tail.len() - tail);
        }
    }

    /// Returns and forgets the kept bytes.
    fn take_kept(&mut self) -> Vec<u8> {
        self.drain();
        let excess = self.tail.len().saturating_sub(self.limits.tail);
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
    pub(super) fn null_descriptors(&self) -> [i32; 3] {
        [self.null.as_raw_fd(); 3]
    }

    /// Descriptors of a companion whose output is kept, with both streams in one pipe.
    pub(super) fn open_companion_output(&mut self) -> io::Result<[RawFd; 3]> {
        let stream = match self.companion.take() {
            Some(stream) => stream,
            None => Stream::new()?,
        };
        let write = stream.write.as_raw_fd();
        self.companion = Some(stream);
        Ok([self.null.as_raw_fd(), write, write])
    }

    /// Discards a companion's output so far.
    pub(super) fn restart_companion_output(&mut self) {
        if let Some(stream) = &mut self.companion {
            stream.restart(KEPT);
        }
    }

    pub(super) fn take_companion_output(&mut self) -> Option<Vec<u8>> {
        self.companion.as_mut().map(Stream::take_kept)
    }

    /// Makes the descriptors for a run. An error names the file that could not be created.
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
                self.err.restart(KeptBytes {
                    head: 0,
                    tail: STDERR_TAIL,
                });
                run.numbers[2] = self.err.write.as_raw_fd();
            }
            Output::Keep => {
                self.out.restart(KEPT);
                self.err.restart(KEPT);
                run.numbers[1] = self.out.write.as_raw_fd();
                run.numbers[2] = self.err.write.as_raw_fd();
            }
            Output::Files(stem) => {
                for (index, ending) in [(1, "stdout"), (2, "stderr")] {
                    let path = add_suffix(stem, ending);
                    let file = create_file(&path).map_err(|error| (path.clone(), error))?;
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
            Output::Discard => (None, self.err.take_kept()),
            Output::Keep => {
                let err = self.err.take_kept();
                let mut all = self.out.take_kept();
                all.extend_from_slice(&err);
                let from = err.len().saturating_sub(STDERR_TAIL);
                (Some(all), err[from..].to_vec())
            }
            Output::Files(_) => (None, read_file_tail(run.stderr_file.as_deref())),
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

    /// Starts processes that keep emptying the pipes after pinwise ends, until the last writer is
    /// gone.
    pub(super) fn keep_drained_after_exit(&self) {
        for stream in [&self.out, &self.err] {
            let Ok(read) = stream.read.try_clone() else {
                continue;
            };
            // If no process can be started, writers get SIGPIPE.
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

fn create_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

/// Reads the end of a command's standard error from its file.
fn read_file_tail(path: Option<&Path>) -> Vec<u8> {
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

/// Enlarges a pipe if permitted: unprivileged users have a limit.
#[expect(unsafe_code, reason = "fcntl has no safe form")]
fn enlarge_pipe(descriptor: &OwnedFd) {
    // SAFETY: plain integers on a descriptor we own.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_the_output_are_kept() {
        let mut stream = Stream::new().unwrap();
        stream.restart(KeptBytes { head: 4, tail: 3 });
        for _ in 0..100_000 {
            stream.keep(b"abc");
        }
        stream.keep(b"XYZ");
        assert_eq!(stream.take_kept(), b"abcaXYZ");
        stream.restart(KeptBytes { head: 0, tail: 2 });
        stream.keep(b"12345");
        assert_eq!(stream.take_kept(), b"45");
    }
}
