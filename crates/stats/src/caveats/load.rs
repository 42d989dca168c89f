//! Estimates a difference under light, medium and heavy load, and tests whether it depends on load.

use super::{Circumstances, JudgedContrast, Split, estimate_typical, select};
use crate::decision::Decision;
use crate::describe::median;
use crate::interaction;

/// A difference in the blocks of one third of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLevel {
    /// Median of the load, in the unit of [`Circumstances::load`].
    pub load: f64,
    /// Typical `ln(ratio)`.
    pub difference: f64,
}

/// A difference under light, medium and heavy load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLevels {
    /// The third of the blocks with the lightest load.
    pub light: LoadLevel,
    /// The third between the two; `None` if the load had only two states.
    pub medium: Option<LoadLevel>,
    /// The third with the heaviest load.
    pub heavy: LoadLevel,
}

impl LoadLevels {
    /// `None` if the load of a block is unknown, or is the same in all blocks.
    pub(super) fn from_differences(differences: &[f64], around: &Circumstances) -> Option<Self> {
        let load = load_of_blocks(differences, around)?;
        let places = interaction::relative_ranks(&load);
        let level = |is_in: &dyn Fn(f64) -> bool| {
            let is_in = |block: usize| is_in(places[block]);
            Some(LoadLevel {
                load: median(&select(&load, is_in))?,
                difference: estimate_typical(select(differences, is_in))?,
            })
        };
        Some(Self {
            light: level(&is_light)?,
            medium: level(&|place| !is_light(place) && !is_heavy(place)),
            heavy: level(&is_heavy)?,
        })
    }
}

fn is_light(place: f64) -> bool {
    place <= 1.0 / 3.0
}

fn is_heavy(place: f64) -> bool {
    place >= 2.0 / 3.0
}

/// The load of every block; `None` if one is unknown.
fn load_of_blocks(differences: &[f64], around: &Circumstances) -> Option<Vec<f64>> {
    let load: Vec<f64> = around.load.iter().copied().collect::<Option<_>>()?;
    (load.len() == differences.len()).then_some(load)
}

impl JudgedContrast {
    /// The difference under light and heavy load; `None` unless the test shows that they differ.
    pub(super) fn split_by_load(
        &self,
        differences: &[f64],
        around: &Circumstances,
        levels: &LoadLevels,
    ) -> Option<Split> {
        let places = interaction::relative_ranks(&load_of_blocks(differences, around)?);
        if !self.is_alarming(interaction::z_of_dependence(differences, &places)?) {
            return None;
        }
        let (first, second) = (levels.light.difference, levels.heavy.difference);
        let turns = first * second < 0.0;
        let contradicts = match self.decision {
            Decision::Faster | Decision::Slower => {
                turns || (second - first).abs() > self.estimate.abs()
            }
            // A difference that is small under every load does not contradict "the same".
            Decision::Same => turns && first.abs().max(second.abs()) >= self.delta,
            Decision::Undecided => turns,
        };
        Some(Split {
            first,
            second,
            contradicts,
        })
    }
}
