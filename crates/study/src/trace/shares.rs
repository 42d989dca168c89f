//! Time as a share of what the threads had, and how much that matters.

use pinwise_format::{percent, seconds};
use pinwise_record::{Severity, TraceFigures};

/// A smaller share of the threads' time is not worth mentioning.
const WORTH: f64 = 0.01;
/// From this share of the threads' time on, it is what to look at first. Less cannot be why a
/// program is slow.
const MUCH: f64 = 0.1;

/// A time as people judge it: `150 ms (15.0 % of their time)`.
pub(super) fn describe_time(figures: &TraceFigures, time_s: f64) -> String {
    let share = figures.share_of_threads(time_s);
    format!("{} ({} of their time)", seconds(time_s), percent(share))
}

/// How much a time matters; `None` if that is hardly worth a word.
pub(super) fn severity_of(figures: &TraceFigures, time_s: f64) -> Option<Severity> {
    match figures.share_of_threads(time_s) {
        share if share >= MUCH => Some(Severity::Warning),
        share if share >= WORTH => Some(Severity::Note),
        _ => None,
    }
}

/// How long threads neither ran nor waited for a CPU; `None` if unknown.
pub(super) fn blocked_s(figures: &TraceFigures) -> Option<f64> {
    let awake_s = figures.totals.cpu_s + figures.waits.total_s?;
    Some((figures.totals.life_s? - awake_s).max(0.0))
}
