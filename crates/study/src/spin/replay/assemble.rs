//! Writes the results of a replay into its record: predictions, measurements, the errors between
//! them, and conclusions as sentences.

use super::{Arm, Cell, ReplayPlan, ms};
use pinwise_format::whole;
use pinwise_machine::{HandOver, HintKind};
use pinwise_record::{
    HintRecipe, ReleaseSeen, ReplayCell, ReplayExperiment, ReplayMeasured, ReplayPrediction,
    ReplayedAlgorithm, SpinReplayRecord, WaitEnd,
};
use pinwise_spin::lateness::{Costs, Ending, ReleaseNotice, UNSTABLE_SHARE};
use pinwise_stats::describe::{mean, median, quantile};
use pinwise_topology::Topology;

/// Times are reported per this many items, as in the third field report.
const REPORTED_ITEMS: f64 = 100.0;

/// Records all cells of hand-overs.
pub(super) fn record_hand_overs(
    plan: &ReplayPlan,
    arms: &[Arm],
    cells: &[Vec<Cell>],
    costs: Costs,
    record: &mut SpinReplayRecord,
) {
    for (arm, cells) in arms.iter().zip(cells) {
        let rows = plan.delays.iter().zip(cells).map(|(&delay, cell)| {
            let (hold, delay) = plan.hold_and_delay(delay);
            record_cell(arm, cell, ms(hold), ms(delay), costs)
        });
        let algorithm = record_algorithm(arm, rows.collect());
        record.algorithms.push(algorithm);
    }
    let all = cells.iter().flatten();
    let achieved: Vec<f64> = all.clone().filter_map(Cell::achieved_ns).collect();
    record.hint.achieved_ns = median(&achieved);
    record.hint.recipe = all.clone().find_map(|cell| cell.hint_kind).map(record_hint);
    record.conclusions = list_conclusions(record);
}

pub(super) fn record_hint(kind: HintKind) -> HintRecipe {
    match kind {
        HintKind::Own => HintRecipe::Own,
        HintKind::Stretched => HintRecipe::Stretched,
        HintKind::Shortened => HintRecipe::Shortened,
    }
}

/// Records an algorithm with its results.
pub(super) fn record_algorithm(arm: &Arm, cells: Vec<ReplayCell>) -> ReplayedAlgorithm {
    let stable = cells.iter().filter(|cell| is_comparable(cell));
    let errors: Vec<f64> = stable.filter_map(|cell| cell.error_percent).collect();
    let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    let ends = match (arm.wait.is_endless, arm.ending) {
        (true, _) => WaitEnd::Never,
        (false, Ending::Parks) => WaitEnd::Parks,
        (false, Ending::Yields) => WaitEnd::Yields,
    };
    ReplayedAlgorithm {
        algorithm: arm.id().to_owned(),
        name: arm
            .algorithm
            .map_or("parks at once, without spinning", |known| known.name)
            .to_owned(),
        total_hints: arm.wait.total_hints(),
        blind_gap_hints: arm.wait.blind_gap_hints(),
        ends,
        cells,
        contention: Vec::new(),
        median_error_percent: median(&sizes),
        stable_cells: sizes.len() as u64,
    }
}

/// Can this cell be compared with theory? Not if the waiter parked, as wake-ups are measured rather
/// than computed, and not next to a cliff, where either result is right.
fn is_comparable(cell: &ReplayCell) -> bool {
    !cell.unstable && cell.predicted.seen == ReleaseSeen::Spinning
}

fn record_cell(arm: &Arm, cell: &Cell, hold_ms: f64, delay_ms: f64, costs: Costs) -> ReplayCell {
    let costs = Costs {
        hint_ns: cell.wanted_ns(costs.hint_ns),
        yield_ns: cell.yield_ns,
        ..costs
    };
    let free_after_ns = (hold_ms - delay_ms) * 1e6;
    let found = arm.wait.compute_lateness(arm.ending, &costs, free_after_ns);
    let achieved_ns = cell.achieved_ns();
    let predict_with = |costs: &Costs| predict(arm, costs, hold_ms, free_after_ns);
    let measured = summarise_items(&cell.items);
    let error = |measured: &ReplayMeasured| {
        let late_us = found.late_ns.filter(|&ns| ns > 0.0)? * 1e-3;
        Some(100.0 * (measured.lateness_us - late_us) / late_us)
    };
    ReplayCell {
        hold_ms,
        delay_ms,
        predicted: predict_with(&costs),
        predicted_as_achieved: achieved_ns.map(|hint_ns| predict_with(&Costs { hint_ns, ..costs })),
        hint_achieved_ns: achieved_ns,
        error_percent: measured.as_ref().and_then(error),
        measured,
        cliff_percent: found.cliff_share.map(|share| 100.0 * share),
        unstable: found
            .cliff_share
            .is_some_and(|share| share <= UNSTABLE_SHARE),
        items: cell.items.len() as u64,
        switched: cell.switched as u64,
        stopped: cell.stopped as u64,
    }
}

fn predict(arm: &Arm, costs: &Costs, hold_ms: f64, free_after_ns: f64) -> ReplayPrediction {
    let found = arm.wait.compute_lateness(arm.ending, costs, free_after_ns);
    let item_s = found.late_ns.map(|ns| hold_ms * 1e-3 + ns * 1e-9);
    ReplayPrediction {
        seen: found.seen.into(),
        lateness_us: found.late_ns.map(|ns| ns * 1e-3),
        seconds_per_100_items: item_s.map(|s| REPORTED_ITEMS * s),
        hints: found.hints,
    }
}

