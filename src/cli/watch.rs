//! Stores and shows an experiment while it runs.

use super::progress::ProgressLine;
use super::terminal::Terminal;
use crate::record::{Comparison, RunRecord};
use crate::store::Store;
use crate::study::compare::{Observer, Progress};

/// The observer of `compare` and `aa`.
pub(super) struct Watch<'a> {
    store: Option<Store>,
    /// A store that failed once is not written again before the end.
    failure: Option<String>,
    has_runs: bool,
    begun: Option<String>,
    progress: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: Option<Store>, terminal: &'a Terminal) -> Self {
        Self {
            store,
            failure: None,
            has_runs: false,
            begun: None,
            progress: terminal.shows_progress().then(ProgressLine::new),
            terminal,
        }
    }

    /// Writes the finished record; false where anything could not be stored.
    pub(super) fn close(mut self, record: &Comparison) -> bool {
        // It may have been locked for a moment only, or the disk full.
        let Some(Err(error)) = self.store.as_mut().map(|store| store.finish(record)) else {
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

    /// The experiment ended by an error: of one that measured nothing no trace
    /// is kept, and the runs of any other stay as those of one cut off.
    pub(super) fn abandon(mut self) {
        if let Some(line) = &mut self.progress {
            line.finish();
        }
        if let (Some(store), Some(id), false) = (&mut self.store, &self.begun, self.has_runs) {
            // What cannot be taken back shows as cut off, which it is.
            let _ = store.withdraw(id);
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Store) -> Result<(), crate::store::StoreError>) {
        if self.failure.is_some() {
            return;
        }
        if let Some(store) = &mut self.store
            && let Err(error) = write(store)
        {
            self.failure = Some(error.to_string());
            self.say(&format!("{error}; the experiment goes on without it"));
        }
    }

    fn say(&self, sentence: &str) {
        match &self.progress {
            Some(line) => line.above(|| self.terminal.warn(sentence)),
            None => self.terminal.warn(sentence),
        }
    }
}

impl Observer for Watch<'_> {
    fn begin(&mut self, record: &Comparison) {
        self.write(|store| store.begin(record));
        self.begun = Some(record.id.clone());
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        self.write(|store| store.add_run(arm, run));
        self.has_runs = true;
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show(progress);
        }
    }

    fn warn(&mut self, sentence: &str) {
        self.say(sentence);
    }

    fn end(&mut self, _record: &Comparison) {
        if let Some(line) = &mut self.progress {
            line.finish();
        }
    }
}
