//! How complete the stacks of a profile are. Says nothing of what is in them.

use serde::{Deserialize, Serialize};

use super::amount::AmountRecord;
use super::named::open_enum;
use pinwise_profile::{StackFigures, Stacks};

open_enum! {
    /// How callers were found.
    StackMethod from Stacks {
        /// The best that the program allows: requested only, never recorded.
        Auto = "auto",
        /// By frame pointers.
        FramePointers = "fp",
        /// By unwind tables.
        Dwarf = "dwarf",
        /// Not at all.
        None = "none",
    }
}

/// How complete stacks are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StacksRecord {
    /// How callers were found.
    pub by: StackMethod,
    /// Time in stacks that end before their outermost function: they are shown below `[broken]`. By
    /// frame pointers a lower bound.
    pub broken: AmountRecord,
    /// Frames of the program in a stack, on average.
    pub mean_frames: f64,
}

impl StacksRecord {
    pub(super) fn new(stacks: StackFigures, units: f64) -> Self {
        Self {
            by: stacks.by.into(),
            broken: AmountRecord::new(stacks.broken, units),
            mean_frames: stacks.mean_frames,
        }
    }
}
