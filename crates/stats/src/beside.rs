//! CPU time beside wall-clock time, when two commands run in one place.
//!
//! Other programs that want the CPUs make a program wait, so that its wall-clock time varies; its
//! CPU time hardly notices them. If both commands run in the same place, "nothing changed" is true
//! of both figures or of neither, so both can be tested, each with its share of the error
//! (Bonferroni). Wall-clock time loses power by sharing, for nothing if CPU time varies as much. So
//! CPU time is tested only if its differences are clearly smaller, and then gets the larger share.
//!
//! The choice uses the sizes of differences without their signs. If nothing changed, each pair's
//! differences are as likely with both signs reversed, whatever their sizes: the choice says
//! nothing about the signs that are tested afterwards.

use super::decision::Decision;
use super::describe::quantile;
use super::limit;
use super::look::Contrast;
use super::paired::Interval;
use super::setting::Setting;

/// CPU time is worth its share if its differences spread by less than this share of the spread of
/// wall-clock time. Two thirds of the error take 7 % more pairs than all of it, the number of pairs
/// goes with the square of the size, and six pairs show sizes roughly.
const WORTH: f64 = 0.8;
/// CPU time's share of the error, when it is tested.
const SHARE: f64 = 2.0 / 3.0;

/// CPU time ends an experiment once the interval of wall-clock time reaches no further than this to
/// either side, `ln(ratio)`, or than the change of CPU time: users who measure wall-clock time want
/// to know how much of that change they see.
const TELLING: f64 = 0.2;

/// CPU time is judged if a program uses a CPU for at least this share of its time, in its least
/// disturbed run: otherwise a change of CPU time hardly matters to the program.
pub const CPU_BOUND: f64 = 0.5;

/// Shares of this error for CPU time and for wall-clock time.
#[must_use]
pub fn divide(alpha: f64) -> [f64; 2] {
    [SHARE * alpha, (1.0 - SHARE) * alpha]
}

/// Do these differences of CPU time, pair by pair `ln(ratio)`, deserve a share of
/// the error?
#[must_use]
pub fn is_worth_asking(cpu: &[f64], wall: &[f64]) -> bool {
    spread_of_sizes(cpu) < WORTH * spread_of_sizes(wall)
}

/// The interquartile range. A typical size would include the effect as well: if the effect is
/// large, both figures have it, and their sizes look alike however little CPU time varies.
fn spread_of_sizes(differences: &[f64]) -> f64 {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    quantile(&sizes, 0.75) - quantile(&sizes, 0.25)
}

/// Does CPU time decide what wall-clock time leaves open? Not if the latter excludes as large a
/// change: what runs on more CPUs at once takes less time and more CPU time. Nor if it excludes no
/// change and its claim only waits or is withheld: then that must be reported.
#[must_use]
pub fn decides(wall: &Contrast, cpu: &Contrast) -> bool {
    wall.decision == Decision::Undecided
        && wall.interval.holds(0.0)
        && match cpu.decision {
            Decision::Slower => cpu.estimate <= wall.interval.high,
            Decision::Faster => cpu.estimate >= wall.interval.low,
            Decision::Same | Decision::Undecided => false,
        }
}

/// The same for a limit, `ln(ratio)`: does CPU time exceed it when wall-clock time leaves that
/// open?
#[must_use]
pub fn exceeds(wall: &Contrast, cpu: &Contrast, limit: f64) -> bool {
    limit::standing(wall, limit) == limit::LimitStanding::Undecided
        && limit::is_slower(cpu, limit)
        && cpu.estimate <= wall.interval.high
}

/// Does wall-clock time show something as well when CPU time decides?
#[must_use]
pub fn tells(wall: &Contrast, cpu: &Contrast) -> bool {
    wall.interval.half_width() <= cpu.estimate.abs().max(TELLING)
}

/// What CPU time decides and wall-clock time leaves open, as a clause: `new needs 2.1–3.0 %
/// more CPU time than old; its wall-clock time is undecided: between −3.0 % and +8.0 %`.
#[must_use]
pub fn words(wall: &Contrast, cpu: &Contrast, setting: &Setting<'_>) -> String {
    describe(wall, cpu, setting, "")
}

/// The same where that exceeds a limit: `new needs 2.7–3.5 % more CPU time than old, over the
/// limit of 2.0 %; its …`.
#[must_use]
pub fn words_over_limit(
    wall: &Contrast,
    cpu: &Contrast,
    setting: &Setting<'_>,
    limit: &str,
) -> String {
    describe(wall, cpu, setting, &format!(", over the limit of {limit}"))
}

fn describe(wall: &Contrast, cpu: &Contrast, setting: &Setting<'_>, limit: &str) -> String {
    let [arm, baseline] = [wall.arm, setting.baseline].map(|column| &setting.names[column]);
    let more = match cpu.decision {
        Decision::Faster => "less",
        _ => "more",
    };
    let Interval { low, high } = cpu.interval;
    let sizes = setting.sizes(low, high);
    let between = match wall.interval.half_width().is_finite() {
        true => format!(": {}", setting.describe_bounds(wall.interval)),
        false => String::new(),
    };
    format!(
        "{arm} needs {sizes} {more} CPU time than {baseline}{limit}; its wall-clock time is undecided{between}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_as_much_is_not_worth_it() {
        let wall = [0.1, -0.08, 0.12, -0.1, 0.09, 0.11];
        let cpu = |share: f64| wall.map(|d| share * d);
        assert!(is_worth_asking(&cpu(0.5), &wall));
        assert!(is_worth_asking(&cpu(-0.5), &wall), "signs say nothing");
        assert!(!is_worth_asking(&cpu(0.9), &wall));
    }

    #[test]
    fn a_large_change_does_not_hide_what_varies_less() {
        let wall = [0.56, 0.42, 0.58, 0.45, 0.5, 0.53];
        let cpu = wall.map(|d| 0.5 + 0.1 * (d - 0.5));
        assert!(is_worth_asking(&cpu, &wall));
    }
}
