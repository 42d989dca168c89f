//! Runs a node's steps that have no record yet, one after the other.
//!
//! A step is a separate process, started by a [`Runner`]. Its record is renamed into place, so that
//! a crash leaves one record or none. A failed step does not stop those after it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::folder::{FleetFolder, FolderError};
use super::node_folder::{AttemptEnd, AttemptStart, NodeFolder, NodeSnapshot, StepFailure};
use super::record_id;
use super::trust::Users;
use pinwise_record::{
    FleetRecord, FleetStep, StepResult, StepState, Summary, read_id, replace_id, replace_tags,
};

/// Maximum number of lines kept of a failed step's standard error.
const MAX_STDERR_LINES: usize = 20;
/// Maximum length of each of these lines, characters.
const MAX_LINE_CHARACTERS: usize = 500;

/// How a step's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnd {
    /// With an exit status.
    Status(i32),
    /// In another way, as text.
    Failed(String),
    /// The node itself must stop; the reason as text.
    Interrupted(String),
}

/// Starts steps.
pub trait Runner {
    /// Runs a step to its end and returns its duration; standard output and error go to
    /// `STEM.stdout` and `STEM.stderr`.
    fn run(&mut self, step: &FleetStep, stem: &std::path::Path) -> (StepEnd, Duration);

    /// Time of day, RFC 3339.
    fn now(&self) -> String;

    /// Delivers the finished records to the store, if there is one. Undelivered ones stay in the
    /// folder.
    fn deliver(&mut self, node_folder: &NodeFolder, snapshot: &NodeSnapshot);

    /// Reports what happens.
    fn report(&mut self, sentence: &str);
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Every step has a record.
    Complete,
    /// Some step has no record.
    Incomplete,
    /// It was interrupted.
    Interrupted,
}

/// Runs the steps without a record, from a folder that only `users` can have written.
///
/// # Errors
/// [`FolderError`] if the folder cannot be written.
pub fn run_missing_steps(
    folder: &FleetFolder,
    users: &Users,
    fleet: &FleetRecord,
    node: &str,
    start: AttemptStart,
    runner: &mut dyn Runner,
) -> Result<AttemptOutcome, FolderError> {
    let node_folder = folder.ensure_node(node)?;
    let start = node_folder.claim_attempt(start)?;
    runner.report(&format!(
        "{}: attempt {} of node {node} of fleet {}",
        start.started, start.attempt, fleet.id
    ));
    let mut attempt = Attempt {
        fleet,
        node_folder: &node_folder,
        number: start.attempt,
        known_results: BTreeMap::new(),
    };
    // Before the first step, so that the machine is known even if the node is lost later.
    let mut is_whole = attempt.write_node(runner)?;
    let mut interrupted = None;
    for step in &fleet.steps {
        if node_folder.read_record(&fleet.id, &step.name)?.is_some() {
            continue;
        }
        // The folder may have vanished, or have become writable for others.
        FleetFolder::open_trusted(folder.path(), users)?;
        interrupted = attempt.run_step(step, runner)?;
        is_whole = attempt.write_node(runner)?;
        if interrupted.is_some() {
            break;
        }
    }
    // Another attempt may have done the skipped steps.
    if interrupted.is_none() && !is_whole {
        is_whole = attempt.write_node(runner)?;
    }
    let outcome = match (&interrupted, is_whole) {
        (Some(_), _) => AttemptOutcome::Interrupted,
        (None, true) => AttemptOutcome::Complete,
        (None, false) => AttemptOutcome::Incomplete,
    };
    let ended = AttemptEnd {
        ended: runner.now(),
        why: interrupted,
    };
    node_folder.put_end(start.attempt, &ended)?;
    Ok(outcome)
}

struct Attempt<'a> {
    fleet: &'a FleetRecord,
    node_folder: &'a NodeFolder,
    number: u32,
    /// Figures of finished steps, by step.
    known_results: BTreeMap<String, StepResult>,
}

