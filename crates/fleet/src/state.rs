//! The state of a fleet's nodes, from their files and from the states of their jobs.

use std::collections::BTreeMap;

use super::launcher::{JobState, Stage};
use super::node_folder::NodeSnapshot;
use pinwise_record::{
    CLOCK_TOLERANCE_S, FleetRecord, FleetStatus, NodeState, NodeStatus, StepState,
};

/// Combines snapshots and jobs into the state of a fleet. `jobs`: as the scheduler reports them;
/// `None` if it did not answer.
#[must_use]
pub fn fleet_status(
    fleet: &FleetRecord,
    snapshots: &[NodeSnapshot],
    jobs: Option<&[JobState]>,
    at: &str,
) -> FleetStatus {
    let mut by_node: BTreeMap<&str, NodeSources<'_>> = BTreeMap::new();
    for node in &fleet.nodes {
        by_node.entry(node).or_default();
    }
    // A job without a node is waiting for one.
    for job in jobs.unwrap_or_default() {
        if let Some(node) = &job.node {
            by_node.entry(node).or_default().jobs.push(job);
        }
    }
    let mut ignored = Vec::new();
    for snapshot in snapshots {
        let node = &snapshot.record.node;
        if by_node.contains_key(node.as_str()) || is_from_unlisted_node(fleet, snapshot) {
            by_node.entry(node).or_default().snapshot = Some(snapshot);
        } else {
            ignored.push(format!(
                "Ignored: nodes/{node}, which does not belong to a node of this fleet."
            ));
        }
    }
    let nodes: Vec<NodeStatus> = by_node
        .into_iter()
        .map(|(node, sources)| make_node_status(node, &sources, jobs.is_some()))
        .collect();
    let unbound = jobs.unwrap_or_default().iter();
    let waiting = unbound.filter(|job| job.node.is_none() && job.stage == Stage::Queued);
    let waiting = waiting.count();
    let count = |state| nodes.iter().filter(|node| node.state == state).count();
    let unknown = fleet.asked.saturating_sub(nodes.len());
    let queued = if waiting > 0 { unknown } else { 0 };
    FleetStatus {
        fleet: fleet.id.clone(),
        at: at.to_owned(),
        asked: fleet.asked,
        steps: fleet.steps.len(),
        done: count(NodeState::Done),
        running: count(NodeState::Running),
        queued: count(NodeState::Queued) + queued,
        failed: count(NodeState::Failed),
        missing: count(NodeState::Missing) + unknown - queued,
        notes: [collect_notes(fleet, &nodes, snapshots), ignored].concat(),
        nodes,
    }
}

/// The files and the jobs of a node.
#[derive(Default)]
struct NodeSources<'a> {
    snapshot: Option<&'a NodeSnapshot>,
    jobs: Vec<&'a JobState>,
}

/// Did a node of the fleet make this folder although the fleet does not list it? Only if the
/// scheduler chose the nodes and a step has begun: users may have put other folders there, and the
/// nodes of a status may be submitted again.
fn is_from_unlisted_node(fleet: &FleetRecord, snapshot: &NodeSnapshot) -> bool {
    fleet.nodes.is_empty() && (snapshot.newest.is_some() || !snapshot.done.is_empty())
}

