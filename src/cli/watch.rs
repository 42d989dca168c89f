//! Stores and shows an experiment while it runs.

use super::progress::ProgressLine;
use super::terminal::Terminal;
use crate::record::{Comparison, RunRecord};
use crate::store::Store;
use crate::study::compare::{Observer, Progress};

/// The observer of `compare` and `aa`.
pub(super) struct Watch<'a> {
    store: Option<Store>,
    /// A store that failed once is not written again.
    failure: Option<String>,
    progress: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: Option<Store>, terminal: &'a Terminal) -> Self {
        Self {
            store,
            failure: None,
            progress: terminal.shows_progress().then(ProgressLine::new),
            terminal,
        }
    }

    /// Writes the finished record; false where anything could not be stored.
    pub(super) fn close(mut self, record: &Comparison) -> bool {
        self.write(|store| store.finish(record));
        let Some(reason) = &self.failure else {
            return true;
        };
        self.terminal.error(&format!(
            "{reason}; the results below are complete, keep them with --format json or --export-json"
        ));
        false
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
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        self.write(|store| store.add_run(arm, run));
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
