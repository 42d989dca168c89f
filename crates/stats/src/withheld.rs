//! Describes reasons against a verdict, as clauses for the sentences of [`verdict`](super::verdict).

use super::caveats::{Centres, LoadLevel, LoadLevels, Split};
use super::confirm::{Contrast, Decision, Look};
use super::judge::Judge;
use super::setting::{Setting, relative_change};
use pinwise_format::{percent, signed_percent};

/// Describes why a verdict that the interval would give is withheld, as a clause. Such a verdict
/// stays withheld however long the comparison goes on.
#[must_use]
pub fn describe_caveat(contrast: &Contrast, setting: &Setting<'_>) -> Option<String> {
    let caveats = &contrast.caveats;
    let split = |split: Split| {
        let change = |log_ratio: f64| signed_percent(setting.metric_change(log_ratio));
        (change(split.first), change(split.second))
    };
    if caveats.depends_on_order() {
        let (even, uneven) = split(caveats.order?);
        return Some(format!(
            "it depends on what ran before ({even} where both ran after the same arm, {uneven} elsewhere)"
        ));
    }
    if caveats.depends_on_time() {
        let (early, late) = split(caveats.time?);
        return Some(format!(
            "it changes over time ({early} at first, {late} at the end)"
        ));
    }
    if caveats.withholds() && caveats.depends_on_load() {
        return Some(format!(
            "it depends on load ({})",
            describe_by_load(caveats.by_load?, setting)
        ));
    }
    if let Some(Centres { median, mean }) = caveats.centres {
        let [median, mean] = [median, mean].map(|of| signed_percent(setting.metric_change(of)));
        return Some(format!("{median} in the median block, {mean} by the means"));
    }
    if let Some(other) = caveats.others.iter().find(|other| other.contradicts) {
        return Some(format!(
            "{} {}",
            signed_percent(setting.metric_change(other.estimate)),
            other.judge.phrase()
        ));
    }
    let resolution = setting.resolution?;
    (resolution.relative > setting.delta).then(|| match resolution.is_unknown() {
        true => "no run shows how fine the figure is: all gave the same value".to_owned(),
        false => format!(
            "the figure comes in steps of {}",
            percent(relative_change(resolution.relative))
        ),
    })
}

fn describe_by_load(levels: LoadLevels, setting: &Setting<'_>) -> String {
    let change = |level: LoadLevel| {
        let change = signed_percent(setting.metric_change(level.difference));
        (change, level.load)
    };
    let levels = [Some(levels.light), levels.medium, Some(levels.heavy)];
    describe_by_loads(levels.into_iter().flatten().map(change))
}

/// Why a contrast is open though its interval would decide it: a caveat, or that a difference of a
/// few blocks may be an after-effect, fade, or lack its rare slow runs.
pub(super) fn describe_doubt(contrast: &Contrast, setting: &Setting<'_>) -> Option<String> {
    let is_early = contrast.caveats.is_early;
    let too_early = || is_early.then(|| "a verdict takes more blocks".to_owned());
    describe_caveat(contrast, setting).or_else(too_early)
}

/// Describes changes with the CPUs that others used as a clause: `−3.0 % while others used 0.1 CPUs,
/// −1.0 % at 0.8, +2.0 % at 1.5`.
pub fn describe_by_loads(levels: impl Iterator<Item = (String, f64)>) -> String {
    let described = levels.enumerate().map(|(at, (change, load))| match at {
        0 => format!("{change} while others used {load:.1} CPUs"),
        _ => format!("{change} at {load:.1}"),
    });
    described.collect::<Vec<_>>().join(", ")
}

/// The text behind the size of a difference that depends on load: the difference under each load.
/// Empty if the difference does not depend on it, or is not one of typical runs, as these are.
pub(super) fn format_load(contrast: &Contrast, setting: &Setting<'_>) -> String {
    let caveats = &contrast.caveats;
    let levels = caveats.load.and(caveats.by_load);
    let levels = levels.filter(|_| setting.judge == Judge::Typical);
    levels.map_or_else(String::new, |levels| {
        format!(", {}", describe_by_load(levels, setting))
    })
}

/// A sentence on the first contrast whose verdict is withheld by a caveat; `None` if there is none.
#[must_use]
pub fn describe_withheld(look: &Look, setting: &Setting<'_>) -> Option<String> {
    let (contrast, caveat) = look.contrasts.iter().find_map(|contrast| {
        let is_open = contrast.decision == Decision::Undecided;
        let caveat = describe_doubt(contrast, setting).filter(|_| is_open)?;
        contrast
            .interval
            .half_width()
            .is_finite()
            .then_some((contrast, caveat))
    })?;
    Some(format!(
        "Undecided: {} against {} is {}, but {caveat}.",
        setting.names[contrast.arm],
        setting.names[setting.baseline],
        setting.describe_bounds(contrast.interval)
    ))
}
