//! What starts pinwise on nodes: a cluster scheduler, or whatever a template
//! describes.

use std::path::PathBuf;
use std::time::Duration;

use pinwise_record::FleetJob;

/// Which nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// This many, whichever are chosen.
    pub count: Option<usize>,
    /// These, as the user wrote them.
    pub list: Option<String>,
    /// Of the others these not: they have what they need.
    pub exclude: Vec<String>,
    /// Of this partition.
    pub partition: Option<String>,
    /// With these features.
    pub constraint: Option<String>,
    /// One array job rather than one job.
    pub is_array: bool,
    /// Time limit of a node's job.
    pub time: Option<Duration>,
    /// Account that is charged.
    pub account: Option<String>,
}

/// Nodes that will be asked, and those that will not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Names; empty where the scheduler chooses.
    pub nodes: Vec<String>,
    /// How many nodes there will be.
    pub count: usize,
    /// Nodes that were wanted and cannot be asked, each with the reason.
    pub left_out: Vec<String>,
}

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The fleet's id; jobs are named after it.
    pub fleet: String,
    /// The fleet's folder, absolute, shared with the nodes. The executable
    /// stands in it as `pinwise`; a node runs
    /// `FOLDER/pinwise fleet node FOLDER [--node NAME] [--job ID]`.
    pub folder: PathBuf,
    /// The user that the folder belongs to. Nodes that run as another one, as
    /// in containers, run what is in it all the same.
    pub owner: u32,
}

/// Longest id of a job, bytes.
const LONGEST_JOB: usize = 200;

/// Can this be the id of a job? It becomes a word of commands, where one that
/// begins with `-` would be an option, and `-1` all processes of a user.
#[must_use]
pub fn is_job_id(id: &str) -> bool {
    let is_odd = id.is_empty() || id.starts_with('-') || id.chars().any(char::is_control);
    !is_odd && id.len() <= LONGEST_JOB
}

/// What a job is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The job, in the scheduler's words.
    pub job: String,
    /// The node it runs on, ran on, or is bound to.
    pub node: Option<String>,
    /// How far it is.
    pub stage: Stage,
    /// The scheduler's words for the state, and its reason.
    pub words: String,
    /// Times that it was started anew.
    pub restarts: u32,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It waits.
    Queued,
    /// It runs.
    Running,
    /// It ended well.
    Ended,
    /// It ended otherwise: failed, timed out, preempted, its node lost.
    Failed,
    /// The scheduler does not know it any more.
    Unknown,
}

/// Why a launcher cannot.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program does not exist.
    #[error("{program} is not on the path: {hint}")]
    Absent {
        /// Which.
        program: String,
        /// What would help.
        hint: String,
    },
    /// It refused, in its own words.
    #[error("{program}: {words}")]
    Refused {
        /// Which.
        program: String,
        /// Its words, in one line.
        words: String,
    },
    /// What it printed makes no sense here.
    #[error("unexpected output of {program}: {words}")]
    Strange {
        /// Which.
        program: String,
        /// What it printed.
        words: String,
    },
    /// It does not provide what was asked for.
    #[error("{0}")]
    Wanted(String),
    /// A file or a process is not available.
    #[error("{what}: {reason}")]
    System {
        /// Which.
        what: String,
        /// The system's words.
        reason: std::io::Error,
    },
}

/// Starts pinwise on nodes.
pub trait Launcher {
    /// Its name in records.
    fn name(&self) -> &str;

    /// The nodes that will be asked.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn choose(&self, wanted: &Wanted) -> Result<Choice, LaunchError>;

    /// What [`Launcher::submit`] would write and start, for people.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn plan(&self, task: &Task, wanted: &Wanted, choice: &Choice) -> Result<String, LaunchError>;

    /// Starts the task on the nodes. `submitted`: the time now, RFC 3339. Each
    /// job is reported as soon as it is there, so that none is forgotten where a
    /// later one is refused.
    ///
    /// # Errors
    /// [`LaunchError`]; jobs reported before were submitted.
    fn submit(
        &self,
        task: &Task,
        wanted: &Wanted,
        choice: &Choice,
        submitted: &str,
        on_job: &mut dyn FnMut(FleetJob),
    ) -> Result<(), LaunchError>;

    /// What jobs are at; one or, of jobs over several nodes, several for each.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn states(&self, task: &Task, jobs: &[FleetJob]) -> Result<Vec<JobState>, LaunchError>;

    /// Ends jobs; those that have ended are no error.
    ///
    /// # Errors
    /// [`LaunchError`].
    fn cancel(&self, task: &Task, jobs: &[FleetJob]) -> Result<(), LaunchError>;
}

/// Most characters of a program's message that are shown.
const LONGEST_MESSAGE: usize = 400;

/// Lines as one, within bounds.
pub(super) fn one_line<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let mut words = plain(&lines.join("; "));
    if let Some((end, _)) = words.char_indices().nth(LONGEST_MESSAGE) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// A text in which control characters are shown, not obeyed.
pub(super) fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    shown.collect()
}
