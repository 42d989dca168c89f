//! Two comparisons: every arm's ratio to the baseline that both share.

use pinwise_format::shell;
use std::collections::HashMap;

use super::{ChangeError, describe_change, describe_figure, empty_figure, judge_figure};
use crate::compare::{all_runs, figure_kind, foreign_cpus};
use pinwise_format::count;
use pinwise_record::{
    Arm, ArmShift, ChangeVerdict, ComparedArm, Comparison, ContrastVerdict, Direction,
    FigureChange, Phase,
};
use pinwise_stats::Responses;
use pinwise_stats::apart::SessionComparison;
use pinwise_stats::resolution::{self, Figure};

/// Assumed standard deviation of a ratio between sessions if nothing changes, as a multiple of the
/// smallest effect of interest.
const BETWEEN_SESSIONS: f64 = 0.25;
/// The load of other programs differs if they used this many more CPUs in one session.
const DIFFERENT_LOAD_CPUS: f64 = 0.5;

/// Every arm against the baseline that both share, and the baseline itself.
pub(super) fn compare_arms(
    a: &Comparison,
    b: &Comparison,
    caveats: &mut Vec<String>,
) -> Result<Vec<FigureChange>, ChangeError> {
    check_same_question(a, b)?;
    caveats.push(
        "A and B ran at different times. Effects on all arms of one of them cancel in the ratios to the baseline; effects on a single arm do not. To be sure, run both in turn in one experiment: pinwise compare --command '…' --command '…'."
            .to_owned(),
    );
    let sides = [a, b];
    let arm_names = |record: &Comparison| -> Vec<String> {
        let arms = record.arms.iter().filter(|arm| arm.name != record.baseline);
        arms.map(|arm| arm.name.clone()).collect()
    };
    let mut names = arm_names(a);
    names.extend(
        arm_names(b)
            .into_iter()
            .filter(|name| find_arm(a, name).is_none()),
    );
    let shared = names
        .iter()
        .filter(|name| sides.iter().all(|side| find_arm(side, name).is_some()))
        .count();
    let delta = a.plan.min_effect.min(b.plan.min_effect);
    let comparer = ContrastComparer {
        delta,
        comparison: SessionComparison {
            judge: a.plan.judge.parse().unwrap_or_default(),
            contrasts: shared,
            between: BETWEEN_SESSIONS * delta.ln_1p(),
            step: sides.map(find_step).into_iter().fold(0.0, f64::max),
        },
        load: describe_load_change(sides, caveats),
    };
    let mut figures: Vec<FigureChange> = names
        .iter()
        .map(|name| comparer.compare_contrast(sides, name))
        .collect();
    if figures.iter().any(|figure| figure.low.is_some()) {
        caveats.push(
            "The change from A to B rests on means over four parts of each session: it differs a little from what the changes in A and in B, of all blocks, would give."
                .to_owned(),
        );
    }
    for name in names {
        let cpus = sides.map(|side| find_arm(side, &name).map(|arm| arm.cpus.as_str()));
        if let [Some(in_a), Some(in_b)] = cpus
            && in_a != in_b
        {
            caveats.push(format!("{name} is CPUs {in_a} in A and {in_b} in B."));
        }
    }
    figures.push(describe_baseline(a, b));
    Ok(figures)
}

fn find_arm<'a>(record: &'a Comparison, name: &str) -> Option<&'a Arm> {
    record.arms.iter().find(|arm| arm.name == name)
}

/// Both must have measured the same figure of the same commands and judged the
/// same of it against the same baseline.
fn check_same_question(a: &Comparison, b: &Comparison) -> Result<(), ChangeError> {
    if (&a.metric.name, &a.metric.unit) != (&b.metric.name, &b.metric.unit) {
        return Err(ChangeError::Metrics {
            of_a: a.metric.name.clone(),
            of_b: b.metric.name.clone(),
        });
    }
    let differ = |what: &str, of_a: &str, of_b: &str| ChangeError::Questions {
        what: what.to_owned(),
        of_a: of_a.to_owned(),
        of_b: of_b.to_owned(),
    };
    if a.plan.judge != b.plan.judge {
        return Err(differ("what is judged", &a.plan.judge, &b.plan.judge));
    }
    if a.baseline != b.baseline {
        return Err(differ("the baseline", &a.baseline, &b.baseline));
    }
    for in_a in &a.arms {
        let in_b = find_arm(b, &in_a.name);
        if let Some(in_b) = in_b.filter(|in_b| in_b.command != in_a.command) {
            let what = format!("the command of {}", in_a.name);
            let words = |arm: &Arm| shell::line(&arm.command);
            return Err(differ(&what, &words(in_a), &words(in_b)));
        }
    }
    Ok(())
}

/// How contrasts are compared.
struct ContrastComparer {
    delta: f64,
    comparison: SessionComparison,
    /// How the load of other programs differs, if it does; no change is claimed then.
    load: Option<String>,
}

