//! A journal of changes, and its form as text: one line per change.

use std::collections::BTreeMap;

use super::entry::{Entry, JournalLine};
use super::words::parse_id;
use crate::processes::RuledProcess;

/// The first words of a journal; the boot id and the writer's process id follow.
const HEAD: &str = "pinwise journal 1";

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeJournal {
    /// The boot id when it was written.
    pub boot: String,
    /// The process that wrote it.
    pub pid: i32,
    /// Changes in force by number, in creation order.
    pub entries: BTreeMap<u64, Entry>,
    /// Should they stay when the writer ends?
    pub are_kept: bool,
}

impl ChangeJournal {
    /// A journal without changes.
    #[must_use]
    pub(super) const fn new(boot: String, pid: i32) -> Self {
        Self {
            boot,
            pid,
            entries: BTreeMap::new(),
            are_kept: false,
        }
    }

    /// Parses a journal; `None` if the text is not one. Malformed lines and an incomplete last line
    /// are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let mut words = head.strip_prefix(HEAD)?.split_ascii_whitespace();
        let boot = words.next()?.to_owned();
        let mut journal = Self::new(boot, parse_id(words.next()?)?);
        for line in rest.split_inclusive('\n') {
            if let Some(line) = line.strip_suffix('\n') {
                journal.apply_line(line);
            }
        }
        Some(journal)
    }

    /// Applies a line as text; a malformed one is ignored.
    pub(super) fn apply_line(&mut self, line: &str) {
        if let Some(line) = JournalLine::from_line(line) {
            self.apply(line);
        }
    }

    pub(super) fn apply(&mut self, line: JournalLine) {
        match line {
            JournalLine::Made(id, entry) => {
                self.entries.insert(id, entry);
            }
            JournalLine::Granted(id, cpus) => {
                if let Some(Entry::Mask { granted, .. }) = self.entries.get_mut(&id) {
                    *granted = Some(cpus);
                }
            }
            JournalLine::Gone(id) => {
                self.entries.remove(&id);
            }
            JournalLine::Kept(are_kept) => self.are_kept = are_kept,
        }
    }

    /// The shortest text that parses to this.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD} {} {}\n", self.boot, self.pid);
        for (id, entry) in &self.entries {
            text.push_str(&JournalLine::Made(*id, entry.clone()).to_line());
            if let Entry::Mask {
                granted: Some(granted),
                ..
            } = entry
            {
                text.push_str(&JournalLine::Granted(*id, granted.clone()).to_line());
            }
        }
        if self.are_kept {
            text.push_str(&JournalLine::Kept(true).to_line());
        }
        text
    }

    /// Processes to which rules gave CPUs or a nice value.
    pub(super) fn ruled_processes(&self) -> impl Iterator<Item = &RuledProcess> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Held(held) => Some(held),
            _ => None,
        })
    }

    /// The numbers of the changes in the order of undoing: by [`Entry::rank`], changes of equal
    /// rank with the latest first.
    #[must_use]
    pub fn undo_order(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.entries.keys().rev().copied().collect();
        ids.sort_by_key(|id| self.entries[id].rank());
        ids
    }
}
