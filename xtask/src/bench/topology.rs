//! How long it takes to read the machine.

use std::process::Command;

use anyhow::Result;

use super::Setting;
use super::process::{measure, median};
use crate::programs::{find, find_or_install};

const ROUNDS: usize = 150;

pub(super) fn run(setting: &Setting) -> Result<String> {
    let lstopo = find_or_install("lstopo-no-graphics", "hwloc-nox")?;
    let mut tools: Vec<(&str, Command)> = vec![
        ("an empty process (true)", Command::new("true")),
        ("pinwise --version", Command::new(&setting.pinwise)),
        (
            "pinwise topology, with devices",
            Command::new(&setting.pinwise),
        ),
        ("lstopo, with devices", Command::new(&lstopo)),
        ("lstopo --no-io", Command::new(lstopo)),
    ];
    tools[1].1.arg("--version");
    tools[2].1.arg("topology");
    tools[3].1.arg("--whole-io");
    tools[4].1.arg("--no-io");
    if let Some(lscpu) = find("lscpu") {
        tools.push(("lscpu", Command::new(lscpu)));
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); tools.len()];
    for round in 0..ROUNDS {
        for step in 0..tools.len() {
            let tool = (round + step) % tools.len();
            let taken = measure(&mut tools[tool].1)?;
            times[tool].push(1e3 * taken.wall.as_secs_f64());
        }
    }
    let rows: String = tools
        .iter()
        .zip(&times)
        .map(|((name, _), own)| {
            let beyond = own.iter().zip(&times[0]).map(|(a, b)| a - b).collect();
            format!(
                "| {name} | {:.2} | {:.2} |\n",
                median(own.clone()),
                median(beyond)
            )
        })
        .collect();
    Ok(format!(
        "## Reading the topology

Milliseconds from start to end, medians of {ROUNDS} rounds in turn.

| | ms | beyond an empty process |
|---|---|---|
{rows}"
    ))
}
