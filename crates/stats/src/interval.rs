//! Intervals of estimates.

/// An interval. Its ends are infinite if there are too few pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of an estimate that is not known at all.
    pub const UNBOUNDED: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };

    /// Half of the width.
    #[must_use]
    pub fn half_width(self) -> f64 {
        0.5 * (self.high - self.low)
    }

    /// Does it lie strictly between `−delta` and `+delta`?
    #[must_use]
    pub fn is_within(self, delta: f64) -> bool {
        self.low > -delta && self.high < delta
    }

    /// Does it contain this value, ends included?
    #[must_use]
    pub fn holds(self, shift: f64) -> bool {
        self.low <= shift && shift <= self.high
    }
}
