//! Delivers this host's spooled data to the database.

use std::path::Path;

use super::Postgres;
use super::link::Trouble;
use super::writing::{Conflict, put_records, put_runs};
use crate::journal::{self, Orphan};
use crate::spool::{StoreSpool, file_name, id_from_file_name};

/// Runs of a journal that one statement sends.
const RUNS_PER_STATEMENT: usize = 1000;

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
        for path in self.spool.list_waiting() {
            match StoreSpool::lock_file(&path) {
                Ok(Some(locked)) => {
                    let id = &locked.record.entry.id;
                    // The record still changes; its writer delivers it.
                    if self.is_written_elsewhere(id) {
                        continue;
                    }
                    let records = std::slice::from_ref(&locked.record);
                    let put = put_records(&self.link, records, Conflict::ReplaceWithRuns);
                    if self.check_delivered(&path, put.map(|_| ()))? {
                        self.spool.forget_begun(&locked.record.entry.id);
                        locked.remove();
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.check_delivered(&path, Err(Trouble::Refused(error.to_string())))?;
                }
            }
        }
        Ok(())
    }

    fn is_written_elsewhere(&self, id: &str) -> bool {
        let is_ours = self
            .growing
            .as_ref()
            .is_some_and(|growing| growing.has_id(id));
        !is_ours && journal::is_being_written(&self.spool.journal_base(), &file_name(id))
    }

    /// Takes in the journals whose writers have ended.
    fn adopt_orphans(&self) -> Result<(), Trouble> {
        for orphan in journal::lock_orphans(&self.spool.journal_base()) {
            let id = id_from_file_name(orphan.id());
            let adopted = self.adopt(&id, &orphan);
            let path = journal::journal_path(&self.spool.journal_base(), orphan.id());
            if self.check_delivered(&path, adopted)? {
                self.spool.forget_begun(&id);
                orphan.remove();
            }
        }
        Ok(())
    }

    fn adopt(&self, id: &str, orphan: &Orphan) -> Result<(), Trouble> {
        if let Some(begun) = self.spool.read_begun(id) {
            put_records(&self.link, &[begun], Conflict::Keep)?;
        }
        for (index, runs) in orphan.runs().chunks(RUNS_PER_STATEMENT).enumerate() {
            put_runs(&self.link, id, index * RUNS_PER_STATEMENT, runs)?;
        }
        Ok(())
    }

    /// Returns whether `path` was delivered. An error, which ends the delivery, only if the server
    /// is away; refused or unreadable data is reported and does not block the rest.
    fn check_delivered(
        &self,
        path: &Path,
        delivered: Result<(), Trouble>,
    ) -> Result<bool, Trouble> {
        match delivered {
            Ok(()) => Ok(true),
            Err(Trouble::Away(reason)) => Err(Trouble::Away(reason)),
            Err(trouble) => {
                let reason = self.explain(trouble);
                (self.spool_settings.warn)(&format!(
                    "{} still undelivered: {reason}",
                    path.display()
                ));
                Ok(false)
            }
        }
    }
}
