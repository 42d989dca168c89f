//! A second process that restores everything if pinwise is killed outright.
//!
//! It receives every line of the journal and tracks what is in force: the file may be gone by then,
//! like the folder of a session that ended.

use std::fs::File;
use std::io;

use super::act::System;
use super::file::Place;
use super::journal::ChangeJournal;
use super::leftover;
use crate::linux::daemon;
use crate::linux::live::Known;

/// Tells the guardian that the changes in force should stay.
pub(super) const CLOSED: &str = "closed\n";

/// Starts the guardian of a journal; it holds `lock` while it lives. Returns the pipe for the
/// journal's lines. Call while this process has a single thread, and before it becomes the parent
/// of orphans.
pub(super) fn start(
    place: &Place,
    journal: &ChangeJournal,
    system: &System,
    lock: Option<&File>,
) -> io::Result<File> {
    let death_pipe = daemon::start(daemon::LEDGER, lock, || {
        let mut journal = journal.clone();
        let mut known = Known::default();
        let mut is_closed = false;
        daemon::read_lines(|line| {
            is_closed |= line == CLOSED.trim_end();
            journal.take_line(line);
            known.take_line(line);
        });
        if !is_closed {
            leftover::finish(place, &journal, system);
        }
        known.sweep();
    });
    death_pipe.map(File::from)
}
