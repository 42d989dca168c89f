//! Journals: files beside the store with the runs of growing records, one line of JSON per run,
//! each written with one system call.
//!
//! The writer holds a lock on its journal while it lives. A journal that can be locked has lost its
//! writer; an incomplete last line is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pinwise_record::RunRecord;

/// Extension of a journal's file name, after the store's name and the record's id.
const ENDING: &str = "runs";
/// Limit on the bytes read of a journal: a million runs have less.
const MAX_JOURNAL_BYTES: u64 = 1 << 30;

#[derive(Serialize)]
struct Line<'a> {
    arm: usize,
    run: &'a RunRecord,
}

#[derive(Deserialize)]
struct ParsedLine {
    /// Narrower than in [`Line`]: a number beyond SQLite's range is damage, and must not keep the
    /// store from opening.
    arm: u32,
    run: serde_json::Value,
}

/// A journal being written.
#[derive(Debug)]
pub(super) struct RecordJournal {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl RecordJournal {
    pub(super) fn create(store: &Path, id: &str) -> io::Result<Self> {
        let path = journal_path(store, id);
        // The journal gets its name only once it is locked, so that no other process takes it for
        // an orphan.
        let unnamed = path.with_extension("new");
        // The same users may read the journal as may read the store.
        let mode = std::fs::metadata(store).map_or(0o600, |found| found.mode() & 0o666);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(mode)
            .open(&unnamed)?;
        // Sets the bits that the umask removed.
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.lock()?;
        std::fs::rename(&unnamed, &path)?;
        Ok(Self {
            file,
            path,
            buffer: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, arm: usize, run: &RunRecord) -> io::Result<()> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &Line { arm, run })?;
        self.buffer.push(b'\n');
        self.file.write_all(&self.buffer)
    }

    /// Is it the journal of this record?
    pub(super) fn belongs_to(&self, store: &Path, id: &str) -> bool {
        self.path == journal_path(store, id)
    }

    /// Removes the journal, once the record is complete in the store.
    pub(super) fn remove(self) {
        remove_file(&self.path);
    }
}

/// A journal whose writer has ended; locked, so that only one process takes it.
#[derive(Debug)]
pub(super) struct Orphan {
    path: PathBuf,
    id: String,
    _lock: File,
}

impl Orphan {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn runs(&self) -> Vec<(usize, String)> {
        read(&self.path)
    }

    pub(super) fn remove(self) {
        remove_file(&self.path);
    }
}

/// Locks and returns the journals beside a store whose writers have ended.
pub(super) fn lock_orphans(store: &Path) -> Vec<Orphan> {
    let (Some(folder), Some(stem)) = (store.parent(), store.file_name()) else {
        return Vec::new();
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let prefix = format!("{}.", stem.to_string_lossy());
    let suffix = format!(".{ENDING}");
    #[expect(
        clippy::disallowed_methods,
        reason = "the store lists the files beside it"
    )]
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let id = name
                .strip_prefix(&prefix)?
                .strip_suffix(&suffix)?
                .to_owned();
            // NFS grants locks only to processes that may write the file.
            let lock = open_regular(OpenOptions::new().read(true).write(true), &path).ok()?;
            lock.try_lock().ok()?;
            Some(Orphan {
                path,
                id,
                _lock: lock,
            })
        })
        .collect()
}

/// The state of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its writer lives; its length in bytes.
    Written(u64),
    /// Its writer has ended.
    Orphaned,
    /// There is no journal.
    Missing,
}

/// Checks whether a journal grows.
pub(super) fn check_state(path: &Path) -> State {
    let Ok(file) = open_regular(OpenOptions::new().read(true), path) else {
        return State::Missing;
    };
    // The lock is held for an instant and shared with other readers. A process that looks for
    // orphans at this instant skips the journal once.
    match file.try_lock_shared() {
        Ok(()) => State::Orphaned,
        Err(_) => State::Written(file.metadata().map_or(0, |found| found.len())),
    }
}

/// Does a living process write this record?
pub(super) fn is_being_written(store: &Path, id: &str) -> bool {
    matches!(check_state(&journal_path(store, id)), State::Written(_))
}

