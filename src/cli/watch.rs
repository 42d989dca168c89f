//! Stores and shows an experiment or a search while it runs.

use super::progress::ProgressLine;
use super::terminal::Terminal;
use pinwise_record::{AnyRecord, Comparison, RunRecord, SearchRecord, Stopped};
use pinwise_store::{Store, StoreError};
use pinwise_study::{compare, search};

/// The observer of `compare` and `search`.
pub(super) struct Watch<'a> {
    store: Option<Store>,
    /// A store that failed once is not written again before the end.
    failure: Option<String>,
    /// The record that is being written.
    id: Option<String>,
    /// A record without figures yet: losing it loses nothing.
    begun: Option<String>,
    progress: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: Option<Store>, terminal: &'a Terminal) -> Self {
        Self {
            store,
            failure: None,
            id: None,
            begun: None,
            progress: terminal
                .shows_progress()
                .then(|| ProgressLine::new(terminal)),
            terminal,
        }
    }

    /// Writes the finished record; false if anything could not be stored.
    pub(super) fn close(
        mut self,
        write: impl FnOnce(&mut Store) -> Result<(), StoreError>,
    ) -> bool {
        self.clear();
        // It may have been locked for a moment only, or the disk full.
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

    /// Has no run given a figure?
    pub(super) const fn has_no_figure(&self) -> bool {
        self.begun.is_some()
    }

    /// It ended without a record: of one that measured nothing no trace is
    /// kept, any other stays as one that was cut off.
    pub(super) fn abandon(mut self) {
        self.clear();
        if let (Some(store), Some(id)) = (&mut self.store, &self.begun) {
            // What cannot be taken back shows as cut off, which it is.
            let _ = store.withdraw(id);
        }
    }

    /// An error ended it: the record says so; of one that measured nothing none is kept.
    pub(super) fn fail(mut self, error: &str) {
        let (Some(id), None, Some(store)) = (&self.id, &self.begun, &mut self.store) else {
            return self.abandon();
        };
        // What cannot be written stays a record that was cut off.
        let _ = end_with(store, id, error);
        self.clear();
    }

    fn clear(&mut self) {
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
            self.say(&format!("{error}; the experiment continues without it"));
        }
    }

    fn say(&self, sentence: &str) {
        match &self.progress {
            Some(line) => line.print_above(|| self.terminal.warn(sentence)),
            None => self.terminal.warn(sentence),
        }
    }
}

/// Writes how a stored record ended.
fn end_with(store: &mut Store, id: &str, error: &str) -> Result<(), StoreError> {
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
        self.begun = Some(record.id.clone());
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        self.write(|store| store.add_run(arm, run));
        if run.metric.value.is_some() {
            self.begun = None;
        }
    }

    fn progress(&mut self, progress: &compare::Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show(progress);
        }
    }

    fn warn(&mut self, sentence: &str) {
        self.say(sentence);
    }

    fn end(&mut self, _record: &Comparison) {
        self.clear();
    }
}

impl search::Observer for Watch<'_> {
    fn begin(&mut self, record: &SearchRecord) {
        self.id = Some(record.id.clone());
        self.write(|store| store.keep(record));
        if record.runs.is_empty() {
            self.begun = Some(record.id.clone());
        }
    }

    fn progress(&mut self, progress: &search::Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show_search(progress);
        }
    }

    fn block(&mut self, record: &SearchRecord) {
        self.write(|store| store.keep(record));
        self.begun = None;
    }

    fn warn(&mut self, sentence: &str) {
        self.say(sentence);
    }
}
