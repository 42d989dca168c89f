//! What to do after a comparison whose placements are not withheld.

use super::plan::ComparePlan;
use super::{caveats, limit};
use crate::launchers;
use pinwise_format::{duration, percent};
use pinwise_placement::emit::Tool;
use pinwise_placement::{Realised, Wish};
use pinwise_record::{CommandRecord, Comparison, Stopped, with_effort};
use pinwise_stats::confirm::Look;
use pinwise_stats::verdict::{self, ComparisonOutcome, Effort, Setting, gain};
use pinwise_topology::Topology;

/// What to do, as a sentence; `None` if the best arm's commands say it.
pub(super) fn write_advice(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    caveat(record, outcome, look, setting).or_else(|| {
        let effort = plan.effort(record.stopped.as_ref());
        let prices = verdict::prices(look, setting, effort);
        let is_precise = plan.tuning.precision.is_some();
        let known = known_sameness(plan, prices.as_ref(), effort, look, setting)
            .filter(|_| outcome == ComparisonOutcome::Undecided && !is_precise);
        known.or_else(|| to_do(record, plan, outcome, best, prices))
    })
}

/// More time settles nothing if something else speaks against a verdict.
fn caveat(
    record: &Comparison,
    outcome: ComparisonOutcome,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    verdict::withheld(look, setting).filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some(caveats::what_decides(record))
}

/// What an undecided comparison of two arms shows already, and what less would take: `Within ±1.9 %
/// they are the same; ±1.0 % takes about 55 min more (--budget).`; `None` for more arms, and if
/// they are shown to differ.
fn known_sameness(
    plan: &ComparePlan,
    prices: Option<&verdict::Prices>,
    effort: Effort,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    let [only] = look.contrasts.as_slice() else {
        return None;
    };
    let includes_none = only.interval.low <= 0.0 && only.interval.high >= 0.0;
    if !includes_none {
        return None;
    }
    let sign = if setting.is_rate { -1.0 } else { 1.0 };
    let ends = [only.interval.low, only.interval.high].map(|end| gain(sign * end).abs());
    let within = Some(ends[0].max(ends[1])).filter(|within| within.is_finite())?;
    let less = match prices.and_then(|prices| Some((prices.half_width?, prices.factor))) {
        None => format!(
            "±{} takes more than an hour",
            percent(plan.tuning.min_effect)
        ),
        Some((width, factor)) => {
            let option = match effort {
                Effort::Time => "--budget".to_owned(),
                Effort::Runs => format!("--max-runs {:.0}", blocks_for(look, factor)),
            };
            format!(
                "±{} takes about {} more ({option})",
                percent(gain(width)),
                duration(setting.spent.mul_f64(factor.max(0.0)))
            )
        }
    };
    Some(format!(
        "Within ±{} they are the same; {less}.",
        percent(within)
    ))
}

/// Total number of blocks if `factor` times the effort so far is added.
fn blocks_for(look: &Look, factor: f64) -> f64 {
    (look.blocks as f64 * (1.0 + factor)).ceil()
}

/// What to do by the outcome alone.
pub(super) fn to_do(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    prices: Option<verdict::Prices>,
) -> Option<String> {
    let text = match (outcome, best) {
        (ComparisonOutcome::Best(_), Some(arm)) => {
            let arm = &plan.arms[arm];
            if arm.is_default {
                "Change nothing.".to_owned()
            } else if arm.workload.recipe.is_some()
                && arm.place.placement.wish == Wish::OsDefault
                && arm.place.memory.is_none()
            {
                format!("Choose {}.", arm.name)
            } else {
                return None;
            }
        }
        (ComparisonOutcome::LeaveAlone, _) => "Change nothing.".to_owned(),
        (ComparisonOutcome::Same, _) => {
            "Choose by other criteria, or ask for less (--min-effect).".to_owned()
        }
        _ => match prices {
            Some(prices) => {
                let tail = match prices.half_width {
                    None => "",
                    Some(_) => "; or accept a larger smallest effect (--min-effect)",
                };
                let more = match record.stopped {
                    // More time would end for the same reason.
                    Some(Stopped::Precision) if plan.tuning.precision.is_some() => {
                        "a smaller --precision"
                    }
                    ref stopped => plan.more_effort(stopped.as_ref()),
                };
                format!("Give it {more}: {}{tail}.", prices.text)
            }
            None => "A verdict takes more than an hour here. Make the machine quieter (see pinwise doctor), or accept a larger smallest effect (--min-effect).".to_owned(),
        },
    };
    Some(text)
}

/// Factor on top of what a first verdict needs: blocks are not equally long.
pub(super) const ROOM: f64 = 1.1;
/// More than this many times the given effort is not advised: nobody asked for it.
const FAR: f64 = 10.0;

/// The command of an undecided comparison with the extra effort that decides it, as far as is
/// known; `None` if effort is not what it lacks, or too much is needed.
pub(super) fn command_that_decides(
    record: &Comparison,
    plan: &ComparePlan,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<CommandRecord> {
    if verdict::withheld(look, setting).is_some() {
        return None;
    }
    let tuning = &plan.tuning;
    let (factor, half_width) = match tuning.limit.filter(|_| !tuning.requires_verdict) {
        Some(limit) => (limit::share_that_decides(look, limit, setting.spent)?, None),
        None => {
            let effort = plan.effort(record.stopped.as_ref());
            let prices = verdict::prices(look, setting, effort)?;
            (prices.factor, prices.half_width)
        }
    };
    let blocks = blocks_for(look, factor);
    let mut needed_s = record.elapsed_s + factor * setting.spent.as_secs_f64();
    if half_width.is_none() && tuning.limit.is_none() {
        // As reported after the first run.
        needed_s *= ROOM;
    }
    let given_s = tuning
        .budget
        .map_or(f64::INFINITY, |budget| budget.as_secs_f64());
    let given_blocks = tuning.max_runs.map_or(f64::INFINITY, |runs| runs as f64);
    let is_precise = record.stopped == Some(Stopped::Precision) && tuning.precision.is_some();
    let has_few = given_blocks < blocks;
    let is_short = given_s < needed_s;
    if needed_s > FAR * given_s || blocks > FAR * given_blocks {
        return None;
    }
    let mut options = Vec::new();
    if let Some(half_width) = half_width.filter(|_| is_precise) {
        let share = percent(half_width.exp_m1()).replace(' ', "");
        options.push(("--precision", share));
    }
    if has_few {
        options.push(("--max-runs", format!("{blocks:.0}")));
    }
    if is_short {
        options.push(("--budget", budget(needed_s)));
    }
    let what = match options.first()?.0 {
        "--precision" => "for a narrower interval",
        "--max-runs" => "with more runs",
        _ => "for longer",
    };
    Some(CommandRecord {
        what: what.to_owned(),
        line: with_effort(&plan.argv, &options)?,
    })
}

/// What applies an arm, the plainest first.
pub(super) fn commands(
    record: &Comparison,
    arm: usize,
    place: &Realised,
    topology: &Topology,
) -> Vec<CommandRecord> {
    let arm = &record.arms[arm];
    let mut commands = record.commands_of(arm);
    let program = |tool: Tool| record.program_of(arm, |word| tool.given(word));
    commands.extend(launchers::commands(place, &arm.setting, topology, &program));
    commands
}

/// A time as options take it, rounded up: `44s`, `12m`.
pub(super) fn budget(needed_s: f64) -> String {
    match needed_s <= 90.0 {
        true => format!("{:.0}s", needed_s.ceil()),
        false => format!("{:.0}m", (needed_s / 60.0).ceil()),
    }
}
