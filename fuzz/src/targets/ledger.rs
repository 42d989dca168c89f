//! Journals of changes: whatever they say, what is read is written so that it
//! is read the same, and every change in force is undone once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise::machine::linux::ChangeJournal as Journal;

fuzz_target!(|text: &str| {
    let Some(journal) = Journal::parse(text) else {
        return;
    };
    assert_eq!(Journal::parse(&journal.to_text()).as_ref(), Some(&journal));
    assert_eq!(journal.undoing().len(), journal.entries.len());
});
