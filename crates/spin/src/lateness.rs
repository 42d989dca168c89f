//! Predicts how late a waiter notices a release between its looks: the producer/consumer experiment
//! of the third field report, and the *cliffs*, where a small change of the hint's latency makes a
//! large difference.
//!
//! Nothing is executed. What depends on a scheduler or on chance, such as the throughput of many
//! contending threads, is not predicted.

use std::time::Duration;

use super::algorithm::Wait;
use pinwise_format::whole;

/// A worker that holds a lock for `hold` per item, and a sender that wants it
/// `delay` after the worker took it, item after item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerConsumer {
    /// Number of items.
    pub items: u32,
    /// How long the lock is held for each item.
    pub hold: Duration,
    /// Time from the start of holding until the sender begins to wait.
    pub delay: Duration,
}

impl ProducerConsumer {
    /// How long all items take with a waiter that spins this way: each costs the delay, plus the
    /// time until the first look at or after the release.
    #[must_use]
    pub fn total_when_spinning(&self, wait: &Wait, hint_ns: f64) -> Duration {
        let free_after = self.hold.saturating_sub(self.delay);
        let seen = wait.notices_release_after(hint_ns, free_after);
        let each = self.delay.saturating_add(seen.unwrap_or(free_after));
        each.saturating_mul(self.items)
    }

    /// How long all items take with a waiter that spins for up to `spin` and then parks; the release
    /// wakes it, which takes `wake`.
    #[must_use]
    pub fn total_when_parking(&self, spin: Duration, wake: Duration) -> Duration {
        let free_after = self.hold.saturating_sub(self.delay);
        let late = if free_after > spin { wake } else { spin };
        (self.delay + free_after + late) * self.items
    }
}

/// What a waiter does after all hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It sleeps until it is woken.
    Parks,
    /// It looks again and again, yielding the CPU in between.
    Yields,
}

impl Ending {
    /// Parses the description of the action after spinning (`Algorithm::then`). Sleeping for a fixed
    /// time counts as parking.
    #[must_use]
    pub fn parse(then: &str) -> Self {
        let words = then.to_lowercase();
        if words.contains("yield") {
            Self::Yields
        } else {
            Self::Parks
        }
    }
}

/// Costs of a waiter's actions on a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A spin-wait hint, ns.
    pub hint_ns: f64,
    /// Time from waking a sleeper until it runs, ns; `None` if unknown.
    pub wake_ns: Option<f64>,
    /// A `sched_yield` with no other thread to run, ns; `None` if unknown.
    pub yield_ns: Option<f64>,
}

/// How a waiter learns that it may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseNotice {
    /// By a look between hints.
    Spinning,
    /// By a look between yields.
    Yielding,
    /// By a wake-up.
    Parked,
}

/// How late a waiter continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// How it noticed.
    pub seen: ReleaseNotice,
    /// Time after the release, ns; `None` if a cost that it depends on is unknown.
    pub late_ns: Option<f64>,
    /// Number of hints executed until then.
    pub hints: u64,
    /// The smallest relative change of the hint's latency that leads to another look: a *cliff*.
    /// `None` if no change of up to twice or half would change the time of the wait by more than
    /// [`CLIFF_SHARE`].
    pub cliff_share: Option<f64>,
}

/// A jump of the lateness by more than this share of the time until the release is a cliff; a
/// smaller one does not matter.
pub const CLIFF_SHARE: f64 = 0.01;

/// A result nearer to a cliff than this is unstable: a chip's clock varies by as much within seconds.
pub const UNSTABLE_SHARE: f64 = 0.03;

/// A look and its neighbours, as hints since the wait began.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    before: u64,
    at: u64,
    /// `None` if it stops spinning after this look.
    after: Option<u64>,
}

