//! Arguments of `pinwise profile`.

use clap::Args;

/// `pinwise profile`
#[derive(Debug, Args)]
pub struct ProfileArgs {}
