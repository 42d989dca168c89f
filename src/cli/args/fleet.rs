//! `pinwise fleet`: the same studies on many machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::values::{
    parse_count, parse_duration, parse_margin, parse_share, parse_tag, parse_whole,
};

/// `pinwise fleet`
#[derive(Debug, Args)]
pub struct FleetArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: FleetAction,
}

/// What `pinwise fleet` does.
#[derive(Debug, Subcommand)]
pub enum FleetAction {
    /// Submit studies to the nodes of a cluster
    Submit(FleetSubmitArgs),
    /// Show the state of each node
    Status(FleetStatusArgs),
    /// Collect the nodes' results into the store
    Collect(FleetCollectArgs),
    /// Submit again only what is missing
    Resume(FleetResumeArgs),
    /// Cancel a fleet's jobs; finished records stay
    Cancel(FleetCancelArgs),
    /// Show which nodes differ from their peers, and why
    Report(FleetReportArgs),
    /// Compare two fleets, or two groups of machines
    Diff(FleetDiffArgs),
    /// Store the records of a simulated fleet with known faults
    Simulate(FleetSimulateArgs),
    /// The command that runs on a node
    #[command(hide = true)]
    Node(FleetNodeArgs),
}

/// `pinwise fleet submit`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet submit --partition all study.toml
  pinwise fleet submit --nodes 16 --array --time 30m study.toml
  pinwise fleet submit --nodelist 'n[1-4]' --dry-run study.toml
  pinwise fleet submit --launcher ssh --nodelist a,b study.toml

A study file names what every node runs:

  [[step]]
  name = \"wiring\"
  run = [\"topology\", \"--measure\"]

Then: pinwise fleet status, pinwise fleet collect, pinwise fleet report.")]
pub struct FleetSubmitArgs {
    /// Number of nodes; the scheduler chooses which
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub nodes: Option<usize>,
    /// These nodes, in Slurm's notation: a,b,n[1-4]
    #[arg(long, value_name = "LIST", conflicts_with = "nodes")]
    pub nodelist: Option<String>,
    /// Nodes of this partition; all of them without --nodes
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Nodes with these features, in Slurm's notation
    #[arg(long, value_name = "FEATURES")]
    pub constraint: Option<String>,
    /// Submit an array job, whose tasks start as nodes become free, instead of one
    /// job that waits for all
    #[arg(long, requires = "nodes")]
    pub array: bool,
    /// Time limit of a node's job
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,
    /// Account to charge
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// How to start the nodes: slurm, ssh, pbs, kubernetes, local, or a template
    /// file
    #[arg(long, value_name = "LAUNCHER", default_value = "slurm")]
    pub launcher: String,
    /// The fleet's folder, shared by this host and the nodes
    /// [default: pinwise-fleet/ID here]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Let a group that you are a member of read the results; without it nobody
    /// else can enter the folder
    #[arg(long, value_name = "GROUP")]
    pub share_with: Option<String>,
    /// The fleet's id [default: made from the time]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Label all records
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    pub tags: Vec<String>,
    /// Print what would be submitted; submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Study files
    #[arg(required = true, value_name = "STUDY")]
    pub studies: Vec<PathBuf>,
}

/// `pinwise fleet status`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet status
  pinwise fleet status nightly
  pinwise fleet status pinwise-fleet/nightly --format json

A node is queued, running, done, failed or missing, according to the folder and
the scheduler.")]
pub struct FleetStatusArgs {
    /// The fleet: an id or its prefix, `last` (your newest), or its folder
    #[arg(value_name = "FLEET", default_value = "last")]
    pub fleet: String,
}

/// `pinwise fleet collect`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet collect
  pinwise fleet collect pinwise-fleet/nightly

Run it at any time, and repeatedly: records that are in the store are skipped.")]
pub struct FleetCollectArgs {
    /// The fleet: an id or its prefix, `last` (your newest), or its folder
    #[arg(value_name = "FLEET", default_value = "last")]
    pub fleet: String,
}

/// `pinwise fleet resume`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet resume
  pinwise fleet resume nightly --dry-run

Nodes that are queued or running are left alone, and so are steps that have a
record.")]
pub struct FleetResumeArgs {
    /// The fleet: an id or its prefix, `last` (your newest), or its folder
    #[arg(value_name = "FLEET", default_value = "last")]
    pub fleet: String,
    /// Print what would be submitted; submit nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `pinwise fleet cancel`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet cancel nightly")]
pub struct FleetCancelArgs {
    /// The fleet: an id or its prefix, `last` (your newest), or its folder
    #[arg(value_name = "FLEET", default_value = "last")]
    pub fleet: String,
}

/// `pinwise fleet report`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet report
  pinwise fleet report night --fail-on outlier --fail-on missing
  pinwise fleet report night -o night.html

Nodes are compared with those of the same hardware, and of the same software
versions if at least twenty nodes have them. In groups of fewer than six nodes,
only settings are compared, not measurements.")]
pub struct FleetReportArgs {
    /// The fleet: an id or its prefix, `last` (your newest), or its folder
    #[arg(value_name = "FLEET", default_value = "last")]
    pub fleet: String,
    /// Expected share of false alarms among the reported nodes
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "5%")]
    pub false_discoveries: f64,
    /// Exit with status 1 on an outlier, or on a missing node or step
    #[arg(long, value_name = "WHAT", value_enum)]
    pub fail_on: Vec<FleetFailure>,
    /// Write a self-contained HTML page
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What makes a gate fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FleetFailure {
    /// A node differs from its peers.
    Outlier,
    /// A node has no record, or lacks a step.
    Missing,
}

/// `pinwise fleet diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet diff old new
  pinwise fleet diff night/1 night/2
  pinwise fleet diff 'night/AMD EPYC' 'night/Intel'

Ratios are B over A. Without GROUP, the fleet's largest group is used.")]
pub struct FleetDiffArgs {
    /// A fleet, or FLEET/GROUP with a group's name, its prefix, or its number
    /// from 1
    #[arg(value_name = "A")]
    pub a: String,
    /// The fleet or group to compare with A
    #[arg(value_name = "B")]
    pub b: String,
}

/// `pinwise fleet simulate`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise fleet simulate --nodes 1000 --seed 7
  pinwise fleet simulate --nodes 64 --seed 1 --noise 5% --faults 10%
  pinwise fleet simulate --nodes 16 --seed 1 --faults 0 --id sound

Then: pinwise fleet report. The planted faults are printed, and stored in the
fleet's record; the report does not use them.")]
pub struct FleetSimulateArgs {
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub nodes: usize,
    /// Seed for the simulation
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: u64,
    /// Measurement noise
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "3%")]
    pub noise: f64,
    /// Share of nodes with a fault
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "3%")]
    pub faults: f64,
    /// The fleet's id [default: made from nodes and seed]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// `pinwise fleet node`
#[derive(Debug, Args)]
pub struct FleetNodeArgs {
    /// The fleet's folder
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The node's name in the scheduler [default: the host's]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// The job that this belongs to
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// The user id that submitted the fleet, if the node runs as another user
    #[arg(long, value_name = "NUMBER")]
    pub owner: Option<u32>,
    /// Wait until no other node of the fleet runs on this host
    #[arg(long)]
    pub turn: bool,
}
