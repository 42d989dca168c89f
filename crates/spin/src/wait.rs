//! Expands an algorithm's row to its wait on a machine, and converts a wait to times.
//!
//! Everything is counted in hints until the end, so that totals are exact.

use std::time::Duration;

use super::algorithm::{Algorithm, Backoff, Case, Growth, Runs, Setting, Unit, Wait};
use pinwise_format::whole;

impl Algorithm {
    /// A waiter's wait on a machine; `None` if the backoff is unknown.
    ///
    /// Waits that only load or yield have runs of no hints, one for each look.
    #[must_use]
    pub fn compute_wait(&self, setting: &Setting, case: Case) -> Option<Wait> {
        let backoff = match case {
            Case::Longest => self.longest.unwrap_or(self.backoff),
            Case::Typical => self.backoff,
        };
        if setting.cpus < self.min_cpus {
            return Some(Wait {
                runs: Vec::new(),
                is_endless: false,
            });
        }
        let scale = Scale::new(self.unit, setting.hint_ns);
        let is_endless = matches!(backoff, Backoff::Endless { .. });
        let runs = expand_backoff(backoff, setting, case, scale.cap_units)?;
        let runs = runs.into_iter().map(|run| Runs {
            times: run.times,
            hints: run.hints.saturating_mul(scale.hints_per_unit),
        });
        Some(Wait {
            runs: runs.collect(),
            is_endless,
        })
    }

    /// Is the spinning time nearly independent of a hint's cost? True if it measures hints, uses
    /// the clock, or has none.
    #[must_use]
    pub const fn is_immune(&self) -> bool {
        match self.unit {
            Unit::Hint | Unit::Graded { .. } => false,
            Unit::Normalised { .. } | Unit::Clock | Unit::Load | Unit::Yield => true,
        }
    }
}

/// The length of a unit with this latency of a hint.
struct Scale {
    hints_per_unit: u64,
    /// Limit of a run, in units.
    cap_units: u64,
}

impl Scale {
    /// Normalised units are rounded as in `CoreCLR`: the number of hints closest to a unit, and the
    /// number of units closest to the maximum between two looks, at least one each (dotnet/runtime,
    /// `yieldprocessornormalized.cpp`).
    fn new(unit: Unit, hint_ns: f64) -> Self {
        let (hints_per_unit, cap_units) = match unit {
            Unit::Hint | Unit::Clock => (1, u64::MAX),
            Unit::Graded {
                above_ns,
                short,
                long,
            } => (if hint_ns > above_ns { long } else { short }, u64::MAX),
            Unit::Normalised { unit_ns, max_ns } => {
                let hints = round_to_positive(unit_ns / hint_ns);
                (hints, round_to_positive(max_ns / (hints as f64 * hint_ns)))
            }
            Unit::Load | Unit::Yield => (0, u64::MAX),
        };
        Self {
            hints_per_unit,
            cap_units,
        }
    }
}

/// Rounds to the nearest whole number, at least 1.
fn round_to_positive(value: f64) -> u64 {
    whole(value).max(1)
}

/// Expands a backoff to its runs, in units.
fn expand_backoff(
    backoff: Backoff,
    setting: &Setting,
    case: Case,
    cap_units: u64,
) -> Option<Vec<Runs>> {
    Some(match backoff {
        Backoff::Rounds {
            repetitions,
            first,
            growth,
            below,
        } => {
            let limit = below.for_cpus(setting.cpus);
            let lengths = run_lengths(first, growth, case, cap_units);
            let rounds: Vec<u64> = strictly_growing(lengths, limit);
            let repetitions = usize::try_from(repetitions).unwrap_or(usize::MAX);
            merge_equal(std::iter::repeat_n(rounds, repetitions).flatten())
        }
        Backoff::Counted {
            runs,
            first,
            growth,
            cap,
        } => repeat_runs(
            runs.for_cpus(setting.cpus),
            growth,
            run_lengths(first, growth, case, cap.min(cap_units)),
        ),
        Backoff::Budgeted {
            below,
            first,
            growth,
            cap,
        } => fill_budget(
            below,
            run_lengths(first, growth, case, cap.min(cap_units)),
            case,
        ),
        Backoff::Timed { ns } => {
            let hints = round_to_positive((ns as f64 / setting.hint_ns).ceil());
            vec![Runs {
                times: hints,
                hints: 1,
            }]
        }
        Backoff::Endless { gap } => vec![Runs {
            times: 1,
            hints: gap,
        }],
        Backoff::Unknown => return None,
    })
}

/// The lengths below a limit, up to the first that does not grow: there the cap is reached.
fn strictly_growing(lengths: impl Iterator<Item = u64>, limit: u64) -> Vec<u64> {
    let mut last = None;
    lengths
        .take_while(|&length| {
            let grows = last.is_none_or(|last| length > last);
            last = Some(length);
            grows && length < limit
        })
        .collect()
}

/// Makes this many runs; those at the cap are not expanded individually.
fn repeat_runs(count: u64, growth: Growth, mut lengths: impl Iterator<Item = u64>) -> Vec<Runs> {
    if let Growth::Constant | Growth::Random = growth {
        let hints = lengths.next().unwrap_or(0);
        return vec![Runs {
            times: count,
            hints,
        }];
    }
    /// 64 doublings reach any cap; squares only one up to 4096.
    const MAX_GROWING_RUNS: u64 = 64;
    let growing = usize::try_from(count.min(MAX_GROWING_RUNS)).unwrap_or(usize::MAX);
    let mut runs = merge_equal(lengths.by_ref().take(growing));
    if let (true, Some(hints)) = (count > MAX_GROWING_RUNS, lengths.next()) {
        runs.push(Runs {
            times: count - MAX_GROWING_RUNS,
            hints,
        });
    }
    runs
}

