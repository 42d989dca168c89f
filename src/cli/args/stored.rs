//! Arguments of the commands that read stored records.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::values::{parse_age, parse_count, parse_tag, parse_whole};

/// Which records.
#[derive(Debug, Args)]
pub struct Narrowing {
    /// Only records made on this host
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Only records of this kind: comparison, bench, topology, trace, search,
    /// profile, spin-attach …
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only records with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
}

/// `pinwise record`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RecordArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: RecordAction,
}

/// What `pinwise record` does.
#[derive(Debug, Subcommand)]
pub enum RecordAction {
    /// List stored records, newest first
    #[command(aliases = ["list", "ls", "log"])]
    History(HistoryArgs),
    /// Show a stored record, or write it in another format
    #[command(alias = "export")]
    Show(ShowArgs),
    /// Compare two stored records of the same kind
    Diff(DiffArgs),
    /// Write records as one HTML page that opens from disk
    Report(ReportArgs),
    /// Label stored records, or show their labels
    Tag(TagArgs),
    /// Remove stored records
    #[command(aliases = ["remove", "rm", "delete"])]
    Prune(PruneArgs),
    /// Copy records that are missing in one store from another
    Copy(CopyArgs),
}

/// `pinwise record history`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record history
  pinwise record history --limit 5 --format json
  pinwise record history --kind comparison --tag nightly
  pinwise record history --text 'xz faster'
  pinwise record history --trend compress

`pinwise record show ID` shows a record, with --format in another format;
`pinwise record tag ID --add TAG` labels it.")]
pub struct HistoryArgs {
    /// Which records.
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// Only records whose id, command, host, verdict or tags contain all these words
    /// (case-insensitive)
    #[arg(long, value_name = "WORDS")]
    pub text: Option<String>,
    /// Show this benchmark's trend from commit to commit, by the results of its gates
    #[arg(long, value_name = "BENCHMARK", conflicts_with = "text")]
    pub trend: Option<String>,
    /// At most N records
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count)]
    pub limit: usize,
}

/// `pinwise record tag`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record tag last
  pinwise record tag last --add nightly --add before-upgrade
  pinwise record tag 20261121-2132 --remove nightly

Tags are part of the record and are exported with it. Lists and pages can be
filtered by them: pinwise record history --tag nightly.")]
pub struct TagArgs {
    /// Records by id, its beginning or end, `last`, or `last~1` (the one before)
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Add a tag
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    pub add: Vec<String>,
    /// Remove a tag
    #[arg(long, value_name = "TAG")]
    pub remove: Vec<String>,
}

/// `pinwise record diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record diff last~1 last
  pinwise record diff before.json after.json --format json

The two were made at different times, so a change of the machine in between
looks like a change of the program. To rule that out, run both in turn:
pinwise compare --command ./old --command ./new")]
pub struct DiffArgs {
    /// The earlier record: an id or its prefix, `last~1` (`last` is the newest), or
    /// a file of exported JSON
    #[arg(value_name = "A")]
    pub a: String,
    /// The later record
    #[arg(value_name = "B")]
    pub b: String,
}

/// `pinwise record prune`
#[derive(Debug, Args)]
#[command(
    override_usage = "pinwise record prune [OPTIONS] [ID]...",
    group(clap::ArgGroup::new("which").required(true).multiple(true)
        .args(["ids", "older_than", "keep", "host", "kind", "tag", "untagged"])),
    after_help = "Examples:
  pinwise record prune --older-than 90d --untagged
  pinwise record prune --kind trace --keep 20 --yes
  pinwise record prune last --yes

Without --yes it only prints what it would remove. A record is removed if all
conditions hold. A record that is still being written is kept.")]
pub struct PruneArgs {
    /// Only these records: an id, its prefix, `last`, or `last~1` (the one before)
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Only records older than this, such as 36h, 90d or 12w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older_than: Option<Duration>,
    /// Keep the newest N of the records that match the other conditions
    #[arg(long, value_name = "N", value_parser = parse_whole::<usize>)]
    pub keep: Option<usize>,
    /// Which records.
    #[command(flatten)]
    pub narrowing: Narrowing,
    /// Only records without any tag
    #[arg(long, conflicts_with = "tag")]
    pub untagged: bool,
    /// Remove the records; this cannot be undone
    #[arg(long)]
    pub yes: bool,
}

/// `pinwise record show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record show last
  pinwise record show 20261121-2132 --format json
  pinwise record show last --format csv -o runs.csv

Every record has the formats text, json, and html (the page of `pinwise record
report`). csv has one line per run, or per pair of CPUs of a measured machine.
Comparisons also have markdown and hyperfine's JSON; machines have hwloc's xml.")]
pub struct ShowArgs {
    /// The record's id, its prefix, `last`, or `last~1` (the one before)
    pub id: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `pinwise record report`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record report last
  pinwise record report 20261121-2132 20261122 -o both.html

The page opens from disk, needs no network, and contains the full records:
`pinwise record show --format json` prints one.")]
pub struct ReportArgs {
    /// Records by id, its prefix, or `last`; or files of exported JSON
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Output file, `-` for standard output [default: pinwise-ID.html]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `pinwise serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise serve --open
  pinwise serve --port 8080
  ssh -L 8080:127.0.0.1:8080 HOST pinwise serve --port 8080

The printed address contains a secret: anyone who has it can read the stored
records. On this machine, only you and root can see it. The page is read-only
and shows running experiments live. Ctrl-C ends it.")]
pub struct ServeArgs {
    /// The port [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,
    /// Listen on this address for connections from other machines, without
    /// encryption [default: 127.0.0.1, this machine only]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

/// `pinwise record copy`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise record copy store.db sqlite:copy.db
  pinwise record copy store.db postgres://bench@db.example/pinwise

Existing records are kept as they are. To continue an interrupted copy, run it
again. If the URL of a PostgreSQL database has no password, it is taken from
PGPASSWORD or ~/.pgpass.")]
pub struct CopyArgs {
    /// The store to copy from: `sqlite:PATH` (or just PATH) or `postgres://…`
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The store to copy to
    #[arg(value_name = "TO")]
    pub to: String,
}
