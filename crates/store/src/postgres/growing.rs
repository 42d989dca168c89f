//! A record while it grows.
//!
//! A run is in this host's journal before anything else, and is sent together with others, by
//! number or after a delay. A server that went away is tried again at growing intervals, for a
//! moment only: measurements must not wait for it.

use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::link::{Link, Trouble, text};
use super::writing::{Conflict, put, put_runs};
use super::{Postgres, schema};
use crate::journal::RecordJournal;
use crate::spool::Shelter;
use crate::{Prepared, StoreError, spool};
use pinwise_record::RunRecord;

/// Runs sent together.
const MAX_RUNS: usize = 64;
/// The longest that a run waits for others, while runs come.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Longest delay that a server may cause to a measurement.
const HURRY: Duration = Duration::from_secs(5);
/// Time until the first retry after a failure; doubled each time.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(120);

/// A record that this process writes.
#[derive(Debug)]
pub(super) struct Growing {
    id: String,
    journal: RecordJournal,
    /// Its beginning, until the server has it.
    begun: Option<Prepared>,
    /// Runs that the server has.
    sent: usize,
    pending: Vec<(usize, String)>,
    /// The session that holds the lock; 0 for none.
    session: usize,
    last: Instant,
    retry: Duration,
    /// No attempt before this.
    quiet_until: Option<Instant>,
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long runs wait to be sent")]
    Instant::now()
}

impl Growing {
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id == id
    }

    fn is_due(&self) -> bool {
        if self.quiet_until.is_some_and(|until| now() < until) {
            return false;
        }
        self.pending.len() >= MAX_RUNS || self.last.elapsed() >= LONGEST_WAIT
    }

    /// Sends what the server lacks.
    fn catch_up(&mut self, link: &Link, shelter: &Shelter) -> Result<(), Trouble> {
        self.hold(link)?;
        if let Some(begun) = &self.begun {
            put(link, std::slice::from_ref(begun), Conflict::Replace)?;
            self.begun = None;
            shelter.forget_begun(&self.id);
        }
        if !self.pending.is_empty() {
            put_runs(link, &self.id, self.sent, &self.pending)?;
        }
        self.sent += self.pending.len();
        self.pending.clear();
        self.last = now();
        self.quiet_until = None;
        self.retry = FIRST_RETRY;
        // The session may have changed.
        self.hold(link)
    }

    /// Takes the lock that proves that the writer lives, unless this session has it. A lock held by
    /// an older session proves the same.
    fn hold(&mut self, link: &Link) -> Result<(), Trouble> {
        if link.is_connected() && self.session == link.session() {
            return Ok(());
        }
        let sql = format!("SELECT pg_try_advisory_lock({})", schema::key("$1"));
        let is_held: bool = link.one(&sql, &[(&text(&self.id), Type::TEXT)])?;
        self.session = if is_held { link.session() } else { 0 };
        Ok(())
    }

    fn release(&self, link: &Link) {
        if link.is_connected() && self.session == link.session() {
            let sql = format!("SELECT pg_advisory_unlock({})", schema::key("$1"));
            // An ended session holds no lock.
            let _ = link.query(&sql, &[(&text(&self.id), Type::TEXT)]);
        }
    }

    fn fall_quiet(&mut self) {
        self.quiet_until = Some(now() + self.retry);
        self.retry = (2 * self.retry).min(LAST_RETRY);
    }
}

impl Postgres {
    /// Writes a record that has just begun.
    pub(crate) fn begin(&mut self, record: &Prepared) -> Result<(), StoreError> {
        // Its lock comes first: nobody may take it for an abandoned one.
        self.grow(&record.entry.id)?;
        let put = put(&self.link, std::slice::from_ref(record), Conflict::Replace);
        if let Err(trouble) = put {
            self.fails(trouble)?;
            self.shelter
                .put_begun(record)
                .map_err(|error| self.cannot_write(&error))?;
            if let Some(growing) = &mut self.growing {
                growing.begun = Some(record.clone());
                growing.fall_quiet();
            }
        }
        Ok(())
    }

    /// Adds a run that has just finished to the record begun last.
    pub(crate) fn add_run(&mut self, arm: usize, run: &RunRecord) -> Result<(), StoreError> {
        let Some(growing) = &mut self.growing else {
            return Ok(());
        };
        if let Err(error) = growing.journal.add(arm, run) {
            return Err(self.cannot_write(&error));
        }
        let body = serde_json::to_string(run).unwrap_or_default();
        growing.pending.push((arm, body));
        if growing.is_due() {
            self.send_runs();
        }
        Ok(())
    }