/// Medians over the undisturbed items; `None` if there are none.
fn summarise_items(items: &[HandOver]) -> Option<ReplayMeasured> {
    if items.is_empty() {
        return None;
    }
    let collect = |figure: fn(&HandOver) -> f64| items.iter().map(figure).collect::<Vec<f64>>();
    let late_us = collect(|item| item.late_ns * 1e-3);
    let parks = items
        .iter()
        .filter(|item| item.seen == ReleaseNotice::Parked);
    Some(ReplayMeasured {
        lateness_us: quantile(&late_us, 0.5),
        lateness_low_us: quantile(&late_us, 0.25),
        lateness_high_us: quantile(&late_us, 0.75),
        lateness_p90_us: quantile(&late_us, 0.9),
        lateness_max_us: quantile(&late_us, 1.0),
        seconds_per_100_items: REPORTED_ITEMS * quantile(&collect(|item| item.item_ns * 1e-9), 0.5),
        waiter_cpu_s_per_100_items: REPORTED_ITEMS * mean(&collect(|item| item.cpu_ns * 1e-9)),
        hints: whole(quantile(&collect(|item| item.hints as f64), 0.5)),
        parks: parks.count() as u64,
    })
}

/// The conclusions from hand-overs, as sentences.
fn list_conclusions(record: &SpinReplayRecord) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(describe_largest_difference(&record.algorithms));
    for replayed in &record.algorithms {
        sentences.extend(describe_error(replayed));
    }
    let is_handoff = record.experiment == ReplayExperiment::Handoff;
    for replayed in &record.algorithms {
        sentences.extend(describe_cliffs(replayed, is_handoff));
    }
    sentences
}

fn describe_error(replayed: &ReplayedAlgorithm) -> Option<String> {
    let error = replayed.median_error_percent?;
    let cells = match replayed.stable_cells {
        1 => "one delay".to_owned(),
        cells => format!("{cells} delays"),
    };
    Some(format!(
        "{}: the measured lateness differs from its prediction by {error:.2} % (median of {cells} \
         whose prediction is certain).",
        replayed.algorithm
    ))
}

/// The delay at which the first algorithm differs most from another.
fn describe_largest_difference(all: &[ReplayedAlgorithm]) -> Option<String> {
    let (first, others) = all.split_first()?;
    let time = |cell: &ReplayCell| cell.measured.as_ref().map(|m| m.seconds_per_100_items);
    let mut farthest: Option<(f64, String)> = None;
    for other in others {
        for (old, new) in first.cells.iter().zip(&other.cells) {
            let Some((old_s, new_s)) = time(old).zip(time(new)) else {
                continue;
            };
            let ratio = (old_s / new_s).max(new_s / old_s);
            if farthest.as_ref().is_none_or(|(most, _)| ratio > *most) {
                let words = format!(
                    "At {} ms 100 items take {old_s:.2} s with {} and {new_s:.2} s with {}.",
                    old.hold_ms.min(if old.delay_ms > 0.0 {
                        old.delay_ms
                    } else {
                        old.hold_ms
                    }),
                    first.algorithm,
                    other.algorithm
                );
                farthest = Some((ratio, words));
            }
        }
    }
    farthest.map(|(_, words)| words)
}

fn describe_cliffs(replayed: &ReplayedAlgorithm, is_handoff: bool) -> Option<String> {
    let near = replayed.cells.iter().filter(|cell| cell.unstable);
    let near: Vec<String> = near
        .map(|cell| {
            let at_ms = if is_handoff {
                cell.hold_ms
            } else {
                cell.delay_ms
            };
            let percent = cell.cliff_percent.unwrap_or_default();
            format!("{at_ms} ms (within {percent:.1} %)")
        })
        .collect();
    (!near.is_empty()).then(|| {
        format!(
            "{}: uncertain at {}: a PAUSE that is longer or shorter by as little gives another result.",
            replayed.algorithm,
            near.join(", ")
        )
    })
}

/// Adds notes on the CPUs, on excluded items and on what could not be measured.
pub(super) fn add_notes(topology: &Topology, record: &mut SpinReplayRecord) {
    let core_of = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.core);
    if let [holder, waiter] = record.cpus[..]
        && core_of(holder).is_some()
        && core_of(holder) == core_of(waiter)
    {
        record.header.notes.push(format!(
            "CPUs {holder} and {waiter} share a core and slow each other's hints and work."
        ));
    }
    let cells = record.algorithms.iter().flat_map(|one| &one.cells);
    let (wanted, good) = (record.items, cells.clone().map(|cell| cell.items));
    let missing: u64 = good.map(|items| wanted.saturating_sub(items)).sum();
    let left_out: u64 = cells.map(|cell| cell.switched + cell.stopped).sum();
    if left_out > 0 {
        let advice = if record.realtime || missing == 0 {
            ""
        } else {
            "; --realtime would keep other programs away"
        };
        record.header.notes.push(format!(
            "{left_out} items were disturbed and excluded, {missing} are missing{advice}."
        ));
    }
    if record.wake_ns.is_none() && record.experiment != ReplayExperiment::Contend {
        record.header.notes.push(
            "The cost of a wake-up could not be measured: being parked is not predicted."
                .to_owned(),
        );
    }
}
