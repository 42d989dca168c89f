//! Why an experiment ended, in words.

use std::time::Duration;

use super::comparison::{Comparison, Stopped, VerdictKind};
use pinwise_format::{duration, percent};
use pinwise_stats::verdict::MAX_OFFERED_TIME;

/// The state of a record without an end: it does not show which of the two is the case.
pub const NOT_ENDED: &str = "running, or cut off";

/// The verdict of a record that has not ended; `what` is "experiment", "search" or "gate".
#[must_use]
pub fn no_verdict_yet(what: &str) -> String {
    format!("No verdict yet: the {what} is running, or was cut off before its end.")
}

impl Stopped {
    /// Why an experiment ended, if it did.
    #[must_use]
    pub const fn words(stopped: Option<Self>) -> &'static str {
        match stopped {
            Some(Self::Precision) => "stopped once the answer was clear",
            Some(Self::Budget) => "time budget used up",
            Some(Self::Runs) => "run budget used up",
            Some(Self::Interrupted) => "interrupted",
            Some(Self::Failed) => "stopped because a command failed",
            None => NOT_ENDED,
        }
    }
}

impl Comparison {
    /// Does CPU time decide what wall-clock time leaves open?
    #[must_use]
    pub fn is_decided_by_cpu_time(&self) -> bool {
        let mut contrasts = self.contrasts.iter();
        contrasts.any(|contrast| contrast.deciding_cpu_time().is_some())
    }

    /// Why it ended, or that it has not.
    #[must_use]
    pub fn ending(&self) -> String {
        match (self.stopped, self.plan.precision) {
            (Some(Stopped::Precision), _) if self.is_decided_by_cpu_time() => {
                "stopped: CPU time gives the answer (--metric wall goes on)".to_owned()
            }
            (Some(Stopped::Precision), Some(_)) => "stopped at the precision asked for".to_owned(),
            (Some(Stopped::Precision), None) if self.blocks > 0 => format!(
                "{} (--precision narrows the intervals)",
                Stopped::words(self.stopped)
            ),
            (Some(Stopped::Budget | Stopped::Runs), Some(wanted)) => format!(
                "{} before the precision of {} was reached{}",
                Stopped::words(self.stopped),
                percent(wanted),
                self.price_of_precision(wanted)
            ),
            _ => Stopped::words(self.stopped).to_owned(),
        }
    }

    /// The time that this precision takes in all, in words: widths shrink with the root of it.
    fn price_of_precision(&self, wanted: f64) -> String {
        // The advice of an undecided one has the price.
        if self.verdict.kind == VerdictKind::Undecided {
            return String::new();
        }
        let ends = self.contrasts.iter().map(|c| c.low.zip(c.high));
        let widths = ends.map(|ends| ends.map_or(f64::INFINITY, |(low, high)| (high / low).ln()));
        let half_width = 0.5 * widths.fold(0.0, f64::max);
        let total_s = self.elapsed_s * (half_width / wanted.ln_1p()).powi(2);
        match Duration::try_from_secs_f64(total_s) {
            Ok(total) if total_s > self.elapsed_s && total <= MAX_OFFERED_TIME => {
                format!(" (it takes about {} in all)", duration(total))
            }
            _ => String::new(),
        }
    }
}
