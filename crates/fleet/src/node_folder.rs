//! What one node has written: attempts, records and failures, combined into the node's record.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::files::{Folder, IfExists, Readers, to_json_line};
use super::record_id;
use pinwise_record::{
    Answer, FleetNode, FleetRecord, Header, HostRecord, NodeStep, StepResult, StepState, read_id,
};

/// Maximum number of attempts of a node; more indicate a mistake.
const MAX_ATTEMPTS: u32 = 10_000;

/// The start of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptStart {
    /// Its number, from 1.
    pub attempt: u32,
    /// The job's id in the scheduler.
    pub job: Option<String>,
    /// When, RFC 3339, by the node's clock.
    pub started: String,
    /// The process id.
    pub process: u32,
    /// The machine.
    pub host: Option<HostRecord>,
    /// Its configuration.
    pub settings: BTreeMap<String, String>,
    /// How far its clock was ahead of the shared folder's, seconds.
    pub clock_ahead_s: Option<f64>,
}

/// The end of an attempt, unless its node was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptEnd {
    /// When, RFC 3339, by the node's clock.
    pub ended: String,
    /// Why it ended early.
    pub why: Option<String>,
}

/// A step that ended without a valid record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFailure {
    /// The attempt.
    pub attempt: u32,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// Why, in one line.
    pub why: String,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// The last lines that it printed.
    pub stderr: Vec<String>,
}

/// The attempt that finished a step, and its duration; written next to the step's record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct StepCompletion {
    attempt: u32,
    ended: String,
    elapsed_s: f64,
}

/// The folder for output of running steps. It is private, so that nobody can change output before
/// it becomes a record.
const PRIVATE_FOLDER: &str = ".own";
/// Extensions of the files with a step's output.
const OUTPUT_EXTENSIONS: [&str; 2] = ["stdout", "stderr"];

/// A node's folder. It is opened for each operation: a fleet may have more nodes than a process may
/// have open files.
#[derive(Debug, Clone)]
pub struct NodeFolder {
    nodes: Arc<Folder>,
    name: String,
}

/// The content of a node's folder.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSnapshot {
    /// The node's record.
    pub record: FleetNode,
    /// Names of steps with a record.
    pub done: Vec<String>,
    /// The newest attempt.
    pub newest: Option<AttemptStart>,
    /// Whether and how the newest attempt ended by itself.
    pub ended: Option<AttemptEnd>,
    /// Files that cannot be used, each with the reason.
    pub unusable: Vec<String>,
}

impl NodeFolder {
    pub(super) fn new(nodes: Arc<Folder>, name: &str) -> Self {
        Self {
            nodes,
            name: name.to_owned(),
        }
    }

    fn open(&self) -> Result<Folder, FolderError> {
        self.nodes.open_folder(&self.name)
    }

