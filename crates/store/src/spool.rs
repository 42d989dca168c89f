//! The spool: files on this host that wait for a store that cannot be reached.
//!
//! A complete record waits as one file, which gets its name once it is written; runs of a growing
//! record wait in its journal. To deliver nothing twice, the process that delivers a file locks it
//! and checks that the name still leads to it.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Entry, Prepared};

/// Extension of a waiting record.
const RECORD_EXTENSION: &str = "record";
/// Extension of a record as it began.
const BEGUN_EXTENSION: &str = "begun";

/// Where stores put undeliverable records, and how they report it.
#[derive(Clone)]
pub struct Spool {
    /// The folder; made with mode 0700 on demand.
    pub folder: PathBuf,
    /// Is called with each warning, a full sentence.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The spool of one store.
#[derive(Debug)]
pub(super) struct StoreSpool {
    folder: PathBuf,
}

/// The content of a waiting file.
#[derive(Serialize, Deserialize)]
struct SpooledRecord {
    id: String,
    schema: String,
    time: String,
    host: String,
    title: String,
    verdict: String,
    complete: bool,
    body: String,
}

/// A waiting file, locked.
#[derive(Debug)]
pub(super) struct LockedFile {
    pub(super) record: Prepared,
    path: PathBuf,
    lock: File,
}

impl LockedFile {
    /// Removes the file once it was delivered.
    pub(super) fn remove(self) {
        if has_name(&self.lock, &self.path) {
            remove_file(&self.path);
        }
    }
}

impl StoreSpool {
    pub(super) fn new(spool: &Spool, store: &str) -> Self {
        Self {
            folder: spool.folder.join(store),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The prefix of journals' names.
    pub(super) fn journal_base(&self) -> PathBuf {
        self.folder.join("store")
    }

    pub(super) fn create_folder(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
    }

    fn file_path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", file_name(id)))
    }

    /// Spools a record for delivery as a whole.
    pub(super) fn put(&self, record: &Prepared) -> io::Result<()> {
        self.write_file(record, RECORD_EXTENSION)
    }

    /// Spools the beginning of a record.
    pub(super) fn put_begun(&self, record: &Prepared) -> io::Result<()> {
        self.write_file(record, BEGUN_EXTENSION)
    }

    /// Drops the spooled data of a record.
    pub(super) fn forget(&self, id: &str) {
        remove_file(&self.file_path(id, BEGUN_EXTENSION));
        remove_file(&self.file_path(id, RECORD_EXTENSION));
    }

    pub(super) fn forget_begun(&self, id: &str) {
        remove_file(&self.file_path(id, BEGUN_EXTENSION));
    }

    fn write_file(&self, record: &Prepared, ending: &str) -> io::Result<()> {
        self.create_folder()?;
        let path = self.file_path(&record.entry.id, ending);
        let unnamed = path.with_extension(format!("{ending}-{}", std::process::id()));
        let entry = record.entry.clone();
        let waiting = SpooledRecord {
            id: entry.id,
            schema: entry.schema,
            time: entry.time,
            host: entry.host,
            title: entry.title,
            verdict: entry.verdict,
            complete: entry.is_complete,
            body: record.body.clone(),
        };
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unnamed)?;
        let written = serde_json::to_vec(&waiting)
            .map_err(io::Error::from)
            .and_then(|bytes| file.write_all(&bytes))
            // Spooled data must survive a reboot.
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&unnamed, &path));
        if written.is_err() {
            remove_file(&unnamed);
        }
        written
    }

    /// Paths of the waiting complete records, sorted.
    pub(super) fn list_waiting(&self) -> Vec<PathBuf> {
        #[expect(clippy::disallowed_methods, reason = "the store lists its spool")]
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| {
                path.extension()
                    .is_some_and(|ending| ending == RECORD_EXTENSION)
            })
            .collect();
        paths.sort();
        paths
    }

    /// Locks a file for delivery; `Ok(None)` if another process delivers or has delivered it.
    pub(super) fn lock_file(path: &Path) -> io::Result<Option<LockedFile>> {
        // NFS grants locks only to processes that may write the file.
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.try_lock().is_err() {
            return Ok(None);
        }
        // The file may have been delivered, or replaced, before it was locked.
        if !has_name(&file, path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let record = parse(&bytes)?;
        Ok(Some(LockedFile {
            record,
            path: path.to_owned(),
            lock: file,
        }))
    }

    /// A record as it began, if it waits.
    pub(super) fn read_begun(&self, id: &str) -> Option<Prepared> {
        #[expect(clippy::disallowed_methods, reason = "the store reads its own files")]
        let bytes = std::fs::read(self.file_path(id, BEGUN_EXTENSION)).ok()?;
        parse(&bytes).ok()
    }
}

