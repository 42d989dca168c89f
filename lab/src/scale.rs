//! The probe time and the correctness of a measured wiring on simulated machines of up to 1,024 CPUs.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Setting;
use crate::process::read_record;
use crate::table::Table;

/// Name, topology, and the factor of latencies while several pairs are measured at once.
const MACHINES: [(&str, &str, f64); 6] = [
    ("16 CPUs", "package:1 l3:2(size=32MB) core:4 pu:2", 1.0),
    (
        "16 CPUs, pairs disturb each other",
        "package:1 l3:2(size=32MB) core:4 pu:2",
        1.4,
    ),
    (
        "64 CPUs, pairs disturb each other",
        "package:2 [numa(memory=64GB)] l3:4(size=32MB) core:4 pu:2",
        1.4,
    ),
    (
        "192 CPUs",
        "package:2 [numa(memory=64GB)] l3:8(size=32MB) core:6 pu:2",
        1.0,
    ),
    (
        "192 CPUs, pairs disturb each other",
        "package:2 [numa(memory=64GB)] l3:8(size=32MB) core:6 pu:2",
        1.4,
    ),
    (
        "1,024 CPUs",
        "package:4 [numa(memory=64GB)] l3:16(size=32MB) core:8 pu:2",
        1.0,
    ),
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new(
        "wiring-scale",
        "machine | probe time | pairs measured | skipped | checked | wrong | at once | levels",
    );
    for (name, topology, disturbance) in MACHINES {
        let file = setting.folder.path().join("machine.toml");
        let text =
            format!("topology = \"{topology}\"\n[wiring]\nparallel_disturbance = {disturbance}\n");
        std::fs::write(&file, text)?;
        let mut command = Command::new(&setting.pinwise);
        command
            .args(["topology", "--measure", "--wiring-only", "--store", "none"])
            .args(["--format", "json", "--seed", "1", "--machine"])
            .arg(format!("sim:{}", file.display()));
        let record = read_record(&mut command)?;
        let row = format_row(name, &record);
        table.add_row(row.with_context(|| format!("{name}: the record has changed"))?);
    }
    table.publish()
}

fn format_row(name: &str, record: &Value) -> Option<String> {
    let effort = &record["measured"]["effort"];
    let number = |key: &str| effort[key].as_u64();
    let verdicts = record["measured"]["verdicts"].as_array()?;
    let agreed = verdicts
        .iter()
        .filter(|v| ["smt", "llc", "package"].iter().any(|l| v["level"] == *l))
        .filter(|v| v["verdict"] == "agrees")
        .count();
    Some(format!(
        "{name} | {:.2} s | {} | {} | {} | {} | {} | {agreed} of 3 right",
        effort["spent_s"].as_f64()?,
        number("pairs_measured")?,
        number("pairs_skipped")?,
        number("pairs_verified")?,
        number("pairs_disagreed")?,
        number("parallel_pairs")?,
    ))
}