impl ContrastComparer {
    /// An arm against the baseline, in B over A.
    fn compare_contrast(&self, sides: [&Comparison; 2], name: &str) -> FigureChange {
        let baseline = &sides[0].baseline;
        let mut figure = empty_figure(name, "");
        figure.over = Some(baseline.clone());
        let [a, b] = sides.map(|side| pair_blocks(side, name));
        // Statistics use costs, the inverse of a figure that is better if higher.
        let sign = if is_rate(sides[0]) { -1.0 } else { 1.0 };
        let ratio = |log: f64| (sign * log).exp();
        match self.comparison.compare(&a, &b) {
            Some(found) => {
                let [of_a, of_b] = found.ratios;
                figure.a = Some(ratio(of_a));
                figure.b = Some(ratio(of_b));
                figure.ratio = Some(ratio(of_b - of_a));
                if let Some(interval) = found.interval {
                    let ends = [ratio(interval.low), ratio(interval.high)];
                    figure.low = Some(ends[0].min(ends[1]));
                    figure.high = Some(ends[0].max(ends[1]));
                }
            }
            None => {
                [figure.a, figure.b] =
                    [&a, &b].map(|session| self.comparison.estimate_alone(session).map(ratio));
            }
        }
        let mut figure = judge_figure(figure, self.delta);
        let is_claim = matches!(figure.verdict, ChangeVerdict::Lower | ChangeVerdict::Higher);
        if let (true, Some(load)) = (is_claim, &self.load) {
            figure.verdict = ChangeVerdict::CannotTell;
            figure.sentence = describe_figure(&figure, self.delta);
            figure.sentence = format!("{}; {load}.", figure.sentence.trim_end_matches('.'));
        }
        [figure.arm_a, figure.arm_b] = sides.map(|side| describe_arm(side, name));
        figure.shift = find_shift(&figure, sign);
        if figure.shift.as_ref().is_some_and(is_of_degree) && did_only_baseline_move(sides, name) {
            figure.shift = Some(ArmShift::BaselineMoved);
        }
        if figure.ratio.is_some() && figure.low.is_none() {
            let blocks = [&a, &b].map(|session| count(session.blocks(), "block"));
            figure.sentence = format!(
                "{}; A has {}, B has {}, and an interval takes {} in each.",
                figure.sentence.trim_end_matches('.'),
                blocks[0],
                blocks[1],
                self.comparison.min_blocks()
            );
        }
        figure
    }
}

/// An arm as its own record judges it; `None` if the record does not have it.
fn describe_arm(record: &Comparison, name: &str) -> Option<ComparedArm> {
    let contrast = record.contrasts.iter().find(|one| one.arm == name);
    Some(ComparedArm {
        estimate: find_arm(record, name)?.estimate,
        effect: contrast.map(|one| one.effect.clone()),
        verdict: contrast.map(|one| one.verdict.clone()),
    })
}

/// Did the arm stay ahead or behind, by more or by less?
const fn is_of_degree(shift: &ArmShift) -> bool {
    matches!(
        shift,
        ArmShift::FurtherAhead
            | ArmShift::LessAhead
            | ArmShift::FurtherBehind
            | ArmShift::LessBehind
    )
}

/// Do the baseline's intervals in A and B exclude each other, and the arm's do not?
fn did_only_baseline_move(sides: [&Comparison; 2], arm: &str) -> bool {
    let did_move = |name: &str| {
        let ends = |side: &Comparison| {
            let estimate = find_arm(side, name)?.estimate?;
            Some((estimate.low?, estimate.high?))
        };
        let (a, b) = (ends(sides[0])?, ends(sides[1])?);
        Some(a.1 < b.0 || b.1 < a.0)
    };
    did_move(&sides[0].baseline) == Some(true) && did_move(arm) == Some(false)
}

/// What a change that is shown means for the arm. `sign`: −1 if a higher figure is better.
fn find_shift(figure: &FigureChange, sign: f64) -> Option<ArmShift> {
    let is_better = match figure.verdict {
        ChangeVerdict::Lower => sign > 0.0,
        ChangeVerdict::Higher => sign < 0.0,
        ChangeVerdict::Same | ChangeVerdict::CannotTell => return None,
    };
    let [a, b] = [&figure.arm_a, &figure.arm_b].map(|arm| {
        let verdict = arm.as_ref().and_then(|arm| arm.verdict.clone());
        verdict.unwrap_or(ContrastVerdict::Undecided)
    });
    let changes_to = |verdict: ContrastVerdict| a != verdict && b == verdict;
    let changes_from = |verdict: ContrastVerdict| a == verdict && b != verdict;
    let was_ahead = figure.a.is_some_and(|ratio| sign * ratio.ln() < 0.0);
    Some(match is_better {
        true if changes_to(ContrastVerdict::Faster) => ArmShift::AdvantageGained,
        true if changes_from(ContrastVerdict::Slower) => ArmShift::CaughtUp,
        true if was_ahead => ArmShift::FurtherAhead,
        true => ArmShift::LessBehind,
        false if changes_from(ContrastVerdict::Faster) => ArmShift::AdvantageLost,
        false if changes_to(ContrastVerdict::Slower) => ArmShift::FellBehind,
        false if was_ahead => ArmShift::LessAhead,
        false => ArmShift::FurtherBehind,
    })
}

