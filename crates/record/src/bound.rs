//! Which figures of a trace are only bounds, and how to write that.

use crate::{LowerBound, TraceFigures};

impl TraceFigures {
    /// Is a figure exact, or which bound is it?
    #[must_use]
    pub fn bound(&self, figure: LowerBound) -> Bound {
        let is_upper = match figure {
            LowerBound::Queued => self.waits.is_upper_bound,
            LowerBound::CpuTime => self.totals.cpu_is_upper_bound,
            _ => false,
        };
        match (self.lower_bounds.contains(&figure), is_upper) {
            (true, true) => Bound::Rough,
            (true, false) => Bound::Lower,
            (false, true) => Bound::Upper,
            (false, false) => Bound::Exact,
        }
    }
}

/// How a figure relates to the true value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is the true value.
    Exact,
    /// It is a lower bound.
    Lower,
    /// It is an upper bound.
    Upper,
    /// The true value may be larger or smaller.
    Rough,
}

impl Bound {
    /// What to write before the figure in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::Lower => "at least ",
            Self::Upper => "at most ",
            Self::Rough => "about ",
        }
    }

    /// What to write before the figure in a table.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::Lower => "≥ ",
            Self::Upper => "≤ ",
            Self::Rough => "≈ ",
        }
    }
}
