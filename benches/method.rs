//! Error rates, coverage and power of the whole procedure, replayed through
//! the simulated machine with known truth: arms that differ by a factor or not
//! at all, and arms that differ in spread, shape, warm-up or after-effect. Beside
//! it, what a plain sweep with sequential blocks and Welch's test says about the
//! same recorded runs.
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
#[path = "../tests/it/sessions.rs"]
mod sessions;

use std::io::Read;
use std::path::Path;

use pinwise_record::ContrastVerdict;
use pinwise_stats::confirm::Score;
use pinwise_stats::judge::Judge;
use pinwise_stats::welch;
use pinwise_study::fleet::simulate::{SimulatedFleet, SimulationPlan};
use pinwise_study::fleet::{Nodes, Side, diff, groups};
use replay::{Cell, Tally, independent, recorded, replay, replay_each};

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
const SYNTHETIC: [(&str, &str); 8] = [
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
    ("clock of 1 ms", "sd = 0.02\nclock_s = 0.001"),
    ("clock of 10 ms", "sd = 0.02\nclock_s = 0.01"),
    ("clock of 10 ms, SD 10 %", "sd = 0.1\nclock_s = 0.01"),
];

/// Noise of independent runs.
const QUIET: &str = "sd = 0.01";

/// Arms of the same centre and more: what it is, the noise of both, what is
/// true of the second arm alone and its effect, runs per arm.
const UNLIKE: [(&str, &str, &str, f64, usize); 28] = [
    ("spread 1:2", QUIET, "sd = 0.01732", 1.0, 40),
    ("spread 1:2", QUIET, "sd = 0.01732", 1.0, 130),
    ("spread 1:3", QUIET, "sd = 0.02828", 1.0, 130),
    ("spread 1:5", QUIET, "sd = 0.04899", 1.0, 40),
    ("spread 1:5", QUIET, "sd = 0.04899", 1.0, 130),
    ("spread 5 % more, aa_cpu2", "aa_cpu2", "sd = 0.05", 1.0, 130),
    (
        "spread 5 % more, light_cpu",
        "light_cpu",
        "sd = 0.05",
        1.0,
        130,
    ),
    // The typical (Hodges–Lehmann) difference of the two is 0.
    (
        "delays of 2 % against none",
        "sd = 0.014",
        "exponential = 0.02",
        0.981_60,
        40,
    ),
    (
        "delays of 2 % against none",
        "sd = 0.014",
        "exponential = 0.02",
        0.981_60,
        130,
    ),
    (
        "two modes against one, same centre",
        QUIET,
        "slow_share = 0.5\nslow_factor = 1.1",
        0.953_46,
        130,
    ),
    (
        "leaves 5 % for the next",
        QUIET,
        "leaves_factor = 1.05",
        1.0,
        40,
    ),
    (
        "leaves 5 % for the next",
        QUIET,
        "leaves_factor = 1.05",
        1.0,
        130,
    ),
    (
        "leaves 5 % for the next",
        "light_cpu",
        "leaves_factor = 1.05",
        1.0,
        130,
    ),
    (
        "leaves 5 % for the next",
        "aa_cpu2",
        "leaves_factor = 1.05",
        1.0,
        130,
    ),
    (
        "5 % less after another",
        QUIET,
        "after_others_factor = 0.95",
        1.0,
        40,
    ),
    (
        "5 % less after another",
        QUIET,
        "after_others_factor = 0.95",
        1.0,
        130,
    ),
    (
        "5 % less after another",
        "light_cpu",
        "after_others_factor = 0.95",
        1.0,
        130,
    ),
    (
        "warms up, 5 % over 8 runs",
        QUIET,
        "cold_factor = 1.05\ncold_runs = 8.0",
        1.0,
        40,
    ),
    (
        "warms up, 5 % over 8 runs",
        QUIET,
        "cold_factor = 1.05\ncold_runs = 8.0",
        1.0,
        130,
    ),
    (
        "warms up, 20 % over 8 runs",
        QUIET,
        "cold_factor = 1.2\ncold_runs = 8.0",
        1.0,
        130,
    ),
    (
        "warms up, 20 % over 8 runs",
        "light_cpu",
        "cold_factor = 1.2\ncold_runs = 8.0",
        1.0,
        130,
    ),
    (
        "warms up, 10 % over 60 runs",
        QUIET,
        "cold_factor = 1.1\ncold_runs = 60.0",
        1.0,
        130,
    ),
    (
        "30 % of runs +20 %, others −1 %",
        "sd = 0.003",
        "slow_share = 0.3\nslow_factor = 1.2",
        0.99,
        40,
    ),
    (
        "30 % of runs +20 %, others −1 %",
        "sd = 0.003",
        "slow_share = 0.3\nslow_factor = 1.2",
        0.99,
        130,
    ),
    (
        "10 % of runs twice as slow",
        "sd = 0.003",
        "slow_share = 0.1\nslow_factor = 2.0",
        1.0,
        40,
    ),
    (
        "10 % of runs twice as slow",
        "sd = 0.003",
        "slow_share = 0.1\nslow_factor = 2.0",
        1.0,
        130,
    ),
    (
        "faster by 10 %, slower under load",
        "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
        "load_factor = 2.0",
        0.9,
        60,
    ),
    (
        "faster by 10 %, load or not",
        "sd = 0.02\nload = { dwell_s = 0.3, most_cpus = 0.3 }",
        "",
        0.9,
        60,
    ),
];

