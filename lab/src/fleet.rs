//! Simulated fleets: whether the nodes with planted faults are named and no others, and the cost of
//! the report of ten thousand nodes; beside it a script with common rules of burn-in scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Setting;
use crate::process::{measure, read_record};
use crate::rounds::{median, ratios, take_turns};
use crate::table::Table;
use xtask::programs::root;

/// Nodes, percentage of them with a fault, fleets.
const FLEETS: [(usize, f64, u64); 11] = [
    (16, 0.0, 40),
    (16, 6.25, 40),
    (64, 5.0, 30),
    (250, 0.0, 20),
    (250, 3.0, 20),
    (1000, 0.0, 10),
    (1000, 1.0, 10),
    (1000, 3.0, 20),
    (1000, 10.0, 10),
    (10_000, 0.0, 2),
    (10_000, 3.0, 3),
];
/// Fleets of at least this many nodes count for the table by fault.
const LARGE: usize = 250;
/// Nodes of the fleet whose costs are measured, and rounds.
const COST_NODES: usize = 10_000;
const ROUNDS: usize = 3;

/// The rules by which nodes are named.
const RULES: [&str; 3] = ["pinwise", "modified z", "3 sigma"];

/// The result of one rule on one fleet.
#[derive(Debug, Clone, Copy)]
struct FleetOutcome {
    named: usize,
    found: usize,
    planted: usize,
}

impl FleetOutcome {
    fn false_share(self) -> f64 {
        if self.named == 0 {
            return 0.0;
        }
        (self.named - self.found) as f64 / self.named as f64
    }
}

/// By rule and fault: found and planted.
type ByFault = BTreeMap<String, [(usize, usize); RULES.len()]>;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let script = root().join("lab/programs/fleet.py");
    let mut by_fault = ByFault::new();
    let mut table = Table::new(
        "fleet-faults",
        "nodes | faults | fleets | found | false | modified z: found | false | 3 sigma: found | \
         false",
    );
    for (nodes, faults, fleets) in FLEETS {
        let mut outcomes: [Vec<FleetOutcome>; RULES.len()] = Default::default();
        for seed in 1..=fleets {
            let fleet = Fleet::simulate(setting, nodes, faults, seed)?;
            let named = [
                vec![fleet.outliers_of_pinwise(setting)?],
                fleet.outliers_of_script(&script)?,
            ]
            .concat();
            for (rule, named) in named.iter().enumerate() {
                outcomes[rule].push(fleet.score(named));
                if nodes >= LARGE {
                    fleet.count_by_fault(rule, named, &mut by_fault);
                }
            }
        }
        table.add_row(format_row(nodes, faults, &outcomes));
    }
    table.publish()?;
    publish_faults(&by_fault)?;
    publish_cost(setting, &script)
}

fn format_row(nodes: usize, faults: f64, outcomes: &[Vec<FleetOutcome>; RULES.len()]) -> String {
    let mut text = format!("{nodes} | {faults} % | {}", outcomes[0].len());
    for outcomes in outcomes {
        let sum = |of: fn(&FleetOutcome) -> usize| outcomes.iter().map(of).sum::<usize>() as f64;
        let planted = sum(|o| o.planted);
        if planted == 0.0 {
            let mean = sum(|o| o.named) / outcomes.len() as f64;
            text += &format!(" | – | {mean:.2} nodes");
            continue;
        }
        let shares: Vec<f64> = outcomes.iter().map(|o| o.false_share()).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let worst = shares.iter().copied().fold(0.0, f64::max);
        text += &format!(
            " | {:.1} % | {:.1} % ({:.1})",
            100.0 * sum(|o| o.found) / planted,
            100.0 * mean,
            100.0 * worst
        );
    }
    text
}

fn publish_faults(by_fault: &ByFault) -> Result<()> {
    let mut table = Table::new(
        "fleet-by-fault",
        "fault | planted | found | modified z | 3 sigma",
    );
    for (fault, counts) in by_fault {
        let shares = counts
            .map(|(found, planted)| format!("{:.1} %", 100.0 * found as f64 / planted as f64));
        table.add_row(format!(
            "{fault} | {} | {}",
            counts[0].1,
            shares.join(" | ")
        ));
    }
    table.publish()
}

/// A fleet in a store of its own.
struct Fleet {
    folder: tempfile::TempDir,
    id: String,
    /// Faults by node.
    planted: BTreeMap<String, String>,
}

