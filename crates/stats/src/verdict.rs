//! Writes verdicts as sentences with their intervals.
//!
//! A sentence never says "no difference". Either the interval lies within ±δ, and the sentence says
//! so; or the answer is undecided, and the sentence says what is still possible and how long a
//! decision would take.

mod offers;

use std::time::Duration;

use super::confirm::{Contrast, Decision, Look};
use super::diagnose::work_factor;
use super::normal;
use super::paired::Interval;
pub use super::setting::{Basis, Setting, Words, relative_change};
pub use super::withheld::{describe_by_loads, describe_caveat, describe_withheld};
use super::withheld::{describe_doubt, format_load};
pub use offers::{Effort, Offer, offer_more};
use pinwise_format::{capitalise, count, duration, join_words, percent};

/// The result of a comparison as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// One arm is better than the baseline.
    Best(usize),
    /// All arms cost the same within δ.
    Same,
    /// Nothing beats the baseline by δ: keep it.
    LeaveAlone,
    /// None of these.
    Undecided,
}

/// Judges a comparison as a whole. `baseline_is_default`: does the baseline need no action, so that
/// "leave it alone" is a possible answer?
#[must_use]
pub fn judge_outcome(look: &Look, delta: f64, baseline_is_default: bool) -> ComparisonOutcome {
    let with_decision = |decision: Decision| {
        look.contrasts
            .iter()
            .filter(move |c| c.decision == decision)
    };
    if look.contrasts.is_empty() {
        return ComparisonOutcome::Undecided;
    }
    let all = look.contrasts.len();
    if with_decision(Decision::Same).count() == all {
        return ComparisonOutcome::Same;
    }
    let nothing_gains = look
        .contrasts
        .iter()
        .all(|c| c.interval.low > -delta && !c.caveats.withholds());
    if nothing_gains && baseline_is_default {
        return ComparisonOutcome::LeaveAlone;
    }
    let best_faster =
        with_decision(Decision::Faster).min_by(|a, b| a.estimate.total_cmp(&b.estimate));
    if let Some(best) = best_faster {
        return ComparisonOutcome::Best(best.arm);
    }
    if with_decision(Decision::Slower).count() == all {
        return ComparisonOutcome::Best(look.winner);
    }
    if with_decision(Decision::Undecided).count() == 0 {
        return ComparisonOutcome::LeaveAlone;
    }
    ComparisonOutcome::Undecided
}

/// Describes one contrast as a sentence.
#[must_use]
pub fn describe_contrast(contrast: &Contrast, basis: Basis, setting: &Setting<'_>) -> String {
    let arm = &setting.names[contrast.arm];
    let baseline = &setting.names[setting.baseline];
    let words = setting.words;
    let (low, high) = (contrast.interval.low, contrast.interval.high);
    let judged = setting.describe_judge();
    match contrast.decision {
        Decision::Faster => format!(
            "{arm} is {} than {baseline} {} {judged}{} ({basis}).",
            words.better,
            setting.format_by_sizes(low, high),
            format_load(contrast, setting)
        ),
        Decision::Slower => format!(
            "{arm} is {} than {baseline} {} {judged}{} ({basis}).",
            words.worse,
            setting.format_by_sizes(low, high),
            format_load(contrast, setting)
        ),
        Decision::Same => {
            let (low, high) = setting.format_ends(low, high);
            let delta = percent(relative_change(setting.delta));
            format!(
                "{arm} is the same as {baseline} within ±{delta} {judged}: between {low} and {high} ({basis})."
            )
        }
        Decision::Undecided => describe_undecided(contrast, basis, setting),
    }
}

fn describe_undecided(contrast: &Contrast, basis: Basis, setting: &Setting<'_>) -> String {
    let arm = &setting.names[contrast.arm];
    let baseline = &setting.names[setting.baseline];
    let half_width = contrast.interval.half_width();
    if !half_width.is_finite() {
        return format!(
            "{arm} against {baseline} is undecided: {}.",
            describe_shortage(basis.blocks, setting)
        );
    }
    let between = setting.describe_bounds(contrast.interval);
    if let Some(caveat) = describe_doubt(contrast, setting) {
        return format!(
            "{arm} against {baseline} is undecided: {between}, but {caveat} ({basis})."
        );
    }
    if basis.is_dropped {
        return format!("{arm} against {baseline} is undecided: {between} ({basis}).");
    }
    format!(
        "{arm} against {baseline} is undecided: {between} ({basis}); ±{} takes {} more.",
        percent(relative_change(wanted_half_width(contrast, setting.delta))),
        format_time(estimate_time_needed(contrast, setting))
    )
}