impl Wait {
    /// The lateness if the lock becomes free `free_after_ns` after the wait began. A release during
    /// a look is seen by the next one.
    #[must_use]
    pub fn compute_lateness(&self, ending: Ending, costs: &Costs, free_after_ns: f64) -> Lateness {
        let free_after_hints = free_after_ns / costs.hint_ns;
        if free_after_ns <= 0.0 {
            return Lateness {
                seen: ReleaseNotice::Spinning,
                late_ns: Some(0.0),
                hints: 0,
                cliff_share: None,
            };
        }
        let Some(look) = self.first_look_at_or_after(free_after_hints) else {
            return self.lateness_after_hints(ending, costs, free_after_hints);
        };
        let gap = |from: u64, to: u64| to.saturating_sub(from) as f64;
        let share = |look: u64| (free_after_hints / look as f64 - 1.0).abs();
        let is_cliff = |jump: f64| jump > CLIFF_SHARE * free_after_hints;
        let below =
            (look.before > 0 && is_cliff(gap(look.before, look.at))).then(|| share(look.before));
        let jump = match look.after {
            Some(after) => gap(look.at, after),
            None => costs
                .ending_ns(ending)
                .map_or(f64::INFINITY, |ns| ns / costs.hint_ns),
        };
        let above = is_cliff(jump).then(|| share(look.at));
        Lateness {
            seen: ReleaseNotice::Spinning,
            late_ns: Some(look.at as f64 * costs.hint_ns - free_after_ns),
            hints: look.at,
            cliff_share: nearest_cliff(below, above),
        }
    }

    /// The lateness after all hints.
    fn lateness_after_hints(
        &self,
        ending: Ending,
        costs: &Costs,
        free_after_hints: f64,
    ) -> Lateness {
        let hints = self.total_hints().unwrap_or(u64::MAX);
        let late_ns = costs.ending_ns(ending);
        let jump = late_ns.map_or(f64::INFINITY, |ns| ns / costs.hint_ns);
        let is_cliff = hints > 0 && jump > CLIFF_SHARE * free_after_hints;
        Lateness {
            seen: match ending {
                Ending::Parks => ReleaseNotice::Parked,
                Ending::Yields => ReleaseNotice::Yielding,
            },
            late_ns,
            hints,
            cliff_share: nearest_cliff(
                is_cliff.then(|| free_after_hints / hints as f64 - 1.0),
                None,
            ),
        }
    }

    /// The first look at or after this many hints; `None` if the waiter has stopped spinning by then.
    fn first_look_at_or_after(&self, hints: f64) -> Option<Look> {
        let mut before = 0u64;
        let mut last = 0u64;
        for (at, run) in self.runs.iter().enumerate() {
            let is_last = at + 1 == self.runs.len();
            let is_endless = is_last && self.is_endless;
            if run.hints == 0 {
                continue;
            }
            let number = whole(((hints - before as f64) / run.hints as f64).ceil()).max(1);
            if number <= run.times || is_endless {
                let look = |number: u64| before.saturating_add(number.saturating_mul(run.hints));
                let next = self.runs.get(at + 1).map(|next| next.hints);
                let is_within = number < run.times || is_endless;
                return Some(Look {
                    before: if number > 1 { look(number - 1) } else { last },
                    at: look(number),
                    after: if is_within {
                        Some(look(number + 1))
                    } else {
                        next.map(|hints| look(number).saturating_add(hints))
                    },
                });
            }
            before = before.saturating_add(run.times.saturating_mul(run.hints));
            last = before;
        }
        None
    }
}

impl Costs {
    /// The lateness after spinning has ended, ns: a wake-up, or half a yield, since the release falls
    /// anywhere within one.
    #[must_use]
    pub fn ending_ns(&self, ending: Ending) -> Option<f64> {
        match ending {
            Ending::Parks => self.wake_ns,
            Ending::Yields => self.yield_ns.map(|ns| ns / 2.0),
        }
    }
}

/// The nearer of two cliffs, if within a factor of two.
fn nearest_cliff(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let both = one.into_iter().chain(other);
    both.filter(|share| *share < 1.0).reduce(f64::min)
}

#[cfg(test)]
mod tests;
