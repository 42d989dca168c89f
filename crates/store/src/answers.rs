//! What stores say of themselves, and of what a change did.

/// A record's tags before and after they were changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retagged {
    /// Its whole id.
    pub id: String,
    /// Before.
    pub before: Vec<String>,
    /// After.
    pub after: Vec<String>,
}

/// What was asked to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Ids of records that are gone.
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

/// Which file this is, whatever it is called; of a database, and where there is
/// no file yet, always the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Of a file that is read as one that nobody changes: when it was changed
    /// (s, ns), and the bytes of its log.
    pub(super) changed: (i64, i64, u64),
}

/// What is known of a record's writer, by the lock that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// A living process adds runs; this much is there, in bytes or in runs.
    Growing(u64),
    /// The writer ended before the record did.
    CutOff,
    /// Unknown: a record of a kind that has no lock, one that is
    /// beginning, or none.
    Unknown,
}
