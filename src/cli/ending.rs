//! The end of commands that make a record: it is stored, then shown, and a message names what could
//! not be stored.

use super::exit::Exit;
use super::terminal::Terminal;
use pinwise_record::StoredRecord;
use pinwise_store::Store;
use pinwise_study::is_interrupt;

/// The result; `None`, with a message, if the user stopped it.
///
/// # Errors
/// Any other failure to make it.
pub(super) fn unless_interrupted<T>(
    made: anyhow::Result<T>,
    terminal: &Terminal,
) -> anyhow::Result<Option<T>> {
    match made {
        Err(error) if is_interrupt(&error) => {
            terminal.warn("interrupted; nothing was stored");
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// Stores a record, shows it, and says what could not be stored; `exit`: for a command whose record
/// is kept.
///
/// # Errors
/// Those of `show`, which also writes the files that were requested.
pub(super) fn keep_and_show<R: StoredRecord>(
    store: Option<Store>,
    record: &R,
    terminal: &Terminal,
    show: impl FnOnce() -> anyhow::Result<()>,
    exit: Exit,
) -> anyhow::Result<Exit> {
    let stored = store.map(|mut store| store.keep(record));
    show()?;
    if let Some(Err(error)) = stored {
        terminal.error(&format!("{error}; what is shown above is complete"));
        return Ok(Exit::Error);
    }
    Ok(exit)
}
