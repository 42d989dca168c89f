//! A store, for callers that need not know its backend.

use std::path::Path;
use std::time::Duration;

use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::{
    Entry, FileIdentity, Filter, FoundRecords, Generation, Growth, Location, Prepared,
    RemovalResult, Spool, StoreError, Stored, TagChange,
};
use pinwise_record::{Comparison, RunRecord, StoredRecord};

/// Limits a transaction of a bulk write: records, and their bytes.
const MAX_BATCH_RECORDS: usize = 250;
const MAX_BATCH_BYTES: usize = 16 << 20;

/// An open store.
#[derive(Debug)]
pub struct Store {
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Postgres>),
}

/// Calls the same method of the backend.
macro_rules! dispatch {
    ($store:expr, $name:ident => $call:expr) => {
        match $store {
            Backend::Sqlite($name) => $call,
            Backend::Postgres($name) => $call,
        }
    };
}

impl Store {
    /// Opens a store in a file, making file, folder and tables if they are missing.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened, is locked, damaged or newer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let backend = Backend::Sqlite(Box::new(Sqlite::open(path)?));
        Ok(Self { backend })
    }

    /// Opens the store at a location; `None` for `none`. Records that a server cannot take wait in
    /// the spool; those already waiting there are delivered now.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened or reached, is locked, damaged or newer.
    pub fn open_at(location: &Location, spool: &Spool) -> Result<Option<Self>, StoreError> {
        match location {
            Location::Nowhere => Ok(None),
            Location::Sqlite(path) => Self::open(path).map(Some),
            Location::Postgres(server) => {
                let backend = Backend::Postgres(Box::new(Postgres::open(server, spool)?));
                Ok(Some(Self { backend }))
            }
        }
    }

    /// Opens the store at a location for reading: a missing file is an empty store and is not made,
    /// a read-only one is read. `None` for `none`.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn open_to_read(location: &Location, spool: &Spool) -> Result<Option<Self>, StoreError> {
        match location {
            Location::Sqlite(path) => {
                let backend = Backend::Sqlite(Box::new(Sqlite::open_to_read(path)?));
                Ok(Some(Self { backend }))
            }
            other => Self::open_at(other, spool),
        }
    }

    /// Opens the store at a location to change its records: a missing file is an empty store and is
    /// not made. `None` for `none`.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn open_to_change(location: &Location, spool: &Spool) -> Result<Option<Self>, StoreError> {
        match location {
            Location::Sqlite(path) => {
                let backend = Backend::Sqlite(Box::new(Sqlite::open_to_change(path)?));
                Ok(Some(Self { backend }))
            }
            other => Self::open_at(other, spool),
        }
    }

    /// Writes a record that has just begun.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn begin(&mut self, record: &Comparison) -> Result<(), StoreError> {
        let record = Prepared::from_begun(record);
        dispatch!(&mut self.backend, store => store.begin(&record))
    }

    /// Adds a finished run to the record begun last.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn add_run(&mut self, arm: usize, run: &RunRecord) -> Result<(), StoreError> {
        dispatch!(&mut self.backend, store => store.add_run(arm, run))
    }

    /// Writes a finished record, replacing its parts.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written; the parts then stay.
    pub fn finish(&mut self, record: &Comparison) -> Result<(), StoreError> {
        let record = Prepared::from_finished(record);
        dispatch!(&mut self.backend, store => store.finish(&record))
    }

    /// Removes a record that was begun and has no run.
    ///
    /// # Errors
    /// [`StoreError`] if that fails; the record then stays.
    pub fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        dispatch!(&mut self.backend, store => store.withdraw(id))
    }

    /// Writes a record, replacing its older version.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn keep(&mut self, record: &impl StoredRecord) -> Result<(), StoreError> {
        let record = Prepared::from_record(record);
        dispatch!(&mut self.backend, store => store.keep(&record))
    }

    /// Writes records, each replacing its older version, a few hundred per transaction; returns how
    /// many.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written; those of earlier transactions then stay.
    pub fn keep_all<R: StoredRecord>(
        &mut self,
        records: impl IntoIterator<Item = R>,
    ) -> Result<usize, StoreError> {
        let mut batch: Vec<Prepared> = Vec::new();
        let (mut kept, mut bytes) = (0, 0);
        for record in records {
            let record = Prepared::from_record(&record);
            bytes += record.body.len();
            batch.push(record);
            kept += 1;
            if batch.len() >= MAX_BATCH_RECORDS || bytes >= MAX_BATCH_BYTES {
                dispatch!(&mut self.backend, store => store.keep_all(&batch))?;
                batch.clear();
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            dispatch!(&mut self.backend, store => store.keep_all(&batch))?;
        }
        Ok(kept)
    }

    /// Writes a record unless its id exists, and then returns false. Of several simultaneous
    /// writers one succeeds.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn create(&mut self, record: &impl StoredRecord) -> Result<bool, StoreError> {
        let record = Prepared::from_record(record);
        dispatch!(&mut self.backend, store => store.create(&record, &[]))
    }

    /// As [`Self::create`], for a record given as text.
    ///
    /// # Errors
    /// [`StoreError::Record`] if stores do not take it, others if it cannot be written.
    pub fn create_json(&mut self, body: &str) -> Result<bool, StoreError> {
        let record = Prepared::from_json(body)?;
        dispatch!(&mut self.backend, store => store.create(&record, &[]))
    }

    /// Copies another store's records, with the runs of unfinished ones, except those whose ids
    /// exist; returns how many were added. Those without runs are added together or not at all.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written.
    pub fn adopt(&mut self, records: Vec<Stored>) -> Result<usize, StoreError> {
        let (whole, cut_off): (Vec<Stored>, Vec<Stored>) = records
            .into_iter()
            .partition(|stored| stored.runs.is_empty());
        let whole = whole.into_iter().map(|s| Prepared::new(s.entry, s.body));
        let whole: Vec<Prepared> = whole.collect();
        let mut adopted = dispatch!(&mut self.backend, store => store.create_all(&whole))?;
        for stored in cut_off {
            let record = Prepared::new(stored.entry, stored.body);
            let is_new =
                dispatch!(&mut self.backend, store => store.create(&record, &stored.runs))?;
            adopted += usize::from(is_new);
        }
        Ok(adopted)
    }

    /// The last written complete record of this schema and host.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn find_newest_on_host(
        &self,
        schema: &str,
        host: &str,
    ) -> Result<Option<Stored>, StoreError> {
        dispatch!(&self.backend, store => store.find_newest_on_host(schema, host))
    }

    /// The last written record of this schema, complete or not, of any host.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn find_newest(&self, schema: &str) -> Result<Option<Stored>, StoreError> {
        dispatch!(&self.backend, store => store.find_newest(schema))
    }

    /// The last written records, newest first, up to `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        dispatch!(&self.backend, store => store.list(limit))
    }

    /// Finds records by a filter, newest first, without reading a body.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn find(&self, filter: &Filter) -> Result<FoundRecords, StoreError> {
        dispatch!(&self.backend, store => store.find(filter))
    }

    /// Calls `visit` with the line and body of each record found by a filter, newest first, with
    /// one in memory at a time. Bodies of unfinished records lack their runs. `visit` must not
    /// query this store: the answer to this query is still being read.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn visit_bodies(
        &self,
        filter: &Filter,
        mut visit: impl FnMut(Entry, &str),
    ) -> Result<(), StoreError> {
        dispatch!(&self.backend, store => store.visit_bodies(filter, &mut visit))
    }

    /// The record whose id begins with `id`, or for `last` the one written last, whatever its time.
    ///
    /// # Errors
    /// [`StoreError::Id`] if no record or several match.
    pub fn load(&self, id: &str) -> Result<Stored, StoreError> {
        dispatch!(&self.backend, store => store.load(id))
    }

    /// Changes the tags of a record, in the record itself and in its line of the history, or in
    /// neither. `change` gets the present tags.
    ///
    /// # Errors
    /// [`StoreError`] if there is no such record, a living process still writes it, it is damaged,
    /// or the store cannot be written.
    pub fn retag(
        &mut self,
        id: &str,
        change: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Result<TagChange, StoreError> {
        dispatch!(&mut self.backend, store => store.retag(id, change))
    }

    /// The size of a record: its body and its separate runs, bytes.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn bytes_of(&self, id: &str) -> Result<u64, StoreError> {
        dispatch!(&self.backend, store => store.bytes_of(id))
    }

    /// Removes records with their runs and tags, except those that a living process writes.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written; all then stay.
    pub fn remove(&mut self, ids: &[String]) -> Result<RemovalResult, StoreError> {
        dispatch!(&mut self.backend, store => store.remove(ids))
    }

    /// Returns the space of removed records to the file system; the number of bytes freed. A file
    /// is rewritten for that; a server does this itself (VACUUM).
    ///
    /// # Errors
    /// [`StoreError`] if another process uses the store, or the disk has no room for the new file;
    /// nothing is lost then.
    pub fn reclaim_space(&mut self) -> Result<u64, StoreError> {
        dispatch!(&mut self.backend, store => store.reclaim_space())
    }

    /// Refuses changes through this store from now on, and waits no longer than `patience` for
    /// another process's lock.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn read_only(&self, patience: Duration) -> Result<(), StoreError> {
        dispatch!(&self.backend, store => store.read_only(patience))
    }

    /// Identifies the file that is now at the store's path.
    ///
    /// # Errors
    /// [`StoreError::Open`] if there is none.
    pub fn file(&self) -> Result<FileIdentity, StoreError> {
        dispatch!(&self.backend, store => store.file())
    }

    /// A value that changes whenever another process changes records.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn generation(&self) -> Result<Generation, StoreError> {
        dispatch!(&self.backend, store => store.generation())
    }

    /// Does the unfinished record with exactly this id still grow?
    #[must_use]
    pub fn growth(&self, id: &str) -> Growth {
        dispatch!(&self.backend, store => store.growth(id))
    }
}
