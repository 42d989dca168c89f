//! Copies a tree of many files, as an installer, a backup or a checkout does.
//!
//! Tree and copies are created before the first unit, so that they are in the page cache, and a unit
//! copies a part of the tree over an earlier copy: it does not wait for the disk, and nothing
//! grows. Making and removing files in every unit does not work: ext4 avoids inodes freed within
//! the last seconds, and a unit then took 20 times as long as on tmpfs. The digest covers the
//! copied bytes; the last copies are read back after the last unit, untimed.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::folder::Folder;
use super::held_signals::{HeldSignals, is_ending};
use super::law;
use crate::Scratch;
use crate::work::digest::Digest;
use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Size, Worker, Wrong};

pub(in crate::work) const TREE: Kernel = Kernel {
    name: "tree",
    group: Group::Files,
    about: "copies a tree of many small files over an earlier copy, in the page cache",
    source: "a copy of a source tree, with file sizes after Downey 2001 (log-normal, median 4 KiB, mean 11 KiB)",
    operation: "files",
    size: Some(Size {
        of: "bytes of all files of the tree",
        default: 34_000_000,
        least: 1 << 16,
        most: 1 << 44,
    }),
    has_versions: false,
    // The files pass through memory, whatever they are written to.
    footprint_bytes: |size, threads| {
        let copies = (threads as u64).saturating_mul(part_bytes(size) + BUFFER as u64);
        size.saturating_add(copies)
    },
    prepare,
};

/// Prefix of folder names.
const PREFIX: &str = "pinwise-tree-";
/// Bytes that a unit copies, approximately: about 10 ms.
const PART: u64 = 6_800_000;
/// Bytes per read.
const BUFFER: usize = 128 << 10;
/// Files per folder.
const IN_A_FOLDER: usize = 16;
const SEED: u64 = 34;
const STOPPED: Wrong = "the files could not be copied";

/// Parts of a tree of this many bytes.
const fn count_parts(size: u64) -> u64 {
    size.div_ceil(PART)
}

/// Bytes of each of them.
const fn part_bytes(size: u64) -> u64 {
    size / count_parts(size)
}

/// The layout of every part, and the folder of its copies.
struct TreePlan {
    folders: Vec<CString>,
    files: Vec<PlannedFile>,
}

struct PlannedFile {
    /// Below the part.
    name: CString,
    bytes: u64,
}

impl TreePlan {
    fn new(bytes: u64) -> Self {
        let sizes = law::draw_sizes(bytes, SEED);
        let folders = sizes.len().div_ceil(IN_A_FOLDER);
        let file = |(number, bytes): (usize, u64)| PlannedFile {
            name: to_c_string(&format!("d{}/f{number}", number / IN_A_FOLDER)),
            bytes,
        };
        Self {
            folders: (0..folders)
                .map(|n| to_c_string(&format!("d{n}")))
                .collect(),
            files: sizes.into_iter().enumerate().map(file).collect(),
        }
    }

    fn make_folders(&self, top: &Folder) -> io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|name| top.make(name).map(drop))
    }
}

