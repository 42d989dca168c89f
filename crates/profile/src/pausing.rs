//! Splits a change of the time in PAUSE into more PAUSEs and longer ones.
//!
//! Time in PAUSE per unit of work is PAUSEs per unit × time of a PAUSE. With the length of a PAUSE
//! on each machine, the change is divided between both factors by the logarithmic mean (LMDI; Ang
//! 2004, "Decomposition analysis for policymaking in energy"). The split is exact, and the same with
//! both sides exchanged.

use super::Change;
use pinwise_format::three_digits;

/// The time in PAUSE, before and after, split into factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pausing {
    /// Length of a PAUSE before, ns.
    pub before_ns: f64,
    /// Length of a PAUSE after, ns.
    pub after_ns: f64,
    /// PAUSEs per unit of work before.
    pub before_pauses: f64,
    /// PAUSEs per unit of work after.
    pub after_pauses: f64,
    /// Part of the change that comes from more PAUSEs, s per unit.
    pub by_more_s: f64,
    /// Part of the change that comes from longer PAUSEs, s per unit.
    pub by_longer_s: f64,
}

impl Pausing {
    /// Splits a change of time in spin hints; `None` if a figure is unknown or 0.
    #[must_use]
    pub fn from_waits(
        waits: &Change,
        before_ns: Option<f64>,
        after_ns: Option<f64>,
    ) -> Option<Self> {
        let is_known = |value: &f64| value.is_finite() && *value > 0.0;
        let before_ns = before_ns.filter(is_known)?;
        let after_ns = after_ns.filter(is_known)?;
        let before_s = Some(waits.before_s).filter(is_known)?;
        let after_s = Some(waits.after_s).filter(is_known)?;
        let weight = logarithmic_mean(before_s, after_s);
        let longer = (after_ns / before_ns).ln();
        Some(Self {
            before_ns,
            after_ns,
            before_pauses: before_s / before_ns * 1e9,
            after_pauses: after_s / after_ns * 1e9,
            by_more_s: weight * ((after_s / before_s).ln() - longer),
            by_longer_s: weight * longer,
        })
    }

    /// PAUSEs per unit after, divided by those before.
    #[must_use]
    pub fn count_ratio(&self) -> f64 {
        self.after_pauses / self.before_pauses
    }

    /// Length of a PAUSE after, divided by that before.
    #[must_use]
    pub fn length_ratio(&self) -> f64 {
        self.after_ns / self.before_ns
    }

    /// Describes the factors in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let time = self.count_ratio() * self.length_ratio();
        let words = if time >= 1.0 { "more" } else { "as much" };
        format!(
            "{}× {words} time in PAUSE: {}× as many PAUSEs, each {}× as long",
            three_digits(time),
            three_digits(self.count_ratio()),
            three_digits(self.length_ratio())
        )
    }
}

/// The logarithmic mean of two positive numbers.
pub(super) fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let ratio = (b / a).ln();
    // Near 1 the quotient would be 0 by 0; the logarithmic mean then differs from the arithmetic one
    // by less than the square of this limit.
    if ratio.abs() < 1e-6 {
        return 0.5 * (a + b);
    }
    (b - a) / ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waits(before_s: f64, after_s: f64) -> Change {
        Change {
            before_s,
            after_s,
            ..Change::default()
        }
    }

    #[test]
    fn longer_pauses_are_distinguished_from_more_pauses() {
        let found = Pausing::from_waits(&waits(1.0, 1.77), Some(24.3), Some(24.3 * 1.77)).unwrap();
        assert_eq!(
            found.sentence(),
            "1.77× more time in PAUSE: 1.00× as many PAUSEs, each 1.77× as long"
        );
        assert!(found.by_more_s.abs() < 1e-9 && (found.by_longer_s - 0.77).abs() < 1e-9);
        let found = Pausing::from_waits(&waits(2.0, 1.0), Some(40.0), Some(40.0)).unwrap();
        assert_eq!(
            found.sentence(),
            "0.500× as much time in PAUSE: 0.500× as many PAUSEs, each 1.00× as long"
        );
        assert!((found.by_more_s + 1.0).abs() < 1e-9);
    }

    #[test]
    fn unknown_figures_are_not_attributed() {
        let pausing = |before, after, a, b| Pausing::from_waits(&waits(before, after), a, b);
        assert_eq!(pausing(0.0, 1.0, Some(40.0), Some(40.0)), None);
        assert_eq!(pausing(1.0, 1.0, None, Some(40.0)), None);
        assert_eq!(pausing(1.0, 1.0, Some(40.0), Some(f64::NAN)), None);
    }

    proptest! {
        #[test]
        fn parts_add_up_and_change_sign_when_sides_are_swapped(
            before in 1e-6f64..1e3, after in 1e-6f64..1e3, a in 0.5f64..500.0, b in 0.5f64..500.0,
        ) {
            let there = Pausing::from_waits(&waits(before, after), Some(a), Some(b)).unwrap();
            let back = Pausing::from_waits(&waits(after, before), Some(b), Some(a)).unwrap();
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * (1.0 + before + after);
            prop_assert!(near(there.by_more_s + there.by_longer_s, after - before));
            prop_assert!(near(there.by_more_s, -back.by_more_s));
            prop_assert!(near(there.by_longer_s, -back.by_longer_s));
        }
    }
}
