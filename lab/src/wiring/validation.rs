//! Thresholds chosen without the machine that they are judged on.

use anyhow::Result;
use pinwise_stats::describe::mean;
use pinwise_wiring::{Thresholds, infer_with};

use super::corpus::{KnownMachine, Score, list_levels};
use super::variations::Varied;
use crate::share::wilson_interval;
use crate::table::Table;

/// A threshold: its name, its field, the tried values.
type Tried = (
    &'static str,
    fn(&mut Thresholds) -> &mut f64,
    &'static [f64],
);

const TRIED: [Tried; 5] = [
    (
        "ratio",
        |t| &mut t.ratio,
        &[1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45],
    ),
    (
        "fine_gap",
        |t| &mut t.fine_gap,
        &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    ),
    (
        "tolerated",
        |t| &mut t.tolerated,
        &[0.04, 0.06, 0.08, 0.1, 0.125],
    ),
    (
        "slow_mates",
        |t| &mut t.slow_mates,
        &[1.6, 1.8, 2.0, 2.25, 2.5, 2.75],
    ),
    ("width", |t| &mut t.width, &[1.4, 1.5, 1.6, 1.75, 1.9, 2.1]),
];
/// The thresholds before they were chosen so.
const BEFORE: Thresholds = Thresholds {
    ratio: 1.25,
    fine_gap: 6.0,
    tolerated: 0.1,
    slow_mates: 2.0,
    width: 1.6,
};

/// How often all levels of a machine are exact (of whatever kind) by latency alone, as recorded and
/// when varied.
pub(super) fn publish(machines: &[Varied]) -> Result<()> {
    let scores: Vec<Vec<Vec<f64>>> = TRIED
        .iter()
        .map(|tried| score_values(machines, tried))
        .collect();
    let everyone: Vec<usize> = (0..machines.len()).collect();
    let left_out: Vec<[f64; 2]> = everyone
        .iter()
        .map(|&out| {
            let others: Vec<usize> = everyone.iter().copied().filter(|&m| m != out).collect();
            share_exact(&machines[out], choose(&scores, &others))
        })
        .collect();
    let share_all = |thresholds: Thresholds| -> Vec<[f64; 2]> {
        machines
            .iter()
            .map(|m| share_exact(m, thresholds))
            .collect()
    };
    let mut table = Table::new(
        "wiring-thresholds",
        "thresholds | exact as recorded | 95 % | exact when varied | 95 %",
    );
    let all_machines = choose(&scores, &everyone);
    table.add_row(format_row("before", &share_all(BEFORE)));
    table.add_row(format_row(
        "chosen on all machines",
        &share_all(all_machines),
    ));
    table.add_row(format_row("chosen without the machine judged", &left_out));
    table.add_row(format_row("in use", &share_all(Thresholds::default())));
    table.publish()?;
    let mut table = Table::new(
        "wiring-threshold-values",
        "threshold | exact by value, % | chosen | in use",
    );
    let all = &mut choose(&scores, &everyone);
    let used = &mut Thresholds::default();
    for ((name, field, values), scores) in TRIED.iter().zip(&scores) {
        let shares: Vec<String> = values
            .iter()
            .zip(scores)
            .map(|(value, shares)| format!("{value}: {:.1}", 100.0 * mean(shares)))
            .collect();
        let (chosen, used) = (*field(all), *field(used));
        table.add_row(format!(
            "{name} | {} | {chosen} | {used}",
            shares.join(", ")
        ));
    }
    table.publish()
}

fn format_row(name: &str, exact: &[[f64; 2]]) -> String {
    let cells: Vec<String> = (0..2)
        .map(|which| {
            let shares: Vec<f64> = exact.iter().map(|shares| shares[which]).collect();
            let (low, high) = wilson_interval(shares.iter().sum(), shares.len() as f64);
            format!(
                "{:.1} % | {:.0}–{:.0} %",
                100.0 * mean(&shares),
                100.0 * low,
                100.0 * high
            )
        })
        .collect();
    format!("{name} | {}", cells.join(" | "))
}

/// For every value of a threshold, the others unchanged, every machine's share of exact variations.
fn score_values(machines: &[Varied], (_, field, values): &Tried) -> Vec<Vec<f64>> {
    let share = |value: &f64| {
        let mut thresholds = BEFORE;
        *field(&mut thresholds) = *value;
        machines
            .iter()
            .map(|m| share_exact(m, thresholds)[1])
            .collect()
    };
    values.iter().map(share).collect()
}

/// The middle one of the values within a standard error of the best on these machines (Breiman et
/// al. 1984).
fn choose(scores: &[Vec<Vec<f64>>], machines: &[usize]) -> Thresholds {
    let mut thresholds = BEFORE;
    for ((_, field, values), scores) in TRIED.iter().zip(scores) {
        let share = |of: &Vec<f64>| machines.iter().map(|&m| of[m]).sum::<f64>();
        let best = scores.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let best = best.expect("a value is tried");
        let is_good = |of: &Vec<f64>| {
            let behind: Vec<f64> = machines.iter().map(|&m| best[m] - of[m]).collect();
            let centre = mean(&behind);
            let squares = behind.iter().map(|d| (d - centre).powi(2)).sum::<f64>();
            centre <= squares.sqrt() / machines.len() as f64
        };
        let tried = values.iter().zip(scores);
        let good: Vec<f64> = tried
            .filter(|(_, of)| is_good(of))
            .map(|(v, _)| *v)
            .collect();
        *field(&mut thresholds) = good[(good.len() - 1) / 2];
    }
    thresholds
}

/// Whether the machine as recorded is exact (0 or 1), and the share of exact ones among all its
/// cases.
fn share_exact(machine: &Varied, thresholds: Thresholds) -> [f64; 2] {
    let is_exact = |known: &KnownMachine| -> f64 {
        let mut score = Score::default();
        score.add(
            known,
            &list_levels(&infer_with(&known.to_evidence(), thresholds)),
        );
        f64::from(u8::from(score.exact == 1))
    };
    let exact: Vec<f64> = machine.cases.iter().map(is_exact).collect();
    [exact[0], mean(&exact)]
}
