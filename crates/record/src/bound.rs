//! Figures that are bounds, in words.

use crate::{LowerBound, TraceFigures};

impl TraceFigures {
    /// Whether a figure is a bound.
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

/// On which side of a figure the truth lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// On it.
    Exact,
    /// Above.
    Lower,
    /// Below.
    Upper,
    /// Above, or below.
    Rough,
}

impl Bound {
    /// In front of a figure in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::Lower => "at least ",
            Self::Upper => "at most ",
            Self::Rough => "about ",
        }
    }

    /// In front of a figure in a table.
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
