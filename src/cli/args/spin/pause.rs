//! Arguments of `pinwise spin pause`.

use clap::Args;

/// `pinwise spin pause`
#[derive(Debug, Args)]
pub struct SpinPauseArgs {}
