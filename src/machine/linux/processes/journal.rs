//! Who has what from the rules, in a file, and a guardian that gives it back.
//!
//! A line is written, and told to the guardian, before a process is changed. When
//! pinwise ends without having said how, the guardian, a process that sleeps on a
//! pipe, gives everything back: after SIGKILL, too, and where the file is gone by
//! then. Where even the guardian was killed, the file tells the next pinwise which
//! masks are its own. A lock beside the file, which the guardian holds as well,
//! keeps two of them from writing it. Entries are of a boot and of a process's
//! start: numbers come again.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::ledger::leads_to;
use super::super::{boot_id, orphan, sys};
use super::LinuxProcesses;
use crate::machine::processes::{Held, Ledger, Processes, give_back};
use crate::topology::CpuSet;

const HEADER: &str = "pinwise rules 1";
/// Longest file that is read, bytes: far more than compacting leaves.
const LONGEST: u64 = 64 << 20;
/// Lines that are no entries any more, at which the file is written anew.
const DEAD_LINES: usize = 2000;
/// What tells the guardian that nothing is to be given back.
const CLOSED: &str = "closed";
/// How long a predecessor's guardian may take to give things back.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one that has nothing to do may take to be gone.
const MOMENT: Duration = Duration::from_millis(500);

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be made, read or written.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: io::Error,
    },
    /// It is no journal.
    #[error("{path}: this is no journal of rules: name another with --state, or remove it")]
    Foreign {
        /// Which.
        path: String,
    },
    /// Another user's.
    #[error("{path}: it belongs to another user: name another with --state")]
    OtherUser {
        /// Which.
        path: String,
    },
    /// Somebody writes it.
    #[error("{path}: another pinwise rules uses it; end that, or name another with --state")]
    InUse {
        /// Which.
        path: String,
    },
    /// The guardian could not be started.
    #[error("starting the guardian that gives back what rules changed: {0}")]
    Guardian(io::Error),
}

/// What a journal of rules that was found is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesLeft {
    /// Its pinwise, or the guardian, is still there.
    InUse,
    /// Processes that had what rules gave them, before and after an attempt to
    /// give it back.
    Left {
        /// Before.
        before: usize,
        /// After; the same where nothing was attempted.
        after: usize,
    },
}

/// The journal, with its guardian.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Held as long as the journal is in use.
    lock: File,
    /// What is written here the guardian hears.
    lifeline: File,
    held: BTreeMap<i32, Held>,
    lines: usize,
}

impl Journal {
    /// Opens or makes the journal and starts its guardian; also returns what is
    /// in force from before. Call while this process has a single thread.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(path: &Path) -> Result<(Self, Vec<Held>), JournalError> {
        let at = |reason: io::Error| JournalError::File {
            path: path.display().to_string(),
            reason,
        };
        make_folder_of(path).map_err(at)?;
        let lock = lock(path, PATIENCE)
            .map_err(at)?
            .ok_or_else(|| JournalError::InUse {
                path: path.display().to_string(),
            })?;
        let mut file = open(path).map_err(at)?;
        let owner = file.metadata().map_err(at)?.uid();
        if owner != sys::effective_user() {
            return Err(JournalError::OtherUser {
                path: path.display().to_string(),
            });
        }
        let mut text = String::new();
        let read = (&mut file).take(LONGEST).read_to_string(&mut text);
        let is_foreign = read.is_err() || !(text.is_empty() || text.starts_with(HEADER));
        if is_foreign {
            return Err(JournalError::Foreign {
                path: path.display().to_string(),
            });
        }
        let held = entries(&text, &boot());
        let lifeline = start_guardian(path, &lock, &held).map_err(JournalError::Guardian)?;
        let mut journal = Self {
            path: path.to_owned(),
            file,
            lock,
            lifeline,
            held,
            lines: 0,
        };
        journal.write_anew().map_err(at)?;
        let held = journal.held.values().cloned().collect();
        Ok((journal, held))
    }

    /// Ends the guardian: everything was given back, or shall stay.
    pub fn close(mut self) {
        let _ = writeln!(self.lifeline, "{CLOSED}");
        if self.held.is_empty() && leads_to(&self.path, &self.file) {
            #[expect(clippy::disallowed_methods, reason = "the Edge removes its file")]
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// What a journal says is in force, for those who only look; nothing where
    /// there is none.
    #[must_use]
    pub fn peek(path: &Path) -> Vec<Held> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW);
        let Ok(file) = options.open(path) else {
            return Vec::new();
        };
        let is_own = file
            .metadata()
            .is_ok_and(|about| about.uid() == sys::effective_user());
        let mut text = String::new();
        if !is_own || file.take(LONGEST).read_to_string(&mut text).is_err() {
            return Vec::new();
        }
        entries(&text, &boot()).into_values().collect()
    }

    /// What rules left in force whose pinwise and guardian are both gone:
    /// processes that still have it. `restores`: they are given back, and the
    /// file is removed where that went well. `None`: there is no such journal.
    #[must_use]
    pub fn finish(path: &Path, restores: bool) -> Option<RulesLeft> {
        if !path.exists() {
            return None;
        }
        let Some(_lock) = lock(path, MOMENT).ok()? else {
            return Some(RulesLeft::InUse);
        };
        let held = Self::peek(path);
        let before = count_left(&held);
        let after = match restores {
            true => give_all_back(path, &held),
            false => before,
        };
        Some(RulesLeft::Left { before, after })
    }

    /// Writes one line with one system call, and tells the guardian.
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.return_to_place()?;
        self.file.write_all(line.as_bytes())?;
        self.lifeline.write_all(line.as_bytes())?;
        self.lines += 1;
        if self.lines > 2 * self.held.len() + DEAD_LINES {
            self.write_anew()?;
        }
        Ok(())
    }

    /// A file without its name serves nobody, and a lock neither: where the folder
    /// was removed, both are made anew.
    fn return_to_place(&mut self) -> io::Result<()> {
        let of_lock = lock_path(&self.path);
        if leads_to(&self.path, &self.file) && leads_to(&of_lock, &self.lock) {
            return Ok(());
        }
        make_folder_of(&self.path)?;
        if !leads_to(&of_lock, &self.lock) {
            let lock = lock(&self.path, Duration::ZERO)?;
            self.lock = lock.ok_or_else(|| {
                io::Error::other("its lock was removed, and another pinwise rules has begun")
            })?;
        }
        self.write_anew()
    }

    /// Replaces the file by one with the entries in force. Whoever reads it sees
    /// the old one or the new one.
    fn write_anew(&mut self) -> io::Result<()> {
        self.file = replace(&self.path, self.held.values())?;
        self.lines = self.held.len();
        Ok(())
    }
}

