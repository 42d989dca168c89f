//! Starts pinwise on nodes: by a cluster scheduler, or by a template.

use std::path::PathBuf;
use std::time::Duration;

use super::error::FolderError;
use pinwise_record::FleetJob;

/// The requested nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRequest {
    /// The number of nodes, if the scheduler chooses them.
    pub count: Option<usize>,
    /// The list of nodes, as written by the user.
    pub list: Option<String>,
    /// Nodes to leave out, since they have all records already.
    pub exclude: Vec<String>,
    /// Only nodes of this partition.
    pub partition: Option<String>,
    /// Only nodes with these features.
    pub constraint: Option<String>,
    /// Submit one array job instead of one job over several nodes.
    pub is_array: bool,
    /// Time limit of a node's job.
    pub time: Option<Duration>,
    /// The account that is charged.
    pub account: Option<String>,
}

/// The nodes to use, and those left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Names; empty if the scheduler chooses.
    pub nodes: Vec<String>,
    /// Number of nodes.
    pub count: usize,
    /// Requested nodes that cannot be used, each with the reason.
    pub left_out: Vec<String>,
}

/// The task that the nodes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The fleet's id; jobs are named after it.
    pub fleet: String,
    /// The fleet's folder, absolute, shared with the nodes. It contains the executable as
    /// `pinwise`; a node runs `FOLDER/pinwise fleet node FOLDER [--node NAME] [--job ID]`.
    pub folder: PathBuf,
    /// The folder's owner. Nodes that run as another user, as in containers, still run its
    /// contents.
    pub owner: u32,
}

/// Maximum length of a job's id, bytes.
const MAX_JOB_ID_BYTES: usize = 200;

/// Can this be the id of a job? It becomes a word of commands, in which one that begins with `-`
/// would be an option, and `-1` all processes of a user.
#[must_use]
pub fn is_job_id(id: &str) -> bool {
    let is_odd = id.is_empty() || id.starts_with('-') || id.chars().any(char::is_control);
    !is_odd && id.len() <= MAX_JOB_ID_BYTES
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The job's id in the scheduler.
    pub job: String,
    /// The node that it runs on, ran on, or is bound to.
    pub node: Option<String>,
    /// Its stage.
    pub stage: Stage,
    /// The state in the scheduler's words, with its reason.
    pub description: String,
    /// Number of restarts.
    pub restarts: u32,
}

/// The stages of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It waits.
    Queued,
    /// It runs.
    Running,
    /// It succeeded.
    Ended,
    /// It failed, timed out, was preempted, or lost its node.
    Failed,
    /// The scheduler does not know it any more.
    Unknown,
}

/// Errors of a launcher.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program does not exist.
    #[error("{program} is not on the path: {hint}")]
    Absent {
        /// The program.
        program: String,
        /// How to fix it.
        hint: String,
    },
    /// It refused, with this message.
    #[error("{program}: {message}")]
    Refused {
        /// The program.
        program: String,
        /// Its message on one line.
        message: String,
    },
    /// Its output cannot be parsed.
    #[error("unexpected output of {program}: {output}")]
    UnexpectedOutput {
        /// The program.
        program: String,
        /// Its output on one line.
        output: String,
    },
    /// It lacks a requested feature.
    #[error("{0}")]
    Impossible(String),
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file or a process is not available.
    #[error("{what}: {reason}")]
    System {
        /// The file or process.
        what: String,
        /// The system's error.
        reason: std::io::Error,
    },
}

/// Starts pinwise on nodes.
pub trait Launcher {
    /// Its name in records.
    fn name(&self) -> &str;

    /// Chooses the nodes to use.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn choose(&self, request: &NodeRequest) -> Result<Choice, LaunchError>;

    /// Describes what [`Launcher::submit`] would write and start.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn plan(
        &self,
        task: &Task,
        request: &NodeRequest,
        choice: &Choice,
    ) -> Result<String, LaunchError>;

    /// Starts the task on the nodes. `submitted`: the time now, RFC 3339. Each job is passed to
    /// `on_job` as soon as it exists, so that none is lost if a later one is refused.
    ///
    /// # Errors
    /// [`LaunchError`]; jobs passed to `on_job` before were submitted.
    fn submit(
        &self,
        task: &Task,
        request: &NodeRequest,
        choice: &Choice,
        submitted: &str,
        on_job: &mut dyn FnMut(FleetJob),
    ) -> Result<(), LaunchError>;

    /// Queries the states of jobs: one for each node of a job.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn query_states(&self, task: &Task, jobs: &[FleetJob]) -> Result<Vec<JobState>, LaunchError>;

    /// Cancels jobs; ended ones are skipped.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn cancel(&self, task: &Task, jobs: &[FleetJob]) -> Result<(), LaunchError>;
}

/// Maximum length of a shown message of a program, characters.
const MAX_MESSAGE_CHARACTERS: usize = 400;

/// Joins lines into one of limited length.
pub(super) fn join_to_line<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let mut line = escape_controls(&lines.join("; "));
    if let Some((end, _)) = line.char_indices().nth(MAX_MESSAGE_CHARACTERS) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Replaces control characters by escapes, so that a terminal shows them and does not obey them.
pub(super) fn escape_controls(text: &str) -> String {
    let shown = text.chars().map(|c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    shown.collect()
}
