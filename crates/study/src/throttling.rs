//! A limit on CPU time: part of the place, or a disturbance.
//!
//! Under a permanent limit (a container's, a service's) every run is stopped again and again. That
//! is how the program runs there, and what is compared there. But if a limit stops a run only now
//! and then, because others in the cgroup used it up, that run says nothing about its arm.

/// Number of runs after which it is known whether a limit stops most of them. A program that needs
/// about as much as the limit allows is not stopped in every run.
const KNOWN_AFTER: usize = 4;
/// Fewer than one run in this many is rare.
const RARE: usize = 4;

/// The runs of an arm so far, and how many of them a limit stopped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stops {
    runs: usize,
    stopped: usize,
}

impl Stops {
    /// Counts a run that was stopped this many times. Returns whether the limit disturbed
    /// it: it was stopped, and few runs of the arm before it were.
    pub(crate) fn count(&mut self, throttled: Option<u64>) -> bool {
        let is_stopped = throttled.is_some_and(|times| times > 0);
        let is_rare = self.runs >= KNOWN_AFTER && self.stopped * RARE < self.runs;
        self.runs += 1;
        self.stopped += usize::from(is_stopped);
        is_stopped && is_rare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these runs are disturbed; `x` was stopped.
    fn list_disturbed_runs(runs: &str) -> String {
        let mut stops = Stops::default();
        let of_run = |mark: char| match stops.count(Some(u64::from(mark == 'x'))) {
            true => 'd',
            false => '.',
        };
        runs.chars().map(of_run).collect()
    }

    #[test]
    fn a_limit_that_is_always_there_disturbs_nothing() {
        assert_eq!(list_disturbed_runs("xxxxxxxx"), "........");
    }

    #[test]
    fn stops_that_come_and_go_disturb() {
        assert_eq!(list_disturbed_runs(".....x....x."), ".....d....d.");
    }

    #[test]
    fn nothing_is_rare_among_few_runs() {
        assert_eq!(list_disturbed_runs(".x.x...x"), "........");
    }

    #[test]
    fn a_limit_that_becomes_permanent_counts_after_a_while() {
        assert_eq!(list_disturbed_runs("....xxxxx"), "....dd...");
    }
}