    fn open_private(&self) -> Result<Folder, FolderError> {
        self.open()?.ensure_folder(PRIVATE_FOLDER, Readers::Owner)
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the files for a running step's output, `STEM.stdout` and `STEM.stderr`, and returns
    /// the path of their stem.
    ///
    /// # Errors
    /// [`FolderError`] if they cannot be made.
    pub fn make_output(&self, step: &str, attempt: u32) -> Result<PathBuf, FolderError> {
        let folder = self.open_private()?;
        let stem = format!("{step}.{attempt}");
        for extension in OUTPUT_EXTENSIONS {
            // If the step made them, their mode would depend on the umask.
            folder.touch(&format!("{stem}.{extension}"), Readers::Owner)?;
        }
        Ok(folder.path().join(stem))
    }

    /// Reads a step's standard output and standard error, and removes the files.
    ///
    /// # Errors
    /// [`FolderError`] for each that cannot be read.
    pub(super) fn take_output(&self, step: &str, attempt: u32) -> [Result<String, FolderError>; 2] {
        OUTPUT_EXTENSIONS.map(|extension| {
            let folder = self.open_private()?;
            let name = format!("{step}.{attempt}.{extension}");
            let text = folder.read(&name);
            folder.remove(&name);
            text
        })
    }

    /// The folder for records that the store could not take.
    ///
    /// # Errors
    /// [`FolderError`] if the node's folder cannot be used.
    pub fn spool_path(&self) -> Result<PathBuf, FolderError> {
        Ok(self.open_private()?.path().join("spool"))
    }

    /// Makes the file for the node's output, which a shell or a scheduler then opens.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be made.
    pub fn make_log(&self) -> Result<(), FolderError> {
        self.open()?.touch("log", Readers::Group).map(|_| ())
    }

    /// Claims the number of the next attempt; simultaneous callers get different ones.
    ///
    /// # Errors
    /// [`FolderError`] if nothing can be written.
    pub fn claim_attempt(&self, start: AttemptStart) -> Result<AttemptStart, FolderError> {
        let folder = self.open()?;
        let mut start = AttemptStart {
            clock_ahead_s: measure_clock_ahead_s(&folder),
            ..start
        };
        let newest = list_attempts(&folder)?.last().copied().unwrap_or(0);
        for attempt in newest + 1..=MAX_ATTEMPTS {
            start.attempt = attempt;
            let name = format!("begun-{attempt}.json");
            if folder.put(&name, &to_json_line(&start), IfExists::Keep, Readers::Group)? {
                return Ok(start);
            }
        }
        Err(FolderError::damaged(folder.path(), "too many attempts"))
    }

    /// Records the end of an attempt.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written.
    pub fn put_end(&self, attempt: u32, ended: &AttemptEnd) -> Result<(), FolderError> {
        self.replace(&format!("ended-{attempt}.json"), &to_json_line(ended))
    }

    /// Writes the record of a step. False if there is one already, which is kept.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written.
    pub fn put_record(
        &self,
        step: &str,
        body: &str,
        attempt: u32,
        ended: &str,
        elapsed_s: f64,
    ) -> Result<bool, FolderError> {
        let folder = self.open()?;
        let name = format!("{step}.json");
        let is_first = folder.put(&name, body.as_bytes(), IfExists::Keep, Readers::Group)?;
        if is_first {
            let done = StepCompletion {
                attempt,
                ended: ended.to_owned(),
                elapsed_s,
            };
            self.replace(&format!("{step}.done.json"), &to_json_line(&done))?;
        }
        Ok(is_first)
    }

    /// Records the failure of a step.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written.
    pub fn put_failure(&self, step: &str, failure: &StepFailure) -> Result<(), FolderError> {
        let name = format!("{step}.failed-{}.json", failure.attempt);
        self.replace(&name, &to_json_line(failure))
    }

    /// Rewrites the node's record.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written.
    pub fn put_node(&self, record: &FleetNode) -> Result<(), FolderError> {
        self.replace("node.json", &to_json_line(record))
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let folder = self.open()?;
        folder
            .put(name, content, IfExists::Replace, Readers::Group)
            .map(|_| ())
    }

    /// Reads the record of a step; `None` if there is none.
    ///
    /// # Errors
    /// [`FolderError`] if it is damaged, newer, or of another fleet, node or step.
    pub fn read_record(&self, fleet: &str, step: &str) -> Result<Option<String>, FolderError> {
        self.read_record_in(&self.open()?, fleet, step)
    }

    fn read_record_in(
        &self,
        folder: &Folder,
        fleet: &str,
        step: &str,
    ) -> Result<Option<String>, FolderError> {
        let name = format!("{step}.json");
        let path = folder.path().join(&name);
        let text = match folder.read(&name) {
            Err(error) => return none_if_absent(error),
            Ok(text) => text,
        };
        pinwise_record::Kind::from_record_text(&text)
            .map_err(|error| FolderError::damaged(&path, error))?;
        let id = read_id(&text);
        let expected = record_id(fleet, &self.name, step);
        if id.as_deref() != Some(&expected) {
            let id = id.unwrap_or_default();
            let reason = format!("it is record '{id}', not '{expected}' of this fleet and node");
            return Err(FolderError::damaged(&path, reason));
        }
        Ok(Some(text))
    }

    /// Reads the whole folder; unusable files are listed.
    ///
    /// # Errors
    /// [`FolderError`] if the folder cannot be listed.
    pub fn read_all(&self, fleet: &FleetRecord) -> Result<NodeSnapshot, FolderError> {
        self.read_new(fleet, &mut BTreeMap::new())
    }

    /// Like [`NodeFolder::read_all`], but skips records whose results are in `known`, and adds
    /// those of the others to it.
    ///
    /// # Errors
    /// As [`NodeFolder::read_all`].
    pub fn read_new(
        &self,
        fleet: &FleetRecord,
        known: &mut BTreeMap<String, StepResult>,
    ) -> Result<NodeSnapshot, FolderError> {
        let folder = &self.open()?;
        let mut unusable = Vec::new();
        let attempts = list_attempts(folder)?;
        let starts = read_starts(folder, &attempts, &mut unusable);
        let mut done = Vec::new();
        let mut steps = Vec::new();
        let mut figures = Vec::new();
        let mut last_end = None;
        for step in &fleet.steps {
            let name = &step.name;
            if !known.contains_key(name) {
                match self.read_record_in(folder, &fleet.id, name) {
                    Ok(Some(body)) => {
                        known.insert(name.clone(), StepResult::from_json(name, &body));
                    }
                    Ok(None) => {}
                    Err(error) => unusable.push(error.to_string()),
                }
            }
            let found = known.get(name);
            let id = record_id(&fleet.id, &self.name, name);
            let record = found.is_some().then_some(id);
            let (mut step, end) = read_step(folder, name, record, &attempts, &mut unusable);
            step.verdict = found.and_then(|found| found.verdict.clone());
            step.changes = found.map_or_else(Vec::new, |found| found.changes.clone());
            last_end = last_end.max(end);
            steps.push(step);
            if let Some(found) = found {
                figures.extend(found.figures.iter().cloned());
                done.push(name.clone());
            }
        }
        let is_complete = steps.iter().all(|step| step.state == StepState::Done);
        let newest = starts.last().cloned();
        let latest_with_host = starts.iter().rev().find(|b| b.host.is_some());
        let mut tags = fleet.tags.clone();
        tags.push(FleetRecord::tag(&fleet.id));
        tags.sort_unstable();
        tags.dedup();
        let mut record = FleetNode {
            header: Header::new(
                FleetNode::join_id(&fleet.id, &self.name),
                starts
                    .first()
                    .map_or_else(|| fleet.started.clone(), |b| b.started.clone()),
                tags,
            ),
            fleet: fleet.id.clone(),
            node: self.name.clone(),
            ended: last_end.filter(|_| is_complete),
            attempts: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
            host: latest_with_host.and_then(|b| b.host.clone()),
            settings: latest_with_host
                .map(|b| b.settings.clone())
                .unwrap_or_default(),
            steps,
            figures,
            clock_ahead_s: newest.as_ref().and_then(|b| b.clock_ahead_s),
            answer: Answer::default(),
        };
        record.conclude();
        let ended = read_end(folder, newest.as_ref(), &mut unusable);
        Ok(NodeSnapshot {
            record,
            done,
            newest,
            ended,
            unusable,
        })
    }
}

/// Measures how far this host's clock is ahead of the file server's, seconds.
fn measure_clock_ahead_s(folder: &Folder) -> Option<f64> {
    let name = format!(".clock.{}", std::process::id());
    folder
        .put(&name, b"", IfExists::Replace, Readers::Owner)
        .ok()?;
    let server_time = folder.modified_at(&name);
    folder.remove(&name);
    #[expect(
        clippy::disallowed_methods,
        reason = "the node's clock is compared with the file server's"
    )]
    let node_time = SystemTime::now();
    let ahead = node_time
        .duration_since(server_time?)
        .map_or_else(|e| -e.duration().as_secs_f64(), |d| d.as_secs_f64());
    Some((ahead * 1e3).round() / 1e3)
}

