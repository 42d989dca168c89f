//! The result of a comparison of two records in words, and what to do next.

use pinwise_format::{change, count, quantity, signed_range, three_digits};
use pinwise_record::{
    ArmShift, ChangeVerdict, CommandRecord, Comparison, FigureChange, PlacementKind, VerdictKind,
    renew_command, replace_effort,
};

/// Figures in a sentence.
const MAX_NAMED: usize = 3;
/// From this ratio on, a factor says more than a percentage.
const FACTOR_FROM: f64 = 3.0;
/// Times the effort that narrows an interval to half its width.
const MORE_EFFORT: usize = 4;

/// The result, and what to do next: as advice, or as a command.
#[derive(Debug, Default)]
pub(super) struct Conclusion {
    pub(super) sentence: String,
    pub(super) advice: String,
    pub(super) commands: Vec<CommandRecord>,
}

/// Concludes on two comparisons. `is_other_program`: does the program's file differ?
pub(super) fn conclude_arms(
    sides: [&Comparison; 2],
    figures: &[FigureChange],
    is_other_program: bool,
) -> Conclusion {
    let own = figures.iter().find(|figure| figure.over.is_none());
    let mut contrasts: Vec<&FigureChange> = figures.iter().filter(|f| f.over.is_some()).collect();
    contrasts.sort_by(|a, b| rank_contrast(a).total_cmp(&rank_contrast(b)));
    if contrasts.iter().all(|figure| !is_in_both(figure)) {
        let sentence = format!(
            "A and B have no arm in common: {}.",
            list_single_sides(&contrasts).join(", ")
        );
        return Conclusion {
            sentence,
            ..Conclusion::default()
        };
    }
    let first = contrasts[0];
    if first.shift.is_some() {
        let sentence = format!(
            "{}{}.",
            describe_shift(sides, first),
            describe_values(first, own)
        );
        return match is_other_program {
            true => Conclusion {
                sentence,
                advice: "The program's file changed as well: compare both builds in one experiment: pinwise compare --command OLD --command NEW".to_owned(),
                ..Conclusion::default()
            },
            false => Conclusion {
                sentence,
                commands: repeat(sides[1], "to confirm it"),
                ..Conclusion::default()
            },
        };
    }
    let shared = contrasts.iter().filter(|figure| is_in_both(figure));
    if shared.clone().all(|f| f.verdict == ChangeVerdict::Same) {
        let name = &sides[0].baseline;
        return Conclusion {
            sentence: format!("Nothing changed: arms compare with {name} in B as in A."),
            advice: "Change nothing.".to_owned(),
            ..Conclusion::default()
        };
    }
    let lead = match first.low {
        Some(_) => "No change is shown.",
        None => "No verdict.",
    };
    Conclusion {
        sentence: format!("{lead} {}", first.sentence),
        commands: repeat_longer(sides[1]),
        ..Conclusion::default()
    }
}

fn is_in_both(figure: &FigureChange) -> bool {
    figure.a.is_some() && figure.b.is_some()
}

/// Advantages that were gained or lost come first, then other changes, then what both have; of
/// these the largest.
fn rank_contrast(figure: &FigureChange) -> f64 {
    let size = figure.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let rank = match &figure.shift {
        Some(ArmShift::AdvantageGained | ArmShift::AdvantageLost) => 0.0,
        Some(_) => 1.0,
        None if figure.verdict != ChangeVerdict::Same && is_in_both(figure) => 2.0,
        None => 3.0,
    };
    // Far below the next rank, whatever the ratio.
    rank - size / 1e6
}

/// How many are only in A and only in B.
fn list_single_sides(figures: &[&FigureChange]) -> Vec<String> {
    let only = |side: &str, is_there: fn(&FigureChange) -> bool| {
        let alone = figures.iter().filter(|f| !is_in_both(f) && is_there(f));
        let many = alone.count();
        (many > 0).then(|| format!("{many} only in {side}"))
    };
    let all = [
        only("A", |figure| figure.a.is_some()),
        only("B", |figure| figure.b.is_some()),
    ];
    all.into_iter().flatten().collect()
}