/// The path of a record's journal.
pub(super) fn journal_path(store: &Path, id: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".{id}.{ENDING}"));
    PathBuf::from(name)
}

/// Reads the complete lines of a journal: arm number and run as JSON.
pub(super) fn read(path: &Path) -> Vec<(usize, String)> {
    let mut bytes = Vec::new();
    if let Ok(file) = open_regular(OpenOptions::new().read(true), path) {
        // Data read before an error is still valid.
        let _ = file.take(MAX_JOURNAL_BYTES).read_to_end(&mut bytes);
    }
    parse_lines(&bytes)
}

/// Opens a journal, and nothing else with such a name: opening a pipe would block, and a link may
/// lead to anybody's file.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let options = options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    Ok(file)
}

/// Lines are independent: a damaged one, even if not UTF-8, does not affect others.
fn parse_lines(bytes: &[u8]) -> Vec<(usize, String)> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<ParsedLine>(line).ok())
        .filter_map(|line| Some((usize::try_from(line.arm).ok()?, line.run.to_string())))
        .collect()
}

fn remove_file(path: &Path) {
    // If this fails, a later process takes the journal in.
    #[expect(clippy::disallowed_methods, reason = "the store removes its own files")]
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::examples::any_run;
    use proptest::prelude::*;

    /// Writes a journal and returns its bytes.
    fn write_journal(runs: &[(usize, RunRecord)]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.db");
        let mut journal = RecordJournal::create(&store, "id").unwrap();
        for (arm, run) in runs {
            journal.add(*arm, run).unwrap();
        }
        std::fs::read(journal_path(&store, "id")).unwrap()
    }

    /// Opening a pipe would block, and a link may lead anywhere.
    #[test]
    fn other_files_with_a_journals_name_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.db");
        let pipe = journal_path(&store, "pipe");
        let status = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("SKIPPED: it needs mkfifo");
            return;
        }
        let target = folder.path().join("target");
        std::fs::write(&target, b"{\"arm\":1,\"run\":2}\n").unwrap();
        std::os::unix::fs::symlink(&target, journal_path(&store, "link")).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let found = lock_orphans(&store).len();
            let states = ["pipe", "link"].map(|id| check_state(&journal_path(&store, id)));
            let runs = read(&journal_path(&store, "pipe")).len()
                + read(&journal_path(&store, "link")).len();
            sender.send((found, states, runs)).unwrap();
        });
        let seen = receiver.recv_timeout(std::time::Duration::from_secs(60));
        let seen = seen.expect("a pipe was waited for");
        assert_eq!(seen, (0, [State::Missing; 2], 0));
    }

    #[test]
    fn damaged_lines_do_not_affect_others() {
        let damaged: [&[u8]; 4] = [
            b"{\"arm\":0,\"run\":{\"block\":",
            b"\xff\xfe",
            b"{\"arm\":-1,\"run\":1}",
            b"{\"arm\":18446744073709551615,\"run\":1}",
        ];
        for bytes in damaged {
            let text = [
                b"{\"arm\":1,\"run\":2}\n",
                bytes,
                b"\n{\"arm\":3,\"run\":4}",
            ]
            .concat();
            let wanted = [(1, "2".to_owned()), (3, "4".to_owned())];
            assert_eq!(parse_lines(&text), wanted, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn written_runs_come_back(runs in prop::collection::vec((0usize..9, any_run()), 0..4), cut in any::<prop::sample::Index>()) {
            let bytes = write_journal(&runs);
            let read = |bytes: &[u8]| -> Vec<(usize, RunRecord)> {
                let lines = parse_lines(bytes).into_iter();
                lines.map(|(arm, json)| (arm, serde_json::from_str(&json).unwrap())).collect()
            };
            prop_assert_eq!(&read(&bytes), &runs);
            let truncated = &bytes[..cut.index(bytes.len() + 1)];
            let whole = truncated.iter().filter(|&&byte| byte == b'\n').count();
            // The last line counts if it lacks only its line feed.
            let kept = read(truncated);
            prop_assert!(kept.len() == whole || kept.len() == whole + 1);
            prop_assert_eq!(&kept, &runs[..kept.len()]);
        }
    }
}
