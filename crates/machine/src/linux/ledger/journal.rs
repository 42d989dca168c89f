//! The text of a change journal, one line per change.

use std::collections::BTreeMap;

use super::entry::{Entry, Word};
use super::words::id;
use crate::processes::RuledProcess;

/// The first words of a journal; the boot id and the writer's process id follow.
const HEAD: &str = "pinwise journal 1";

/// A journal that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeJournal {
    /// The boot id when it was written.
    pub boot: String,
    /// The process that wrote it.
    pub pid: i32,
    /// Changes in force by number, in creation order.
    pub entries: BTreeMap<u64, Entry>,
    /// Should they stay?
    pub are_kept: bool,
}

impl ChangeJournal {
    /// An empty one.
    #[must_use]
    pub(super) const fn new(boot: String, pid: i32) -> Self {
        Self {
            boot,
            pid,
            entries: BTreeMap::new(),
            are_kept: false,
        }
    }

    /// Parses a journal; `None` if the text is not one. Senseless lines and an incomplete last line
    /// are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let mut words = head.strip_prefix(HEAD)?.split_ascii_whitespace();
        let boot = words.next()?.to_owned();
        let mut journal = Self::new(boot, id(words.next()?)?);
        for line in rest.split_inclusive('\n') {
            if let Some(line) = line.strip_suffix('\n') {
                journal.take_line(line);
            }
        }
        Some(journal)
    }

    /// Applies a line; a malformed one is ignored.
    pub(super) fn take_line(&mut self, line: &str) {
        if let Some(word) = Word::from_line(line) {
            self.take(word);
        }
    }

    pub(super) fn take(&mut self, word: Word) {
        match word {
            Word::Made(id, entry) => {
                self.entries.insert(id, entry);
            }
            Word::Granted(id, cpus) => {
                if let Some(Entry::Mask { granted, .. }) = self.entries.get_mut(&id) {
                    *granted = Some(cpus);
                }
            }
            Word::Gone(id) => {
                self.entries.remove(&id);
            }
            Word::Kept(are_kept) => self.are_kept = are_kept,
        }
    }

    /// The shortest text that parses to this.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD} {} {}\n", self.boot, self.pid);
        for (id, entry) in &self.entries {
            text.push_str(&Word::Made(*id, entry.clone()).to_line());
            if let Entry::Mask {
                granted: Some(granted),
                ..
            } = entry
            {
                text.push_str(&Word::Granted(*id, granted.clone()).to_line());
            }
        }
        if self.are_kept {
            text.push_str(&Word::Kept(true).to_line());
        }
        text
    }

    /// Processes that hold something from rules.
    pub(super) fn held(&self) -> impl Iterator<Item = &RuledProcess> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Held(held) => Some(held),
            _ => None,
        })
    }

    /// The numbers of the changes in undo order: by [`Entry::rank`], of equal rank the last one
    /// first.
    #[must_use]
    pub fn undoing(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.entries.keys().rev().copied().collect();
        ids.sort_by_key(|id| self.entries[id].rank());
        ids
    }
}
