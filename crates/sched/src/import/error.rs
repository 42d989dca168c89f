//! Why a trace of another tool cannot be imported.

use crate::Tid;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system refused to read it.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// The file has none of the known formats.
    #[error(
        "it is neither perf.data nor text of perf script or ftrace (trace, trace_pipe, trace-cmd report); it begins with \"{begin}\""
    )]
    Unknown {
        /// Its first bytes.
        begin: String,
    },
    /// A format that another tool can convert.
    #[error("it is trace-cmd's own format; convert it to text: trace-cmd report FILE > trace.txt")]
    TraceDat,
    /// A part of perf.data is damaged, or contradicts another one.
    #[error("byte {offset}: {what}")]
    Damaged {
        /// Its offset in the file.
        offset: u64,
        /// What is wrong, as a clause.
        what: String,
    },
    /// A line of text is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong; names the field.
        what: String,
    },
    /// A tracepoint has an unknown format.
    #[error("the format of tracepoint {event} in the file {what}")]
    Format {
        /// The tracepoint, such as `sched:sched_switch`.
        event: String,
        /// What is wrong; names the field.
        what: String,
    },
    /// The file lacks the events that are needed; the clause says which.
    #[error("{0}")]
    NothingToRead(String),
    /// The file needs more memory than permitted.
    #[error(
        "it has more than {0} threads that do not end; record for a shorter time, or with sched:sched_process_exit"
    )]
    TooManyThreads(usize),
    /// The file has nothing of the requested process.
    #[error("process {0} is not in it")]
    NoProcess(Tid),
}

impl ImportError {
    pub(super) fn unknown(begin: &[u8]) -> Self {
        let begin = &begin[..begin.len().min(16)];
        Self::Unknown {
            begin: begin.escape_ascii().to_string(),
        }
    }

    pub(super) fn damaged(offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            offset,
            what: what.into(),
        }
    }

    pub(super) fn wrong_line(line: u64, what: impl Into<String>) -> Self {
        Self::Line {
            line,
            what: what.into(),
        }
    }
}