/// Makes runs while their sum stays below a budget; in the longest case, a last shorter run uses up
/// the rest.
fn fill_budget(below: u64, lengths: impl Iterator<Item = u64>, case: Case) -> Vec<Runs> {
    let most = below.saturating_sub(1);
    let mut sum = 0u64;
    let mut runs = Vec::new();
    for length in lengths {
        let remaining = most - sum;
        if length == 0 || length > remaining {
            if case == Case::Longest && remaining > 0 {
                runs.push(remaining);
            }
            break;
        }
        sum += length;
        runs.push(length);
    }
    merge_equal(runs.into_iter())
}

/// Lengths of runs, an endless sequence.
fn run_lengths(first: u64, growth: Growth, case: Case, cap: u64) -> impl Iterator<Item = u64> {
    (0u64..).scan(first.min(cap), move |next, number| {
        let base = *next;
        let length = match growth {
            Growth::Constant => base,
            Growth::Times(factor) => {
                *next = base.saturating_mul(factor).min(cap);
                base
            }
            Growth::Jittered(factor) => {
                *next = base.saturating_mul(factor).min(cap);
                let most = base.saturating_sub(1);
                base + if case == Case::Longest {
                    most
                } else {
                    most / 2
                }
            }
            Growth::Square => number.saturating_mul(number).min(cap),
            Growth::Random => match case {
                Case::Typical => cap / 2,
                Case::Longest => cap,
            },
        };
        Some(length)
    })
}

/// Merges consecutive runs of equal length.
fn merge_equal(lengths: impl Iterator<Item = u64>) -> Vec<Runs> {
    let mut runs: Vec<Runs> = Vec::new();
    for hints in lengths {
        match runs.last_mut() {
            Some(last) if last.hints == hints => last.times += 1,
            _ => runs.push(Runs { times: 1, hints }),
        }
    }
    runs
}

impl Wait {
    /// Hints before it parks; `None` if it never does.
    #[must_use]
    pub fn total_hints(&self) -> Option<u64> {
        let sum = |sum: u64, run: &Runs| sum.saturating_add(run.times.saturating_mul(run.hints));
        (!self.is_endless).then(|| self.runs.iter().fold(0, sum))
    }

    /// The largest number of hints between two looks.
    #[must_use]
    pub fn blind_gap_hints(&self) -> u64 {
        self.runs.iter().map(|run| run.hints).max().unwrap_or(0)
    }

    /// How long it spins with this latency of a hint; `None` if it never ends.
    #[must_use]
    pub fn total(&self, hint_ns: f64) -> Option<Duration> {
        self.total_hints()
            .map(|hints| hints_to_time(hints, hint_ns))
    }

    /// The longest time without a look.
    #[must_use]
    pub fn blind_gap(&self, hint_ns: f64) -> Duration {
        hints_to_time(self.blind_gap_hints(), hint_ns)
    }

    /// The moments of its looks, as hints since it began to wait, without the first look, which
    /// precedes all hints.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> impl Iterator<Item = u64> + '_ {
        let last = self.runs.last().filter(|_| self.is_endless);
        let on = last
            .into_iter()
            .flat_map(|run| std::iter::repeat(run.hints));
        let runs = self.runs.iter();
        runs.flat_map(|run| (0..run.times).map(|_| run.hints))
            .chain(on)
            .scan(0u64, |sum, hints| {
                *sum = sum.saturating_add(hints);
                Some(*sum)
            })
    }

    /// How long after it began to wait a waiter sees a lock that became free after `free_after`; `None`
    /// if it has parked by then.
    #[must_use]
    pub fn notices_release_after(&self, hint_ns: f64, free_after: Duration) -> Option<Duration> {
        if free_after.is_zero() {
            return Some(Duration::ZERO);
        }
        let mut before = 0u64;
        for (at, run) in self.runs.iter().enumerate() {
            let is_last = at + 1 == self.runs.len();
            let times = if self.is_endless && is_last {
                u64::MAX
            } else {
                run.times
            };
            if let Some(seen) = first_look_after(before, run.hints, times, hint_ns, free_after) {
                return Some(seen);
            }
            before = before.saturating_add(times.saturating_mul(run.hints));
        }
        None
    }
}

/// The first look at or after a moment, within equal runs that begin after this many hints.
fn first_look_after(
    before: u64,
    hints: u64,
    times: u64,
    hint_ns: f64,
    free_after: Duration,
) -> Option<Duration> {
    let look =
        |number: u64| hints_to_time(before.saturating_add(number.saturating_mul(hints)), hint_ns);
    if times == 0 || (hints == 0 && look(0) < free_after) {
        return None;
    }
    let passed = free_after.as_secs_f64() * 1e9 / hint_ns - before as f64;
    // Rounding may be off by one look in either direction.
    let guess = round_to_positive((passed / hints.max(1) as f64).floor());
    let around = guess.saturating_sub(1).max(1)..=guess.saturating_add(2).min(times);
    around.map(look).find(|&seen| seen >= free_after)
}

/// The time of this many hints, saturating.
fn hints_to_time(hints: u64, hint_ns: f64) -> Duration {
    Duration::try_from_secs_f64(hints as f64 * hint_ns * 1e-9).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