/// With this many times the least blocks and no interval, many of them count for nothing.
const ENOUGH: usize = 3;

/// Why there is no interval: there are too few blocks, or too few of them are usable.
fn describe_shortage(blocks: usize, setting: &Setting<'_>) -> String {
    match blocks {
        blocks if blocks < setting.least => format!(
            "too few blocks for a verdict ({blocks} of {})",
            setting.least
        ),
        blocks if blocks < ENOUGH * setting.least => format!(
            "{} are too few for an interval that allows for all arms and looks",
            count(blocks, "block")
        ),
        blocks => format!("too few usable pairs in {}", count(blocks, "block")),
    }
}

/// A longer time is not offered.
pub const MAX_OFFERED_TIME: Duration = Duration::from_secs(3600);

fn format_time(time: Duration) -> String {
    match time > MAX_OFFERED_TIME {
        true => "more than an hour".to_owned(),
        false => format!("about {}", duration(time)),
    }
}

/// Estimates the further time until an undecided contrast is decided: until its interval has shrunk
/// to ±δ or, if it is that narrow already, to the distance of its estimate from 0 or ±δ.
#[must_use]
pub fn estimate_time_needed(contrast: &Contrast, setting: &Setting<'_>) -> Duration {
    let wanted = wanted_half_width(contrast, setting.delta);
    let factor = ROOM * work_factor(contrast.interval.half_width(), wanted);
    let needed = scale(setting.spent, factor - 1.0);
    if contrast.caveats.withholds() {
        needed.max(setting.spent)
    } else {
        needed
    }
}

/// Factor by which the advised time is longer than the square-root rule says, since widths vary.
/// With it the width was reached in 84 % of 330 simulated repetitions, without it in 68 %.
pub const ROOM: f64 = 1.4;

fn wanted_half_width(contrast: &Contrast, delta: f64) -> f64 {
    if contrast.interval.half_width() > delta {
        return delta;
    }
    let off_zero = contrast.estimate.abs();
    off_zero.max(delta - off_zero)
}

/// The undecided contrast with the widest interval; `None` if none has an interval.
fn find_widest_open(look: &Look) -> Option<&Contrast> {
    let open = look.contrasts.iter();
    open.filter(|c| c.decision == Decision::Undecided)
        .max_by(|a, b| {
            let (a, b) = (a.interval.half_width(), b.interval.half_width());
            a.total_cmp(&b)
        })
        .filter(|c| c.interval.half_width().is_finite())
}

/// Describes the arms that are certainly worse, the worst first: `one-core is slower by 71–104 %`.
/// `None` if there are none.
fn describe_certain(look: &Look, setting: &Setting<'_>) -> Option<String> {
    let mut worse: Vec<&Contrast> = look.contrasts.iter().collect();
    worse.retain(|c| c.decision == Decision::Slower && c.interval.low > setting.delta);
    worse.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
    let named = worse.iter().take(MAX_NAMED).enumerate().map(|(at, c)| {
        let verb = match at {
            0 => format!("is {} ", setting.words.worse),
            _ => String::new(),
        };
        let sizes = setting.format_by_sizes(c.interval.low, c.interval.high);
        format!("{} {verb}{sizes}", setting.names[c.arm])
    });
    let mut parts: Vec<String> = named.collect();
    if worse.len() > MAX_NAMED {
        parts.push(format!(
            "{} as well",
            count(worse.len() - MAX_NAMED, "more arm")
        ));
    }
    (!parts.is_empty()).then(|| join_words(&parts))
}

/// Most arms that a headline names as certainly worse.
const MAX_NAMED: usize = 2;

fn scale(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor.max(0.0)).unwrap_or(Duration::MAX)
}

