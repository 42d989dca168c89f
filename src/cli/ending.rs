//! The end of commands that make a record: they store it, then show it, and report if it could not
//! be stored.

use super::exit::Exit;
use super::terminal::Terminal;
use pinwise_record::StoredRecord;
use pinwise_store::Store;
use pinwise_study::is_interrupt;

/// The result; `None`, with a warning, if the user interrupted it.
///
/// # Errors
/// Any other error.
pub(super) fn warn_if_interrupted<T>(
    result: anyhow::Result<T>,
    terminal: &Terminal,
) -> anyhow::Result<Option<T>> {
    match result {
        Err(error) if is_interrupt(&error) => {
            terminal.warn("interrupted; nothing was stored");
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Stores a record, shows it, and reports if it could not be stored; `exit` is the status if it
/// was.
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
