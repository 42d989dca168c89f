//! Delivers this host's spooled data to the database.

use std::path::Path;

use super::Postgres;
use super::link::Trouble;
use super::writing::{Conflict, put, put_runs};
use crate::journal::{self, Orphan};
use crate::spool::{Shelter, file_name, id_of};

/// Runs of a journal per statement.
const RUNS: usize = 1000;

impl Postgres {
    /// Delivers spooled records and runs. What the server does not accept now stays, and is
    /// reported.
    pub(super) fn deliver(&mut self) {
        let delivered = self.deliver_records().and_then(|()| self.adopt_orphans());
        match delivered {
            Ok(()) => self.has_waiting = false,
            Err(trouble) => self.report_trouble(trouble),
        }
    }

    fn deliver_records(&self) -> Result<(), Trouble> {
        for path in self.shelter.waiting() {
            match Shelter::take(&path) {
                Ok(Some(parcel)) => {
                    let id = &parcel.record.entry.id;
                    // It still changes, and its writer delivers it.
                    if self.is_written_elsewhere(id) {
                        continue;
                    }
                    let records = std::slice::from_ref(&parcel.record);
                    let put = put(&self.link, records, Conflict::ReplaceWithRuns);
                    if self.is_done(&path, put.map(|_| ()))? {
                        self.shelter.forget_begun(&parcel.record.entry.id);
                        parcel.remove();
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.is_done(&path, Err(Trouble::Refused(error.to_string())))?;
                }
            }
        }
        Ok(())
    }

    fn is_written_elsewhere(&self, id: &str) -> bool {
        let is_own = self.growing.as_ref().is_some_and(|own| own.has_id(id));
        !is_own && journal::is_being_written(&self.shelter.base(), &file_name(id))
    }

    /// Takes in the journals whose writers are gone.
    fn adopt_orphans(&self) -> Result<(), Trouble> {
        for orphan in journal::orphans(&self.shelter.base()) {
            let id = id_of(orphan.id());
            let adopted = self.adopt(&id, &orphan);
            let path = journal::path(&self.shelter.base(), orphan.id());
            if self.is_done(&path, adopted)? {
                self.shelter.forget_begun(&id);
                orphan.remove();
            }
        }
        Ok(())
    }

    fn adopt(&self, id: &str, orphan: &Orphan) -> Result<(), Trouble> {
        if let Some(begun) = self.shelter.read_begun(id) {
            put(&self.link, &[begun], Conflict::Keep)?;
        }
        for (index, runs) in orphan.runs().chunks(RUNS).enumerate() {
            put_runs(&self.link, id, index * RUNS, runs)?;
        }
        Ok(())
    }

    /// Was it delivered? If the server is away, delivery ends; refused or unreadable data does not
    /// block the rest.
    fn is_done(&self, path: &Path, delivered: Result<(), Trouble>) -> Result<bool, Trouble> {
        match delivered {
            Ok(()) => Ok(true),
            Err(Trouble::Away(reason)) => Err(Trouble::Away(reason)),
            Err(trouble) => {
                let reason = self.explain(trouble);
                (self.spool.warn)(&format!("{} still undelivered: {reason}", path.display()));
                Ok(false)
            }
        }
    }
}
