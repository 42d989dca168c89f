//! Error rates, coverage and power of the whole procedure, replayed through
//! the simulated machine with known truth.
//!
//! `cargo bench --bench method [REPLAYS] [FILTER]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinwise::machine::Machine;
use pinwise::machine::sim::SimulatedMachine;
use pinwise::placement::Placement;
use pinwise::stats::confirm::Score;
use pinwise::study::compare::{self, Plan, Tuning, Unwatched};
use pinwise::workload::Command;

/// A cell of the table: identical or different arms on one series.
struct Cell {
    noise: String,
    arms: usize,
    /// True ratio of the last arm to the others.
    effect: f64,
    max_runs: usize,
    score: Score,
}

#[derive(Default)]
struct Tally {
    replays: usize,
    claims: usize,
    right: usize,
    wrong_direction: usize,
    covered: usize,
    contrasts: usize,
    best_found: usize,
    runs: usize,
    same: usize,
}

fn describe(folder: &Path, cell: &Cell) -> PathBuf {
    let path = folder.join("machine.toml");
    let cpu = cell.arms - 2;
    let text = format!(
        "topology = \"core:{} pu:1\"\n[workload.default]\nbase_s = 0.066\n[effects]\n\"cpu:{cpu}\" = {}\n[noise]\n{}\n",
        cell.arms.max(2) - 1 + usize::from(cell.arms == 2),
        cell.effect,
        cell.noise
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn plan(machine: &mut SimulatedMachine, cell: &Cell, seed: u64) -> Plan {
    let (topology, _) = machine.topology().unwrap();
    let names = std::iter::once("os-default".to_owned())
        .chain((0..cell.arms - 1).map(|c| format!("cpu:{c}")));
    let placements: Vec<Placement> = names.map(|name| name.parse().unwrap()).collect();
    let command = Command::from_line("x").unwrap();
    Plan {
        tuning: Tuning {
            budget: None,
            max_runs: Some(cell.max_runs),
            score: cell.score,
            ..Tuning::default()
        },
        seed,
        ..Plan::of_placements(command, &topology, &placements).unwrap()
    }
}

fn measure(cell: &Cell, replays: usize) -> Tally {
    let folder = tempfile::tempdir().unwrap();
    let path = describe(folder.path(), cell);
    let mut tally = Tally::default();
    for seed in 0..replays as u64 {
        let mut machine = SimulatedMachine::open(path.to_str().unwrap(), seed).unwrap();
        let plan = plan(&mut machine, cell, seed);
        let record = compare::run(&plan, &mut machine, &mut Unwatched).unwrap();
        let affected = format!("cpu:{}", cell.arms - 2);
        let mut claimed_false = false;
        let mut wrong = false;
        for contrast in &record.contrasts {
            let truth = if contrast.arm == affected {
                cell.effect
            } else {
                1.0
            };
            tally.contrasts += 1;
            let low = contrast.low.unwrap_or(0.0);
            let high = contrast.high.unwrap_or(f64::INFINITY);
            tally.covered += usize::from(low <= truth && truth <= high);
            let faster = contrast.verdict == "faster";
            let slower = contrast.verdict == "slower";
            if truth == 1.0 {
                claimed_false |= faster || slower;
            } else {
                let right = (truth < 1.0 && faster) || (truth > 1.0 && slower);
                tally.right += usize::from(right);
                wrong |= (faster || slower) && !right;
            }
            tally.same += usize::from(contrast.verdict == "same");
        }
        tally.claims += usize::from(claimed_false);
        tally.wrong_direction += usize::from(wrong);
        tally.best_found += usize::from(record.best.as_deref() == Some(&affected));
        tally.runs += record.arms.iter().map(|a| a.runs.len()).sum::<usize>();
        tally.replays += 1;
    }
    tally
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let replays: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(400);
    let filter = args.next().unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/series");
    let extra = std::env::var("EXTRA").unwrap_or_default();
    let mut noises: Vec<(String, String)> = Vec::new();
    for name in ["aa_cpu2", "aa_bg", "aa_cpu1", "aa_mem1"] {
        noises.push((
            name.into(),
            format!("series = \"{}/{name}.csv.xz\"", folder.display()),
        ));
    }
    for path in extra.split(',').filter(|p| !p.is_empty()) {
        noises.push((
            path.rsplit('/').next().unwrap().into(),
            format!("series = \"{path}\""),
        ));
    }
    noises.push(("iid1.75".into(), "kind = \"lognormal\"\nsd = 0.0175".into()));
    let started = std::time::Instant::now();
    println!(
        "{:10} {:5} {:6} {:5} {:8} | false  right  wrong  cover  best   same  runs",
        "series", "arms", "effect", "max", "score"
    );
    for (name, noise) in &noises {
        for (arms, effect, max_runs) in [
            (2, 1.0, 40),
            (2, 1.0, 130),
            (5, 1.0, 20),
            (20, 1.0, 24),
            (2, 1.02, 20),
            (2, 1.02, 40),
            (2, 1.02, 130),
            (2, 1.05, 40),
            (5, 0.98, 40),
            (64, 0.95, 15),
        ] {
            for score in [Score::Weighted, Score::Rank] {
                let label = format!("{name} {arms} {effect} {max_runs} {score:?}");
                if !filter.split('+').all(|f| label.contains(f)) {
                    continue;
                }
                let cell = Cell {
                    noise: noise.clone(),
                    arms,
                    effect,
                    max_runs,
                    score,
                };
                let n = if arms > 10 { replays / 4 } else { replays };
                let t = measure(&cell, n);
                let share = |x: usize| x as f64 / t.replays as f64;
                println!(
                    "{name:10} {arms:5} {effect:6} {max_runs:5} {score:8?} | {:.3}  {:.3}  {:.3}  {:.3}  {:.3}  {:.3} {:6.1}",
                    share(t.claims),
                    share(t.right),
                    share(t.wrong_direction),
                    t.covered as f64 / t.contrasts.max(1) as f64,
                    share(t.best_found),
                    share(t.same),
                    share(t.runs)
                );
            }
        }
    }
    eprintln!("{:.1?}", started.elapsed());
    let _ = Duration::ZERO;
}
