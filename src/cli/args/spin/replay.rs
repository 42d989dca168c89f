//! Arguments of `pinwise spin replay`.

use clap::Args;

/// `pinwise spin replay`
#[derive(Debug, Args)]
pub struct SpinReplayArgs {}
