//! Tests CPU time in addition to wall-clock time, when two commands run in one place.
//!
//! A program that waits for CPUs because of other programs takes more wall-clock time, but hardly
//! more CPU time. If both commands run in the same place, "nothing changed" is true of both figures
//! or of neither. So both can be tested, each with its share of the error (Bonferroni). Sharing the
//! error costs wall-clock time power, and is useless if CPU time varies as much. So CPU time is
//! tested only if its differences vary clearly less, and then gets the larger share.
//!
//! The choice uses the sizes of differences without their signs. If nothing changed, reversing both
//! signs of a pair is as likely, whatever the sizes: the choice does not bias the later tests, which
//! use the signs.

use super::decision::Decision;
use super::describe::quantile;
use super::limit;
use super::look::Contrast;
use super::paired::{Interval, Paired};
use super::setting::Setting;

/// CPU time is tested if the spread of its differences is below this share of the spread of
/// wall-clock time. With two thirds of the error a test takes 7 % more pairs than with all of it,
/// the number of pairs grows with the square of the spread, and six pairs show it only roughly.
const MAX_SPREAD_RATIO: f64 = 0.8;
/// The share of the error for CPU time, if it is tested.
const CPU_SHARE: f64 = 2.0 / 3.0;

/// CPU time ends an experiment only once the interval of wall-clock time has at most this
/// half-width, `ln(ratio)`, or that of the change of CPU time: users who measure wall-clock time
/// want to know how much of the change they see there.
const MAX_HALF_WIDTH: f64 = 0.2;

/// CPU time is judged if a program uses a CPU for at least this share of its time, in its least
/// disturbed run: otherwise a change of CPU time hardly matters to the program.
const CPU_BOUND: f64 = 0.5;

/// Numbers of ready threads that differ by more than this, `ln(ratio)`, are another parallelism …
const OTHER_PARALLELISM: f64 = 0.2;
/// … and by more than this if chance is excluded at the usual level.
const CLEARLY_OTHER: f64 = 0.05;
const LEVEL: f64 = 0.05;

/// How runs of two commands used CPUs: whether a change of CPU time is one of wall-clock time, too.
/// The threads that are ready on average, CPU time and time queued over wall-clock time, hardly
/// depend on other programs. If their number differs, one command does more at once, or waits more
/// for something else.
#[derive(Debug, Clone, Default)]
pub struct CpuUse {
    /// CPU time over wall-clock time, the largest of all runs.
    share: f64,
    /// Ratio of the ready threads, `ln`, pair by pair.
    parallelism: Vec<f64>,
}

impl CpuUse {
    /// Adds a pair of runs: the larger CPU time over wall-clock time, and both numbers of ready threads
    /// if they are known.
    pub fn add(&mut self, share: f64, ready: Option<[f64; 2]>) {
        self.share = self.share.max(share);
        let ratio = ready.map(|[one, other]| (one / other).ln());
        self.parallelism
            .extend(ratio.filter(|ratio| ratio.is_finite()));
    }

    /// Is CPU time most of what the commands take, and are they as parallel as each other?
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        let differs = || {
            let pairs = self.pair_parallelism();
            is_other_parallelism(pairs.estimate(), pairs.interval(LEVEL))
        };
        self.share >= CPU_BOUND && (self.parallelism.is_empty() || !differs())
    }

    /// Is the parallelism the same within `delta`, `ln(ratio)`? Then wall-clock time without other
    /// programs is the same if CPU time is.
    #[must_use]
    pub fn is_as_parallel(&self, delta: f64) -> bool {
        let interval = self.pair_parallelism().interval(LEVEL);
        interval.low > -delta && interval.high < delta
    }

    fn pair_parallelism(&self) -> Paired {
        Paired::without_weights(self.parallelism.clone()).redescending()
    }
}

/// Is this ratio of ready threads, `ln`, another parallelism?
#[must_use]
pub fn is_other_parallelism(estimate: f64, interval: Interval) -> bool {
    let is_sure = !interval.holds(0.0);
    estimate.abs() > OTHER_PARALLELISM || is_sure && estimate.abs() > CLEARLY_OTHER
}

/// Splits an error into the shares for CPU time and for wall-clock time, in this order.
#[must_use]
pub fn split_error(alpha: f64) -> [f64; 2] {
    [CPU_SHARE * alpha, (1.0 - CPU_SHARE) * alpha]
}

/// Is CPU time worth testing? Differences are `ln(ratio)`, pair by pair.
#[must_use]
pub fn is_worth_testing(cpu: &[f64], wall: &[f64]) -> bool {
    spread_of_sizes(cpu) < MAX_SPREAD_RATIO * spread_of_sizes(wall)
}

/// The interquartile range of the sizes. Their median would not do: a large effect is in both
/// figures, whose sizes are then alike however little CPU time varies.
fn spread_of_sizes(differences: &[f64]) -> f64 {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    quantile(&sizes, 0.75) - quantile(&sizes, 0.25)
}

