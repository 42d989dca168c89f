//! The time to read the machine.

use std::process::Command;

use anyhow::Result;

use crate::Setting;
use crate::process::measure;
use crate::rounds::{median, take_turns};
use crate::table::Table;
use xtask::programs::{find, find_or_install};

const ROUNDS: usize = 150;

pub(crate) fn run(setting: &Setting) -> Result<()> {
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
    let times = take_turns(ROUNDS, tools.len(), |tool| {
        Ok(1e3 * measure(&mut tools[tool].1)?.wall.as_secs_f64())
    })?;
    let mut table = Table::new("topology", "tool | ms | beyond an empty process");
    for ((name, _), own) in tools.iter().zip(&times) {
        let beyond: Vec<f64> = own.iter().zip(&times[0]).map(|(a, b)| a - b).collect();
        table.add_row(format!(
            "{name} | {:.2} | {:.2}",
            median(own),
            median(&beyond)
        ));
    }
    table.publish()
}
