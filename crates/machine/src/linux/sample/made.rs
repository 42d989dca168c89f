//! Names of code made at run time, from the files `/tmp/perf-PID.map` and `jit-PID.dump`, as in the
//! kernel's perf.
//!
//! They are opened while the process lives and read after sampling, piece by piece: only requested
//! names are kept, however large a file is.

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
/// Bytes read of one file: a million functions and their code.
const LARGEST_MAP: u64 = 128 << 20;
const LARGEST_DUMP: u64 = 1 << 30;
/// Limits the named addresses of all pieces of code together: each piece may claim to cover
/// everything.
const MAX_MATCHES: usize = 10_000_000;
const ROOT: u32 = 0;

/// A file of names, or why it is not read.
type Opened = Result<File, String>;

/// The format of a file of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// `/tmp/perf-PID.map`.
    Map,
    /// `jit-PID.dump`, at a path that the process chooses.
    Dump,
}

/// A process with such files. It is kept, since some runtimes write their names when they end.
#[derive(Debug)]
struct Maker {
    /// The root of its file system.
    root: File,
    /// The process id that it sees itself.
    number: String,
    user: u32,
}

/// Files of names by process.
#[derive(Debug, Default)]
pub(super) struct NameFiles {
    makers: BTreeMap<i32, Maker>,
    files: BTreeMap<(i32, Form), Opened>,
}

impl NameFiles {
    /// Opens the files that exist by now; `dumps` are paths that processes have mapped. Processes
    /// may have ended since.
    pub(super) fn open_of(&mut self, processes: &BTreeSet<i32>, dumps: &BTreeMap<i32, String>) {
        for &pid in processes {
            let lacks = |form| !self.files.contains_key(&(pid, form));
            if self.files.len() < MAX_FILES && (lacks(Form::Map) || lacks(Form::Dump)) {
                self.look(pid, dumps.get(&pid));
            }
        }
    }

    fn look(&mut self, pid: i32, dump: Option<&String>) {
        if (self.makers.contains_key(&pid) || self.makers.len() < MAX_FILES)
            && let Some(maker) = Maker::from_process(pid)
        {
            self.makers.insert(pid, maker);
        }
        let Some(maker) = self.makers.get(&pid) else {
            return;
        };
        let map = format!("/tmp/perf-{}.map", maker.number);
        for (form, path) in [(Form::Map, Some(&map)), (Form::Dump, dump)] {
            if !self.files.contains_key(&(pid, form))
                && let Some(opened) = path.and_then(|path| maker.open(path))
            {
                self.files.insert((pid, form), opened);
            }
        }
    }

    /// The files that were not opened, and why.
    pub(super) fn refusals(&self) -> Vec<String> {
        let refused = self.files.iter().filter_map(|((pid, _), opened)| {
            let why = opened.as_ref().err()?;
            Some(format!(
                "Names of the code that process {pid} made are missing: {why}."
            ))
        });
        refused.collect()
    }

    /// The name of each address of a process, if known; dumps come first.
    pub(super) fn names(
        &self,
        pid: i32,
        addresses: &[u64],
        notes: &mut Vec<String>,
    ) -> Vec<Option<Symbol>> {
        let mut names = vec![None; addresses.len()];
        for (form, largest) in [(Form::Dump, LARGEST_DUMP), (Form::Map, LARGEST_MAP)] {
            let Some(Ok(file)) = self.files.get(&(pid, form)) else {
                continue;
            };
            if file.metadata().is_ok_and(|file| file.len() > largest) {
                notes.push(format!(
                    "Names of the code that process {pid} made are incomplete: its list is \
                     larger than {} MiB.",
                    largest >> 20
                ));
            }
            let found = match form {
                Form::Map => perf_map::find(file, addresses),
                Form::Dump => jitdump::find(file, addresses),
            };
            for (name, found) in names.iter_mut().zip(found) {
                *name = name.take().or(found);
            }
        }
        names
    }
}

/// Does a mapping of this path announce names of generated code?
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
        let own = last_field(&status, "NStgid:").map_or_else(|| pid.to_string(), str::to_owned);
        let user = fields(&status, "Uid:")?.nth(1)?.parse().ok()?;
        let root = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(format!("/proc/{pid}/root"));
        Some(Self {
            root: root.ok()?,
            number: own,
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

fn last_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    fields(status, name)?.last()
}

/// Where a code name is in a file.
#[derive(Debug, Clone, Copy)]
struct Name {
    /// The first address of the code.
    start: u64,
    /// Offset of the name in the file, bytes.
    at: u64,
    length: usize,
}

/// Addresses, and the last name that covers each.
#[derive(Debug)]
struct Covered<'a> {
    addresses: &'a [u64],
    /// Addresses with their index in `addresses`.
    sorted: Vec<(u64, usize)>,
    names: Vec<Option<Name>>,
    left: usize,
}

impl<'a> Covered<'a> {
    fn new(addresses: &'a [u64]) -> Self {
        let mut sorted: Vec<(u64, usize)> = addresses.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self {
            addresses,
            sorted,
            names: vec![None; addresses.len()],
            left: MAX_MATCHES,
        }
    }

    /// Names the code from `start` up to `end`.
    fn cover(&mut self, start: u64, end: u64, name: Name) {
        let first = self.sorted.partition_point(|(address, _)| *address < start);
        let inside = self.sorted[first..].iter().take_while(|(a, _)| *a < end);
        for (_, index) in inside.take(self.left) {
            self.names[*index] = Some(name);
            self.left -= 1;
        }
    }

    const fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Reads the names.
    fn symbols(self, file: &File) -> Vec<Option<Symbol>> {
        let symbol = |(name, address): (Option<Name>, &u64)| {
            let name = name?;
            let mut bytes = vec![0; name.length];
            file.read_exact_at(&mut bytes, name.at).ok()?;
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
            .map(symbol)
            .collect()
    }
}

/// Reads a file from its beginning, whatever its descriptor's position.
struct FromStart<'a>(&'a File, u64);

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

impl Seek for FromStart<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.1.checked_add_signed(by),
            SeekFrom::End(_) => None,
        };
        self.1 = at.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.1)
    }
}
