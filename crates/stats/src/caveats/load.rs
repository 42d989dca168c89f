//! What a difference is under light, medium and heavy load, and whether it
//! depends on it.

use super::{Circumstances, JudgedContrast, Split, part, typical};
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

/// The same in all three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLevels {
    /// The third of the blocks with the lightest load.
    pub light: LoadLevel,
    /// Between the two; `None` if the load had only two states.
    pub medium: Option<LoadLevel>,
    /// The third with the heaviest.
    pub heavy: LoadLevel,
}

impl LoadLevels {
    /// `None` if the load of a block is unknown, or is the same in all blocks.
    pub(super) fn from_differences(differences: &[f64], around: &Circumstances) -> Option<Self> {
        let load = load_of(differences, around)?;
        let places = interaction::rank(&load);
        let level = |is_in: &dyn Fn(f64) -> bool| {
            let is_in = |block: usize| is_in(places[block]);
            Some(LoadLevel {
                load: median(&part(&load, is_in))?,
                difference: typical(part(differences, is_in))?,
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

fn load_of(differences: &[f64], around: &Circumstances) -> Option<Vec<f64>> {
    let load: Vec<f64> = around.load.iter().copied().collect::<Option<_>>()?;
    (load.len() == differences.len()).then_some(load)
}

impl JudgedContrast {
    /// How the difference changes from light to heavy load; `None` if no test shows that it does.
    pub(super) fn load(
        &self,
        differences: &[f64],
        around: &Circumstances,
        levels: &LoadLevels,
    ) -> Option<Split> {
        let places = interaction::rank(&load_of(differences, around)?);
        if !self.is_alarming(interaction::z(differences, &places)?) {
            return None;
        }
        let (first, second) = (levels.light.difference, levels.heavy.difference);
        let turns = first * second < 0.0;
        let contradicts = match self.decision {
            Decision::Faster | Decision::Slower => {
                turns || (second - first).abs() > self.estimate.abs()
            }
            // What is small under every load is the same under every load.
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
