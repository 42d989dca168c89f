//! A record while it grows.
//!
//! A run is first written to this host's journal, and then sent together with others, once there
//! are enough of them or after a delay. A server that went away is tried again at growing intervals
//! and only briefly: measurements must not wait for it.

use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::link::{Link, Trouble, replace_nul};
use super::writing::{Conflict, put_records, put_runs};
use super::{Postgres, schema};
use crate::journal::RecordJournal;
use crate::spool::StoreSpool;
use crate::{Prepared, StoreError, spool};
use pinwise_record::RunRecord;

/// Limits the runs that are sent together.
const MAX_RUNS: usize = 64;
/// Runs wait at most this long for others; checked when a run finishes.
const MAX_SEND_DELAY: Duration = Duration::from_secs(1);
/// Limits the time for which a server may delay a measurement.
const MAX_BLOCKING: Duration = Duration::from_secs(5);
/// Time until the first retry after a failure; it doubles with each failure, up to the maximum.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const MAX_RETRY: Duration = Duration::from_secs(120);

/// A record that this process writes.
#[derive(Debug)]
pub(super) struct Growing {
    id: String,
    journal: RecordJournal,
    /// The record as it began, until the server has it.
    begun: Option<Prepared>,
    /// Number of runs that the server has.
    sent: usize,
    pending: Vec<(usize, String)>,
    /// The session that holds the lock; 0 for none.
    session: usize,
    last_sent: Instant,
    retry_delay: Duration,
    /// No attempt to send before this.
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
        self.pending.len() >= MAX_RUNS || self.last_sent.elapsed() >= MAX_SEND_DELAY
    }

    /// Sends what the server lacks.
    fn send_pending(&mut self, link: &Link, spool: &StoreSpool) -> Result<(), Trouble> {
        self.take_lock(link)?;
        if let Some(begun) = &self.begun {
            put_records(link, std::slice::from_ref(begun), Conflict::Replace)?;
            self.begun = None;
            spool.forget_begun(&self.id);
        }
        if !self.pending.is_empty() {
            put_runs(link, &self.id, self.sent, &self.pending)?;
        }
        self.sent += self.pending.len();
        self.pending.clear();
        self.last_sent = now();
        self.quiet_until = None;
        self.retry_delay = FIRST_RETRY;
        // The session may have changed.
        self.take_lock(link)
    }

    /// Takes the lock that shows that the writer lives, unless this session has it already.
    fn take_lock(&mut self, link: &Link) -> Result<(), Trouble> {
        if link.is_connected() && self.session == link.session() {
            return Ok(());
        }
        let sql = format!("SELECT pg_try_advisory_lock({})", schema::lock_number("$1"));
        let is_held: bool = link.query_value(&sql, &[(&replace_nul(&self.id), Type::TEXT)])?;
        self.session = if is_held { link.session() } else { 0 };
        Ok(())
    }

    fn release_lock(&self, link: &Link) {
        if link.is_connected() && self.session == link.session() {
            let sql = format!("SELECT pg_advisory_unlock({})", schema::lock_number("$1"));
            // An ended session holds no lock.
            let _ = link.query(&sql, &[(&replace_nul(&self.id), Type::TEXT)]);
        }
    }

    fn postpone_retry(&mut self) {
        self.quiet_until = Some(now() + self.retry_delay);
        self.retry_delay = (2 * self.retry_delay).min(MAX_RETRY);
    }
}

