//! The 2009 report: a benchmark suite under several affinity masks.
//!
//! The report's columns: the default, two preferred masks, a limit to both CPUs of two cores, and HT
//! off. The last two set parameters of the simulation; the first three are predicted.

use std::ops::Range;

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, signed};
use super::stage::{Arm, Stage};
use super::{Here, Simulation};
use pinwise_record::{ClaimRecord, ExperimentRecord};
use pinwise_topology::Level;

pub(super) const MACHINE: &str = include_str!("../../field-reports/affinity-masks.toml");

/// Totals within this many percentage points count as reproduced.
const MAX_POINTS: f64 = 3.0;

/// Scores: default, prefer 0x55, prefer 0xf0, only CPUs 0,2,4,6, HT off.
type Scores = [f64; 5];

const COLUMNS: [&str; 5] = [
    "default",
    "prefer 0x55",
    "prefer 0xf0",
    "only 0,2,4,6",
    "HT off",
];

/// The tests that run threads on shared cores. The simulated workloads have the same names in lower
/// case.
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

/// Sums that the report prints. ALU and FPU are 22 more than the sum of their tests in every column;
/// the report does not say why. MEM and total add up.
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

/// Indices of a group's tests.
fn tests_of_group(group: &str) -> Range<usize> {
    match group {
        "ALU" => 0..4,
        "FPU" => 4..8,
        "MEM" => 8..9,
        _ => 0..TESTS.len(),
    }
}

/// Index of the column "HT off".
const HT_OFF: usize = 4;
/// Indices of the columns that follow from the mechanism.
const PREDICTED: [usize; 3] = [0, 1, 2];

const QUESTION: &str = "CrystalMark under masks that are preferred or a limit, and with HT off";

/// Runs the experiments on the report's machine, simulated.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let mut stage = simulation.stage("affinity-masks", MACHINE)?;
    let table = Table::simulate(&mut stage)?;
    drop(stage);
    // The same machine with siblings n and n + 1, to learn how the report's machine numbers them.
    let adjacent = MACHINE.replace("pu:2(indexes=0,4,1,5,2,6,3,7)", "pu:2");
    let mut stage = simulation.stage("affinity-masks", &adjacent)?;
    let other = Table::simulate(&mut stage)?;
    drop(stage);
    Ok(vec![
        experiment("totals", judge_totals(&table)),
        experiment("ranking", judge_ranking(&table, &other)),
        experiment("tests", judge_tests(&table)),
        experiment("bandwidths", list_bandwidths()),
    ])
}

fn experiment(name: &str, claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: name.to_owned(),
        question: QUESTION.to_owned(),
        claims,
    }
}

/// Change of speed relative to HT off, per cent, by test and by the first four columns.
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
                    Arm::new(COLUMNS[HT_OFF], workload, "cpu:0-3"),
                    Arm::new(COLUMNS[0], workload, "os-default"),
                    Arm::new(COLUMNS[1], workload, "os-default")
                        .with_variable("SIM_IDEAL_CPUS", "0,2,4,6"),
                    Arm::new(COLUMNS[2], workload, "os-default")
                        .with_variable("SIM_IDEAL_CPUS", "4-7"),
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

    /// Change of a group's score, per cent: the mean over its tests, weighted by their scores with HT
    /// off.
    fn change_of_group(&self, group: &str, column: usize) -> ClaimResult {
        let rows = TESTS.iter().zip(&self.changes);
        let members = tests_of_group(group);
        let (mut weight, mut sum) = (0.0, [0.0; 3]);
        for ((_, scores), changes) in rows.take(members.end).skip(members.start) {
            let change = changes[column];
            weight += scores[HT_OFF];
            for (sum, value) in sum.iter_mut().zip([change.value, change.low, change.high]) {
                *sum += scores[HT_OFF] * value;
            }
        }
        ClaimResult {
            value: sum[0] / weight,
            low: sum[1] / weight,
            high: sum[2] / weight,
        }
    }
}

/// The reported change relative to HT off, per cent.
fn reported_change(scores: &Scores, column: usize) -> f64 {
    100.0 * (scores[column] / scores[HT_OFF] - 1.0)
}

fn judge_totals(table: &Table) -> Vec<ClaimRecord> {
    let mut claims = Vec::new();
    for (name, scores) in &GROUPS {
        for column in PREDICTED {
            let claim = format!("{name}, {} against HT off", COLUMNS[column]);
            let judge = if *name == "total" {
                Judge::Size(MAX_POINTS)
            } else {
                Judge::Direction
            };
            let claim = Claim::change(claim, reported_change(scores, column));
            claims.push(claim.judge_figure(table.change_of_group(name, column), judge));
        }
        let claim = format!("{name}, only CPUs 0,2,4,6 against HT off");
        let claim = Claim::change(claim, reported_change(scores, 3));
        claims.push(claim.show_given(
            Some(table.change_of_group(name, 3)),
            "sets what two siblings do",
        ));
    }
    claims
}

fn judge_ranking(table: &Table, adjacent: &Table) -> Vec<ClaimRecord> {
    let total = |column| table.change_of_group("total", column).value;
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
    let other = |column| adjacent.change_of_group("total", column).value;
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
        Claim::change("mask 0xf0 against the default", -0.06).judge_figure(
            ClaimResult::exactly(100.0 * ((100.0 + xf0) / (100.0 + default) - 1.0)),
            Judge::Within(MAX_POINTS),
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

fn judge_tests(table: &Table) -> Vec<ClaimRecord> {
    let mut claims = Vec::new();
    for ((name, scores), changes) in TESTS.iter().zip(&table.changes).take(8) {
        for column in PREDICTED {
            let claim = format!("{name}, {} against HT off", COLUMNS[column]);
            let claim = Claim::change(claim, reported_change(scores, column));
            claims.push(claim.judge_figure(changes[column], Judge::Direction));
        }
    }
    claims
}

fn list_bandwidths() -> Vec<ClaimRecord> {
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

/// The report's tests and the kernels that do the same.
const KERNELS: [(&str, &str); 7] = [
    ("Fibonacci", "fibonacci"),
    ("Napierian", "napierian"),
    ("Eratosthenes", "eratosthenes"),
    ("QuickSort", "quicksort"),
    ("RandMeanSS", "mean-sd"),
    ("FFT", "fft"),
    ("Mandelbrot", "mandelbrot"),
];

/// Runs the experiments on this machine: four threads on both CPUs of two cores, and on four cores.
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
            claims
                .push(claim.mark_untestable(
                    "it needs four cores of two CPUs; this machine reports fewer",
                ));
            continue;
        }
        let command = format!("pinwise bench kernel {kernel} --threads 4");
        let answer = here.compare(&[
            here.arm("four cores", &command, "one-per-core*4"),
            here.arm("two cores", &command, "compact*4"),
        ])?;
        claims.push(claim.judge_figure(answer.speed("two cores")?, Judge::Direction));
    }
    Ok(vec![experiment("tests", claims)])
}
