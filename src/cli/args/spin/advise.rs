//! Arguments of `pinwise spin advise`.

use clap::Args;

/// `pinwise spin advise`
#[derive(Debug, Args)]
pub struct SpinAdviseArgs {}
