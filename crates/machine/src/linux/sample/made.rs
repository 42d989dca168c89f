//! Names of code made at run time, from the files `/tmp/perf-PID.map` and `jit-PID.dump`, as in the
//! kernel's perf.
//!
//! They are opened while the process lives and read after sampling, record by record: only the
//! requested names are kept, however large a file is.

mod jitdump;
mod perf_map;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::super::capture::read_file;
use super::super::stack::files::{is_file, open_regular};
use pinwise_code::demangle;
use pinwise_profile::Symbol;

/// Limits the files that stay open.
const MAX_FILES: usize = 256;
/// Most bytes read of one file: enough for a million functions and their code.
const MAX_MAP_BYTES: u64 = 128 << 20;
const MAX_DUMP_BYTES: u64 = 1 << 30;
/// Limits how often addresses get a name: each record can claim to cover all of them.
const MAX_MATCHES: usize = 10_000_000;
const ROOT: u32 = 0;

/// A file of names, or why it is not read.
type Opened = Result<File, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameFormat {
    /// `/tmp/perf-PID.map`.
    Map,
    /// `jit-PID.dump`, at a path that the process chooses.
    Dump,
}

/// A process that runs code without a file. It is kept after the process has ended, since some
/// runtimes write their names only then.
#[derive(Debug)]
struct Maker {
    /// The root of its file system.
    root: File,
    /// Its process id inside its container.
    own_pid: String,
    user: u32,
}

/// Files of names by process.
#[derive(Debug, Default)]
pub(super) struct NameFiles {
    makers: BTreeMap<i32, Maker>,
    files: BTreeMap<(i32, NameFormat), Opened>,
}

impl NameFiles {
    /// Opens the files that exist by now and are not open yet; `dumps` are the paths of dumps by
    /// process. Processes may have ended.
    pub(super) fn open_new(&mut self, processes: &BTreeSet<i32>, dumps: &BTreeMap<i32, String>) {
        for &pid in processes {
            let lacks = |format| !self.files.contains_key(&(pid, format));
            if self.files.len() < MAX_FILES && (lacks(NameFormat::Map) || lacks(NameFormat::Dump)) {
                self.open_files(pid, dumps.get(&pid));
            }
        }
    }

    fn open_files(&mut self, pid: i32, dump: Option<&String>) {
        if (self.makers.contains_key(&pid) || self.makers.len() < MAX_FILES)
            && let Some(maker) = Maker::from_process(pid)
        {
            self.makers.insert(pid, maker);
        }
        let Some(maker) = self.makers.get(&pid) else {
            return;
        };
        let map = format!("/tmp/perf-{}.map", maker.own_pid);
        for (format, path) in [(NameFormat::Map, Some(&map)), (NameFormat::Dump, dump)] {
            if !self.files.contains_key(&(pid, format))
                && let Some(opened) = path.and_then(|path| maker.open(path))
            {
                self.files.insert((pid, format), opened);
            }
        }
    }

    /// Says which files could not be opened, and why.
    pub(super) fn refusals(&self) -> Vec<String> {
        let refused = self.files.iter().filter_map(|((pid, _), opened)| {
            let reason = opened.as_ref().err()?;
            Some(format!(
                "Names of the code that process {pid} made are missing: {reason}."
            ))
        });
        refused.collect()
    }

    /// Finds the name of each address of a process; a dump's name wins over a map's.
    pub(super) fn find_names(
        &self,
        pid: i32,
        addresses: &[u64],
        notes: &mut Vec<String>,
    ) -> Vec<Option<Symbol>> {
        let mut names = vec![None; addresses.len()];
        for (format, max_bytes) in [
            (NameFormat::Dump, MAX_DUMP_BYTES),
            (NameFormat::Map, MAX_MAP_BYTES),
        ] {
            let Some(Ok(file)) = self.files.get(&(pid, format)) else {
                continue;
            };
            if file.metadata().is_ok_and(|file| file.len() > max_bytes) {
                notes.push(format!(
                    "Names of the code that process {pid} made are incomplete: its list is \
                     larger than {} MiB.",
                    max_bytes >> 20
                ));
            }
            let found = match format {
                NameFormat::Map => perf_map::find_symbols(file, addresses),
                NameFormat::Dump => jitdump::find_symbols(file, addresses),
            };
            for (name, found) in names.iter_mut().zip(found) {
                *name = name.take().or(found);
            }
        }
        names
    }
}

