//! Arguments of everything that samples a program.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::files::NamedFile;
use crate::cli::values::parse_tag;
use pinwise_profile::{Event, SAMPLES_PER_S};

/// How samples are made.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// Samples per second of CPU time of a thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000), default_value_t = SAMPLES_PER_S)]
    pub hz: u32,
    /// Sampling event [default: cycles if there are hardware counters, else
    /// cpu-clock]
    #[arg(long, value_enum, value_name = "EVENT")]
    pub event: Option<EventChoice>,
    /// Where the command runs
    #[arg(long, value_name = "PLACEMENT", default_value = "os-default")]
    pub place: String,
    /// File for standard input of the command [default: none]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Standard output and error of the command: `discard` or `inherit`
    #[arg(long, value_name = "WHERE", default_value = "discard")]
    pub output: String,
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Label the record
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    pub tags: Vec<String>,
}

impl SamplingArgs {
    /// Files that it reads.
    pub(in crate::cli) fn inputs(&self) -> Vec<NamedFile<'_>> {
        let input = self.input.iter();
        let option = "--input";
        input.map(|path| NamedFile { option, path }).collect()
    }
}

/// What makes samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventChoice {
    /// Core cycles, counted by the CPU.
    Cycles,
    /// The kernel's clock of CPU time.
    CpuClock,
    /// CPU time from `/proc` only.
    Proc,
}

impl From<EventChoice> for Event {
    fn from(choice: EventChoice) -> Self {
        match choice {
            EventChoice::Cycles => Self::Cycles,
            EventChoice::CpuClock => Self::CpuClock,
            EventChoice::Proc => Self::Proc,
        }
    }
}
