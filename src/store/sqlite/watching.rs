//! What a reader needs that watches a store while others write it: whether
//! anything changed, and whether a record still grows. It changes nothing.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::{Store, StoreError, journal};

/// Equal as long as no other process has changed a store's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    file: FileIdentity,
    version: i64,
}

/// Which file this is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

/// What is known of a record's writer, by the journal of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// A living process adds runs; so many bytes are there.
    Growing(u64),
    /// The writer ended before the record did.
    CutOff,
    /// Nothing tells: a record of a kind that has no journal, or one that is
    /// beginning.
    Unknown,
}

impl Store {
    /// Refuses changes through this store from now on, and waits no longer
    /// than `patience` for another process's lock.
    ///
    /// # Errors
    /// [`StoreError`] where the store does not answer.
    pub fn read_only(&self, patience: Duration) -> Result<(), StoreError> {
        self.connection
            .busy_timeout(patience)
            .and_then(|()| self.connection.pragma_update(None, "query_only", true))
            .map_err(|error| self.explain(&error))
    }

    /// The file at the store's path at this moment.
    ///
    /// # Errors
    /// [`StoreError::Open`] where there is none.
    pub fn file(&self) -> Result<FileIdentity, StoreError> {
        let found = std::fs::metadata(&self.path).map_err(|error| StoreError::Open {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        })?;
        Ok(FileIdentity {
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// What changes when another process changes records.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn generation(&self) -> Result<Generation, StoreError> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| self.explain(&error))?;
        Ok(Generation {
            file: self.file()?,
            version,
        })
    }

    /// Does the unfinished record with exactly this id still grow?
    #[must_use]
    pub fn growth(&self, id: &str) -> Growth {
        match journal::state(&journal::path(&self.path, id)) {
            journal::State::Written(bytes) => Growth::Growing(bytes),
            journal::State::Orphaned => Growth::CutOff,
            // Its runs were taken in: that is done for the dead only.
            journal::State::Missing if self.has_runs(id) => Growth::CutOff,
            journal::State::Missing => Growth::Unknown,
        }
    }

    fn has_runs(&self, id: &str) -> bool {
        self.connection
            .prepare_cached("SELECT 1 FROM run WHERE record = ?1")
            .and_then(|mut statement| statement.exists([id]))
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::any_run;
    use proptest::strategy::{Strategy, ValueTree};
    use std::path::Path;

    fn begun(path: &Path) -> (Store, String) {
        let mut writer = Store::open(path).unwrap();
        let record =
            super::super::tests::comparison("grows", &mut crate::study::compare::Unwatched);
        writer.begin(&record).unwrap();
        (writer, record.id)
    }

    #[test]
    fn a_reader_sees_what_others_write_and_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let reader = Store::open(&path).unwrap();
        reader.read_only(Duration::ZERO).unwrap();
        let before = reader.generation().unwrap();
        assert_eq!(before, reader.generation().unwrap());
        let _writer = begun(&path);
        assert_ne!(before, reader.generation().unwrap());
        let mut reader = reader;
        assert!(reader.withdraw("grows").is_err());
    }

    #[test]
    fn a_record_grows_until_its_writer_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let reader = Store::open(&path).unwrap();
        assert_eq!(reader.growth("grows"), Growth::Unknown);
        let (mut writer, id) = begun(&path);
        assert_eq!(reader.growth(&id), Growth::Growing(0));
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let run = any_run().new_tree(&mut runner).unwrap().current();
        writer.add_run(0, &run).unwrap();
        assert!(matches!(reader.growth(&id), Growth::Growing(1..)));
        drop(writer);
        assert_eq!(reader.growth(&id), Growth::CutOff);
        // The next to open the store takes the runs in.
        drop(Store::open(&path).unwrap());
        assert_eq!(reader.growth(&id), Growth::CutOff);
    }

    #[test]
    fn a_store_that_was_replaced_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let reader = Store::open(&path).unwrap();
        let before = reader.file().unwrap();
        std::fs::rename(&path, folder.path().join("old.db")).unwrap();
        assert!(matches!(reader.file(), Err(StoreError::Open { .. })));
        std::fs::write(&path, "").unwrap();
        assert_ne!(reader.file().unwrap(), before);
    }
}