/// Does CPU time decide what wall-clock time leaves open? Not if wall-clock time excludes a change
/// of that size, as that of a program that now runs on more CPUs at once. And not if wall-clock time
/// shows a change that is only withheld for now: that must be reported.
#[must_use]
pub fn decides(wall: &Contrast, cpu: &Contrast) -> bool {
    wall.decision == Decision::Undecided
        && wall.interval.holds(0.0)
        && match cpu.decision {
            Decision::Slower => cpu.estimate <= wall.interval.high,
            Decision::Faster => cpu.estimate >= wall.interval.low,
            Decision::Same => true,
            Decision::Undecided => false,
        }
}

/// Does CPU time exceed a limit, `ln(ratio)`, while wall-clock time leaves that open?
#[must_use]
pub fn exceeds(wall: &Contrast, cpu: &Contrast, limit: f64) -> bool {
    limit::judge(wall, limit) == limit::LimitVerdict::Undecided
        && limit::is_slower(cpu, limit)
        && cpu.estimate <= wall.interval.high
}

/// Is the interval of wall-clock time narrow enough to end the experiment when CPU time decides?
#[must_use]
pub fn is_wall_narrow(wall: &Contrast, cpu: &Contrast) -> bool {
    wall.interval.half_width() <= cpu.estimate.abs().max(MAX_HALF_WIDTH)
}

/// Describes what CPU time decides and wall-clock time leaves open, as a clause: `new needs
/// 2.1–3.0 % more CPU time than old; its wall-clock time is undecided: between −3.0 % and +8.0 %`.
#[must_use]
pub fn describe(wall: &Contrast, cpu: &Contrast, setting: &Setting<'_>) -> String {
    write_clause(wall, cpu, setting, "")
}

/// Describes a change of CPU time that exceeds a limit: `new needs 2.7–3.5 % more CPU time than old,
/// over the limit of 2.0 %; its …`.
#[must_use]
pub fn describe_over_limit(
    wall: &Contrast,
    cpu: &Contrast,
    setting: &Setting<'_>,
    limit: &str,
) -> String {
    write_clause(wall, cpu, setting, &format!(", over the limit of {limit}"))
}

fn write_clause(wall: &Contrast, cpu: &Contrast, setting: &Setting<'_>, limit: &str) -> String {
    let [arm, baseline] = [wall.arm, setting.baseline].map(|column| &setting.names[column]);
    let Interval { low, high } = cpu.interval;
    let sizes = || setting.format_sizes(low, high);
    let needs = match cpu.decision {
        Decision::Same => {
            let (low, high) = setting.format_ends(low, high);
            format!("the same CPU time as {baseline}, between {low} and {high}")
        }
        Decision::Faster => format!("{} less CPU time than {baseline}", sizes()),
        _ => format!("{} more CPU time than {baseline}", sizes()),
    };
    let between = match wall.interval.half_width().is_finite() {
        true => format!(": {}", setting.describe_bounds(wall.interval)),
        false => String::new(),
    };
    format!("{arm} needs {needs}{limit}; its wall-clock time is undecided{between}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_that_varies_as_much_is_not_worth_testing() {
        let wall = [0.1, -0.08, 0.12, -0.1, 0.09, 0.11];
        let cpu = |share: f64| wall.map(|d| share * d);
        assert!(is_worth_testing(&cpu(0.5), &wall));
        assert!(is_worth_testing(&cpu(-0.5), &wall), "signs say nothing");
        assert!(!is_worth_testing(&cpu(0.9), &wall));
    }

    #[test]
    fn cpu_time_of_another_parallelism_is_not_comparable() {
        let used = |share, ready: &[[f64; 2]]| {
            let mut used = CpuUse::default();
            for pair in ready {
                used.add(share, Some(*pair));
            }
            used.add(share, None);
            used.is_comparable()
        };
        // Other programs make runs of one thread wait, which keeps it ready.
        assert!(used(0.9, &[[1.0, 0.98], [0.97, 1.01], [1.02, 1.0]]));
        assert!(!used(0.3, &[[1.0, 1.0]]), "it mostly waits");
        assert!(!used(0.9, &[[1.9, 1.0], [1.7, 1.0], [1.8, 1.0]]));
        // A tenth is only clear after some pairs.
        assert!(used(0.9, &[[1.1, 1.0]; 3]));
        assert!(!used(0.9, &[[1.1, 1.0]; 8]));
        assert!(used(0.9, &[]));
    }

    #[test]
    fn parallelism_is_the_same_only_if_its_interval_is_narrow() {
        let is_same = |ready: &[[f64; 2]]| {
            let mut used = CpuUse::default();
            ready.iter().for_each(|pair| used.add(0.9, Some(*pair)));
            used.is_as_parallel(0.01)
        };
        assert!(is_same(&[
            [1.0, 1.001],
            [1.0, 0.999],
            [1.0, 1.0],
            [1.001, 1.0],
            [1.0, 1.002],
            [1.0, 1.0]
        ]));
        assert!(!is_same(&[[1.0, 1.02]; 6]), "it waits longer");
        assert!(!is_same(&[[1.0, 1.0]]), "one pair shows nothing");
        assert!(!is_same(&[]));
    }

    #[test]
    fn cpu_time_that_varies_less_is_worth_testing_beside_a_large_change() {
        let wall = [0.56, 0.42, 0.58, 0.45, 0.5, 0.53];
        let cpu = wall.map(|d| 0.5 + 0.1 * (d - 0.5));
        assert!(is_worth_testing(&cpu, &wall));
    }
}