/// A name without a null byte.
fn to_c_string(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

fn prepare(setup: &Setup) -> Result<Box<dyn Job>, KernelError> {
    let signals = HeldSignals::hold();
    let scratch = Scratch::create(&setup.folder, PREFIX)
        .map_err(|error| KernelError::system("making a folder".to_owned(), &error))?;
    let mut tree = Tree {
        plan: TreePlan::new(part_bytes(setup.size)),
        digests: Vec::new(),
        copied: (0..setup.threads).map(|_| AtomicU64::new(NONE)).collect(),
        failure: Mutex::new(None),
        bytes: setup.size,
        scratch,
        _signals: signals,
    };
    tree.check_free_space(setup)?;
    for part in 0..count_parts(setup.size) {
        let digest = tree.write(part).map_err(|error| tree.explain(&error))?;
        tree.digests.push(digest);
    }
    Ok(Box::new(tree))
}

/// No part has been copied yet.
const NONE: u64 = u64::MAX;

struct Tree {
    plan: TreePlan,
    /// The expected digest of each part.
    digests: Vec<u64>,
    /// The part that each thread copied last.
    copied: Vec<AtomicU64>,
    failure: Mutex<Option<KernelError>>,
    bytes: u64,
    /// Removed with its contents when this value is dropped.
    scratch: Scratch,
    /// The last field: lets signals through after everything is removed.
    _signals: HeldSignals,
}

impl Tree {
    fn open_folder(&self, name: &str) -> io::Result<Folder> {
        Folder::open(&self.scratch.path().join(name))
    }

    /// Fails now instead of half-way.
    fn check_free_space(&self, setup: &Setup) -> Result<(), KernelError> {
        const BLOCK: u64 = 4096;
        let files = self.plan.files.len() as u64;
        let part = part_bytes(setup.size).saturating_add(files * BLOCK);
        let parts = count_parts(setup.size).saturating_add(setup.threads as u64);
        let needed = part.saturating_mul(parts);
        let free = self.open_folder(".").and_then(|folder| folder.free_bytes());
        let free = free.map_err(|error| self.explain(&error))?;
        if needed <= free {
            return Ok(());
        }
        Err(KernelError::System {
            action: format!("--size {} in {}", setup.size, setup.folder.display()),
            reason: format!(
                "{} MiB are needed and {} MiB are free (--folder chooses another place)",
                needed.div_ceil(1 << 20),
                free >> 20
            ),
        })
    }

    /// Writes a part of the tree and returns the digest of its contents.
    fn write(&self, part: u64) -> io::Result<u64> {
        let folder = self.open_folder(".")?.make(&part_name(part))?;
        self.plan.make_folders(&folder)?;
        let mut buffer = vec![0; BUFFER];
        let mut digest = Digest::default();
        for (number, planned) in self.plan.files.iter().enumerate() {
            check_signals()?;
            let mut random = Random::for_unit((part << 32) + number as u64);
            let mut file = folder.create(&planned.name)?;
            let mut left = planned.bytes;
            while left > 0 {
                let bytes = BUFFER.min(usize::try_from(left).unwrap_or(BUFFER));
                let chunk = &mut buffer[..bytes];
                for word in chunk.chunks_mut(8) {
                    word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
                }
                file.write_all(chunk)?;
                digest.add(chunk);
                left -= bytes as u64;
            }
            digest.add(&[]);
        }
        Ok(digest.value())
    }

    /// Translates an error with files into that of this job.
    fn explain(&self, error: &io::Error) -> KernelError {
        let action = format!("copying files in {}", self.scratch.path().display());
        KernelError::system(action, error)
    }

    /// Reads a copy back.
    fn read_back(&self, thread: usize) -> io::Result<u64> {
        let folder = self.open_folder(&copy_name(thread))?;
        let mut buffer = vec![0; BUFFER];
        let mut digest = Digest::default();
        for planned in &self.plan.files {
            let file = folder.open_to_read(&planned.name)?;
            read_chunks(file, &mut buffer, |chunk| {
                digest.add(chunk);
                Ok(())
            })?;
            digest.add(&[]);
        }
        Ok(digest.value())
    }
}

fn part_name(part: u64) -> CString {
    to_c_string(&format!("part-{part}"))
}

fn copy_name(thread: usize) -> String {
    format!("copy-{thread}")
}

/// Fails if a terminating signal is held back.
fn check_signals() -> io::Result<()> {
    if is_ending() {
        return Err(io::Error::other("interrupted"));
    }
    Ok(())
}

/// Reads a file in whole buffers, except at the end.
fn read_chunks(
    mut file: File,
    buffer: &mut [u8],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read(&mut buffer[filled..])? {
                0 => break,
                bytes => filled += bytes,
            }
        }
        if filled > 0 {
            take(&buffer[..filled])?;
        }
        if filled < buffer.len() {
            return Ok(());
        }
    }
}

impl Job for Tree {
    fn operations_per_unit(&self) -> u64 {
        self.plan.files.len() as u64
    }

    fn working_set_bytes(&self) -> u64 {
        self.bytes
    }

    fn failure(&self) -> Option<KernelError> {
        self.failure.lock().ok()?.clone()
    }

    fn worker(&self, thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let create = || {
            let source = self.open_folder(".")?;
            let mut copier = Copier {
                tree: self,
                thread,
                target: source.make(&to_c_string(&copy_name(thread)))?,
                parts: (0..self.digests.len() as u64).map(part_name).collect(),
                source,
                buffer: vec![0; BUFFER],
            };
            self.plan.make_folders(&copier.target)?;
            copier.copy(0, Folder::create)?;
            Ok(copier)
        };
        let copier = create().map_err(|error: io::Error| self.explain(&error))?;
        Ok(Box::new(copier))
    }

