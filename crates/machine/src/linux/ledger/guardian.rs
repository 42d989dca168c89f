//! Starts a second process, the guardian, which restores everything if pinwise is killed.
//!
//! It receives every line of the journal and tracks which changes are in force, because the file
//! may be gone by then, for example with the folder of a session that has ended.

use std::fs::File;
use std::io;

use super::act::System;
use super::file::JournalPath;
use super::journal::ChangeJournal;
use super::leftover;
use crate::linux::daemon;
use crate::linux::live::ThreadSweep;

/// Tells the guardian that the changes in force should stay.
pub(super) const CLOSED: &str = "closed\n";

/// Starts the guardian of a journal, which holds `lock` as long as it runs. Returns the pipe for
/// the journal's lines. Call while this process has a single thread, and before it becomes the
/// parent of orphans.
pub(super) fn start(
    path: &JournalPath,
    journal: &ChangeJournal,
    system: &System,
    lock: Option<&File>,
) -> io::Result<File> {
    let death_pipe = daemon::start(daemon::LEDGER, lock, || {
        let mut journal = journal.clone();
        let mut sweep = ThreadSweep::default();
        let mut is_closed = false;
        daemon::read_lines(|line| {
            is_closed |= line == CLOSED.trim_end();
            journal.apply_line(line);
            sweep.apply_line(line);
        });
        if !is_closed {
            leftover::undo_and_remove(path, &journal, system);
        }
        sweep.run();
    });
    death_pipe.map(File::from)
}
