//! Jobs as listed by `squeue` and `sacct`.

use std::collections::BTreeMap;

use crate::hostlist;
use crate::launcher::{JobState, LaunchError, Stage, escape_controls};
use pinwise_record::FleetJob;

/// `squeue --format`: id, long form of the state, nodes, name, reason. Name and reason come last,
/// because their text may contain the separator.
pub(super) const SQUEUE_FORMAT: &str = "%i|%T|%N|%j|%r";
/// `squeue --Format` for fields that `--format` lacks: id, restarts.
pub(super) const RESTARTS_FORMAT: &str = "JobArrayID:64,RestartCnt:16";
/// `sacct --format`, with `--parsable2`.
pub(super) const SACCT_FORMAT: &str = "JobID,State,NodeList,JobName";

/// Job states from squeue(1) and sacct(1), JOB STATE CODES.
const QUEUED: [&str; 7] = [
    "PENDING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "EXPEDITING",
];
const RUNNING: [&str; 9] = [
    "RUNNING",
    "CONFIGURING",
    "COMPLETING",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
    "POWER_UP_NODE",
];
const FAILED: [&str; 11] = [
    "FAILED",
    "TIMEOUT",
    "PREEMPTED",
    "NODE_FAIL",
    "CANCELLED",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "REVOKED",
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
];

/// A job, or a task of an array job, in the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedJob {
    /// `12`, or `12_3` of an array.
    pub(super) id: String,
    /// The id of the job, without the number of the task.
    pub(super) job: String,
    nodes: Vec<String>,
    pub(super) stage: Stage,
    description: String,
}

/// The stage that corresponds to a job state.
fn parse_stage(state: &str) -> Stage {
    let is_in = |states: &[&str]| states.contains(&state);
    if is_in(&QUEUED) {
        Stage::Queued
    } else if is_in(&RUNNING) {
        Stage::Running
    } else if state == "COMPLETED" {
        Stage::Ended
    } else if is_in(&FAILED) {
        Stage::Failed
    } else {
        Stage::Unknown
    }
}

/// Parses `squeue --noheader --array --states=all --format SQUEUE_FORMAT`. Jobs with other names
/// are skipped: a controller that lost its state reuses job ids.
pub(super) fn parse_squeue(text: &str, name: &str) -> Result<Vec<ListedJob>, LaunchError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .filter_map(|line| parse_line(line, name).transpose())
        .collect()
}

fn parse_line(line: &str, name: &str) -> Result<Option<ListedJob>, LaunchError> {
    let unexpected = || LaunchError::UnexpectedOutput {
        program: "squeue".to_owned(),
        output: escape_controls(line),
    };
    let mut fields = line.trim().splitn(4, '|');
    let mut field = || fields.next().ok_or_else(unexpected);
    let (id, state, nodes, rest) = (field()?, field()?, field()?, field()?);
    let Some(reason) = rest
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('|'))
    else {
        return Ok(None);
    };
    let description = match reason {
        "None" | "" => escape_controls(state),
        reason => format!("{} ({})", escape_controls(state), escape_controls(reason)),
    };
    parse_job(id, state, nodes, description)
        .map(Some)
        .ok_or_else(unexpected)
}

/// Parses `sacct --noheader --parsable2 --allocations --format SACCT_FORMAT`; jobs with other names
/// are skipped.
pub(super) fn parse_sacct(text: &str, name: &str) -> Result<Vec<ListedJob>, LaunchError> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let unexpected = || LaunchError::UnexpectedOutput {
            program: "sacct".to_owned(),
            output: escape_controls(line),
        };
        let mut fields = line.trim().splitn(4, '|');
        let mut field = || fields.next().ok_or_else(unexpected);
        let (id, state, nodes, job_name) = (field()?, field()?, field()?, field()?);
        if job_name != name {
            continue;
        }
        // `CANCELLED by 1000`
        let state_code = state.split_whitespace().next().unwrap_or_default();
        let nodes = match nodes {
            "None assigned" => "",
            nodes => nodes,
        };
        found
            .push(parse_job(id, state_code, nodes, escape_controls(state)).ok_or_else(unexpected)?);
    }
    Ok(found)
}

fn parse_job(id: &str, state: &str, nodes: &str, description: String) -> Option<ListedJob> {
    let job = id.split('_').next().unwrap_or(id);
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    if !is_number(job) {
        return None;
    }
    // Waiting tasks of an array may share a line: 12_[3-8].
    let is_task = |c: char| c.is_ascii_alphanumeric() || "_[]-,%+.".contains(c);
    if !id.chars().all(is_task) {
        return None;
    }
    let nodes = match nodes {
        "" | "(null)" => Vec::new(),
        nodes => hostlist::expand(nodes).ok()?,
    };
    Some(ListedJob {
        id: id.to_owned(),
        job: job.to_owned(),
        nodes,
        stage: parse_stage(state),
        description,
    })
}

/// Parses `squeue --noheader --array --states=all --Format RESTARTS_FORMAT`: restarts by id. Other
/// lines are skipped, since a missing count of restarts does no harm.
pub(super) fn parse_restarts(text: &str) -> BTreeMap<String, u32> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        let (id, count) = (words.next()?, words.next()?);
        Some((id.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The states of jobs, both of listed ones and of those that Slurm has forgotten.
pub(super) fn combine_states(
    jobs: &[FleetJob],
    listed: &[ListedJob],
    restarts: &BTreeMap<String, u32>,
) -> Vec<JobState> {
    let mut by_job: BTreeMap<&str, Vec<&ListedJob>> = BTreeMap::new();
    for task in listed {
        by_job.entry(task.job.as_str()).or_default().push(task);
    }
    let mut states = Vec::new();
    for job in jobs {
        let Some(tasks) = by_job.get(job.id.as_str()) else {
            states.push(JobState {
                job: job.id.clone(),
                node: job.node.clone(),
                stage: Stage::Unknown,
                description: "Slurm no longer knows this job".to_owned(),
                restarts: 0,
            });
            continue;
        };
        for task in tasks {
            states.extend(list_task_states(job, task, restarts));
        }
    }
    states
}

/// One state for each node of a task.
fn list_task_states(
    job: &FleetJob,
    task: &ListedJob,
    restarts: &BTreeMap<String, u32>,
) -> Vec<JobState> {
    let state = |node: Option<String>| JobState {
        job: task.id.clone(),
        node,
        stage: task.stage,
        description: task.description.clone(),
        restarts: restarts.get(&task.id).copied().unwrap_or(0),
    };
    match task.nodes.as_slice() {
        [] => vec![state(job.node.clone())],
        nodes => nodes.iter().map(|node| state(Some(node.clone()))).collect(),
    }
}