impl Ledger for Journal {
    fn note(&mut self, held: &Held) -> io::Result<()> {
        self.write(&line(held))?;
        self.held.insert(held.process, held.clone());
        Ok(())
    }

    fn forget(&mut self, process: i32, start: u64) -> io::Result<()> {
        if self
            .held
            .get(&process)
            .is_some_and(|held| held.start == start)
        {
            self.held.remove(&process);
        }
        self.write(&format!("gone {process} {start}\n"))
    }
}

fn boot() -> String {
    boot_id().unwrap_or_else(|| "unknown".to_owned())
}

/// No link is followed: the folder may be one that others write to.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Writes a file with these entries in the place of the one that may be there.
fn replace<'a>(path: &Path, held: impl Iterator<Item = &'a Held>) -> io::Result<File> {
    let mut text = format!("{HEADER} {}\n", boot());
    text.extend(held.map(line));
    let mut name = path.to_owned().into_os_string();
    name.push(".new");
    let new = PathBuf::from(name);
    #[expect(clippy::disallowed_methods, reason = "the Edge removes its file")]
    let _ = std::fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(0o600);
    let mut file = options.open(&new)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&new, path)?;
    Ok(file)
}

/// Makes the folder of a journal where there is none.
fn make_folder_of(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.exists()) {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".lock");
    name.into()
}

/// The lock; `None` where somebody has it for longer than `patience`.
fn lock(path: &Path, patience: Duration) -> io::Result<Option<File>> {
    let file = open(&lock_path(path))?;
    let end = sys::monotonic() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
            Err(std::fs::TryLockError::WouldBlock) if sys::monotonic() >= end => return Ok(None),
            Err(std::fs::TryLockError::WouldBlock) => {
                sys::poll([], Some(Duration::from_millis(20)));
            }
        }
    }
}

fn line(held: &Held) -> String {
    let masks: Vec<String> = held.masks.iter().map(CpuSet::to_string).collect();
    let nices: Vec<String> = held.nices.iter().map(i32::to_string).collect();
    format!(
        "held {} {} nice={} {}\n",
        held.process,
        held.start,
        nices.join(","),
        masks.join(" ")
    )
}

/// The entries in force. A line that was cut off or makes no sense told of
/// nothing that was done.
fn entries(text: &str, boot: &str) -> BTreeMap<i32, Held> {
    let mut held = BTreeMap::new();
    let mut lines = text.split_inclusive('\n');
    let is_of_now = lines.next().and_then(|first| first.strip_prefix(HEADER));
    if is_of_now.map(str::trim) != Some(boot) {
        return held;
    }
    for line in lines.filter_map(|line| line.strip_suffix('\n')) {
        take(&mut held, line);
    }
    held
}

/// Takes note of a line; of one that makes no sense it does not.
fn take(held: &mut BTreeMap<i32, Held>, line: &str) {
    if let Some(entry) = line.strip_prefix("held ").and_then(entry) {
        held.insert(entry.process, entry);
    } else if let Some(gone) = line.strip_prefix("gone ")
        && let Some((process, start)) = gone.split_once(' ')
        && let (Ok(process), Ok(start)) = (process.parse::<i32>(), start.parse::<u64>())
        && held.get(&process).is_some_and(|held| held.start == start)
    {
        held.remove(&process);
    }
}

