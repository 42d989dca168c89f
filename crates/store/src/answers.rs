//! What stores return about changes and about their own state.

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
    /// Ids without a record now: those removed, and those that had none before.
    pub gone: Vec<String>,
    /// Ids of records that stay because a living process writes them.
    pub being_written: Vec<String>,
    /// Ids of records that stay because they belong to another database user.
    pub of_others: Vec<String>,
}

/// A state of a store: equal as long as no other process has changed its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub(super) file: FileIdentity,
    pub(super) version: u64,
}

/// Identifies a file, whatever its name. The identity is the same for all databases and missing
/// files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// For a file opened as immutable: its time of change (s, ns), and the bytes of its log.
    pub(super) changed: (i64, i64, u64),
}

/// The state of a record's writer, by its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// A living process adds runs; its present size, in bytes or in runs.
    Growing(u64),
    /// The writer ended before the record was complete.
    CutOff,
    /// Unknown: the record's kind has no lock, it is just beginning, or there is no such record.
    Unknown,
}
