//! Arguments of `pinwise spin scan`.

use clap::Args;

/// `pinwise spin scan`
#[derive(Debug, Args)]
pub struct SpinScanArgs {}
