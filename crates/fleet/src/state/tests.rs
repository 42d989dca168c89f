use super::super::fixture::sample_fleet;
use super::super::node_folder::{AttemptEnd, AttemptStart};
use super::*;
use pinwise_record::{Answer, FleetNode, Header, NodeStep};

/// A node with steps in these states, whose newest attempt ended in this way.
fn make_snapshot(node: &str, states: [StepState; 2], ended: Option<AttemptEnd>) -> NodeSnapshot {
    let step = |(name, state): (&str, StepState)| NodeStep {
        name: name.to_owned(),
        state,
        record: None,
        attempt: 1,
        verdict: None,
        changes: Vec::new(),
        why: (state == StepState::Failed).then(|| "no room".to_owned()),
        elapsed_s: None,
    };
    let record = FleetNode {
        header: Header::new(FleetNode::join_id("f", node), "", Vec::new()),
        fleet: "f".to_owned(),
        node: node.to_owned(),
        ended: None,
        attempts: 1,
        host: None,
        settings: BTreeMap::new(),
        steps: ["a", "b"].into_iter().zip(states).map(step).collect(),
        figures: Vec::new(),
        clock_ahead_s: None,
        answer: Answer::default(),
    };
    NodeSnapshot {
        record,
        done: Vec::new(),
        newest: Some(AttemptStart {
            attempt: 1,
            started: "then".to_owned(),
            clock_ahead_s: Some(7.0),
            ..AttemptStart::default()
        }),
        ended,
        unusable: Vec::new(),
    }
}

fn make_job(node: Option<&str>, stage: Stage, description: &str) -> JobState {
    JobState {
        job: "7".to_owned(),
        node: node.map(str::to_owned),
        stage,
        description: description.to_owned(),
        restarts: 0,
    }
}

/// Checks the state of `n1`, the only node of a fleet, and a part of the reason for it.
#[track_caller]
fn check(snapshot: Option<NodeSnapshot>, jobs: Option<&[JobState]>, state: NodeState, why: &str) {
    let snapshots: Vec<NodeSnapshot> = snapshot.into_iter().collect();
    let found = fleet_status(&sample_fleet(&["n1"]), &snapshots, jobs, "now");
    assert_eq!(found.nodes.len(), 1);
    let node = &found.nodes[0];
    assert_eq!(node.state, state, "{node:?}");
    assert!(
        node.why.as_deref().unwrap_or_default().contains(why),
        "{node:?}"
    );
    let all = [
        found.done,
        found.running,
        found.queued,
        found.failed,
        found.missing,
    ];
    assert_eq!(all.iter().sum::<usize>(), 1);
}

#[test]
fn folder_and_scheduler_together_give_a_nodes_state() {
    use StepState::{Done, Failed, Missing};
    let ended = || Some(AttemptEnd::default());
    let job_on_n1 = |stage, description| [make_job(Some("n1"), stage, description)];
    let lost = "did not end by itself";
    check(None, Some(&[]), NodeState::Missing, "");
    check(None, None, NodeState::Missing, "");
    check(
        None,
        Some(&job_on_n1(Stage::Queued, "Priority")),
        NodeState::Queued,
        "Priority",
    );
    check(
        None,
        Some(&job_on_n1(Stage::Failed, "NODE_FAIL")),
        NodeState::Failed,
        "NODE_FAIL",
    );
    let begins = job_on_n1(Stage::Running, "");
    check(None, Some(&begins), NodeState::Queued, "has not started");
    let whole = || Some(make_snapshot("n1", [Done, Done], ended()));
    check(
        whole(),
        Some(&job_on_n1(Stage::Failed, "x")),
        NodeState::Done,
        "",
    );
    let half = || Some(make_snapshot("n1", [Done, Missing], None));
    check(
        half(),
        Some(&job_on_n1(Stage::Running, "")),
        NodeState::Running,
        "",
    );
    check(half(), None, NodeState::Running, "");
    check(
        half(),
        Some(&job_on_n1(Stage::Ended, "")),
        NodeState::Failed,
        lost,
    );
    check(
        half(),
        Some(&job_on_n1(Stage::Failed, "TIMEOUT")),
        NodeState::Failed,
        "TIMEOUT; attempt 1",
    );
    check(half(), Some(&[]), NodeState::Failed, lost);
    let failed = || Some(make_snapshot("n1", [Failed, Done], ended()));
    check(
        failed(),
        Some(&job_on_n1(Stage::Ended, "")),
        NodeState::Failed,
        "no room",
    );
    check(failed(), None, NodeState::Failed, "no room");
    check(
        failed(),
        Some(&job_on_n1(Stage::Queued, "Resources")),
        NodeState::Queued,
        "Resources",
    );
    // A waiting resumption counts more than the failed job.
    let two = [
        make_job(Some("n1"), Stage::Queued, "new"),
        make_job(Some("n1"), Stage::Failed, "old"),
    ];
    check(failed(), Some(&two), NodeState::Queued, "new");
}

#[test]
fn unknown_nodes_are_counted() {
    let mut record = sample_fleet(&[]);
    record.asked = 3;
    let waiting = [make_job(None, Stage::Queued, "")];
    let found = fleet_status(&record, &[], Some(&waiting), "now");
    assert_eq!((found.queued, found.missing), (3, 0));
    let found = fleet_status(&record, &[], Some(&[]), "now");
    assert_eq!((found.queued, found.missing), (0, 3));
}

#[test]
fn clocks_are_reported() {
    let snapshots = [make_snapshot("n1", [StepState::Done; 2], None)];
    let notes = fleet_status(&sample_fleet(&["n1"]), &snapshots, None, "now").notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("clock of n1 is 7 s ahead of"),
        "{notes:?}"
    );
}

/// A folder may have any name, and missing nodes are submitted again.
#[test]
fn foreign_folders_do_not_count_as_nodes() {
    let done = || make_snapshot("n1", [StepState::Done; 2], Some(AttemptEnd::default()));
    let planted = make_snapshot("evil", [StepState::Missing; 2], None);
    let nodes = |fleet: &FleetRecord, snapshots: &[NodeSnapshot]| {
        let found = fleet_status(fleet, snapshots, Some(&[]), "now");
        let is_noted = found.notes.iter().any(|note| note.contains("nodes/evil"));
        let names: Vec<String> = found.nodes.into_iter().map(|node| node.node).collect();
        (names, is_noted)
    };
    let snapshots = [done(), planted.clone()];
    let found = nodes(&sample_fleet(&["n1"]), &snapshots);
    assert_eq!(found, (vec!["n1".to_owned()], true));
    // If the scheduler chose the nodes, a node counts once it has begun.
    let both = vec!["evil".to_owned(), "n1".to_owned()];
    assert_eq!(nodes(&sample_fleet(&[]), &snapshots), (both, false));
    let snapshots = [
        done(),
        NodeSnapshot {
            newest: None,
            ..planted
        },
    ];
    let found = nodes(&sample_fleet(&[]), &snapshots);
    assert_eq!(found, (vec!["n1".to_owned()], true));
}
