//! What is run: the command, its surroundings, when it counts as a success, and which of a run's
//! figures is its cost.
//!
//! Nothing is started here and no file is opened.
//!
//! ```
//! use pinwise_workload::Metric;
//!
//! let metric: Metric = "regex:([0-9.]+) req/s higher".parse()?;
//! // More requests a second cost less.
//! assert!(metric.cost(200.0) < metric.cost(100.0));
//! # Ok::<(), pinwise_workload::MetricError>(())
//! ```

mod command;
mod framework;
pub mod joint;
pub mod knobs;
mod metric;
mod pattern;
mod policy;
mod prometheus;
mod recipe;
pub mod rules;
pub mod study_file;
pub mod suite;
mod threads;
pub mod toml_error;

use std::path::PathBuf;
use std::time::Duration;

pub use command::{Command, CommandError, Sweep, SweepError};
pub use framework::{Framework, FrameworkError};
pub use metric::{Better, BuiltInMetric, Counts, Metric, MetricError, MetricReadError, RunFigures};
pub use pattern::Pattern;
pub use policy::{PolicyError, SchedulingPolicy};
pub use prometheus::{Missing, Query, join_two_readings};
pub use recipe::{ChoiceError, ChosenRecipe, Parameter, Program, Recipe, RecipeError};
pub use threads::{missing_thread_variables, thread_variables};
pub use toml_error::{Position, TomlError};

/// Which ways of ending count as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SuccessRule {
    /// Exit status 0 only.
    #[default]
    Zero,
    /// Any exit status; a signal or a timeout still fails.
    AnyStatus,
}

/// A command with everything that belongs to running it.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What is measured.
    pub command: Command,
    /// Run before every run, unmeasured and unplaced.
    pub prepare: Option<Command>,
    /// Run after every run, unmeasured and unplaced.
    pub conclude: Option<Command>,
    /// Run after every successful run, unmeasured and unplaced: if it fails, the run's output was
    /// wrong and the run does not count.
    pub verify: Option<Command>,
    /// What the output must contain for the run to count; it is then kept.
    pub expect: Option<Pattern>,
    /// The recipe that this workload was made from.
    pub recipe: Option<String>,
    /// Folder that the command starts in; `None` for the current one.
    pub folder: Option<PathBuf>,
    /// Standard input; `None` for nothing.
    pub input: Option<PathBuf>,
    /// Added to the inherited environment.
    pub environment: Vec<(String, String)>,
    /// A run that takes longer is killed with its whole process tree.
    pub timeout: Option<Duration>,
    /// What counts as success.
    pub success: SuccessRule,
}

impl Workload {
    /// A command with nothing on standard input and no other settings.
    #[must_use]
    pub const fn new(command: Command) -> Self {
        Self {
            command,
            prepare: None,
            conclude: None,
            verify: None,
            expect: None,
            recipe: None,
            folder: None,
            input: None,
            environment: Vec::new(),
            timeout: None,
            success: SuccessRule::Zero,
        }
    }
}
