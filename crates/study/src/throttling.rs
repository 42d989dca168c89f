//! Tells whether a limit on CPU time disturbed a run, or belongs to the place where it runs.
//!
//! Under a permanent limit (a container's, a service's) every run is stopped again and again; that
//! is how the program runs there, so such runs count. But a limit may stop a run only now and then,
//! because other processes of the cgroup have used it up; that run was disturbed.

/// Before this number of runs no run counts as disturbed: whether stops are rare is unknown.
const MIN_RUNS: usize = 4;
/// Stops are rare if fewer than one in this many runs was stopped. A program that needs about as
/// much CPU time as the limit allows is not stopped in every run.
const RARE_ONE_IN: usize = 4;

/// The runs of an arm so far, and how many of them a limit stopped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stops {
    runs: usize,
    stopped: usize,
}

impl Stops {
    /// Counts a run that was stopped this many times. Returns whether the limit disturbed it: it was
    /// stopped, and stops were rare among the arm's earlier runs.
    pub(crate) fn add(&mut self, throttled: Option<u64>) -> bool {
        let is_stopped = throttled.is_some_and(|times| times > 0);
        let is_rare = self.runs >= MIN_RUNS && self.stopped * RARE_ONE_IN < self.runs;
        self.runs += 1;
        self.stopped += usize::from(is_stopped);
        is_stopped && is_rare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks disturbed runs with `d`; `x` in `runs` is a stopped run.
    fn list_disturbed_runs(runs: &str) -> String {
        let mut stops = Stops::default();
        let mark_run = |run: char| match stops.add(Some(u64::from(run == 'x'))) {
            true => 'd',
            false => '.',
        };
        runs.chars().map(mark_run).collect()
    }

    #[test]
    fn a_limit_that_stops_every_run_disturbs_none() {
        assert_eq!(list_disturbed_runs("xxxxxxxx"), "........");
    }

    #[test]
    fn rare_stops_disturb_their_runs() {
        assert_eq!(list_disturbed_runs(".....x....x."), ".....d....d.");
    }

    #[test]
    fn the_first_runs_are_never_disturbed() {
        assert_eq!(list_disturbed_runs(".x.x...x"), "........");
    }

    #[test]
    fn a_limit_that_becomes_permanent_ceases_to_disturb() {
        assert_eq!(list_disturbed_runs("....xxxxx"), "....dd...");
    }
}
