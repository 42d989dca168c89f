//! Sentences that explain levels and figures.

use super::LevelKind;
use super::figures::{Logs, median, quantile};
use super::search::{By, LevelRows};
use pinwise_format::nanoseconds;

pub(super) fn describe_evidence(level: &LevelRows, kind: LevelKind) -> String {
    let (groups, inside, outside) = (
        describe_groups(level),
        nanoseconds(level.inside_ns),
        nanoseconds(level.outside_ns),
    );
    match level.by {
        By::Home => format!(
            "{groups}: {inside} within one package, {outside} across and within the other, as if \
             every line were at home in the first."
        ),
        By::Inverse => format!(
            "{groups}: {inside} between mates but {outside} to all other CPUs, which distance \
             cannot explain, a shared port can."
        ),
        By::Contention => level.contention.map_or_else(
            || format!("{groups}: {inside} within, and work beside each other is slow."),
            |(within, beside)| {
                format!(
                    "{groups}: work beside each other takes {within:.2} times as long, beside \
                     others {beside:.2} times; {inside} within."
                )
            },
        ),
        By::Gap => {
            let (own, all) = (level.supporters, level.examined);
            let members = if kind == LevelKind::Smt {
                "CPUs"
            } else {
                "members"
            };
            format!(
                "{groups}: {inside} within, {outside} to the nearest other; {own} of {all} \
                 {members} are nearer to their own group than to any other."
            )
        }
    }
}

fn describe_groups(level: &LevelRows) -> String {
    let mut sizes: Vec<usize> = level.shared_groups().map(Vec::len).collect();
    sizes.sort_unstable();
    let (least, most) = (sizes.first().copied().unwrap_or(0), sizes.last().copied());
    let (number, most) = (sizes.len(), most.unwrap_or(0));
    let noun = if number == 1 { "group" } else { "groups" };
    let size = if least == most {
        format!("{least}")
    } else {
        format!("{least} to {most}")
    };
    let alone = level.groups.len() - number;
    let rest = match alone {
        0 => String::new(),
        1 => " and one CPU alone".to_owned(),
        alone => format!(" and {alone} CPUs alone"),
    };
    format!("{number} {noun} of {size} CPUs{rest}")
}

/// Notes that the clock is coarse.
pub(super) fn describe_coarse_clock(step_ns: f64) -> String {
    format!(
        "The figures are multiples of {}: the clock is coarse, and each may be off by that much.",
        nanoseconds(step_ns)
    )
}

/// Notes that the far package is inferred.
pub(super) const HOME: &str = "The packages rest on a model: the line that was passed around \
    lives in one of them, so that caches of the other seem as far from each other as from the \
    first. That the other CPUs are one package cannot be seen in these figures.";

/// Notes that figures have no structure at all.
pub(super) const NOISE: &str = "The figures look like noise: no two CPUs see the others alike, \
    as where the system ignores to which CPU a thread is pinned.";

/// Figures are noise if the most similar rows differ by more than this share of the typical difference
/// of rows (it is below 0.4 on meshes and rings).
const MIN_NOISE_UNLIKENESS: f64 = 0.45;
/// Figures that differ by less are flat, as a difference of logarithms.
const MIN_SPREAD: f64 = 0.1;
/// With fewer rows, similar rows cannot be expected.
const MIN_ROWS: usize = 8;

/// Do figures without levels look like those of unpinned threads?
pub(super) fn is_noise(logs: &Logs) -> bool {
    let mut known = logs.pair_values();
    if logs.len() < MIN_ROWS || known.is_empty() {
        return false;
    }
    let spread = quantile(&mut known, 0.9) - quantile(&mut known, 0.1);
    let (mut nearest, mut all) = (Vec::new(), Vec::new());
    for i in 0..logs.len() {
        let unlike: Vec<f64> = (0..logs.len())
            .filter(|&j| j != i)
            .map(|j| logs.unlikeness(i, j))
            .filter(|value| value.is_finite())
            .collect();
        nearest.push(unlike.iter().copied().fold(f64::INFINITY, f64::min));
        all.extend(unlike);
    }
    spread > MIN_SPREAD && median(&mut nearest) > MIN_NOISE_UNLIKENESS * median(&mut all)
}