fn entry(text: &str) -> Option<Held> {
    let mut words = text.split(' ');
    let process = words
        .next()?
        .parse()
        .ok()
        .filter(|&process: &i32| process > 0)?;
    let start = words.next()?.parse().ok()?;
    let nices = words.next()?.strip_prefix("nice=")?;
    let nices = nices.split(',').filter(|nice| !nice.is_empty());
    let nices = nices.map(|nice| nice.parse().ok()).collect::<Option<_>>()?;
    let masks = words.filter(|word| !word.is_empty());
    let masks = masks.map(|word| CpuSet::parse_list(word).ok().filter(|set| !set.is_empty()));
    Some(Held {
        process,
        start,
        nices,
        masks: masks.collect::<Option<_>>()?,
    })
}

/// Starts the guardian, which holds the lock as long as it lives and gives back
/// what it was told of, unless it was told that this is done; closing what is
/// returned, by any means, wakes it.
fn start_guardian(path: &Path, lock: &File, before: &BTreeMap<i32, Held>) -> io::Result<File> {
    let lifeline = orphan::start(c"pinwise-rules", Some(lock), || {
        let mut held = before.clone();
        let mut is_closed = false;
        orphan::listen(|line| match line {
            CLOSED => is_closed = true,
            line => take(&mut held, line),
        });
        if !is_closed {
            let held: Vec<Held> = held.into_values().collect();
            give_all_back(path, &held);
        }
    });
    lifeline.map(File::from)
}

/// Gives all this back, for which the lock is held; how many still have it. What
/// could not be given back stays written down, or is so again.
fn give_all_back(path: &Path, held: &[Held]) -> usize {
    give_back(&mut LinuxProcesses::open(), held);
    let left = count_left(held);
    if left == 0 {
        #[expect(clippy::disallowed_methods, reason = "the Edge removes its file")]
        let _ = std::fs::remove_file(path);
    } else if !path.exists() && make_folder_of(path).is_ok() {
        let _ = replace(path, held.iter());
    }
    left
}

fn count_left(held: &[Held]) -> usize {
    let mut host = LinuxProcesses::open();
    held.iter().filter(|held| is_left(&mut host, held)).count()
}

/// Does the process still have what rules gave it?
fn is_left(host: &mut LinuxProcesses, held: &Held) -> bool {
    let identity = host.identity(held.process);
    identity.is_some_and(|identity| identity.start == held.start)
        && host
            .mask(held.process)
            .is_some_and(|mask| held.masks.contains(&mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn held(process: i32, start: u64, masks: &[&str], nices: &[i32]) -> Held {
        let masks = masks.iter().map(|list| CpuSet::parse_list(list).unwrap());
        Held {
            process,
            start,
            masks: masks.collect(),
            nices: nices.to_vec(),
        }
    }

    #[track_caller]
    fn check(lines: &str, expected: &[Held]) {
        let text = format!("{HEADER} boot\n{lines}");
        let found: Vec<Held> = entries(&text, "boot").into_values().collect();
        assert_eq!(found, expected, "{lines}");
        assert!(entries(&text, "another").is_empty());
    }

    #[test]
    fn the_entries_in_force() {
        check("", &[]);
        check(
            "held 5 17 nice= 0-3,7 1\n",
            &[held(5, 17, &["0-3,7", "1"], &[])],
        );
        check("held 5 17 nice=10,-5 \n", &[held(5, 17, &[], &[10, -5])]);
        check(
            "held 5 17 nice= 1\nheld 5 18 nice= 2\n",
            &[held(5, 18, &["2"], &[])],
        );
        check("held 5 17 nice= 1\ngone 5 17\n", &[]);
        // Another process of this number.
        check(
            "held 5 17 nice= 1\ngone 5 16\n",
            &[held(5, 17, &["1"], &[])],
        );
        // Cut off, or no sense.
        check("held 5 17 nice= 1", &[]);
        check("held 5 17 nice=x 1\nheld -5 1 nice= 1\nheld 5\nhm\n", &[]);
        assert!(entries("", "boot").is_empty());
    }

    #[test]
    fn a_journal_in_use_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert_eq!(Journal::finish(&path, true), None);
        drop(replace(&path, std::iter::empty()).unwrap());
        let held = lock(&path, Duration::ZERO).unwrap().unwrap();
        assert_eq!(Journal::finish(&path, true), Some(RulesLeft::InUse));
        drop(held);
        let none = RulesLeft::Left {
            before: 0,
            after: 0,
        };
        assert_eq!(Journal::finish(&path, false), Some(none));
        assert!(path.exists());
        assert_eq!(Journal::finish(&path, true), Some(none));
        assert!(!path.exists());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(process in 1i32.., start: u64, sets in prop::collection::vec(prop::collection::btree_set(0usize..300, 1..9), 0..4), nices in prop::collection::vec(-20i32..20, 0..4), rubbish in "\\PC{0,40}") {
            let masks = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let held = Held { process, start, masks, nices };
            let text = format!("{HEADER} boot\n{}{rubbish}", line(&held));
            let found: Vec<Held> = entries(&text, "boot").into_values().collect();
            prop_assert_eq!(found, vec![held]);
            let _ = entries(&format!("{HEADER} boot\n{rubbish}\n"), "boot");
        }
    }
}