/// Describes the error rate of a comparison's verdicts, and its cost compared with one test at the
/// end. The width of an interval is proportional to the quantile of its level, and the runs needed
/// for a width to its square.
#[must_use]
pub fn describe_guarantee(look: &Look, alpha: f64) -> String {
    let levels = look.contrasts.iter().map(|contrast| contrast.nominal_level);
    let strictest = levels.fold(alpha, f64::min).max(f64::MIN_POSITIVE);
    let ratio = normal::upper_quantile(0.5 * strictest) / normal::upper_quantile(0.5 * alpha);
    format!(
        "Error rate at most {:.0} % over all arms and interim looks, for speed and for \
         spread: intervals are {ratio:.1} times as wide as those of one test at the end, \
         or take {:.1} times the runs. They are of the difference; hyperfine's ± is how \
         runs vary.",
        100.0 * alpha,
        ratio * ratio
    )
}

/// Describes the whole comparison as a sentence. `is_recommended`: does the sentence recommend the
/// best arm, or the baseline if all are equal, rather than state only the difference?
#[must_use]
pub fn describe_outcome(
    outcome: ComparisonOutcome,
    look: &Look,
    setting: &Setting<'_>,
    is_recommended: bool,
) -> String {
    let baseline = &setting.names[setting.baseline];
    match outcome {
        ComparisonOutcome::Best(arm) if is_recommended => describe_best(arm, look, setting),
        ComparisonOutcome::Best(arm) => describe_difference(arm, look, setting),
        ComparisonOutcome::Same => format!(
            "All arms are the same within ±{} {}{}.",
            percent(relative_change(setting.delta)),
            setting.describe_judge(),
            match is_recommended {
                true => format!(": {baseline} will do"),
                false => String::new(),
            }
        ),
        ComparisonOutcome::LeaveAlone => {
            format!("Leave it alone: {}.", describe_no_gain(look, setting))
        }
        ComparisonOutcome::Undecided => {
            let certain =
                describe_certain(look, setting).map_or_else(String::new, |c| format!("{c}. "));
            if let Some(withheld) = describe_withheld(look, setting) {
                return format!("{certain}{withheld}");
            }
            if find_widest_open(look).is_none() {
                let shortage = describe_shortage(look.blocks, setting);
                return format!("{certain}Undecided: {shortage}.");
            }
            let open = look.contrasts.iter();
            let open = open.filter(|contrast| contrast.decision == Decision::Undecided);
            let open: Vec<&Contrast> = open.collect();
            let rest = match open.as_slice() {
                [only] => describe_possible(only, setting),
                _ => format!(
                    "a gain over {baseline} of up to {} is still possible",
                    Setting::format_size(possible_gain(&look.contrasts, setting))
                ),
            };
            format!("{certain}Undecided: {rest}.")
        }
    }
}

/// Describes that no arm beats the baseline by the smallest effect: a single arm by what it gains or
/// costs, several by the effect that none has.
fn describe_no_gain(look: &Look, setting: &Setting<'_>) -> String {
    let baseline = &setting.names[setting.baseline];
    let judged = setting.describe_judge();
    let effect = percent(relative_change(setting.delta));
    let certain = describe_certain(look, setting).map_or_else(String::new, |c| format!("; {c}"));
    let [only] = look.contrasts.as_slice() else {
        return format!("no arm beats {baseline} by {effect} or more {judged}{certain}");
    };
    let name = &setting.names[only.arm];
    let sizes = setting.format_by_sizes(only.interval.low, only.interval.high);
    let Words { better, worse } = setting.words;
    match only.decision {
        Decision::Slower => format!("{name} is {worse} than {baseline} {sizes} {judged}"),
        Decision::Faster => format!(
            "{name} is {better} than {baseline} {sizes} {judged}, less than the {effect} that count"
        ),
        _ => format!("{} {judged}", describe_possible(only, setting)),
    }
}

/// Describes what the interval of an undecided contrast leaves possible: `new may be faster than old
/// by up to 1.1 % or slower by up to 3.9 %`.
fn describe_possible(contrast: &Contrast, setting: &Setting<'_>) -> String {
    let Interval { low, high } = contrast.interval;
    let [arm, baseline] = [contrast.arm, setting.baseline].map(|column| &setting.names[column]);
    let Words { better, worse } = setting.words;
    let [gain, loss] =
        [low, high].map(|end| Setting::format_size(setting.metric_change(end).abs()));
    match (low < 0.0, high > 0.0) {
        (true, true) => format!(
            "{arm} may be {better} than {baseline} by up to {gain} or {worse} by up to {loss}"
        ),
        (true, false) => {
            format!("{arm} may be the same as {baseline} or {better} by up to {gain}")
        }
        (false, _) => format!("{arm} may be the same as {baseline} or {worse} by up to {loss}"),
    }
}