    /// Sends runs; those that the server does not accept stay in the journal.
    fn send_runs(&mut self) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        let link = &self.link;
        let sent = link.run_with_patience(HURRY, |link| growing.catch_up(link, &self.shelter));
        if let Err(trouble) = sent {
            growing.fall_quiet();
            self.report_trouble(trouble);
        }
    }

    /// Writes a record that is finished, in place of its parts.
    pub(crate) fn finish(&mut self, record: &Prepared) -> Result<(), StoreError> {
        self.put_or_put_by(record)?;
        self.let_go();
        Ok(())
    }

    pub(crate) fn keep(&mut self, record: &Prepared) -> Result<(), StoreError> {
        let entry = &record.entry;
        // A growing record without runs is locked as well.
        if !entry.is_complete && self.growing.is_none() {
            self.grow(&entry.id)?;
        }
        self.put_or_put_by(record)?;
        // The lock of another record may protect runs that exist nowhere else.
        let is_its_writer = self.growing.as_ref().is_some_and(|g| g.has_id(&entry.id));
        if entry.is_complete && is_its_writer {
            self.let_go();
        }
        Ok(())
    }

    fn put_or_put_by(&mut self, record: &Prepared) -> Result<(), StoreError> {
        let records = std::slice::from_ref(record);
        match put(&self.link, records, Conflict::ReplaceWithRuns) {
            Ok(_) => {
                // No older version may arrive after it.
                self.shelter.forget(&record.entry.id);
                if self.has_waiting {
                    self.deliver();
                }
            }
            Err(trouble) => {
                self.fails(trouble)?;
                self.shelter
                    .put(record)
                    .map_err(|error| self.cannot_write(&error))?;
                self.has_waiting = true;
            }
        }
        Ok(())
    }

    /// Takes back a record that was begun and has no run.
    pub(crate) fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        let is_nowhere = self.growing.as_ref().is_some_and(|g| g.begun.is_some());
        if !is_nowhere {
            let sql = "DELETE FROM record WHERE id = $1 AND NOT complete";
            self.link
                .query(sql, &[(&text(id), Type::TEXT)])
                .map_err(|trouble| self.explain(trouble))?;
        }
        self.let_go();
        Ok(())
    }

    /// Becomes the writer of a record.
    fn grow(&mut self, id: &str) -> Result<(), StoreError> {
        let journal = self
            .shelter
            .make()
            .and_then(|()| RecordJournal::create(&self.shelter.base(), &spool::file_name(id)))
            .map_err(|error| self.cannot_write(&error))?;
        let mut growing = Growing {
            id: id.to_owned(),
            journal,
            begun: None,
            sent: 0,
            pending: Vec::new(),
            session: 0,
            last: now(),
            retry: FIRST_RETRY,
            quiet_until: None,
        };
        let held = growing.hold(&self.link);
        if held.is_ok() && growing.session == 0 {
            growing.journal.remove();
            return Err(StoreError::BeingWritten { id: id.to_owned() });
        }
        // If it cannot be asked now, the following step reports that.
        self.growing = Some(growing);
        Ok(())
    }

    /// Ends the role of writer: the record is complete elsewhere.
    fn let_go(&mut self) {
        let Some(growing) = self.growing.take() else {
            return;
        };
        self.shelter.forget_begun(&growing.id);
        growing.release(&self.link);
        growing.journal.remove();
    }

    /// Undeliverable data waits, unless this store must change nothing.
    fn fails(&self, trouble: Trouble) -> Result<(), StoreError> {
        if self.is_read_only.get() {
            return Err(self.explain(trouble));
        }
        self.report_trouble(trouble);
        Ok(())
    }

    /// Reports once why something waits, and where.
    pub(super) fn report_trouble(&self, trouble: Trouble) {
        if !self.has_reported.replace(true) {
            (self.spool.warn)(&format!(
                "{}; results are kept in {} and delivered when pinwise next opens this store here",
                self.explain(trouble),
                self.shelter.folder().display()
            ));
        }
    }

    fn cannot_write(&self, error: &std::io::Error) -> StoreError {
        StoreError::Write {
            path: self.shelter.folder().display().to_string(),
            reason: error.to_string(),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Stores what an unfinished record has.
        if self.growing.as_ref().is_some_and(|g| !g.pending.is_empty()) {
            self.send_runs();
        }
        // A server takes a moment to notice that a session has ended.
        if let Some(growing) = &self.growing {
            self.link
                .run_with_patience(HURRY, |link| growing.release(link));
        }
    }
}