impl Fleet {
    fn simulate(setting: &Setting, nodes: usize, faults: f64, seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir_in(setting.folder.path())?;
        let mut fleet = Self {
            folder,
            id: String::new(),
            planted: BTreeMap::new(),
        };
        let mut command = fleet.pinwise_command(setting);
        command.args(simulate_arguments(nodes, faults, seed));
        let record = read_record(&mut command)?;
        fleet.id = to_text(&record["fleet"])?;
        for planted in record["planted"].as_array().context("planted")? {
            let fault = to_text(&planted["fault"])?;
            fleet.planted.insert(to_text(&planted["node"])?, fault);
        }
        Ok(fleet)
    }

    fn store_path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn pinwise_command(&self, setting: &Setting) -> Command {
        let mut command = Command::new(&setting.pinwise);
        command
            .args([
                "--store",
                &format!("sqlite:{}", self.store_path().display()),
            ])
            .args(["--format", "json"]);
        command
    }

    fn report_command(&self, setting: &Setting) -> Command {
        let mut command = self.pinwise_command(setting);
        command.args(["fleet", "report", &self.id]);
        command
    }

    fn script_command(&self, script: &Path) -> Command {
        let mut command = Command::new("python3");
        command.arg(script).arg(self.store_path()).arg(&self.id);
        command
    }

    /// The nodes that pinwise names.
    fn outliers_of_pinwise(&self, setting: &Setting) -> Result<BTreeSet<String>> {
        let record = read_record(&mut self.report_command(setting))?;
        let outliers = record["outliers"].as_array().context("outliers")?;
        outliers
            .iter()
            .map(|outlier| to_text(&outlier["node"]))
            .collect()
    }

    /// Outliers of the script, by either rule.
    fn outliers_of_script(&self, script: &Path) -> Result<Vec<BTreeSet<String>>> {
        let record = read_record(&mut self.script_command(script))?;
        let rules = ["modified_z", "three_sigma"];
        rules
            .into_iter()
            .map(|rule| {
                let nodes = record[rule].as_array().context("a rule's nodes")?;
                nodes.iter().map(to_text).collect()
            })
            .collect()
    }

    fn score(&self, named: &BTreeSet<String>) -> FleetOutcome {
        let found = named.iter().filter(|node| self.planted.contains_key(*node));
        FleetOutcome {
            named: named.len(),
            found: found.count(),
            planted: self.planted.len(),
        }
    }

    fn count_by_fault(&self, rule: usize, named: &BTreeSet<String>, by_fault: &mut ByFault) {
        for (node, fault) in &self.planted {
            let counts = &mut by_fault.entry(fault.clone()).or_default()[rule];
            counts.0 += usize::from(named.contains(node));
            counts.1 += 1;
        }
    }
}

fn simulate_arguments(nodes: usize, faults: f64, seed: u64) -> Vec<String> {
    let arguments = format!("fleet simulate --nodes {nodes} --seed {seed} --faults {faults}%");
    arguments.split(' ').map(str::to_owned).collect()
}

fn to_text(value: &Value) -> Result<String> {
    let text = value.as_str().context("a text is missing")?;
    Ok(text.to_owned())
}

/// Time and memory, pinwise and the script taking turns.
fn publish_cost(setting: &Setting, script: &Path) -> Result<()> {
    let fleet = Fleet::simulate(setting, COST_NODES, 3.0, 77)?;
    let megabytes = std::fs::metadata(fleet.store_path())?.len() as f64 / 1e6;
    println!("\n{COST_NODES} nodes, a store of {megabytes:.0} MB:");
    let names = ["`fleet simulate`", "`fleet report`", "the script (Python)"];
    let times = take_turns(ROUNDS, names.len(), |at| match at {
        0 => {
            let fresh = tempfile::tempdir_in(setting.folder.path())?;
            let store = fresh.path().join("store.db");
            let mut simulate = Command::new(&setting.pinwise);
            simulate
                .args(["--store", &format!("sqlite:{}", store.display())])
                .args(simulate_arguments(COST_NODES, 3.0, 77));
            measure(&mut simulate)
        }
        1 => measure(&mut fleet.report_command(setting)),
        _ => measure(&mut fleet.script_command(script)),
    })?;
    let seconds = |at: usize| -> Vec<f64> {
        let times = times[at].iter();
        times.map(|times| times.wall.as_secs_f64()).collect()
    };
    let mut table = Table::new("fleet-cost", "what | s | peak MB | over the script");
    for (at, name) in names.iter().enumerate() {
        let own = seconds(at);
        let peaks = times[at].iter().map(|times| times.peak_bytes as f64 / 1e6);
        table.add_row(format!(
            "{name} | {:.2} | {:.0} | {:.2}",
            median(&own),
            median(&peaks.collect::<Vec<f64>>()),
            median(&ratios(&own, &seconds(2))),
        ));
    }
    table.publish()
}
