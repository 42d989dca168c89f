//! The cost of a record of 10,000 runs.

use std::process::Command;

use anyhow::Result;

use crate::Setting;
use crate::process::measure;
use crate::rounds::median;
use crate::table::Table;

const ROUNDS: usize = 9;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let store = format!("sqlite:{}", setting.folder.path().join("many.db").display());
    let compare = |store: &str| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--machine", "sim:core:2 pu:1", "--store", store, "compare"]);
        command.args(["--place", "os-default", "--place", "cpu:0", "--warmup", "0"]);
        command.args(["--max-runs", "5000", "--precision", "0.0001%", "--", "prog"]);
        command
    };
    let show = || {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--store", &store, "record", "show", "last"]);
        command
    };
    measure(&mut compare(&store))?;
    let mut table = Table::new("record", "what | ms | peak MB");
    for (name, mut command) in [
        ("simulate, analyse at every look, print", compare("none")),
        ("the same, and store every run", compare(&store)),
        ("`pinwise record show` of the record", show()),
    ] {
        let runs = (0..ROUNDS)
            .map(|_| measure(&mut command))
            .collect::<Result<Vec<_>>>()?;
        let walls: Vec<f64> = runs
            .iter()
            .map(|runs| 1e3 * runs.wall.as_secs_f64())
            .collect();
        let peak = runs.iter().map(|t| t.peak_bytes).max().unwrap_or(0);
        table.add_row(format!(
            "{name} | {:.0} | {:.0}",
            median(&walls),
            peak as f64 / 1e6
        ));
    }
    table.publish()
}
