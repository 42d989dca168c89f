//! Answers of stores about themselves and about changes.

/// A record's tags before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagChange {
    /// Its whole id.
    pub id: String,
    /// Its tags before the change.
    pub before: Vec<String>,
    /// Its tags after the change.
    pub after: Vec<String>,
}

/// The result of removing records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalResult {
    /// Ids of which no record is left: removed now, or there was none.
    pub gone: Vec<String>,
    /// Ids of those that stay because a living process writes them.
    pub being_written: Vec<String>,
    /// Ids of those that stay because they are another database user's.
    pub of_others: Vec<String>,
}

/// Equal as long as no other process has changed a store's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub(super) file: FileIdentity,
    pub(super) version: u64,
}

/// Identifies a file, whatever its name; for a database, and if there is no file yet, always the
/// same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// For a file read as unchanging: its time of change (s, ns), and the bytes of its log.
    pub(super) changed: (i64, i64, u64),
}

/// The state of a record's writer, by its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// A living process adds runs; its present size, in bytes or in runs.
    Growing(u64),
    /// The writer ended before the record was complete.
    CutOff,
    /// Unknown: a record of a kind without a lock, one that is beginning, or none.
    Unknown,
}
