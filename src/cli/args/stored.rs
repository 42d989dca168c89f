//! Arguments of the commands that read stored records.

use std::path::PathBuf;

use clap::Args;

use crate::cli::values::parse_count;

/// `pinwise history`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise history
  pinwise history --limit 5 --format json

`pinwise show ID` shows one of them again, `pinwise export ID` writes it in
another format.")]
pub struct HistoryArgs {
    /// At most so many records
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count)]
    pub limit: usize,
}

/// `pinwise show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise show last
  pinwise show 20261121-2132 --format json")]
pub struct ShowArgs {
    /// The record's id, its beginning, or `last`
    pub id: String,
}

/// `pinwise export`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise export last --csv
  pinwise export last --hyperfine -o runs.json")]
pub struct ExportArgs {
    /// The record's id, its beginning, or `last`
    pub id: String,
    /// The format.
    #[command(flatten)]
    pub format: ExportFormat,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// One of the export formats.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one flag per format, of which clap lets one through"
)]
pub struct ExportFormat {
    /// The record itself
    #[arg(long)]
    pub json: bool,
    /// One line per run
    #[arg(long)]
    pub csv: bool,
    /// A table
    #[arg(long)]
    pub markdown: bool,
    /// As hyperfine's --export-json
    #[arg(long)]
    pub hyperfine: bool,
}