/// Is this the path of a `jit-PID.dump`?
pub(super) fn is_dump(path: &str) -> bool {
    let number = path
        .rsplit_once("/jit-")
        .and_then(|(_, name)| name.strip_suffix(".dump"));
    is_file(path) && number.is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Maker {
    /// `None` for a process that is gone or may not be inspected.
    fn from_process(pid: i32) -> Option<Self> {
        let status = read_file(Path::new(&format!("/proc/{pid}/status")))?;
        let status = String::from_utf8_lossy(&status);
        let own_pid = fields(&status, "NStgid:").and_then(Iterator::last);
        let own_pid = own_pid.map_or_else(|| pid.to_string(), str::to_owned);
        let user = fields(&status, "Uid:")?.nth(1)?.parse().ok()?;
        let root = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(format!("/proc/{pid}/root"));
        Some(Self {
            root: root.ok()?,
            own_pid,
            user,
        })
    }

    /// `None` if there is no such file.
    fn open(&self, path: &str) -> Option<Opened> {
        let inside = format!("/proc/self/fd/{}{path}", self.root.as_raw_fd());
        match open_regular(Path::new(&inside)) {
            Ok(file) => {
                let owner = file.metadata().ok()?.uid();
                if owner == self.user || owner == ROOT {
                    Some(Ok(file))
                } else {
                    Some(Err(format!("{path} belongs to another user ({owner})")))
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(Err(format!("{path}: {error}"))),
        }
    }
}

fn fields<'a>(status: &'a str, name: &str) -> Option<impl Iterator<Item = &'a str>> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace())
}

/// Where the name of a function is in a file.
#[derive(Debug, Clone, Copy)]
struct NamePosition {
    /// The first address of the code.
    start: u64,
    /// Offset of the name in the file, bytes.
    offset: u64,
    /// Bytes.
    length: usize,
}

/// The requested addresses, and for each the last name in the file whose code contains it.
#[derive(Debug)]
struct AddressNames<'a> {
    addresses: &'a [u64],
    /// Addresses with their index in `addresses`.
    sorted: Vec<(u64, usize)>,
    names: Vec<Option<NamePosition>>,
    /// See [`MAX_MATCHES`].
    remaining_matches: usize,
}

impl<'a> AddressNames<'a> {
    fn new(addresses: &'a [u64]) -> Self {
        let mut sorted: Vec<(u64, usize)> = addresses.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self {
            addresses,
            sorted,
            names: vec![None; addresses.len()],
            remaining_matches: MAX_MATCHES,
        }
    }

    /// Sets the name of all addresses from `start` up to `end`.
    fn set_name(&mut self, start: u64, end: u64, name: NamePosition) {
        let first = self.sorted.partition_point(|(address, _)| *address < start);
        let inside = self.sorted[first..].iter().take_while(|(a, _)| *a < end);
        for (_, index) in inside.take(self.remaining_matches) {
            self.names[*index] = Some(name);
            self.remaining_matches -= 1;
        }
    }

    const fn may_match_more(&self) -> bool {
        self.remaining_matches > 0
    }

    fn read_symbols(self, file: &File) -> Vec<Option<Symbol>> {
        let read_symbol = |(name, address): (Option<NamePosition>, &u64)| {
            let name = name?;
            let mut bytes = vec![0; name.length];
            file.read_exact_at(&mut bytes, name.offset).ok()?;
            Some(Symbol {
                name: demangle(&String::from_utf8_lossy(&bytes)),
                offset: address - name.start,
                source: None,
                inlined: Vec::new(),
            })
        };
        self.names
            .into_iter()
            .zip(self.addresses)
            .map(read_symbol)
            .collect()
    }
}

/// Reads a file from its start, whatever the position of its descriptor.
struct FileReader<'a> {
    file: &'a File,
    /// Bytes.
    position: u64,
}

impl<'a> FileReader<'a> {
    const fn new(file: &'a File) -> Self {
        Self { file, position: 0 }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for FileReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(_) => None,
        };
        self.position = at.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
