//! Arguments of the spin-wait laboratory: `pinwise spin …`.

mod advise;
mod attach;
mod pause;
mod predict;
mod processor;
mod replay;
mod scan;

use clap::{Args, Subcommand};

pub(in crate::cli) use advise::SpinAdviseArgs;
pub(in crate::cli) use attach::SpinAttachArgs;
pub(in crate::cli) use pause::SpinPauseArgs;
pub(in crate::cli) use predict::SpinPredictArgs;
pub(in crate::cli) use processor::ProcessorArgs;
pub(in crate::cli) use replay::SpinReplayArgs;
pub(in crate::cli) use scan::{SpinScanArgs, UnknownGap};

/// `pinwise spin`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin pause --check
  pinwise spin predict --from broadwell --to skylake-sp --cpu-count 24
  pinwise spin attach -- ./prog")]
pub struct SpinArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: SpinAction,
}

/// The laboratory's instruments.
#[derive(Debug, Subcommand)]
pub enum SpinAction {
    /// Measure the cost of PAUSE and compare it with known chips
    Pause(SpinPauseArgs),
    /// Predict how long known algorithms spin, here or on another chip
    Predict(SpinPredictArgs),
    /// Run an algorithm for real and compare it with its prediction
    Replay(Box<SpinReplayArgs>),
    /// Find out whether a program spins, where, and with which algorithm
    Attach(SpinAttachArgs),
    /// Suggest values for the spin settings of known runtimes
    Advise(SpinAdviseArgs),
    /// List the loops with PAUSE in a binary
    Scan(SpinScanArgs),
}
