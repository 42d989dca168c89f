//! Error rates, coverage and power of the whole procedure, replayed through
//! the simulated machine with known truth; beside it, what a plain sweep with
//! sequential blocks and Welch's test says about the same recorded runs.
//!
//! `cargo bench --bench method [REPLAYS] [FILTER]` prints a Markdown table. A
//! filter is text that the cell's first three columns must contain; several
//! are joined by `+`. `PINWISE_SERIES` names further recordings, separated by
//! commas.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads its arguments and prints its table"
)]

#[path = "../tests/it/replay.rs"]
mod replay;

use std::io::Read;
use std::path::Path;

use pinwise::stats::confirm::Score;
use pinwise::stats::welch;
use replay::{Cell, Tally, independent, recorded, replay};

/// Recordings of the project, and how loaded the machine was.
const SERIES: [(&str, &str); 6] = [
    ("light_cpu", "light"),
    ("medium_mem", "medium"),
    ("aa_cpu2", "medium"),
    ("aa_bg", "on/off"),
    ("aa_cpu1", "heavy"),
    ("aa_mem1", "heavy"),
];

/// Synthetic disturbances, for the error rate only.
const SYNTHETIC: [(&str, &str); 5] = [
    ("drift", "sd = 0.03\ndrift = 5.0"),
    (
        "bursts",
        "sd = 0.01\nbursts = { every_s = 12.0, lasts_s = 3.0, factor = 1.5 }",
    ),
    (
        "level shifts",
        "sd = 0.01\nlevel_shifts = { dwell_s = 8.0, levels = [1.0, 1.1, 1.3] }",
    ),
    (
        "wander",
        "sd = 0.01\nwander = { correlation = 0.95, sd = 0.1 }",
    ),
    ("period", "sd = 0.01\nperiod = { runs = 4, factor = 1.4 }"),
];

/// Arms, true ratio of the planted arm, runs per arm.
const CELLS: [(usize, f64, usize); 11] = [
    (2, 1.0, 40),
    (2, 1.0, 130),
    (5, 1.0, 20),
    (5, 1.0, 40),
    (20, 1.0, 24),
    (2, 1.02, 20),
    (2, 1.02, 40),
    (2, 1.02, 130),
    (2, 0.95, 40),
    (5, 0.98, 40),
    (64, 0.95, 15),
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let replays = arguments.next().and_then(|a| a.parse().ok());
    let filter = arguments.next().unwrap_or_default();
    let mut noises: Vec<(String, String)> = SERIES
        .iter()
        .map(|(name, load)| {
            let noise = recorded(&format!("{name}.csv.xz"));
            (format!("{name} ({load})"), noise)
        })
        .collect();
    noises.push(("independent, pair SD 2.5 %".to_owned(), independent(0.0175)));
    let extra = std::env::var("PINWISE_SERIES").unwrap_or_default();
    for path in extra.split(',').filter(|path| !path.is_empty()) {
        noises.push((file_name(path), format!("series = \"{path}\"")));
    }
    println!(
        "| noise | arms | effect | runs/arm | score | replays | false claims | found | wrong direction | coverage | named best | runs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, noise) in &noises {
        for (arms, effect, max_runs) in CELLS {
            let label = format!("{name}/{arms}/{:+.0}%/{max_runs}/", 100.0 * (effect - 1.0));
            if filter.split('+').all(|part| label.contains(part)) {
                let cell = Cell::new(noise, arms, effect, max_runs);
                print_cell(name, &cell, replays.unwrap_or(2_000));
                let plain = Cell {
                    score: Score::Rank,
                    ..cell
                };
                if arms == 2 && effect > 1.0 {
                    print_cell(name, &plain, replays.unwrap_or(2_000));
                }
            }
        }
    }
    for (name, noise) in SYNTHETIC {
        for max_runs in [20, 40, 130] {
            if filter
                .split('+')
                .all(|part| format!("{name}/2/+0%/{max_runs}/").contains(part))
            {
                print_cell(
                    name,
                    &Cell::new(noise, 2, 1.0, max_runs),
                    replays.unwrap_or(2_000),
                );
            }
        }
    }
    print_sweeps();
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn print_cell(name: &str, cell: &Cell, replays: usize) {
    let half = replays / 2;
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| replay(cell, half, 1_000_000));
        let own = replay(cell, replays - half, 0);
        own.plus(other.join().unwrap_or_default())
    });
    let percent = |count: usize| format!("{:.1} %", 100.0 * tally.share(count));
    let is_null = (cell.effect - 1.0).abs() < 1e-12;
    let planted = |count: usize| {
        if is_null {
            "–".to_owned()
        } else {
            percent(count)
        }
    };
    println!(
        "| {name} | {} | {:+.0} % | {} | {} | {} | {} | {} | {} | {:.1} % | {} | {:.0} |",
        cell.arms,
        100.0 * (cell.effect - 1.0),
        cell.max_runs,
        match cell.score {
            Score::Weighted => "weighted",
            Score::Rank => "rank",
        },
        tally.replays,
        false_claims(cell, &tally),
        planted(tally.found),
        planted(tally.wrong_direction),
        100.0 * tally.coverage(),
        if cell.effect < 1.0 {
            percent(tally.named_best)
        } else {
            "–".to_owned()
        },
        tally.runs as f64 / tally.replays as f64
    );
}

fn false_claims(cell: &Cell, tally: &Tally) -> String {
    let all_are_planted = cell.arms == 2 && (cell.effect - 1.0).abs() > 1e-12;
    if all_are_planted {
        "–".to_owned()
    } else {
        format!("{:.1} %", 100.0 * tally.share(tally.false_claims))
    }
}

/// What tools that run one arm after the other and test with Welch's t would
/// have said about identical arms.
fn print_sweeps() {
    println!(
        "\n| sequential blocks, Welch's test | 2 arms, 20 runs each | 20 arms, 24 runs each |"
    );
    println!("|---|---|---|");
    for (name, load) in SERIES {
        let path = format!(
            "{}/tests/data/series/{name}.csv.xz",
            env!("CARGO_MANIFEST_DIR")
        );
        let walls = read_walls(Path::new(&path)).expect("a series of the project");
        println!(
            "| {name} ({load}) | {:.0} % | {:.0} % |",
            100.0 * sweep_claims(&walls, 2, 20),
            100.0 * sweep_claims(&walls, 20, 24)
        );
    }
}

fn read_walls(path: &Path) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let mut text = String::new();
    let packed = std::fs::File::open(path)?;
    lzma_rust2::XzReader::new(packed, true).read_to_string(&mut text)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let column = reader.headers()?.iter().position(|name| name == "wall");
    let mut walls = Vec::new();
    for row in reader.records() {
        walls.push(row?.get(column.unwrap_or(0)).unwrap_or("").parse()?);
    }
    Ok(walls)
}

/// Share of sweeps in which the arm with the lowest mean is significantly
/// different from the first arm (for two arms: either from the other).
fn sweep_claims(walls: &[f64], arms: usize, runs: usize) -> f64 {
    let length = arms * runs;
    let starts: Vec<usize> = (0..walls.len().saturating_sub(length)).step_by(7).collect();
    let claims = starts.iter().filter(|&&start| {
        let blocks: Vec<&[f64]> = walls[start..start + length].chunks(runs).collect();
        let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
        let best = blocks[1..]
            .iter()
            .min_by(|a, b| mean(a).total_cmp(&mean(b)));
        best.is_some_and(|best| welch::two_sided_p(blocks[0], best) < 0.05)
    });
    claims.count() as f64 / starts.len().max(1) as f64
}
