//! Arguments of `pinwise topology`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::values::{parse_duration, parse_whole};

/// `pinwise topology`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  pinwise topology
  pinwise topology --measure
  pinwise topology --measure --watch 3m --format json
  pinwise topology --explain one-per-core
  pinwise topology --machine sim:node.toml --explain near:gpu1
  pinwise topology --placements
  pinwise topology --from machine.xml --format json
  pinwise --machine 'sim:package:2 l3:2 core:4 pu:2' topology

`pinwise record report last` writes a page that draws the measured wiring.

Placements:
  os-default                       all allowed CPUs, left to the scheduler
  compact                          adjacent CPUs, the siblings of a core first
  balanced                         neighbouring cores, each used once first
  spread                           CPUs as far apart as possible
  one-per-core, -llc, -numa        one CPU of each
  one-core, -llc, -numa, -package  the CPUs of one unit; :INDEX chooses it
  p-cores, e-cores                 the fastest, the slowest kind of core
  best-core                        the core that the firmware calls fastest
  largest-llc                      the CPUs of the largest last-level cache
  isolated                         the CPUs that the kernel isolates
  cpu:LIST, mask:HEX               these CPUs
  near:DEVICE, far:DEVICE          gpu0, eth0, nvme0n1 or pci:0000:41:00.0
  shape:pkg=1,llc=2,core=8,smt=1   that many units; cpu=12: CPUs, spread evenly
  tree:2l.4c.1t                    2 LLCs of 4 cores, 1 CPU per core; 2l: whole
isolated, cpu: and mask: may leave the caller's affinity mask, as taskset does.
Suffixes: *N (use N CPUs), /bound (one CPU per thread), /near:DEVICE,
/mem=POLICY (local; bind, interleave, weighted, preferred; bind:0 with nodes)."
)]
pub struct TopologyArgs {
    /// Other uses.
    #[command(subcommand)]
    pub action: Option<TopologyAction>,
    /// Measure how the CPUs are really wired, and report where the system's
    /// information is wrong
    #[arg(long, conflicts_with_all = ["from", "explain", "save"])]
    pub measure: bool,
    /// Time for measuring, such as 500ms, 10s [default: 10 s plus 0.1 s per CPU,
    /// at most a minute]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "measure")]
    pub budget: Option<Duration>,
    /// Afterwards, re-measure a few pairs for this long and report how often the
    /// wiring changes
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "measure")]
    pub watch: Option<Duration>,
    /// Exit with 1 if the reported wiring is contradicted, 3 if that is inconclusive
    #[arg(long, requires = "measure")]
    pub check: bool,
    /// Measure only pairs of CPUs; no caches, memory or costs
    #[arg(long, requires = "measure")]
    pub wiring_only: bool,
    /// Seed for the pairs that are measured twice as a check [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>, requires = "measure")]
    pub seed: Option<u64>,
    /// Read a machine from hwloc XML, a folder with its sys and proc, or a file
    /// written by --save
    #[arg(long, value_name = "PATH")]
    pub from: Option<PathBuf>,
    /// Show what a placement means here and what other tools call it
    #[arg(long, value_name = "PLACEMENT")]
    pub explain: Option<String>,
    /// Count the ways to place this many threads and list those that spread them evenly
    /// [default: for several thread counts]
    #[arg(long, value_name = "THREADS", num_args = 0..=1, value_parser = parse_whole::<usize>,
          conflicts_with_all = ["measure", "explain", "save"])]
    pub placements: Option<Option<usize>>,
    /// Save this machine's topology to a file for --from
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "explain"])]
    pub save: Option<PathBuf>,
}

/// Other uses of `pinwise topology`.
#[derive(Debug, Subcommand)]
pub enum TopologyAction {
    /// Infer the wiring from a recorded latency matrix
    #[command(after_help = "Examples:
  pinwise topology infer matrix.csv
  pinwise topology infer matrix.csv --format json

The file is a square or lower-triangle CSV without header, one row per CPU, in
nanoseconds; cells on the diagonal are ignored and may be empty.")]
    Infer {
        /// The matrix
        file: PathBuf,
    },
    /// Show what differs between two machines, or one machine at two times
    #[command(after_help = "Examples:
  pinwise topology --save before.capture
  pinwise topology diff before.capture after.capture

Takes the same files as --from, and JSON written by `topology --format json`.")]
    Diff {
        /// The first machine
        a: PathBuf,
        /// The second machine
        b: PathBuf,
    },
}