/// The largest gain that an interval leaves possible, as a relative change.
fn possible_gain(contrasts: &[Contrast], setting: &Setting<'_>) -> f64 {
    let gains = contrasts.iter().filter(|c| c.interval.low < 0.0);
    gains
        .map(|c| setting.metric_change(c.interval.low).abs())
        .fold(0.0, f64::max)
}

/// Names of the arms that may still be better than `arm`, the best one, by the smallest effect or
/// more.
fn list_rivals<'a>(arm: usize, look: &Look, setting: &Setting<'a>) -> Vec<&'a str> {
    let is_open = |column: usize| {
        let behind = look.behind.get(column).copied().unwrap_or(0.0);
        column != arm && behind <= -setting.delta
    };
    match look.winner == arm {
        true => {
            let columns = look.contrasts.iter().map(|contrast| contrast.arm);
            let open = columns.filter(|column| is_open(*column));
            open.map(|column| setting.names[column].as_str()).collect()
        }
        false => Vec::new(),
    }
}

/// Recommends the best arm.
fn describe_best(arm: usize, look: &Look, setting: &Setting<'_>) -> String {
    let name = &setting.names[arm];
    let baseline = &setting.names[setting.baseline];
    let margin = relative_change(look.winner_margin());
    let judged = setting.describe_judge();
    let rivals = if look.contrasts.len() < 2 || look.winner != arm || !margin.is_finite() {
        String::new()
    } else if margin < NO_MARGIN {
        "; no other arm is better".to_owned()
    } else {
        format!("; no other arm is better by more than {}", percent(margin))
    };
    let open = list_rivals(arm, look, setting);
    match look.contrasts.iter().find(|c| c.arm == arm) {
        Some(contrast) if !open.is_empty() => format!(
            "{name} or {} is best, undecided between them: {name} is {} than {baseline} {} {judged}{}.",
            match open.as_slice() {
                [only] => (*only).to_owned(),
                several => format!("one of {} others", several.len()),
            },
            setting.words.better,
            setting.format_by_sizes(contrast.interval.low, contrast.interval.high),
            format_load(contrast, setting)
        ),
        Some(contrast) => format!(
            "{name} is best: {} than {baseline} {} {judged}{}{rivals}.",
            setting.words.better,
            setting.format_by_sizes(contrast.interval.low, contrast.interval.high),
            format_load(contrast, setting)
        ),
        None => match look.contrasts.as_slice() {
            [only] => format!(
                "{name} is best: {} is {} {} {judged}{}.",
                setting.names[only.arm],
                setting.words.worse,
                setting.format_by_sizes(only.interval.low, only.interval.high),
                format_load(only, setting)
            ),
            others => format!(
                "{name} is best: {} are {} {judged}.",
                name_others(others.len()),
                setting.words.worse
            ),
        },
    }
}

fn name_others(many: usize) -> String {
    match many {
        2 => "both others".to_owned(),
        many => format!("all {many} others"),
    }
}

/// Says by how much `arm` is ahead, without a recommendation.
fn describe_difference(arm: usize, look: &Look, setting: &Setting<'_>) -> String {
    let Words { better, worse } = setting.words;
    let judged = setting.describe_judge();
    let [name, baseline] = [arm, setting.baseline].map(|column| &setting.names[column]);
    let by = |contrast: &Contrast| {
        let sizes = setting.format_by_sizes(contrast.interval.low, contrast.interval.high);
        format!("{sizes} {judged}{}", format_load(contrast, setting))
    };
    match look.contrasts.iter().find(|c| c.arm == arm) {
        Some(contrast) => format!("{name} is {better} than {baseline} {}.", by(contrast)),
        None => match look.contrasts.as_slice() {
            [only] => {
                let other = &setting.names[only.arm];
                format!("{other} is {worse} than {name} {}.", by(only))
            }
            others => format!(
                "{} are {worse} than {name} {judged}.",
                capitalise(&name_others(others.len()))
            ),
        },
    }
}

/// A smaller margin would be printed as 0.00 %.
const NO_MARGIN: f64 = 5e-5;

#[cfg(test)]
mod tests;
