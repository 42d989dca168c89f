//! The number of pairs with which gates find a small slow-down, by CPU and wall-clock time and by
//! wall-clock time alone.

use anyhow::Result;

use crate::Setting;
use crate::gates::{NOISES, run_gate, write_simulated};
use crate::process::Group;
use crate::table::Table;

/// Replayed gates per cell.
const REPLAYS: u64 = 100;
/// The planted slow-down.
const SMALL_PERCENT: usize = 2;
/// Maximum number of pairs of such a gate, replayed and live, and live gates per cell.
const MAX_PAIRS: usize = 400;
const MAX_LIVE_PAIRS: usize = 80;
const LIVE_POWER: u64 = 20;
/// Steps of the live benchmark's loop, about 50 ms.
const STEPS: usize = 30_000;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new(
        "gate-power",
        "noise | pairs | found | pairs, wall alone | found, wall alone | ratio | false alarm",
    );
    for (series, name) in NOISES {
        let cell = |is_planted: bool, metric: &str| -> Result<Power> {
            let gates = (0..REPLAYS).map(|seed| {
                let percent = if is_planted { SMALL_PERCENT } else { 0 };
                count_replayed_pairs(setting, series, percent, metric, seed)
            });
            Ok(Power(gates.collect::<Result<_>>()?))
        };
        let name = format!("{name} (`{series}`)");
        table.add_row(format_row(&name, MAX_PAIRS, cell)?);
    }
    for (busy, name) in ["nothing else", "one busy process", "two busy processes"]
        .into_iter()
        .enumerate()
    {
        let cell = |is_planted: bool, metric: &str| -> Result<Power> {
            let gates = (0..LIVE_POWER).map(|seed| {
                let others = Group::start_busy(busy)?;
                let percent = if is_planted { SMALL_PERCENT } else { 0 };
                let pairs = count_live_pairs(setting, percent, metric, seed);
                drop(others);
                pairs
            });
            Ok(Power(gates.collect::<Result<_>>()?))
        };
        let name = format!("this machine, {name}");
        table.add_row(format_row(&name, MAX_LIVE_PAIRS, cell)?);
    }
    table.publish()
}

/// The pairs after which each gate found its benchmark slower; `None` if it did not.
struct Power(Vec<Option<usize>>);

impl Power {
    fn percent_found(&self) -> f64 {
        let found = self.0.iter().flatten().count();
        100.0 * found as f64 / self.0.len() as f64
    }

    /// The number of pairs that is enough for 80 % of the gates.
    fn pairs_to_find(&self) -> Option<usize> {
        let mut sorted: Vec<usize> = self.0.iter().map(|p| p.unwrap_or(usize::MAX)).collect();
        sorted.sort_unstable();
        let enough = sorted[(sorted.len() * 4).div_ceil(5) - 1];
        (enough < usize::MAX).then_some(enough)
    }
}

fn format_row(
    name: &str,
    max_pairs: usize,
    cell: impl Fn(bool, &str) -> Result<Power>,
) -> Result<String> {
    let (both, wall) = (cell(true, "")?, cell(true, "metric = \"wall\"\n")?);
    let same = cell(false, "")?;
    let format_pairs = |power: &Power| match power.pairs_to_find() {
        Some(pairs) => pairs.to_string(),
        None => format!("> {max_pairs}"),
    };
    let ratio = match (both.pairs_to_find(), wall.pairs_to_find()) {
        (Some(both), Some(wall)) => format!("{:.2}", both as f64 / wall as f64),
        (Some(both), None) => format!("< {:.2}", both as f64 / max_pairs as f64),
        _ => "–".to_owned(),
    };
    Ok(format!(
        "{name} | {} | {:.0} % | {} | {:.0} % | {ratio} | {:.0} %",
        format_pairs(&both),
        both.percent_found(),
        format_pairs(&wall),
        wall.percent_found(),
        same.percent_found()
    ))
}

fn count_replayed_pairs(
    setting: &Setting,
    series: &str,
    percent: usize,
    metric: &str,
    seed: u64,
) -> Result<Option<usize>> {
    let machine = write_simulated(setting, series, percent)?;
    let suite = format!("[[benchmark]]\nname = \"planted\"\nrun = \"planted\"\n{metric}");
    let arguments = ["--machine", &machine];
    count_pairs(setting, &suite, &arguments, MAX_PAIRS, seed)
}

/// A loop of the shell, which the head repeats a little more often.
fn count_live_pairs(
    setting: &Setting,
    percent: usize,
    metric: &str,
    seed: u64,
) -> Result<Option<usize>> {
    for (build, percent) in [("base", 0), ("head", percent)] {
        let there = setting.folder.path().join(build);
        std::fs::create_dir_all(&there)?;
        let steps = STEPS + STEPS * percent / 100;
        let script = format!("i=0; while [ $i -lt {steps} ]; do i=$((i + 1)); done\n");
        std::fs::write(there.join("loop.sh"), script)?;
    }
    let suite = format!("[[benchmark]]\nname = \"loop\"\nrun = \"sh loop.sh\"\n{metric}");
    count_pairs(setting, &suite, &[], MAX_LIVE_PAIRS, seed)
}

fn count_pairs(
    setting: &Setting,
    suite: &str,
    arguments: &[&str],
    max_pairs: usize,
    seed: u64,
) -> Result<Option<usize>> {
    let folder = setting.folder.path();
    std::fs::write(folder.join("gate.suite.toml"), suite)?;
    let max_pairs = max_pairs.to_string();
    let arguments = [arguments, &["--max-pairs", &max_pairs]].concat();
    let record = run_gate(setting, folder, "head", &arguments, seed)?;
    let benchmark = &record["benchmarks"][0];
    let pairs = benchmark["pairs"].as_array().map_or(0, Vec::len);
    Ok((benchmark["outcome"] == "slower").then_some(pairs))
}
