//! What to do after a comparison whose placements are not withheld.

use super::plan::ComparePlan;
use pinwise_placement::Wish;
use pinwise_record::{Comparison, Stopped};
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
    caveat(outcome, look, setting).or_else(|| {
        let prices = verdict::prices(look, setting, plan.effort(record.stopped.as_ref()));
        to_do(record, plan, outcome, best, prices)
    })
}

/// More time settles nothing where something else speaks against a verdict.
fn caveat(outcome: ComparisonOutcome, look: &Look, setting: &Setting<'_>) -> Option<String> {
    verdict::withheld(look, setting).filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some("See the findings for how to decide it.".to_owned())
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
                let tail = match prices.is_first {
                    true => "",
                    false => "; or accept a larger smallest effect (--min-effect)",
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
