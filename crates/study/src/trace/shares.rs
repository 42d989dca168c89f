//! Describes a time as a share of the threads' time, and says how much it matters.

use pinwise_format::{percent, seconds};
use pinwise_record::{Severity, TraceFigures, TraceRecord};

/// A smaller share of the threads' time is no finding.
const MIN_NOTE_SHARE: f64 = 0.01;
/// A smaller share of the threads' time is no warning: it cannot be why a program is slow.
const MIN_WARNING_SHARE: f64 = 0.1;

/// A time and its share: `150 ms (15.0 % of their time)`.
pub(super) fn describe_time(figures: &TraceFigures, time_s: f64) -> String {
    let share = figures.share_of_threads(time_s);
    format!("{} ({} of their time)", seconds(time_s), percent(share))
}

/// How much a time matters; `None` if it is too short for a finding.
pub(super) fn severity_of(figures: &TraceFigures, time_s: f64) -> Option<Severity> {
    match figures.share_of_threads(time_s) {
        share if share >= MIN_WARNING_SHARE => Some(Severity::Warning),
        share if share >= MIN_NOTE_SHARE => Some(Severity::Note),
        _ => None,
    }
}

/// How long threads neither ran nor waited for a CPU; `None` if unknown.
pub(super) fn blocked_s(figures: &TraceFigures) -> Option<f64> {
    let awake_s = figures.totals.cpu_s + figures.waits.total_s?;
    Some((figures.totals.life_s? - awake_s).max(0.0))
}

/// CPUs that other programs kept busy, if that is half of one or more: the program's threads would
/// have waited less for each other without them.
pub(super) fn count_busy_others(record: &TraceRecord) -> Option<f64> {
    let cpus = record.figures.totals.foreign_cpu_s? / record.elapsed_s;
    (cpus >= 0.5).then_some(cpus)
}
