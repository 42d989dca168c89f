//! For a reader that watches a store while others write it: whether anything changed, and whether a
//! record still grows.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::Sqlite;
use super::opening::{Access, log_bytes};
use crate::{FileIdentity, Generation, Growth, StoreError, journal};

impl Sqlite {
    pub(crate) fn read_only(&self, patience: Duration) -> Result<(), StoreError> {
        self.connection
            .busy_timeout(patience)
            .and_then(|()| self.connection.pragma_update(None, "query_only", true))
            .map_err(|error| self.explain(&error))
    }

    pub(crate) fn file(&self) -> Result<FileIdentity, StoreError> {
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error)
                if self.access == Access::Absent && error.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(FileIdentity::default());
            }
            Err(error) => {
                return Err(StoreError::Open {
                    path: self.path.display().to_string(),
                    reason: error.to_string(),
                });
            }
        };
        let mut file = FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            ..FileIdentity::default()
        };
        if self.access == Access::Immutable {
            // SQLite does not check whether an immutable file changes.
            file.changed = (found.mtime(), found.mtime_nsec(), log_bytes(&self.path));
        }
        Ok(file)
    }

    pub(crate) fn generation(&self) -> Result<Generation, StoreError> {
        let version: i64 = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| self.explain(&error))?;
        Ok(Generation {
            file: self.file()?,
            version: version.unsigned_abs(),
        })
    }

    /// Does the unfinished record with exactly this id still grow?
    #[must_use]
    pub(crate) fn growth(&self, id: &str) -> Growth {
        match journal::check_state(&journal::journal_path(&self.path, id)) {
            journal::State::Written(bytes) => Growth::Growing(bytes),
            journal::State::Orphaned => Growth::CutOff,
            // Runs are taken in only after the writer has ended.
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
    use crate::Store;

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
