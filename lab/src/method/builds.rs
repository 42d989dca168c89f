//! Two commands in one place: the number of pairs until a slow-down is found in 80 % of comparisons,
//! by wall-clock time alone and with CPU time as well, and false claims of the latter about equal
//! commands.

use anyhow::Result;
use pinwise_record::ContrastVerdict;

use super::replay::{Cell, replay_each};
use super::{Arguments, Noise};
use crate::share::format_percent;
use crate::table::Table;

/// Maximum number of pairs of a comparison.
const MAX_PAIRS: usize = 600;

pub(super) fn publish(noises: &[Noise], arguments: &Arguments) -> Result<()> {
    let mut table = Table::new(
        "method-builds",
        "noise | pairs, wall-clock time | pairs, with CPU time | ratio | false claims",
    );
    for (name, noise) in noises {
        if !arguments.selects(&format!("{name}/builds/")) {
            continue;
        }
        let cell = |effect: f64, with_cpu: bool| Cell {
            with_cpu,
            ..Cell::new(noise, 2, effect, MAX_PAIRS)
        };
        let found_after = |with_cpu: bool| -> usize {
            let mut pairs = pairs_to_find(&cell(1.02, with_cpu), arguments.replays);
            pairs.sort_unstable();
            pairs[arguments.replays * 4 / 5]
        };
        let (alone, beside) = (found_after(false), found_after(true));
        let equal = arguments.replay(&cell(1.0, true));
        table.add_row(format!(
            "{name} | {} | {} | {:.2} | {}",
            format_pairs(alone),
            format_pairs(beside),
            beside as f64 / alone as f64,
            format_percent(equal.false_claims, equal.replays)
        ));
    }
    table.publish()
}

fn format_pairs(pairs: usize) -> String {
    match pairs > MAX_PAIRS {
        true => format!("> {MAX_PAIRS}"),
        false => pairs.to_string(),
    }
}

/// The number of pairs after which each comparison found the slow-down; one more than the maximum if
/// it did not.
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
