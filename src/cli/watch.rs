//! Stores and shows a comparison or a search while it runs.

use super::progress::ProgressLine;
use super::terminal::Terminal;
use pinwise_record::{AnyRecord, Comparison, RunRecord, SearchRecord, Stopped};
use pinwise_store::{Store, StoreError};
use pinwise_study::{compare, search};

/// The observer of `compare` and `search`.
pub(super) struct Watch<'a> {
    store: Option<Store>,
    /// The first error of the store, which is then not written again before the end.
    failure: Option<String>,
    /// The id of the record that is being written.
    id: Option<String>,
    /// The id, as long as the record has no figures: until then it may be removed.
    empty_id: Option<String>,
    progress: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: Option<Store>, terminal: &'a Terminal) -> Self {
        Self {
            store,
            failure: None,
            id: None,
            empty_id: None,
            progress: terminal
                .shows_progress()
                .then(|| ProgressLine::new(terminal)),
            terminal,
        }
    }

    /// Writes the finished record; returns whether it is stored.
    pub(super) fn close(
        mut self,
        write: impl FnOnce(&mut Store) -> Result<(), StoreError>,
    ) -> bool {
        self.finish_progress();
        // Try again even after a failure: the store may have been locked, or the disk full.
        let Some(Err(error)) = self.store.as_mut().map(write) else {
            if self.failure.is_some() {
                self.terminal.note("The record is stored after all.");
            }
            return true;
        };
        self.terminal.error(&format!(
            "{error}; the results below are complete, keep them with --format json or --export-json"
        ));
        false
    }

    /// Has no run a figure yet?
    pub(super) const fn has_no_figure(&self) -> bool {
        self.empty_id.is_some()
    }

    /// Ends without a finished record. A stored record without figures is removed; one with figures
    /// stays and shows as interrupted.
    pub(super) fn abandon(mut self) {
        self.finish_progress();
        if let (Some(store), Some(id)) = (&mut self.store, &self.empty_id) {
            // A record that cannot be removed shows as interrupted, which it is.
            let _ = store.withdraw(id);
        }
    }

    /// Writes into the record that an error ended it; a record without figures is removed.
    pub(super) fn fail(mut self, error: &str) {
        let (Some(id), None, Some(store)) = (&self.id, &self.empty_id, &mut self.store) else {
            return self.abandon();
        };
        // A record that cannot be written shows as interrupted.
        let _ = write_failure(store, id, error);
        self.finish_progress();
    }

    fn finish_progress(&mut self) {
        if let Some(line) = &mut self.progress {
            line.finish();
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Store) -> Result<(), StoreError>) {
        if self.failure.is_some() {
            return;
        }
        if let Some(store) = &mut self.store
            && let Err(error) = write(store)
        {
            self.failure = Some(error.to_string());
            self.warn_above_progress(&format!("{error}; the experiment continues without it"));
        }
    }

    fn warn_above_progress(&self, sentence: &str) {
        match &self.progress {
            Some(line) => line.print_above(|| self.terminal.warn(sentence)),
            None => self.terminal.warn(sentence),
        }
    }
}

/// Writes into a stored record that an error ended it.
fn write_failure(store: &mut Store, id: &str, error: &str) -> Result<(), StoreError> {
    let stored = store.load(id)?;
    let sentence = format!("Ended with an error: {error}");
    match stored.record()? {
        AnyRecord::Comparison(mut record) => {
            record.stopped = Some(Stopped::Failed);
            record.ended = record.ending();
            record.verdict.sentence = sentence;
            store.finish(&record)
        }
        AnyRecord::Search(mut record) => {
            record.stopped = Some(Stopped::Failed);
            record.ended = Stopped::words(record.stopped).to_owned();
            record.verdict.sentence = sentence;
            store.keep(&*record)
        }
        _ => Ok(()),
    }
}

impl compare::Observer for Watch<'_> {
    fn begin(&mut self, record: &Comparison) {
        self.id = Some(record.id.clone());
        self.write(|store| store.begin(record));
        self.empty_id = Some(record.id.clone());
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        self.write(|store| store.add_run(arm, run));
        if run.metric.value.is_some() {
            self.empty_id = None;
        }
    }

    fn progress(&mut self, progress: &compare::Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show(progress);
        }
    }

    fn warn(&mut self, sentence: &str) {
        self.warn_above_progress(sentence);
    }

    fn end(&mut self, _record: &Comparison) {
        self.finish_progress();
    }
}

impl search::Observer for Watch<'_> {
    fn begin(&mut self, record: &SearchRecord) {
        self.id = Some(record.id.clone());
        self.write(|store| store.keep(record));
        if record.runs.is_empty() {
            self.empty_id = Some(record.id.clone());
        }
    }

    fn progress(&mut self, progress: &search::Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show_search(progress);
        }
    }

    fn block(&mut self, record: &SearchRecord) {
        self.write(|store| store.keep(record));
        self.empty_id = None;
    }

    fn warn(&mut self, sentence: &str) {
        self.warn_above_progress(sentence);
    }
}
