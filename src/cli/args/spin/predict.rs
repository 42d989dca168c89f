//! Arguments of `pinwise spin predict`.

use clap::Args;

/// `pinwise spin predict`
#[derive(Debug, Args)]
pub struct SpinPredictArgs {}