/// Judges of what is not the typical run, on equal arms.
const JUDGES: [Judge; 2] = [Judge::Mean, Judge::Percentile(90)];

/// Arms, true ratio of the planted arm, runs per arm.
const CELLS: [(usize, f64, usize); 13] = [
    (2, 1.0, 40),
    (2, 1.0, 130),
    (5, 1.0, 20),
    (5, 1.0, 40),
    (20, 1.0, 24),
    (2, 1.02, 20),
    (2, 1.02, 40),
    (2, 1.02, 130),
    (2, 1.05, 130),
    (2, 1.10, 130),
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
                if arms == 2 && (effect - 1.02).abs() < 1e-9 {
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
    print_judges(&noises, replays.unwrap_or(1_000), &filter);
    print_builds(&noises, replays.unwrap_or(1_000), &filter);
    print_unlike(replays.unwrap_or(1_000), &filter);
    if "sessions/fleets/".contains(&filter) {
        print_sessions(&noises, replays.unwrap_or(1_000));
        print_fleets(replays.unwrap_or(1_000));
    }
    if filter.is_empty() {
        print_sweeps();
    }
}

/// Two commands in one place: pairs until a slow-down is found in 80 % of comparisons, by
/// wall-clock time alone and with CPU time beside it; and what both say of equal ones.
fn print_builds(noises: &[(String, String)], replays: usize, filter: &str) {
    println!(
        "\n| noise | true | replays | pairs for 80 %, wall-clock time | with CPU time | ratio | \
         false claims with CPU time |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, noise) in noises {
        let label = format!("{name}/builds/");
        if !filter.split('+').all(|part| label.contains(part)) {
            continue;
        }
        let cell = |effect: f64, with_cpu: bool| Cell {
            with_cpu,
            ..Cell::new(noise, 2, effect, MOST_PAIRS)
        };
        let found_after = |with_cpu: bool| -> usize {
            let mut pairs = pairs_to_find(&cell(1.02, with_cpu), replays);
            pairs.sort_unstable();
            pairs[replays * 4 / 5]
        };
        let (alone, beside) = (found_after(false), found_after(true));
        let equal = both_halves(&cell(1.0, true), replays);
        println!(
            "| {name} | +2 % | {replays} | {} | {} | {:.2} | {} |",
            at_most_pairs(alone),
            at_most_pairs(beside),
            beside as f64 / alone as f64,
            with_interval(&equal, equal.false_claims)
        );
    }
}

/// Most pairs of a comparison of two commands.
const MOST_PAIRS: usize = 400;

fn at_most_pairs(pairs: usize) -> String {
    match pairs > MOST_PAIRS {
        true => format!("> {MOST_PAIRS}"),
        false => pairs.to_string(),
    }
}

/// Blocks after which each comparison found the slow-down; one more than there can be
/// where it did not.
fn pairs_to_find(cell: &Cell, replays: usize) -> Vec<usize> {
    let half = |count: usize, first_seed: u64| {
        let mut pairs = Vec::new();
        replay_each(cell, count, first_seed, |record| {
            let contrast = &record.contrasts[0];
            let by_cpu = contrast.cpu_time.as_ref();
            let is_found = contrast.verdict == ContrastVerdict::Slower
                || by_cpu.is_some_and(|cpu| cpu.decides && cpu.ratio > 1.0);
            pairs.push(if is_found {
                record.blocks
            } else {
                cell.max_runs + 1
            });
        });
        pairs
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(replays / 2, 1_000_000));
        let mut pairs = half(replays - replays / 2, 0);
        pairs.extend(other.join().expect("the other half"));
        pairs
    })
}

/// Equal arms whose means and tails are judged.
fn print_judges(noises: &[(String, String)], replays: usize, filter: &str) {
    println!("\n| noise | judge | runs/arm | replays | false claims | coverage |");
    println!("|---|---|---|---|---|---|");
    for (name, noise) in noises {
        for judge in JUDGES {
            let label = format!("{name}/judge {judge}/");
            if !filter.split('+').all(|part| label.contains(part)) {
                continue;
            }
            let cell = Cell {
                judge,
                ..Cell::new(noise, 2, 1.0, 130)
            };
            let tally = both_halves(&cell, replays);
            println!(
                "| {name} | {judge} | {} | {} | {} | {:.1} % |",
                cell.max_runs,
                tally.replays,
                with_interval(&tally, tally.false_claims),
                100.0 * tally.coverage()
            );
        }
    }
}