/// Does the name still lead to this file?
fn has_name(file: &File, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|named| {
        file.metadata()
            .is_ok_and(|opened| opened.ino() == named.ino())
    })
}

fn parse(bytes: &[u8]) -> io::Result<Prepared> {
    let waiting: SpooledRecord = serde_json::from_slice(bytes)?;
    let entry = Entry {
        id: waiting.id,
        schema: waiting.schema,
        time: waiting.time,
        host: waiting.host,
        title: waiting.title,
        verdict: waiting.verdict,
        is_complete: waiting.complete,
    };
    Ok(Prepared::new(entry, waiting.body))
}

/// An id encoded for use in a file name.
pub(super) fn file_name(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

/// Decodes the id in a file name.
pub(super) fn id_from_file_name(name: &str) -> String {
    let mut pairs = form_urlencoded::parse(name.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(id, _)| id.into_owned())
}

fn remove_file(path: &Path) {
    #[expect(clippy::disallowed_methods, reason = "the store removes its own files")]
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open_spool(folder: &Path) -> StoreSpool {
        let spool = Spool {
            folder: folder.join("spool"),
            warn: Arc::new(|_| ()),
        };
        StoreSpool::new(&spool, "x")
    }

    fn prepare_record(id: &str) -> Prepared {
        let mut record = Prepared::from_record(&crate::tests::comparison(
            "one",
            &mut pinwise_study::compare::NoObserver,
        ));
        record.entry.id = id.to_owned();
        record
    }

    #[test]
    fn one_process_delivers_a_file_and_removes_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let spool = open_spool(folder.path());
        assert_eq!(spool.list_waiting().len(), 0);
        let record = prepare_record("a/b c");
        spool.put(&record).unwrap();
        let mode = std::fs::metadata(spool.folder()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        let [path] = spool.list_waiting().try_into().unwrap();
        let locked = StoreSpool::lock_file(&path).unwrap().unwrap();
        assert_eq!(locked.record.entry, record.entry);
        assert_eq!(locked.record.body, record.body);
        assert!(
            StoreSpool::lock_file(&path).unwrap().is_none(),
            "it is locked"
        );
        // A record spooled meanwhile is another file.
        spool.put(&record).unwrap();
        locked.remove();
        let second = StoreSpool::lock_file(&path).unwrap().unwrap();
        second.remove();
        assert!(StoreSpool::lock_file(&path).unwrap().is_none());
    }

    #[test]
    fn a_damaged_file_is_reported_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let spool = open_spool(folder.path());
        spool.put(&prepare_record("one")).unwrap();
        let [path] = spool.list_waiting().try_into().unwrap();
        std::fs::write(&path, "{\"id\":").unwrap();
        assert!(StoreSpool::lock_file(&path).is_err());
        assert!(path.exists());
    }

    proptest! {
        #[test]
        fn ids_come_back_from_file_names(id in "\\PC{0,20}|[./%+& ]{1,6}") {
            let name = file_name(&id);
            prop_assert!(!name.contains('/'));
            prop_assert_eq!(id_from_file_name(&name), id);
        }

        #[test]
        fn any_file_is_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
        }
    }
}
