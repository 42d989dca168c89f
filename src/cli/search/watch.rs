//! Stores and shows a search while it runs.

use crate::cli::progress::ProgressLine;
use crate::cli::terminal::Terminal;
use crate::record::SearchRecord;
use crate::store::Store;
use crate::study::search::{Observer, Progress};

/// The observer of `search`.
pub(super) struct Watch<'a> {
    store: Option<Store>,
    /// A store that failed once is not written again before the end.
    failure: Option<String>,
    /// Of a search that has no block yet: nothing is lost with it.
    begun: Option<String>,
    progress: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: Option<Store>, terminal: &'a Terminal) -> Self {
        Self {
            store,
            failure: None,
            begun: None,
            progress: terminal.shows_progress().then(ProgressLine::new),
            terminal,
        }
    }

    /// Writes the finished record; false where it could not be stored.
    pub(super) fn close(mut self, record: &SearchRecord) -> bool {
        self.clear();
        // It may have been locked for a moment only, or the disk full.
        let Some(Err(error)) = self.store.as_mut().map(|store| store.keep(record)) else {
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

    /// The search ended without a record: of one that measured nothing no
    /// trace is kept, any other stays as one that was cut off.
    pub(super) fn abandon(mut self) {
        self.clear();
        if let (Some(store), Some(id)) = (&mut self.store, &self.begun) {
            // What cannot be taken back shows as cut off, which it is.
            let _ = store.withdraw(id);
        }
    }

    fn clear(&mut self) {
        if let Some(line) = &mut self.progress {
            line.finish();
        }
    }

    fn keep(&mut self, record: &SearchRecord) {
        if self.failure.is_some() {
            return;
        }
        if let Some(store) = &mut self.store
            && let Err(error) = store.keep(record)
        {
            self.failure = Some(error.to_string());
            self.warn(&format!("{error}; the search goes on without it"));
        }
    }
}

impl Observer for Watch<'_> {
    fn begin(&mut self, record: &SearchRecord) {
        self.keep(record);
        if record.runs.is_empty() {
            self.begun = Some(record.id.clone());
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        if let Some(line) = &mut self.progress {
            line.show_search(progress);
        }
    }

    fn block(&mut self, record: &SearchRecord) {
        self.keep(record);
        self.begun = None;
    }

    fn warn(&mut self, sentence: &str) {
        match &self.progress {
            Some(line) => line.above(|| self.terminal.warn(sentence)),
            None => self.terminal.warn(sentence),
        }
    }
}
