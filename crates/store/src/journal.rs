//! The runs of a growing record: one line of JSON per run, written with one system call, in a file
//! beside the store.
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
struct ReadLine {
    /// Narrower than [`Line`]'s: a number beyond SQLite's range is damage, and must not keep the
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
        let path = path(store, id);
        // It gets its name only once it is locked: no other process can take it for an orphan in
        // between.
        let unnamed = path.with_extension("new");
        // The same readers as the store, and nobody else.
        let mode = std::fs::metadata(store).map_or(0o600, |found| found.mode() & 0o666);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(mode)
            .open(&unnamed)?;
        // Restores what the umask takes away.
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
        self.path == path(store, id)
    }

    /// The record is complete elsewhere.
    pub(super) fn remove(self) {
        remove(&self.path);
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
        remove(&self.path);
    }
}

/// Journals beside a store without a living writer.
pub(super) fn orphans(store: &Path) -> Vec<Orphan> {
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
    #[expect(clippy::disallowed_methods, reason = "the store looks beside itself")]
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
pub(super) fn state(path: &Path) -> State {
    let Ok(file) = open_regular(OpenOptions::new().read(true), path) else {
        return State::Missing;
    };
    // Held for an instant and shared with other readers; a process that would take the journal in
    // at this instant skips it once.
    match file.try_lock_shared() {
        Ok(()) => State::Orphaned,
        Err(_) => State::Written(file.metadata().map_or(0, |found| found.len())),
    }
}

/// Does a living process write this record?
pub(super) fn is_being_written(store: &Path, id: &str) -> bool {
    matches!(state(&path(store, id)), State::Written(_))
}

/// The path of a record's journal.
pub(super) fn path(store: &Path, id: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".{id}.{ENDING}"));
    PathBuf::from(name)
}

/// Whole lines of a journal: arm number and run as JSON.
pub(super) fn read(path: &Path) -> Vec<(usize, String)> {
    let mut bytes = Vec::new();
    if let Ok(file) = open_regular(OpenOptions::new().read(true), path) {
        // Data read before an error is still valid.
        let _ = file.take(MAX_JOURNAL_BYTES).read_to_end(&mut bytes);
    }
    parse(&bytes)
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
fn parse(bytes: &[u8]) -> Vec<(usize, String)> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<ReadLine>(line).ok())
        .filter_map(|line| Some((usize::try_from(line.arm).ok()?, line.run.to_string())))
        .collect()
}

fn remove(path: &Path) {
    // A remaining journal is taken in, or found empty, later.
    #[expect(clippy::disallowed_methods, reason = "the store removes its own files")]
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::examples::any_run;
    use proptest::prelude::*;

    /// The lines of a written journal.
    fn lines(runs: &[(usize, RunRecord)]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.db");
        let mut journal = RecordJournal::create(&store, "id").unwrap();
        for (arm, run) in runs {
            journal.add(*arm, run).unwrap();
        }
        std::fs::read(path(&store, "id")).unwrap()
    }

    /// Opening a pipe would block, and a link may lead anywhere.
    #[test]
    fn other_files_with_a_journals_name_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.db");
        let pipe = path(&store, "pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|status| status.success()) {
            println!("SKIPPED: it needs mkfifo");
            return;
        }
        let target = folder.path().join("target");
        std::fs::write(&target, b"{\"arm\":1,\"run\":2}\n").unwrap();
        std::os::unix::fs::symlink(&target, path(&store, "link")).unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let found = orphans(&store).len();
            let states = ["pipe", "link"].map(|id| state(&path(&store, id)));
            let runs = read(&path(&store, "pipe")).len() + read(&path(&store, "link")).len();
            done.send((found, states, runs)).unwrap();
        });
        let seen = is_done.recv_timeout(std::time::Duration::from_secs(60));
        let seen = seen.expect("a pipe was waited for");
        assert_eq!(seen, (0, [State::Missing; 2], 0));
    }

    #[test]
    fn damage_takes_no_other_line_with_it() {
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
            assert_eq!(parse(&text), wanted, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn written_runs_come_back(runs in prop::collection::vec((0usize..9, any_run()), 0..4), cut in any::<prop::sample::Index>()) {
            let bytes = lines(&runs);
            let read = |bytes: &[u8]| -> Vec<(usize, RunRecord)> {
                let lines = parse(bytes).into_iter();
                lines.map(|(arm, json)| (arm, serde_json::from_str(&json).unwrap())).collect()
            };
            prop_assert_eq!(&read(&bytes), &runs);
            let left = &bytes[..cut.index(bytes.len() + 1)];
            let whole = left.iter().filter(|&&byte| byte == b'\n').count();
            // The last line may lack only its line feed.
            let kept = read(left);
            prop_assert!(kept.len() == whole || kept.len() == whole + 1);
            prop_assert_eq!(&kept, &runs[..kept.len()]);
        }
    }
}
