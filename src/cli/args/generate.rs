//! Arguments of `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

/// `pinwise completions`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise completions bash > ~/.local/share/bash-completion/completions/pinwise
  pinwise completions zsh > ~/.zfunc/_pinwise
  pinwise completions fish > ~/.config/fish/completions/pinwise.fish

New shells load them: bash with its package bash-completion, fish always, zsh
with this in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

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
