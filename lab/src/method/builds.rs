//! Two commands in one place: pairs until a slow-down is found in 80 % of comparisons, by
//! wall-clock time alone and with CPU time beside it; and the verdicts of the latter on equal ones.

use anyhow::Result;
use pinwise_record::ContrastVerdict;

use super::replay::{Cell, replay_each};
use super::{Arguments, Noise};
use crate::share::percent_of;
use crate::table::Table;

/// Maximum number of pairs of a comparison.
const MAX_PAIRS: usize = 600;

pub(super) fn publish(noises: &[Noise], asked: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-builds",
        "noise | pairs, wall-clock time | pairs, with CPU time | ratio | false claims",
    );
    for (name, noise) in noises {
        if !asked.takes(&format!("{name}/builds/")) {
            continue;
        }
        let cell = |effect: f64, with_cpu: bool| Cell {
            with_cpu,
            ..Cell::new(noise, 2, effect, MAX_PAIRS)
        };
        let found_after = |with_cpu: bool| -> usize {
            let mut pairs = pairs_to_find(&cell(1.02, with_cpu), asked.replays);
            pairs.sort_unstable();
            pairs[asked.replays * 4 / 5]
        };
        let (alone, beside) = (found_after(false), found_after(true));
        let equal = asked.replay(&cell(1.0, true));
        table.add_row(format!(
            "{name} | {} | {} | {:.2} | {}",
            show(alone),
            show(beside),
            beside as f64 / alone as f64,
            percent_of(equal.false_claims, equal.replays)
        ));
    }
    table.publish()
}

fn show(pairs: usize) -> String {
    match pairs > MAX_PAIRS {
        true => format!("> {MAX_PAIRS}"),
        false => pairs.to_string(),
    }
}

/// Blocks after which each comparison found the slow-down; one more than possible if it did not.
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
