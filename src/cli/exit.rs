//! The exit statuses.

use std::process::ExitCode;

/// The exit status, chosen once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A gate that the user requested has failed.
    GateFailed,
    /// Usage, environment, or a command that failed.
    Error,
    /// Undecided although a verdict was required.
    Undecided,
    /// `git bisect` should try another commit.
    Skip,
    /// `git bisect` should stop: no other commit would do better.
    StopBisecting,
    /// Interrupted; partial results were kept and shown.
    Interrupted,
    /// The command of `run` exists but cannot be executed.
    NotExecutable,
    /// There is no such command.
    NotFound,
    /// The status with which a rank of `run` ended.
    Rank(u8),
}

impl Exit {
    /// The exit of a command that ran another with this status; `None` if pinwise ended it. Ctrl-C
    /// is 130, as in shells.
    pub(super) const fn from_command_status(status: Option<i32>) -> Self {
        match status {
            None | Some(0) => Self::Done,
            Some(130) => Self::Interrupted,
            Some(_) => Self::Error,
        }
    }

    /// The number that the process exits with.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::GateFailed => 1,
            Self::Error => 2,
            Self::Undecided => 3,
            Self::Skip => 125,
            Self::StopBisecting => 128,
            Self::Interrupted => 130,
            // As in shells.
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Rank(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}