impl Postgres {
    /// Writes a record that has just begun.
    pub(crate) fn begin(&mut self, record: &Prepared) -> Result<(), StoreError> {
        // The lock comes first, so that no other process takes the record for an abandoned one.
        self.become_writer(&record.entry.id)?;
        let put = put_records(&self.link, std::slice::from_ref(record), Conflict::Replace);
        if let Err(trouble) = put {
            self.report_or_fail(trouble)?;
            self.spool
                .put_begun(record)
                .map_err(|error| self.write_error(&error))?;
            if let Some(growing) = &mut self.growing {
                growing.begun = Some(record.clone());
                growing.postpone_retry();
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
            return Err(self.write_error(&error));
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
        let sent =
            link.run_with_patience(MAX_BLOCKING, |link| growing.send_pending(link, &self.spool));
        if let Err(trouble) = sent {
            growing.postpone_retry();
            self.report_trouble(trouble);
        }
    }

    /// Writes a finished record, replacing its parts.
    pub(crate) fn finish(&mut self, record: &Prepared) -> Result<(), StoreError> {
        self.put_or_spool(record)?;
        self.end_writing();
        Ok(())
    }

    pub(crate) fn keep(&mut self, record: &Prepared) -> Result<(), StoreError> {
        let entry = &record.entry;
        // A growing record without runs is locked as well.
        if !entry.is_complete && self.growing.is_none() {
            self.become_writer(&entry.id)?;
        }
        self.put_or_spool(record)?;
        // The lock of another record may protect runs that exist nowhere else.
        let is_its_writer = self.growing.as_ref().is_some_and(|g| g.has_id(&entry.id));
        if entry.is_complete && is_its_writer {
            self.end_writing();
        }
        Ok(())
    }

    fn put_or_spool(&mut self, record: &Prepared) -> Result<(), StoreError> {
        let records = std::slice::from_ref(record);
        match put_records(&self.link, records, Conflict::ReplaceWithRuns) {
            Ok(_) => {
                // A spooled older version must not be delivered later.
                self.spool.forget(&record.entry.id);
                if self.has_waiting {
                    self.deliver();
                }
            }
            Err(trouble) => {
                self.report_or_fail(trouble)?;
                self.spool
                    .put(record)
                    .map_err(|error| self.write_error(&error))?;
                self.has_waiting = true;
            }
        }
        Ok(())
    }

    /// Removes a record that was begun and has no run.
    pub(crate) fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        let is_unsent = self.growing.as_ref().is_some_and(|g| g.begun.is_some());
        if !is_unsent {
            let sql = "DELETE FROM record WHERE id = $1 AND NOT complete";
            self.link
                .query(sql, &[(&replace_nul(id), Type::TEXT)])
                .map_err(|trouble| self.explain(trouble))?;
        }
        self.end_writing();
        Ok(())
    }

    /// Becomes the writer of a record.
    fn become_writer(&mut self, id: &str) -> Result<(), StoreError> {
        let journal = self
            .spool
            .create_folder()
            .and_then(|()| RecordJournal::create(&self.spool.journal_base(), &spool::file_name(id)))
            .map_err(|error| self.write_error(&error))?;
        let mut growing = Growing {
            id: id.to_owned(),
            journal,
            begun: None,
            sent: 0,
            pending: Vec::new(),
            session: 0,
            last_sent: now(),
            retry_delay: FIRST_RETRY,
            quiet_until: None,
        };
        let locked = growing.take_lock(&self.link);
        if locked.is_ok() && growing.session == 0 {
            growing.journal.remove();
            return Err(StoreError::BeingWritten { id: id.to_owned() });
        }
        // If the server does not answer now, the next step reports it.
        self.growing = Some(growing);
        Ok(())
    }

    /// Ends the role of writer: the record is complete elsewhere.
    fn end_writing(&mut self) {
        let Some(growing) = self.growing.take() else {
            return;
        };
        self.spool.forget_begun(&growing.id);
        growing.release_lock(&self.link);
        growing.journal.remove();
    }

    /// Reports that data waits in the spool; an error if this store is read-only.
    fn report_or_fail(&self, trouble: Trouble) -> Result<(), StoreError> {
        if self.is_read_only.get() {
            return Err(self.explain(trouble));
        }
        self.report_trouble(trouble);
        Ok(())
    }

    /// Reports once why something waits, and where.
    pub(super) fn report_trouble(&self, trouble: Trouble) {
        if !self.has_reported.replace(true) {
            (self.spool_settings.warn)(&format!(
                "{}; results are kept in {} and delivered when pinwise next opens this store here",
                self.explain(trouble),
                self.spool.folder().display()
            ));
        }
    }

    fn write_error(&self, error: &std::io::Error) -> StoreError {
        StoreError::Write {
            path: self.spool.folder().display().to_string(),
            reason: error.to_string(),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Sends the remaining runs of an unfinished record.
        if self.growing.as_ref().is_some_and(|g| !g.pending.is_empty()) {
            self.send_runs();
        }
        // A server takes a moment to notice that a session has ended.
        if let Some(growing) = &self.growing {
            self.link
                .run_with_patience(MAX_BLOCKING, |link| growing.release_lock(link));
        }
    }
}
