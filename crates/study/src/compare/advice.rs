//! What to do after a comparison, and when no placement is recommended.

use super::findings;
use super::plan::ComparePlan;
use pinwise_format::percent;
use pinwise_placement::Wish;
use pinwise_record::{Comparison, ContrastRecord, PlacementKind, Stopped, words};
use pinwise_stats::confirm::Look;
use pinwise_stats::verdict::{self, ComparisonOutcome, Setting, Words};

/// What to do, as a sentence; `None` where the best arm's commands say it.
pub(super) fn of(
    record: &Comparison,
    plan: &ComparePlan,
    outcome: ComparisonOutcome,
    best: Option<usize>,
    (look, setting): (&Look, &Setting<'_>),
) -> Option<String> {
    withheld(record, best)
        .or_else(|| caveat(outcome, look, setting))
        .or_else(|| {
            let prices = verdict::prices(look, setting, plan.effort(record.stopped.as_ref()));
            to_do(record, plan, outcome, best, prices)
        })
}

/// More time settles nothing where something else speaks against a verdict.
fn caveat(outcome: ComparisonOutcome, look: &Look, setting: &Setting<'_>) -> Option<String> {
    verdict::withheld(look, setting).filter(|_| outcome == ComparisonOutcome::Undecided)?;
    Some("See the findings for what would settle it.".to_owned())
}

/// Others using more of the machine than this make a placement an answer to
/// them, not to the program.
const BUSY_SHARE: f64 = 0.2;

/// A placement is not recommended for what may be the neighbours' doing.
fn withheld(record: &Comparison, best: Option<usize>) -> Option<String> {
    let arm = &record.arms[best?];
    if arm.placement.kind == PlacementKind::OsDefault {
        return None;
    }
    let contrasts = || record.contrasts.iter();
    if contrasts().any(|c| c.arm == arm.name && c.depends_on_load) {
        return Some(
            "No placement is recommended: the difference depends on what else runs. Compare under the load that matters, or on a quiet machine."
                .to_owned(),
        );
    }
    let min_effect = record.plan.min_effect;
    let is_small = |c: &ContrastRecord| c.ratio * (1.0 + min_effect) > 1.0;
    if contrasts().any(|c| c.arm == arm.name && is_small(c)) {
        return Some(format!(
            "No placement is recommended: as estimated, it gains less than the smallest effect of interest, {} (--min-effect).",
            percent(min_effect)
        ));
    }
    // How near to its parent it starts is what they measure, and that changes
    // from one minute to the next.
    if findings::short_run_s(record).is_some() {
        return Some(
            "No placement is recommended for runs that are mostly process start-up: give the command more work per run."
                .to_owned(),
        );
    }
    let busy = findings::foreign_cpus(record)?;
    let cpus = record.host.counts.cpus.max(1) as f64;
    (busy > BUSY_SHARE * cpus).then(|| {
        format!(
            "No placement is recommended while others use {busy:.1} of {cpus} CPUs: compare again when they do not, or when the program will have to live with them."
        )
    })
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
        (ComparisonOutcome::Same, _) if words(&plan.metric) == Words::SPEED => {
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
            None => "A verdict takes more than an hour here. Make the machine quieter (pinwise doctor says how), or accept a larger smallest effect (--min-effect).".to_owned(),
        },
    };
    Some(text)
}
