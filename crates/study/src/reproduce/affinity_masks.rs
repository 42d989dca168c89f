//! Masks swept over a benchmark suite (2009).
//!
//! The report's columns: the default, two preferred masks, two cores with both their CPUs as a
//! limit, and HT off. The last two are set from it; the first three follow.

use std::ops::Range;

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, signed};
use super::stage::{Arm, Stage};
use super::{Here, Simulation};
use pinwise_record::{ClaimRecord, ExperimentRecord};
use pinwise_topology::Level;

pub(super) const MACHINE: &str = include_str!("../../field-reports/affinity-masks.toml");

/// Points of per cent within which totals count as reproduced.
const POINTS: f64 = 3.0;

/// Scores: default, prefer 0x55, prefer 0xf0, only CPUs 0,2,4,6, HT off.
type Scores = [f64; 5];

const COLUMNS: [&str; 5] = [
    "default",
    "prefer 0x55",
    "prefer 0xf0",
    "only 0,2,4,6",
    "HT off",
];

/// The tests that share cores; workloads are called like them, in lower case.
const TESTS: [(&str, Scores); 9] = [
    ("Fibonacci", [16866.0, 15101.0, 20043.0, 11697.0, 20208.0]),
    ("Napierian", [11726.0, 11251.0, 11176.0, 9411.0, 12530.0]),
    ("Eratosthenes", [5645.0, 5402.0, 5645.0, 4996.0, 6211.0]),
    ("QuickSort", [11150.0, 10133.0, 11041.0, 8604.0, 12595.0]),
    ("MikoFPU", [5430.0, 5430.0, 5430.0, 5420.0, 5419.0]),
    ("RandMeanSS", [30553.0, 26612.0, 30385.0, 19914.0, 36228.0]),
    ("FFT", [8084.0, 7714.0, 7734.0, 7358.0, 8853.0]),
    ("Mandelbrot", [8096.0, 7821.0, 7853.0, 6758.0, 8330.0]),
    ("MEM", [41348.0, 39301.0, 39512.0, 31236.0, 44819.0]),
];

/// Sums that the report prints. ALU and FPU are 22 more than the sum of their tests in every column,
/// for which the report gives no reason; MEM and total add up.
const GROUPS: [(&str, Scores); 4] = [
    ("ALU", [45409.0, 41909.0, 47927.0, 34730.0, 51566.0]),
    ("FPU", [52185.0, 47599.0, 51424.0, 39472.0, 58852.0]),
    ("MEM", [41348.0, 39301.0, 39512.0, 31236.0, 44819.0]),
    ("total", [138942.0, 128809.0, 138863.0, 105438.0, 155237.0]),
];

/// Bandwidths, MB/s, behind the MEM score.
const BANDWIDTHS: [(&str, Scores); 4] = [
    ("read", [17285.93, 15085.90, 16107.58, 10518.73, 17201.80]),
    ("write", [7969.49, 8013.80, 8055.21, 7769.78, 8018.07]),
    ("read/write", [7860.45, 7982.05, 7935.97, 6711.58, 7867.77]),
    (
        "cache",
        [82124.14, 81991.49, 73935.78, 62163.35, 117_117.96],
    ),
];

/// Positions of a group's tests.
fn members(group: &str) -> Range<usize> {
    match group {
        "ALU" => 0..4,
        "FPU" => 4..8,
        "MEM" => 8..9,
        _ => 0..TESTS.len(),
    }
}

const OFF: usize = 4;
/// The columns that follow from the mechanism.
const PREDICTED: [usize; 3] = [0, 1, 2];

const QUESTION: &str = "CrystalMark under masks that are preferred or a limit, and with HT off";

/// On the report's machine.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let mut stage = simulation.stage("affinity-masks", MACHINE)?;
    let table = Table::simulate(&mut stage)?;
    drop(stage);
    // The other way to number siblings: n and n + 1.
    let adjacent = MACHINE.replace("pu:2(indexes=0,4,1,5,2,6,3,7)", "pu:2");
    let mut stage = simulation.stage("affinity-masks", &adjacent)?;
    let other = Table::simulate(&mut stage)?;
    drop(stage);
    Ok(vec![
        experiment("totals", totals(&table)),
        experiment("ranking", ranking(&table, &other)),
        experiment("tests", tests(&table)),
        experiment("bandwidths", bandwidths()),
    ])
}

fn experiment(name: &str, claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: name.to_owned(),
        question: QUESTION.to_owned(),
        claims,
    }
}

/// Change of speed against HT off, per cent: by test and column.
struct Table {
    changes: Vec<[ClaimResult; 4]>,
}

impl Table {
    fn simulate(stage: &mut Stage<'_>) -> Result<Self> {
        let changes = TESTS
            .iter()
            .map(|(name, _)| {
                let workload = &name.to_lowercase();
                let answer = stage.compare(&[
                    Arm::new(COLUMNS[OFF], workload, "cpu:0-3"),
                    Arm::new(COLUMNS[0], workload, "os-default"),
                    Arm::new(COLUMNS[1], workload, "os-default").with("SIM_IDEAL_CPUS", "0,2,4,6"),
                    Arm::new(COLUMNS[2], workload, "os-default").with("SIM_IDEAL_CPUS", "4-7"),
                    Arm::new(COLUMNS[3], workload, "cpu:0,2,4,6"),
                ])?;
                Ok([
                    answer.speed(COLUMNS[0])?,
                    answer.speed(COLUMNS[1])?,
                    answer.speed(COLUMNS[2])?,
                    answer.speed(COLUMNS[3])?,
                ])
            })
            .collect::<Result<_>>()?;
        Ok(Self { changes })
    }

