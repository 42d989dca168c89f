//! Files on this host that wait for a store that went away.
//!
//! A complete record waits as one file, written first and named then; runs of a growing one wait in
//! their journal. The process that delivers a file holds its lock, and checks that the name still
//! leads to it: nothing is delivered twice.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Entry, Prepared};

/// Extension of a waiting record.
const WHOLE: &str = "record";
/// Extension of a record whose beginning waits.
const BEGUN: &str = "begun";

/// Stores put undeliverable records here; also whom to notify.
#[derive(Clone)]
pub struct Spool {
    /// The folder; made with mode 0700 on demand.
    pub folder: PathBuf,
    /// Gets whole sentences.
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
pub(super) struct Shelter {
    folder: PathBuf,
}

/// A record in its file.
#[derive(Serialize, Deserialize)]
struct Waiting {
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
pub(super) struct Parcel {
    pub(super) record: Prepared,
    path: PathBuf,
    lock: File,
}

impl Parcel {
    /// It was delivered.
    pub(super) fn remove(self) {
        if is_named(&self.lock, &self.path) {
            remove(&self.path);
        }
    }
}

impl Shelter {
    pub(super) fn new(spool: &Spool, store: &str) -> Self {
        Self {
            folder: spool.folder.join(store),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The prefix of journals' names.
    pub(super) fn base(&self) -> PathBuf {
        self.folder.join("store")
    }

    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
    }

    fn path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", file_name(id)))
    }

    /// Spools a record for delivery as a whole.
    pub(super) fn put(&self, record: &Prepared) -> io::Result<()> {
        self.write(record, WHOLE)
    }

    /// Spools the beginning of a record.
    pub(super) fn put_begun(&self, record: &Prepared) -> io::Result<()> {
        self.write(record, BEGUN)
    }

    /// Drops the spooled data of a record.
    pub(super) fn forget(&self, id: &str) {
        remove(&self.path(id, BEGUN));
        remove(&self.path(id, WHOLE));
    }

    pub(super) fn forget_begun(&self, id: &str) {
        remove(&self.path(id, BEGUN));
    }

    fn write(&self, record: &Prepared, ending: &str) -> io::Result<()> {
        self.make()?;
        let path = self.path(&record.entry.id, ending);
        let unnamed = path.with_extension(format!("{ending}-{}", std::process::id()));
        let entry = record.entry.clone();
        let waiting = Waiting {
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
            remove(&unnamed);
        }
        written
    }

    /// Names of the files of whole records, in a fixed order.
    pub(super) fn waiting(&self) -> Vec<PathBuf> {
        #[expect(clippy::disallowed_methods, reason = "the store looks into its spool")]
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == WHOLE))
            .collect();
        paths.sort();
        paths
    }

    /// Takes a file for delivery; `Ok(None)` if another process does or did.
    pub(super) fn take(path: &Path) -> io::Result<Option<Parcel>> {
        // NFS grants locks only to processes that may write the file.
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.try_lock().is_err() {
            return Ok(None);
        }
        // It may have been delivered, or replaced, before it was locked.
        if !is_named(&file, path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let record = read(&bytes)?;
        Ok(Some(Parcel {
            record,
            path: path.to_owned(),
            lock: file,
        }))
    }

    /// The beginning of a record, if that waits.
    pub(super) fn read_begun(&self, id: &str) -> Option<Prepared> {
        #[expect(clippy::disallowed_methods, reason = "the store reads its own files")]
        let bytes = std::fs::read(self.path(id, BEGUN)).ok()?;
        read(&bytes).ok()
    }
}

/// Does the name still lead to this file?
fn is_named(file: &File, path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|named| file.metadata().is_ok_and(|own| own.ino() == named.ino()))
}

fn read(bytes: &[u8]) -> io::Result<Prepared> {
    let waiting: Waiting = serde_json::from_slice(bytes)?;
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

/// Decodes the id.
pub(super) fn id_of(name: &str) -> String {
    let mut pairs = form_urlencoded::parse(name.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(id, _)| id.into_owned())
}

fn remove(path: &Path) {
    #[expect(clippy::disallowed_methods, reason = "the store removes its own files")]
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shelter(folder: &Path) -> Shelter {
        let spool = Spool {
            folder: folder.join("spool"),
            warn: Arc::new(|_| ()),
        };
        Shelter::new(&spool, "x")
    }

    fn record(id: &str) -> Prepared {
        let mut record = Prepared::from_record(&crate::tests::comparison(
            "one",
            &mut pinwise_study::compare::NoObserver,
        ));
        record.entry.id = id.to_owned();
        record
    }

    #[test]
    fn a_file_is_taken_by_one_and_gone_after_delivery() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let shelter = shelter(folder.path());
        assert_eq!(shelter.waiting().len(), 0);
        let record = record("a/b c");
        shelter.put(&record).unwrap();
        let mode = std::fs::metadata(shelter.folder()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        let [path] = shelter.waiting().try_into().unwrap();
        let parcel = Shelter::take(&path).unwrap().unwrap();
        assert_eq!(parcel.record.entry, record.entry);
        assert_eq!(parcel.record.body, record.body);
        assert!(Shelter::take(&path).unwrap().is_none(), "it is locked");
        // A record spooled meanwhile is another file.
        shelter.put(&record).unwrap();
        parcel.remove();
        let second = Shelter::take(&path).unwrap().unwrap();
        second.remove();
        assert!(Shelter::take(&path).unwrap().is_none());
    }

    #[test]
    fn a_damaged_file_is_reported_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let shelter = shelter(folder.path());
        shelter.put(&record("one")).unwrap();
        let [path] = shelter.waiting().try_into().unwrap();
        std::fs::write(&path, "{\"id\":").unwrap();
        assert!(Shelter::take(&path).is_err());
        assert!(path.exists());
    }

    proptest! {
        #[test]
        fn ids_come_back_from_file_names(id in "\\PC{0,20}|[./%+& ]{1,6}") {
            let name = file_name(&id);
            prop_assert!(!name.contains('/'));
            prop_assert_eq!(id_of(&name), id);
        }

        #[test]
        fn any_file_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes);
        }
    }
}
