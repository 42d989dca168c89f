//! What to do after a comparison whose placements are not withheld.

use super::plan::ComparePlan;
use super::{caveats, limit};
use pinwise_format::percent;
use pinwise_placement::Wish;
use pinwise_record::{CommandRecord, Comparison, Stopped, with_effort};
use pinwise_stats::confirm::Look;
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting, Words};

/// What to do, as a sentence; `None` where the best arm's commands say it.
pub(super) fn write_advice(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    caveat(record, outcome, look, setting).or_else(|| {
        let prices = verdict::prices(look, setting, plan.effort(record.stopped.as_ref()));
        to_do(record, plan, outcome, best, prices)
    })
}

/// More time settles nothing where something else speaks against a verdict.
fn caveat(
    record: &Comparison,
    outcome: ComparisonOutcome,
    look: &Look,
    setting: &Setting<'_>,
) -> Option<String> {
    verdict::withheld(look, setting).filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some(caveats::what_decides(record))
}

fn to_do(
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
        (ComparisonOutcome::Same, _) if plan.metric.words() == Words::SPEED => {
            "Speed does not decide: choose by other criteria.".to_owned()
        }
        (ComparisonOutcome::Same, _) => {
            "This metric does not decide: choose by other criteria.".to_owned()
        }
        _ => match prices {
            Some(prices) => {
                let tail = match prices.half_width {
                    None => "",
                    Some(_) => "; or accept a larger smallest effect (--min-effect)",
                };
                let more = match record.stopped {
                    // More time would end it there again.
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

/// The command of an undecided comparison with as much more effort as decides it, as
/// far as is known; `None` where effort is not what it lacks.
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
    let blocks = (look.blocks as f64 * (1.0 + factor)).ceil();
    let needed_s = record.elapsed_s + factor * setting.spent.as_secs_f64();
    let is_precise = record.stopped == Some(Stopped::Precision) && tuning.precision.is_some();
    let has_few = tuning.max_runs.is_some_and(|runs| (runs as f64) < blocks);
    let is_short = tuning
        .budget
        .is_some_and(|budget| budget.as_secs_f64() < needed_s);
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

/// A time as options take it, rounded up: `44s`, `12m`.
fn budget(needed_s: f64) -> String {
    match needed_s <= 90.0 {
        true => format!("{:.0}s", needed_s.ceil()),
        false => format!("{:.0}m", (needed_s / 60.0).ceil()),
    }
}
