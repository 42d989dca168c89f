//! One store, whatever keeps its records.

use std::path::Path;
use std::time::Duration;

use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::{
    Entry, FileIdentity, Filter, Found, Generation, Growth, Location, Prepared, Removed, Retagged,
    Spool, StoreError, Stored,
};
use pinwise_record::{Comparison, RunRecord, StoredRecord};

/// Records that one transaction of many takes, and their bytes.
const BATCH: usize = 250;
const BATCH_BYTES: usize = 16 << 20;

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

/// The same method of whichever it is.
macro_rules! each {
    ($store:expr, $name:ident => $call:expr) => {
        match $store {
            Backend::Sqlite($name) => $call,
            Backend::Postgres($name) => $call,
        }
    };
}

impl Store {
    /// Opens a store in a file, making file, folder and tables where they are
    /// missing.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be opened, is locked, damaged or newer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let backend = Backend::Sqlite(Box::new(Sqlite::open(path)?));
        Ok(Self { backend })
    }

    /// Opens the store at a location; `None` for nowhere. What a server cannot
    /// take later waits in the spool, and what waits there for it is delivered
    /// now.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be opened or reached, is locked, damaged
    /// or newer.
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

    /// Opens the store at a location for reading: a file that is missing is an
    /// empty store and is not made, one that cannot be written is read. `None`
    /// for nowhere.
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

    /// Opens the store at a location to change what is in it: a file that is
    /// missing is an empty store and is not made. `None` for nowhere.
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
    /// [`StoreError`] where it cannot be written.
    pub fn begin(&mut self, record: &Comparison) -> Result<(), StoreError> {
        let record = Prepared::from_begun(record);
        each!(&mut self.backend, store => store.begin(&record))
    }

    /// Adds a run that has just finished to the record begun last.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn add_run(&mut self, arm: usize, run: &RunRecord) -> Result<(), StoreError> {
        each!(&mut self.backend, store => store.add_run(arm, run))
    }

    /// Writes a record that is finished, in place of its parts.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written; the parts then stay.
    pub fn finish(&mut self, record: &Comparison) -> Result<(), StoreError> {
        let record = Prepared::from_finished(record);
        each!(&mut self.backend, store => store.finish(&record))
    }

    /// Takes back a record that was begun and has no run.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written; the record then stays.
    pub fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        each!(&mut self.backend, store => store.withdraw(id))
    }

    /// Writes a record, in place of what was kept of it before.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn keep(&mut self, record: &impl StoredRecord) -> Result<(), StoreError> {
        let record = Prepared::from_record(record);
        each!(&mut self.backend, store => store.keep(&record))
    }

    /// Writes a record known as text, in place of what was kept of it before. One
    /// that is not complete is not locked: this process does not write it.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is no record that stores take, others
    /// where it cannot be written.
    pub fn keep_json(&mut self, body: &str) -> Result<(), StoreError> {
        let record = Prepared::of_json(body)?;
        each!(&mut self.backend, store => store.take_in(&record))
    }

    /// Writes records, each in place of what was kept of it before, a few
    /// hundred in a transaction; returns how many.
    ///
    /// # Errors
    /// [`StoreError`] where they cannot be written; those of earlier
    /// transactions then stay.
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
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                each!(&mut self.backend, store => store.keep_all(&batch))?;
                batch.clear();
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            each!(&mut self.backend, store => store.keep_all(&batch))?;
        }
        Ok(kept)
    }

    /// Writes a record unless one has its id; false where one does. Of several
    /// writers at once one succeeds.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn create(&mut self, record: &impl StoredRecord) -> Result<bool, StoreError> {
        let record = Prepared::from_record(record);
        each!(&mut self.backend, store => store.create(&record, &[]))
    }

    /// The same of a record known as text.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is no record that stores take, others
    /// where it cannot be written.
    pub fn create_json(&mut self, body: &str) -> Result<bool, StoreError> {
        let record = Prepared::of_json(body)?;
        each!(&mut self.backend, store => store.create(&record, &[]))
    }

    /// Takes in records of another store as they are there, with the runs of
    /// those that were cut off, unless there are some with their ids; how many
    /// came in. Those without runs come in together or not at all.
    ///
    /// # Errors
    /// [`StoreError`] where they cannot be written.
    pub fn adopt(&mut self, records: Vec<Stored>) -> Result<usize, StoreError> {
        let (whole, cut_off): (Vec<Stored>, Vec<Stored>) = records
            .into_iter()
            .partition(|stored| stored.runs.is_empty());
        let whole = whole.into_iter().map(|s| Prepared::new(s.entry, s.body));
        let whole: Vec<Prepared> = whole.collect();
        let mut adopted = each!(&mut self.backend, store => store.create_all(&whole))?;
        for stored in cut_off {
            let record = Prepared::new(stored.entry, stored.body);
            let is_new = each!(&mut self.backend, store => store.create(&record, &stored.runs))?;
            adopted += usize::from(is_new);
        }
        Ok(adopted)
    }

    /// Of the complete records of this schema and host the one written last.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn newest(&self, schema: &str, host: &str) -> Result<Option<Stored>, StoreError> {
        each!(&self.backend, store => store.newest(schema, host))
    }

    /// Of the records of this schema, complete or not, of whatever host, the one
    /// written last.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn newest_of(&self, schema: &str) -> Result<Option<Stored>, StoreError> {
        each!(&self.backend, store => store.newest_of(schema))
    }

    /// The records written last first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        each!(&self.backend, store => store.list(limit))
    }

    /// What a filter finds, newest first, without reading a body.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn find(&self, filter: &Filter) -> Result<Found, StoreError> {
        each!(&self.backend, store => store.find(filter))
    }

    /// Line and body of each record that a filter finds, newest first, one in
    /// memory at a time. Runs of records that were cut off are not among them.
    /// `each` must ask this store nothing: its answer is still under way.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn each_body(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Entry, &str),
    ) -> Result<(), StoreError> {
        each!(&self.backend, store => store.each_body(filter, &mut each))
    }

    /// The record whose id begins with `id`, or for `last` the one written last,
    /// whatever the clock said.
    ///
    /// # Errors
    /// [`StoreError::Id`] where none or several do.
    pub fn load(&self, id: &str) -> Result<Stored, StoreError> {
        each!(&self.backend, store => store.load(id))
    }

    /// Changes the tags of a record, in the record itself and in its line, or
    /// in neither. `change` gets those it has.
    ///
    /// # Errors
    /// [`StoreError`] where there is no such record, a living process still
    /// writes it, it is damaged, or the store cannot be written.
    pub fn retag(
        &mut self,
        id: &str,
        change: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Result<Retagged, StoreError> {
        each!(&mut self.backend, store => store.retag(id, change))
    }

    /// Bytes that a record takes: its body and the runs kept beside it.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn bytes_of(&self, id: &str) -> Result<u64, StoreError> {
        each!(&self.backend, store => store.bytes_of(id))
    }

    /// Removes records with all that belongs to them, but none that a living
    /// process writes.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be written; all then stay.
    pub fn remove(&mut self, ids: &[String]) -> Result<Removed, StoreError> {
        each!(&mut self.backend, store => store.remove(ids))
    }

    /// Gives the space of removed records back to the file system and returns
    /// how many bytes that were. A file is written anew for it; of a server's
    /// space VACUUM is the server's affair, and nothing is done.
    ///
    /// # Errors
    /// [`StoreError`] where another process uses the store, or the disk has no
    /// room for the file that is written; nothing is lost then.
    pub fn give_back(&mut self) -> Result<u64, StoreError> {
        each!(&mut self.backend, store => store.give_back())
    }

    /// Refuses changes through this store from now on, and waits no longer
    /// than `patience` for another process's lock.
    ///
    /// # Errors
    /// [`StoreError`] where the store does not answer.
    pub fn read_only(&self, patience: Duration) -> Result<(), StoreError> {
        each!(&self.backend, store => store.read_only(patience))
    }

    /// The file at the store's path at this moment.
    ///
    /// # Errors
    /// [`StoreError::Open`] where there is none.
    pub fn file(&self) -> Result<FileIdentity, StoreError> {
        each!(&self.backend, store => store.file())
    }

    /// What changes when another process changes records.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn generation(&self) -> Result<Generation, StoreError> {
        each!(&self.backend, store => store.generation())
    }

    /// Does the unfinished record with exactly this id still grow?
    #[must_use]
    pub fn growth(&self, id: &str) -> Growth {
        each!(&self.backend, store => store.growth(id))
    }
}