    fn check(&self, _units: u64, _checksum: u64) -> Result<(), Wrong> {
        for (thread, part) in self.copied.iter().enumerate() {
            let part = usize::try_from(part.load(Ordering::Acquire));
            let Some(&expected) = part.ok().and_then(|part| self.digests.get(part)) else {
                continue;
            };
            let found = self.read_back(thread);
            if found.map_err(|_| "a copy could not be read back")? != expected {
                return Err("a copy is not what was copied");
            }
        }
        Ok(())
    }
}

struct Copier<'a> {
    tree: &'a Tree,
    thread: usize,
    /// The folder of all parts.
    source: Folder,
    parts: Vec<CString>,
    target: Folder,
    buffer: Vec<u8>,
}

impl Copier<'_> {
    /// Copies a part to files that `open` opens, and returns the digest of the copied bytes. All
    /// parts have files of the same sizes, so nothing of an earlier copy is left.
    fn copy(&mut self, part: usize, open: OpenFile) -> io::Result<u64> {
        let plan = &self.tree.plan;
        let source = self.source.open_below(&self.parts[part])?;
        let mut digest = Digest::default();
        for planned in &plan.files {
            check_signals()?;
            let from = source.open_to_read(&planned.name)?;
            let mut to = open(&self.target, &planned.name)?;
            read_chunks(from, &mut self.buffer, |chunk| {
                digest.add(chunk);
                to.write_all(chunk)
            })?;
            digest.add(&[]);
        }
        self.tree.copied[self.thread].store(part as u64, Ordering::Release);
        Ok(digest.value())
    }
}

type OpenFile = fn(&Folder, &CStr) -> io::Result<File>;

impl Worker for Copier<'_> {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let part = unit % self.parts.len() as u64;
        let part = usize::try_from(part).unwrap_or(0);
        let digest = self
            .copy(part, Folder::open_to_overwrite)
            .map_err(|error| {
                let explained = self.tree.explain(&error);
                if let Ok(mut failure) = self.tree.failure.lock() {
                    failure.get_or_insert(explained);
                }
                STOPPED
            })?;
        if digest == self.tree.digests[part] {
            return Ok(digest);
        }
        Err("a file was read that is not the one written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::work::{Amount, Isa, Order, Split, find, run};

    fn order(folder: PathBuf, size: u64, units: u64) -> Order {
        Order {
            kernel: find("tree").unwrap(),
            setup: Setup {
                size,
                threads: 2,
                isa: Isa::V1,
                folder,
            },
            amount: Amount::Units(units),
            split: Split::Static,
            cpus: Vec::new(),
        }
    }

    fn is_empty(folder: &std::path::Path) -> bool {
        std::fs::read_dir(folder).unwrap().next().is_none()
    }

    #[test]
    fn parts_are_equal_and_the_default_is_five_units() {
        assert_eq!((count_parts(34_000_000), part_bytes(34_000_000)), (5, PART));
        assert_eq!((count_parts(1 << 16), part_bytes(1 << 16)), (1, 1 << 16));
        let plan = TreePlan::new(PART);
        assert!(
            (400..900).contains(&plan.files.len()),
            "{}",
            plan.files.len()
        );
    }

    #[test]
    fn nothing_is_left_after_many_units() {
        let folder = tempfile::tempdir().unwrap();
        let size = 3 * PART;
        let outcome = run(&order(folder.path().to_owned(), size, 7), None).unwrap();
        assert_eq!(outcome.operations % 7, 0);
        assert!(is_empty(folder.path()));
    }

    #[test]
    fn a_copy_that_was_changed_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let setup = order(folder.path().to_owned(), 1 << 16, 1).setup;
        let job = prepare(&setup).unwrap();
        job.worker(0).unwrap().run_unit(0).unwrap();
        job.check(1, 0).unwrap();
        let scratch = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.is_dir())
            .unwrap();
        let file = scratch.join("copy-0/d0/f0");
        let mut contents = std::fs::read(&file).unwrap();
        contents[0] ^= 1;
        std::fs::write(&file, &contents).unwrap();
        assert!(job.check(1, 0).unwrap_err().contains("not what"));
        std::fs::remove_file(&file).unwrap();
        assert!(job.check(1, 0).unwrap_err().contains("read back"));
        drop(job);
        assert!(is_empty(folder.path()));
    }

    #[test]
    fn more_than_the_disk_holds_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(&order(folder.path().to_owned(), 1 << 40, 1), None).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("--size") && error.contains("--folder"),
            "{error}"
        );
        assert!(is_empty(folder.path()));
    }
}