    /// Change of a group's score: its tests weigh as their scores with HT off.
    fn group(&self, group: &str, column: usize) -> ClaimResult {
        let rows = TESTS.iter().zip(&self.changes);
        let members = members(group);
        let (mut weight, mut sum) = (0.0, [0.0; 3]);
        for ((_, scores), changes) in rows.take(members.end).skip(members.start) {
            let found = changes[column];
            weight += scores[OFF];
            for (sum, value) in sum.iter_mut().zip([found.value, found.low, found.high]) {
                *sum += scores[OFF] * value;
            }
        }
        ClaimResult {
            value: sum[0] / weight,
            low: sum[1] / weight,
            high: sum[2] / weight,
        }
    }
}

/// Change against HT off as reported, per cent.
fn reported_change(scores: &Scores, column: usize) -> f64 {
    100.0 * (scores[column] / scores[OFF] - 1.0)
}

fn totals(table: &Table) -> Vec<ClaimRecord> {
    let mut claims = Vec::new();
    for (name, scores) in &GROUPS {
        for column in PREDICTED {
            let claim = format!("{name}, {} against HT off", COLUMNS[column]);
            let judge = if *name == "total" {
                Judge::Size(POINTS)
            } else {
                Judge::Direction
            };
            let claim = Claim::change(claim, reported_change(scores, column));
            claims.push(claim.judge_claim(table.group(name, column), judge));
        }
        let claim = format!("{name}, only CPUs 0,2,4,6 against HT off");
        let claim = Claim::change(claim, reported_change(scores, 3));
        claims.push(claim.show_given(Some(table.group(name, 3)), "sets what two siblings do"));
    }
    claims
}

fn ranking(table: &Table, adjacent: &Table) -> Vec<ClaimRecord> {
    let total = |column| table.group("total", column).value;
    let limit = total(3);
    let (default, x55, xf0) = (total(0), total(1), total(2));
    let below = |claim: &str, one: f64, other: f64| {
        let shown = format!("{} and {}", signed(one), signed(other));
        Claim::new(claim, "lower").judge_condition(
            shown,
            one < other - 0.5,
            "totals against HT off",
        )
    };
    let other = |column| adjacent.group("total", column).value;
    vec![
        below("two cores with both CPUs rank below mask 0x55", limit, x55),
        below("mask 0x55 ranks below the default", x55, default),
        Claim::new(
            "the default ranks below mask 0xf0",
            "lower in words; its totals say 138942 and 138863",
        )
        .show_given(
            None,
            "the report contradicts itself: its totals are equal, as ours are",
        ),
        Claim::change("mask 0xf0 against the default", -0.06).judge_claim(
            ClaimResult::exactly(100.0 * ((100.0 + xf0) / (100.0 + default) - 1.0)),
            Judge::Within(POINTS),
        ),
        below("mask 0xf0 ranks below HT off", xf0, 0.0),
        Claim::new("siblings are CPUs n and n + 4", "inferred from the scores").judge_condition(
            format!(
                "0x55 {} there, {} were they n and n + 1",
                signed(x55 - default),
                signed(other(1) - other(0))
            ),
            x55 < default - 0.5 && other(1) > other(0) + 0.5,
            "only so does mask 0x55 lose against the default",
        ),
    ]
}

fn tests(table: &Table) -> Vec<ClaimRecord> {
    let mut claims = Vec::new();
    for ((name, scores), changes) in TESTS.iter().zip(&table.changes).take(8) {
        for column in PREDICTED {
            let claim = format!("{name}, {} against HT off", COLUMNS[column]);
            let claim = Claim::change(claim, reported_change(scores, column));
            claims.push(claim.judge_claim(changes[column], Judge::Direction));
        }
    }
    claims
}

fn bandwidths() -> Vec<ClaimRecord> {
    let mut claims = Vec::new();
    for (name, scores) in &BANDWIDTHS {
        for column in [0, 1, 2, 3] {
            let claim = format!("{name} bandwidth, {} against HT off", COLUMNS[column]);
            let claim = Claim::change(claim, reported_change(scores, column));
            claims.push(claim.show_given(None, "no mechanism here predicts a memory's bandwidth"));
        }
    }
    claims
}

/// The kernels that do what the report's tests do.
const KERNELS: [(&str, &str); 7] = [
    ("Fibonacci", "fibonacci"),
    ("Napierian", "napierian"),
    ("Eratosthenes", "eratosthenes"),
    ("QuickSort", "quicksort"),
    ("RandMeanSS", "mean-sd"),
    ("FFT", "fft"),
    ("Mandelbrot", "mandelbrot"),
];

/// On this machine: four threads on two cores with both their CPUs, and on four cores.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let cores = here.topology().allowed_units(Level::Core);
    let has_smt = cores.iter().any(|core| core.len() > 1);
    let mut claims = Vec::new();
    for (name, kernel) in KERNELS {
        let scores = TESTS.iter().find(|(test, _)| *test == name);
        let figure = scores.map_or(0.0, |(_, scores)| reported_change(scores, 3));
        let claim = format!("{name}, two cores with both CPUs against four cores");
        let claim = Claim::change(claim, figure);
        if !has_smt || cores.len() < 4 {
            claims.push(
                claim.not_here("it needs four cores of two CPUs; this machine reports fewer"),
            );
            continue;
        }
        let command = format!("pinwise bench kernel {kernel} --threads 4");
        let answer = here.compare(&[
            here.arm("four cores", &command, "one-per-core*4"),
            here.arm("two cores", &command, "compact*4"),
        ])?;
        claims.push(claim.judge_claim(answer.speed("two cores")?, Judge::Direction));
    }
    Ok(vec![experiment("tests", claims)])
}