fn make_node_status(node: &str, sources: &NodeSources<'_>, scheduler_answers: bool) -> NodeStatus {
    let NodeSources { snapshot, jobs } = sources;
    let steps = snapshot.map(|snapshot| snapshot.record.steps.as_slice());
    let steps = steps.unwrap_or_default();
    let done = steps.iter().filter(|s| s.state == StepState::Done).count();
    let newest = snapshot.and_then(|snapshot| snapshot.newest.as_ref());
    let ended = snapshot.and_then(|snapshot| snapshot.ended.as_ref());
    // The newest queued or running job counts, else the newest of all.
    let is_active = |job: &&&JobState| matches!(job.stage, Stage::Queued | Stage::Running);
    let job = jobs.iter().rev().find(is_active).or(jobs.last());
    let missing = steps.iter().find(|s| s.state == StepState::Missing);
    let failed = steps.iter().find(|s| s.state == StepState::Failed);
    let mut status = NodeStatus {
        node: node.to_owned(),
        state: NodeState::Failed,
        done,
        step: None,
        since: newest.map(|begun| begun.started.clone()),
        why: None,
        job: job.map(|job| job.job.clone()),
        attempts: snapshot.map_or(0, |snapshot| snapshot.record.attempts),
        clock_ahead_s: newest.and_then(|begun| begun.clock_ahead_s),
    };
    let has_open_attempt = newest.is_some() && ended.is_none();
    let is_complete = !steps.is_empty() && done == steps.len();
    let stage = job.map(|job| job.stage);
    if is_complete {
        status.state = NodeState::Done;
    } else if stage == Some(Stage::Running) && newest.is_none() {
        status.state = NodeState::Queued;
        status.why = Some("its job has started, but pinwise has not started there".to_owned());
    } else if stage == Some(Stage::Running) || (!scheduler_answers && has_open_attempt) {
        status.state = NodeState::Running;
        status.step = missing.or(failed).map(|step| step.name.clone());
    } else if stage == Some(Stage::Queued) {
        status.state = NodeState::Queued;
        status.why = job.map(|job| job.description.clone());
    } else if newest.is_none() && !job.is_some_and(|job| job.stage == Stage::Failed) {
        status.state = NodeState::Missing;
        // The job's end does not matter if pinwise never started on the node.
        let unknown_job = job.filter(|job| job.stage == Stage::Unknown);
        status.why = unknown_job
            .map(|job| job.description.clone())
            .filter(|text| !text.is_empty());
    } else {
        let step = failed.or(missing);
        status.step = step.map(|step| step.name.clone());
        status.why = explain_failure(*snapshot, job.copied());
    }
    status
}

/// Why a node ended without all records.
fn explain_failure(snapshot: Option<&NodeSnapshot>, job: Option<&JobState>) -> Option<String> {
    let job_reason = job.filter(|job| job.stage == Stage::Failed);
    let job_reason = job_reason.map(|job| job.description.clone());
    let job_reason = job_reason.filter(|text| !text.is_empty());
    let Some(snapshot) = snapshot else {
        return job_reason;
    };
    let failed = snapshot.record.steps.iter();
    let mut failed = failed.filter(|step| step.state == StepState::Failed);
    let step_reason = failed.find_map(|step| step.why.clone());
    let has_ended = snapshot.ended.is_some();
    let lost = snapshot
        .newest
        .as_ref()
        .filter(|_| !has_ended)
        .map(|begun| {
            let attempt = begun.attempt;
            format!("attempt {attempt} did not end by itself: the node was lost, or pinwise killed")
        });
    match (step_reason, job_reason, lost) {
        (_, Some(job_reason), Some(lost)) => Some(format!("{job_reason}; {lost}")),
        (_, None, Some(lost)) => Some(lost),
        (Some(step_reason), Some(job_reason), None) => Some(format!("{step_reason}; {job_reason}")),
        (Some(step_reason), None, None) => Some(step_reason),
        (None, job_reason, None) => job_reason,
    }
}

fn collect_notes(
    fleet: &FleetRecord,
    nodes: &[NodeStatus],
    snapshots: &[NodeSnapshot],
) -> Vec<String> {
    let mut notes: Vec<String> = fleet
        .left_out
        .iter()
        .map(|left| format!("Not included: {left}."))
        .collect();
    let ahead = |node: &&NodeStatus| {
        let ahead = node.clock_ahead_s.unwrap_or_default();
        ahead.abs() > CLOCK_TOLERANCE_S
    };
    for node in nodes.iter().filter(ahead) {
        let ahead = node.clock_ahead_s.unwrap_or_default();
        let word = if ahead > 0.0 { "ahead of" } else { "behind" };
        notes.push(format!(
            "The clock of {} is {:.0} s {word} the shared folder's: timestamps of its records are off.",
            node.node,
            ahead.abs()
        ));
    }
    let unusable = snapshots.iter().flat_map(|snapshot| &snapshot.unusable);
    notes.extend(unusable.map(|file| format!("Not usable: {file}")));
    notes
}

#[cfg(test)]
mod tests;
