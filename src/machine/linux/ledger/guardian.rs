//! A second process that puts everything back if pinwise is killed outright.
//!
//! It is told every line of the journal and knows by itself what is in force:
//! the file may be gone by then, as with the folder of a session that ended.

use std::fs::File;
use std::io;
use std::path::Path;

use super::act::System;
use super::entry::Journal;
use super::leftover;
use crate::machine::linux::orphan;

/// Starts the guardian of a journal; it holds `host_lock` as long as it lives.
/// Returns the pipe, into which the journal's lines go. Call while this process
/// has a single thread, and before it becomes the parent of orphans.
pub(super) fn start(
    path: &Path,
    journal: &Journal,
    system: &System,
    host_lock: Option<&File>,
) -> io::Result<File> {
    let lifeline = orphan::start(c"pinwise-ledger", host_lock, || {
        let mut journal = journal.clone();
        orphan::listen(|line| journal.take_line(line));
        leftover::finish(path, &journal, system);
    });
    lifeline.map(File::from)
}