impl Attempt<'_> {
    /// Runs a step; returns the reason if the node must stop.
    fn run_step(
        &self,
        step: &FleetStep,
        runner: &mut dyn Runner,
    ) -> Result<Option<String>, FolderError> {
        runner.report(&format!("{}: step {}", runner.now(), step.name));
        let stem = self.node_folder.make_output(&step.name, self.number)?;
        let (end, elapsed) = runner.run(step, &stem);
        let [out, err] = self.node_folder.take_output(&step.name, self.number);
        let body = self.make_record(step, &end, out);
        let stderr = keep_last_lines(&err.unwrap_or_default());
        let elapsed_s = elapsed.as_secs_f64();
        let ended = runner.now();
        let why = match body {
            Ok(body) => {
                let number = self.number;
                let node_folder = self.node_folder;
                let is_first =
                    node_folder.put_record(&step.name, &body, number, &ended, elapsed_s)?;
                let words = if is_first { "done" } else { "was done already" };
                runner.report(&format!("{ended}: step {} {words}", step.name));
                return Ok(None);
            }
            Err(why) => why,
        };
        let last_line = stderr.last().filter(|_| matches!(end, StepEnd::Status(_)));
        let why = last_line.map_or_else(|| why.clone(), |last_line| format!("{last_line} ({why})"));
        runner.report(&format!("{ended}: step {} failed: {why}", step.name));
        let failure = StepFailure {
            attempt: self.number,
            ended,
            why: why.clone(),
            elapsed_s,
            stderr,
        };
        self.node_folder.put_failure(&step.name, &failure)?;
        Ok(matches!(end, StepEnd::Interrupted(_)).then_some(why))
    }

    /// Makes the step's record from its output, or says why it cannot.
    fn make_record(
        &self,
        step: &FleetStep,
        end: &StepEnd,
        out: Result<String, FolderError>,
    ) -> Result<String, String> {
        match end {
            // A failed gate, or an undecided verdict, is a result.
            StepEnd::Status(0 | 1 | 3) => {}
            StepEnd::Status(status) => return Err(format!("exit status {status}")),
            StepEnd::Failed(how) | StepEnd::Interrupted(how) => return Err(how.clone()),
        }
        let text = out.map_err(|error| error.to_string())?;
        pinwise_record::Kind::from_record_text(&text)
            .map_err(|error| format!("its output: {error}"))?;
        if read_id(&text).is_none_or(|id| id.is_empty()) {
            return Err("its output is not a record that can be stored".to_owned());
        }
        let id = record_id(&self.fleet.id, self.node_folder.name(), &step.name);
        let mut tags = Summary::from_json(&text).tags;
        tags.extend(self.fleet.tags.iter().cloned());
        tags.push(FleetRecord::tag(&self.fleet.id));
        tags.sort_unstable();
        tags.dedup();
        let damaged = |error: serde_json::Error| format!("its output: {error}");
        let text = replace_id(text.trim_end(), &id).map_err(damaged)?;
        replace_tags(&text, &tags).map_err(damaged)
    }

    /// Writes and delivers the node's record; returns whether every step is done.
    fn write_node(&mut self, runner: &mut dyn Runner) -> Result<bool, FolderError> {
        let snapshot = self
            .node_folder
            .read_new(self.fleet, &mut self.known_results)?;
        self.node_folder.put_node(&snapshot.record)?;
        runner.deliver(self.node_folder, &snapshot);
        let steps = &snapshot.record.steps;
        Ok(steps.iter().all(|step| step.state == StepState::Done))
    }
}

/// The last lines of a text, each of limited length.
fn keep_last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(MAX_STDERR_LINES);
    let shorten = |line: &&str| {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        line.chars().take(MAX_LINE_CHARACTERS).collect()
    };
    lines[from..].iter().map(shorten).collect()
}

#[cfg(test)]
mod tests;