/// Do the arms differ by where they run alone, from threads that may run anywhere?
fn is_about_pinning(record: &Comparison) -> bool {
    let baseline = record.arms.iter().find(|arm| arm.name == record.baseline);
    baseline.is_some_and(|baseline| {
        baseline.placement.kind == PlacementKind::OsDefault
            && record
                .arms
                .iter()
                .all(|arm| arm.command == baseline.command)
    })
}

/// What a change means for the arm, to be followed by its figures.
fn describe_shift([a, b]: [&Comparison; 2], figure: &FigureChange) -> String {
    let (arm, baseline) = (&figure.name, &a.baseline);
    let is_best = |record: &Comparison| {
        record.verdict.kind == VerdictKind::Best && record.recommended_arm().is_some()
    };
    let is_none_better = |record: &Comparison| {
        matches!(
            record.verdict.kind,
            VerdictKind::Same | VerdictKind::LeaveAlone
        )
    };
    let is_pinning = is_about_pinning(a) && is_about_pinning(b);
    let relation = match figure.shift {
        Some(ArmShift::AdvantageLost) if is_pinning && is_best(a) && is_none_better(b) => {
            return "Pinning no longer pays".to_owned();
        }
        Some(ArmShift::AdvantageGained) if is_pinning && is_none_better(a) && is_best(b) => {
            return "Pinning now pays".to_owned();
        }
        Some(ArmShift::AdvantageLost) => return format!("{arm} no longer beats {baseline}"),
        Some(ArmShift::AdvantageGained) => return format!("{arm} now beats {baseline}"),
        Some(ArmShift::FellBehind) => return format!("{arm} fell behind {baseline}"),
        Some(ArmShift::BaselineMoved) => {
            return format!("{arm} is unchanged, but {baseline} moved");
        }
        Some(ArmShift::CaughtUp) => return format!("{arm} caught up with {baseline}"),
        Some(ArmShift::FurtherAhead) => "further ahead of",
        Some(ArmShift::LessAhead) => "less far ahead of",
        Some(ArmShift::FurtherBehind) => "further behind",
        _ => "less far behind",
    };
    format!("{arm} is {relation} {baseline}")
}

/// The figures of the baseline and of an arm in A and in B, after a colon; empty if one is unknown.
fn describe_values(figure: &FigureChange, own: Option<&FigureChange>) -> String {
    let sides = |figure: &FigureChange, unit: &str| {
        let value = |arm: &Option<pinwise_record::ComparedArm>| {
            Some(quantity(arm.as_ref()?.estimate?.value, unit))
        };
        Some(format!(
            "from {} to {}",
            value(&figure.arm_a)?,
            value(&figure.arm_b)?
        ))
    };
    let described = own.and_then(|own| {
        Some(format!(
            ": {} went {}, {} {}",
            own.name,
            sides(own, &own.unit)?,
            figure.name,
            sides(figure, &own.unit)?
        ))
    });
    described.unwrap_or_default()
}

/// The command that measures B's question again, with a new seed.
fn repeat(record: &Comparison, what: &str) -> Vec<CommandRecord> {
    let line = renew_command(&record.argv, record.study.as_str());
    let command = line.map(|line| CommandRecord {
        what: what.to_owned(),
        line,
    });
    command.into_iter().collect()
}

/// The command that measures B's question with more effort.
fn repeat_longer(record: &Comparison) -> Vec<CommandRecord> {
    let option = match (record.plan.max_runs, record.plan.budget_s) {
        (Some(runs), _) => ("--max-runs", (MORE_EFFORT * runs).to_string()),
        (None, Some(budget_s)) => ("--budget", format!("{:.0}s", MORE_EFFORT as f64 * budget_s)),
        (None, None) => return repeat(record, "to measure again"),
    };
    let line = replace_effort(&record.argv, record.study.as_str(), &[option]);
    let command = line.map(|line| CommandRecord {
        what: "to measure again with more runs".to_owned(),
        line,
    });
    command.into_iter().collect()
}

