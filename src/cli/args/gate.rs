//! Arguments of `gate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::values::{parse_count, parse_duration, parse_margin, parse_tag, parse_whole};

/// `pinwise gate`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise gate main . --suite bench.toml
  pinwise gate ../before ../after --suite bench.toml --budget 5m
  pinwise gate v1.4 v1.5 --suite bench.toml --export-markdown comment.md
  git bisect run pinwise gate v1.4 . --suite bench.toml --bisect

A suite is a file:
  build = \"cargo build --release\"
  [[benchmark]]
  name = \"compress\"
  run = \"./target/release/tool -9 big.txt\"

With metric = \"cpu\" in it a benchmark is judged by CPU time alone (default: wall
time and CPU time). One that lists benchmarks of a framework:
  [[benchmark]]
  adapter = \"criterion\"
  run = \"cargo bench --bench codec --\"

Exit status: 0 nothing is slower; 1 a benchmark is slower; 2 error, or one could
not be judged; 3 undecided; 130 interrupted (partial results are kept).")]
pub struct GateArgs {
    /// The build to compare with (a folder, or a revision of this git repository,
    /// which is built in the user's cache folder)
    #[arg(value_name = "BASE")]
    pub base: String,
    /// The build to judge (a folder or a revision); `.` is this folder, including
    /// uncommitted changes
    #[arg(value_name = "HEAD")]
    pub head: String,
    /// The benchmarks (a TOML file)
    #[arg(long, value_name = "FILE", help_heading = "What is compared")]
    pub suite: PathBuf,
    /// Only benchmarks whose name matches this regular expression
    #[arg(long, value_name = "PATTERN", help_heading = "What is compared")]
    pub filter: Option<String>,
    /// Where all benchmarks run
    #[arg(
        long,
        value_name = "PLACEMENT",
        default_value = "os-default",
        help_heading = "What is compared"
    )]
    pub place: String,
    /// Run no build command; both folders already contain builds
    #[arg(long, help_heading = "What is compared")]
    pub no_build: bool,
    /// Build variant N: sets `PINWISE_VARIANT=N` for the build command, for example to
    /// vary the code layout; `record history --trend` combines variants
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_whole::<u32>,
        conflicts_with = "no_build",
        help_heading = "What is compared"
    )]
    pub variant: Option<u32>,
    /// Time for the runs, without building [default: 10m; no limit if --max-pairs or
    /// --open-ended is given]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Effort")]
    pub budget: Option<Duration>,
    /// Maximum number of pairs of runs per benchmark
    #[arg(long, short = 'r', value_name = "N", value_parser = parse_count, help_heading = "Effort")]
    pub max_pairs: Option<usize>,
    /// Run until every benchmark is decided; --budget, --max-pairs or Ctrl-C may end
    /// it earlier
    #[arg(long, help_heading = "Effort")]
    pub open_ended: bool,
    /// Smallest slowdown of interest [default: the suite's, else 1%]
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, help_heading = "Effort")]
    pub min_effect: Option<f64>,
    /// Seed for the order of runs [default: random, recorded]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>, help_heading = "Effort")]
    pub seed: Option<u64>,
    /// Exit status of an undecided gate: 3, pass (0) or fail (1)
    #[arg(
        long,
        value_enum,
        value_name = "STATUS",
        default_value = "3",
        help_heading = "Exit status"
    )]
    pub undecided: Undecided,
    /// Exit as `git bisect run` expects: 0 good, 1 bad, 125 skip (undecided, does not
    /// build, or cannot be judged), 128 abort if every commit would fail alike
    #[arg(long, conflicts_with = "undecided", help_heading = "Exit status")]
    pub bisect: bool,
    /// Write the record
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub export_json: Option<PathBuf>,
    /// Write one line per pair of runs
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub export_csv: Option<PathBuf>,
    /// Write a comment for a pull request
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub export_markdown: Option<PathBuf>,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub report: Option<PathBuf>,
    /// Label the record
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag, help_heading = "Results")]
    pub tags: Vec<String>,
}

/// The exit status if it is undecided whether something is slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Undecided {
    /// 3.
    #[value(name = "3")]
    Unknown,
    /// 0, as if it had passed.
    Pass,
    /// 1, as if it had failed.
    Fail,
}

impl Undecided {
    pub(in crate::cli) const fn exit(self) -> Exit {
        match self {
            Self::Unknown => Exit::Undecided,
            Self::Pass => Exit::Done,
            Self::Fail => Exit::GateFailed,
        }
    }
}