/// Lists the numbers of the attempts that have begun, ascending.
fn list_attempts(folder: &Folder) -> Result<Vec<u32>, FolderError> {
    let names = folder.list_names()?;
    let number = |name: &String| {
        let digits = name.strip_prefix("begun-")?.strip_suffix(".json")?;
        digits.parse::<u32>().ok().filter(|n| *n <= MAX_ATTEMPTS)
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn read_starts(folder: &Folder, attempts: &[u32], unusable: &mut Vec<String>) -> Vec<AttemptStart> {
    let mut starts = Vec::new();
    for attempt in attempts {
        match folder.read_json::<AttemptStart>(&format!("begun-{attempt}.json")) {
            Ok(start) => starts.push(AttemptStart {
                attempt: *attempt,
                ..start
            }),
            Err(error) => unusable.push(error.to_string()),
        }
    }
    starts
}

fn read_end(
    folder: &Folder,
    newest: Option<&AttemptStart>,
    unusable: &mut Vec<String>,
) -> Option<AttemptEnd> {
    let name = format!("ended-{}.json", newest?.attempt);
    keep_usable(folder.read_json(&name), unusable)
}

/// Reads the state of a step, and when it was done. `record`: the id of its record, if it has one.
fn read_step(
    folder: &Folder,
    step: &str,
    record: Option<String>,
    attempts: &[u32],
    unusable: &mut Vec<String>,
) -> (NodeStep, Option<String>) {
    let newest = attempts.last().copied().unwrap_or(0);
    let base = NodeStep {
        name: step.to_owned(),
        state: StepState::Missing,
        record: None,
        verdict: None,
        changes: Vec::new(),
        attempt: newest,
        why: None,
        elapsed_s: None,
    };
    if record.is_some() {
        let done: Option<StepCompletion> =
            keep_usable(folder.read_json(&format!("{step}.done.json")), unusable);
        let found = NodeStep {
            state: StepState::Done,
            record,
            attempt: done.as_ref().map_or(newest, |done| done.attempt),
            elapsed_s: done.as_ref().map(|done| done.elapsed_s),
            ..base
        };
        return (found, done.map(|done| done.ended));
    }
    let failure = attempts.iter().rev().find_map(|attempt| {
        let name = format!("{step}.failed-{attempt}.json");
        let failure = keep_usable::<StepFailure>(folder.read_json(&name), unusable);
        failure.map(|failure| (*attempt, failure))
    });
    match failure {
        None => (base, None),
        Some((attempt, failure)) => (
            NodeStep {
                state: StepState::Failed,
                attempt,
                why: Some(failure.why),
                elapsed_s: Some(failure.elapsed_s),
                ..base
            },
            None,
        ),
    }
}

/// Keeps the value; a file that exists but cannot be used is added to `unusable`.
fn keep_usable<T>(read: Result<T, FolderError>, unusable: &mut Vec<String>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            if let Err(error) = none_if_absent::<T>(error) {
                unusable.push(error.to_string());
            }
            None
        }
    }
}

fn none_if_absent<T>(error: FolderError) -> Result<Option<T>, FolderError> {
    match error {
        FolderError::File { reason, .. } if reason.kind() == io::ErrorKind::NotFound => Ok(None),
        other => Err(other),
    }
}