/// Concludes on figures that are no ratios to a baseline.
pub(super) fn conclude_figures(figures: &[FigureChange]) -> Conclusion {
    let mut known: Vec<&FigureChange> = figures.iter().filter(|f| f.ratio.is_some()).collect();
    let size = |figure: &FigureChange| figure.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    known.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let is_changed = |figure: &&&FigureChange| {
        matches!(figure.verdict, ChangeVerdict::Lower | ChangeVerdict::Higher)
    };
    let judged: Vec<&&FigureChange> = known.iter().filter(|f| f.low.is_some()).collect();
    let changed: Vec<&&&FigureChange> = judged.iter().filter(|f| is_changed(f)).collect();
    let (sentence, advice) = match (changed.first(), judged.first(), known.first()) {
        (Some(most), _, _) => (
            format!(
                "B differs from A in {} of {}{}: {}.",
                changed.len(),
                count(judged.len(), "figure"),
                if changed.len() > 1 { ", most" } else { "" },
                describe_ratio(most)
            ),
            "Measure both again to confirm it.",
        ),
        (None, Some(_), _) if judged.iter().all(|f| f.verdict == ChangeVerdict::Same) => {
            ("B is the same as A.".to_owned(), "Change nothing.")
        }
        (None, Some(most), _) => (
            format!(
                "No difference between A and B is shown; the largest: {}.",
                describe_ratio(most)
            ),
            "Measure both again with more runs to narrow the intervals.",
        ),
        (None, None, Some(most)) if size(most) < 5e-4 => {
            ("B shows the same as A.".to_owned(), "Change nothing.")
        }
        (None, None, Some(most)) => (
            format!(
                "No verdict: single records do not show what is chance. Largest difference: {}.",
                describe_ratio(most)
            ),
            "Measure both again, and see how much equal records differ.",
        ),
        (None, None, None) => ("A and B have no figure to compare.".to_owned(), ""),
    };
    Conclusion {
        sentence,
        advice: advice.to_owned(),
        ..Conclusion::default()
    }
}

/// A figure and its change: `memory latency +3.1 % (+1.0 to +5.2 %)`.
fn describe_ratio(figure: &FigureChange) -> String {
    let ratio = figure.ratio.unwrap_or(1.0);
    let (text, range) = match (ratio >= FACTOR_FROM, figure.low, figure.high) {
        (true, _, _) => (format!("×{}", three_digits(ratio)), None),
        (false, Some(low), Some(high)) => {
            (change(ratio), Some(signed_range(low - 1.0, high - 1.0)))
        }
        (false, _, _) => (change(ratio), None),
    };
    let range = range.map_or_else(String::new, |range| format!(" ({range})"));
    format!("{} {text}{range}", figure.name)
}

/// Concludes on two gates, each of which compared two builds of its own.
pub(super) fn conclude_gates(figures: &[FigureChange]) -> Conclusion {
    let value = |value: Option<f64>| {
        value.map_or_else(
            || "none".to_owned(),
            |percent| change(1.0 + percent / 100.0),
        )
    };
    let shown: Vec<String> = figures
        .iter()
        .take(MAX_NAMED)
        .map(|f| format!("{} {}, then {}", f.name, value(f.a), value(f.b)))
        .collect();
    let end = if figures.len() > MAX_NAMED {
        " …"
    } else {
        "."
    };
    let commands = figures.first().map(|figure| CommandRecord {
        what: "to follow a benchmark from commit to commit".to_owned(),
        line: format!(
            "pinwise record history --trend {}",
            pinwise_format::shell::word(&figure.name)
        ),
    });
    Conclusion {
        sentence: format!(
            "Each gate compares its own two builds: {}{end}",
            shown.join("; ")
        ),
        commands: commands.into_iter().collect(),
        ..Conclusion::default()
    }
}

#[cfg(test)]
mod tests;
