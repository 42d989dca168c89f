//! Journals of changes: whatever they contain, a parsed one survives writing and reading, and every
//! change in force is undone once.

use pinwise_machine::linux::ChangeJournal;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(journal) = ChangeJournal::parse(text) else { return };
    assert_eq!(ChangeJournal::parse(&journal.to_text()).as_ref(), Some(&journal));
    assert_eq!(journal.undo_order().len(), journal.entries.len());
}
