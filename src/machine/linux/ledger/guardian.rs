//! A second process that puts everything back if pinwise is killed outright: it
//! undoes what the journal says is in force.

use std::fs::File;
use std::io;
use std::path::Path;

use super::act::System;
use super::leftover;
use crate::machine::linux::orphan;

/// Starts the guardian of a journal; it holds `host_lock` as long as it lives.
/// Returns the pipe. Call while this process has a single thread, and before it
/// becomes the parent of orphans.
pub(super) fn start(journal: &Path, system: &System, host_lock: Option<&File>) -> io::Result<File> {
    let lifeline = orphan::start(c"pinwise-ledger", host_lock, || {
        orphan::sleep();
        leftover::finish(journal, system);
    });
    lifeline.map(File::from)
}
