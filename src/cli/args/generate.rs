//! Arguments of `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `pinwise generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    #[arg(value_enum)]
    pub what: Generated,
    /// Folder to write to
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Documents made from the command line's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// Man pages.
    Man,
    /// Completions for bash, zsh, fish and nushell.
    Completions,
    /// The reference as Markdown.
    Reference,
}
