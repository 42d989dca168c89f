//! Arguments of `pinwise spin attach`.

use clap::Args;

/// `pinwise spin attach`
#[derive(Debug, Args)]
pub struct SpinAttachArgs {}