/// The baseline's own figures, which have nothing to be compared with.
fn describe_baseline(a: &Comparison, b: &Comparison) -> FigureChange {
    let mut figure = empty_figure(&a.baseline, &a.metric.unit);
    [figure.arm_a, figure.arm_b] = [a, b].map(|side| describe_arm(side, &side.baseline));
    let estimate_of_baseline =
        |record: &Comparison| find_arm(record, &record.baseline).and_then(|arm| arm.estimate);
    if let Some(estimate) = estimate_of_baseline(a) {
        (figure.a, figure.a_low, figure.a_high) =
            (Some(estimate.value), estimate.low, estimate.high);
    }
    if let Some(estimate) = estimate_of_baseline(b) {
        (figure.b, figure.b_low, figure.b_high) =
            (Some(estimate.value), estimate.low, estimate.high);
    }
    if let (Some(a), Some(b)) = (figure.a, figure.b) {
        figure.ratio = Some(b / a).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    }
    figure.sentence = match figure.ratio {
        Some(ratio) => format!(
            "{} itself: {} in B, by the program or by the machine: two sessions cannot separate the two.",
            figure.name,
            describe_change(ratio)
        ),
        None => describe_figure(&figure, 0.0),
    };
    figure
}

fn is_rate(record: &Comparison) -> bool {
    record.metric.better == Direction::Higher
}

/// `ln(cost)` of the baseline and of an arm in each confirmation block that has both, in order of
/// time.
fn pair_blocks(record: &Comparison, name: &str) -> Responses {
    let mut session = Responses::new(2);
    let (Some(baseline), Some(arm)) = (find_arm(record, &record.baseline), find_arm(record, name))
    else {
        return session;
    };
    let by_block: HashMap<usize, f64> = confirmed_costs(baseline).collect();
    for (block, cost) in confirmed_costs(arm) {
        if let Some(of_baseline) = by_block.get(&block) {
            session.push(&[of_baseline.ln(), cost.ln()]);
        }
    }
    session
}

/// The arm's confirmation runs: number of the block and cost.
fn confirmed_costs(arm: &Arm) -> impl Iterator<Item = (usize, f64)> + '_ {
    let runs = arm
        .runs
        .iter()
        .filter(|run| run.phase == Phase::Confirmation);
    runs.filter_map(|run| Some((run.block, run.metric.cost?)))
}

/// The resolution of a record's figures, as `ln(ratio)`.
fn find_step(record: &Comparison) -> f64 {
    let positive_values = |arm: &Arm| -> Vec<f64> {
        let values = arm.runs.iter().filter_map(|run| run.metric.value);
        values.filter(|value| *value > 0.0).collect()
    };
    let columns: Vec<Vec<f64>> = record.arms.iter().map(positive_values).collect();
    let metric = record.metric.name.parse();
    let figure = metric.map_or(Figure::default(), |metric| figure_kind(&metric));
    resolution::find_step(&columns, figure).map_or(0.0, |step| step.relative)
}

/// Adds a caveat, and returns its clause, if the load of other programs differed by
/// [`DIFFERENT_LOAD_CPUS`]: how placements compare depends on that.
fn describe_load_change(sides: [&Comparison; 2], caveats: &mut Vec<String>) -> Option<String> {
    let [in_a, in_b] = sides.map(|side| foreign_cpus(all_runs(side)));
    let (in_a, in_b) = (in_a?, in_b?);
    if (in_a - in_b).abs() < DIFFERENT_LOAD_CPUS {
        return None;
    }
    let used = format!("programs used {in_a:.1} CPUs in A and {in_b:.1} in B");
    caveats.push(format!(
        "Other {used}: how arms compare may depend on that."
    ));
    Some(format!("other {used}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_whose_interval_overlaps_did_not_move_with_the_baseline() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let before: Comparison = serde_json::from_str(text).unwrap();
        let mut after = before.clone();
        let did = |after: &Comparison| did_only_baseline_move([&before, after], "compact*8");
        assert!(!did(&after));
        let scale = |record: &mut Comparison, name: &str| {
            let arm = record.arms.iter_mut().find(|arm| arm.name == name);
            let estimate = arm.and_then(|arm| arm.estimate.as_mut()).unwrap();
            estimate.low = estimate.low.map(|low| 2.0 * low);
            estimate.high = estimate.high.map(|high| 2.0 * high);
        };
        scale(&mut after, "os-default");
        assert!(did(&after));
        scale(&mut after, "compact*8");
        assert!(!did(&after));
    }
}