/// Arms that differ in more than a factor.
fn print_unlike(replays: usize, filter: &str) {
    println!(
        "\n| the second arm | noise | runs/arm | replays | faster | slower | same | by order | by time | by load | advised to run it |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (what, noise, behaviour, effect, max_runs) in UNLIKE {
        let label = format!("{what}/unlike/{max_runs}/");
        if !filter.split('+').all(|part| label.contains(part)) {
            continue;
        }
        let (name, noise) = match noise.contains('=') {
            true => (noise.replace('\n', ", "), noise.to_owned()),
            false => (noise.to_owned(), recorded(&format!("{noise}.csv.xz"))),
        };
        let cell = Cell {
            effect,
            ..Cell::behaving(&noise, behaviour, max_runs)
        };
        let tally = both_halves(&cell, replays);
        let percent = |count: usize| with_interval(&tally, count);
        println!(
            "| {what} | {name} | {max_runs} | {} | {} | {} | {} | {} | {} | {} | {} |",
            tally.replays,
            percent(tally.faster),
            percent(tally.slower),
            percent(tally.same),
            percent(tally.by_order),
            percent(tally.by_time),
            percent(tally.by_load),
            percent(tally.recommended),
        );
    }
}

/// Two sessions of the same arms, the second 3 % slower as a whole: how often is
/// any of them reported to have changed?
fn print_sessions(noises: &[(String, String)], replays: usize) {
    println!("\n| `diff` of two sessions, noise | arms | diffs | claim a change |");
    println!("|---|---|---|---|");
    for (name, noise) in noises {
        for arms in [2, 6] {
            let half = replays as u64 / 2;
            let claims = std::thread::scope(|scope| {
                let other = scope.spawn(|| sessions::tally(noise, 1.0, arms, 0..half).claims);
                let own = sessions::tally(noise, 1.0, arms, half..replays as u64).claims;
                own + other.join().unwrap_or_default()
            });
            println!(
                "| {name} | {arms} | {replays} | {} |",
                share_with_interval(claims as usize, replays)
            );
        }
    }
}

/// Two fleets that are alike: how often does the headline of their `fleet diff`
/// claim a difference?
fn print_fleets(replays: usize) {
    println!("\n| `fleet diff` of alike fleets, nodes | diffs | claim a difference |");
    println!("|---|---|---|");
    for size in [4, 16, 40] {
        let nodes = |seed: u64| {
            let fleet = SimulatedFleet::new(SimulationPlan {
                user: None,
                id: "f".to_owned(),
                nodes: size,
                seed,
                noise: 0.03,
                faults: 0.0,
                started: "2026-01-01T00:00:00Z".to_owned(),
                pinwise: "1".to_owned(),
            });
            let mut nodes = Nodes::new();
            for node in fleet.nodes() {
                nodes.add(node);
            }
            nodes
        };
        let claims = (0..replays as u64).filter(|pair| {
            let (a, b) = (nodes(2 * pair), nodes(2 * pair + 1));
            let (of_a, of_b) = (groups(&a), groups(&b));
            let side = |nodes, group| Side {
                fleet: "f",
                nodes,
                group,
            };
            let found = diff(side(&a, &of_a[0]), side(&b, &of_b[0]));
            found.is_ok_and(|found| found.figures.iter().any(|figure| figure.differs))
        });
        println!(
            "| {size} | {replays} | {} |",
            share_with_interval(claims.count(), replays)
        );
    }
}

fn with_interval(tally: &Tally, count: usize) -> String {
    share_with_interval(count, tally.replays)
}

/// A share in percent with its 95 % interval (Wilson 1927).
fn share_with_interval(count: usize, of: usize) -> String {
    let n = of as f64;
    let share = count as f64 / n;
    let z2 = 1.959_964_f64.powi(2);
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))).sqrt() / (1.0 + z2 / n);
    format!(
        "{:.1} % ({:.1}–{:.1})",
        100.0 * share,
        100.0 * (centre - half).max(0.0),
        100.0 * (centre + half).min(1.0)
    )
}

/// A cell on two processors.
fn both_halves(cell: &Cell, replays: usize) -> Tally {
    let half = replays / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| replay(cell, half, 1_000_000));
        let own = replay(cell, replays - half, 0);
        own.plus(other.join().unwrap_or_default())
    })
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn print_cell(name: &str, cell: &Cell, replays: usize) {
    let tally = both_halves(cell, replays);
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
        with_interval(tally, tally.false_claims)
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
