use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::fixture::sample_fleet;
use super::super::folder::NewFleetFolder;
use super::super::submission::Submission;
use super::*;

/// A runner that executes nothing: each step gets the next prepared result.
struct ScriptedRunner {
    /// How a step ends, and its standard output.
    ends: Vec<(StepEnd, &'static str)>,
    ran: Vec<String>,
    delivered: Vec<usize>,
    /// Another attempt finishes step `b` after this many deliveries.
    rival_finishes_b_at: Option<usize>,
}

impl ScriptedRunner {
    fn new(ends: &[(StepEnd, &'static str)]) -> Self {
        Self {
            ends: ends.to_vec(),
            ran: Vec::new(),
            delivered: Vec::new(),
            rival_finishes_b_at: None,
        }
    }
}

impl Runner for ScriptedRunner {
    fn run(&mut self, step: &FleetStep, stem: &Path) -> (StepEnd, Duration) {
        let (end, out) = self.ends.remove(0);
        std::fs::write(format!("{}.stdout", stem.display()), out).unwrap();
        let err = "one\nerror: two\n\n";
        std::fs::write(format!("{}.stderr", stem.display()), err).unwrap();
        self.ran.push(step.name.clone());
        (end, Duration::from_millis(1500))
    }

    fn now(&self) -> String {
        "2026-01-01T00:00:01Z".to_owned()
    }

    fn deliver(&mut self, place: &NodeFolder, snapshot: &NodeSnapshot) {
        self.delivered.push(snapshot.done.len());
        if self.rival_finishes_b_at == Some(self.delivered.len()) {
            let body = replace_id(VALID_RECORD, "f.n1~b").unwrap();
            assert!(place.put_record("b", &body, 2, "t", 1.0).unwrap());
        }
    }

    fn report(&mut self, _sentence: &str) {}
}

const VALID_RECORD: &str = r#"{"schema":"pinwise.comparison/1","id":"x","tags":["own"]}"#;

fn new_fleet() -> (tempfile::TempDir, FleetFolder, FleetRecord) {
    let place = tempfile::tempdir().unwrap();
    let record = sample_fleet(&["n1"]);
    let program = place.path().join("program");
    std::fs::write(&program, "").unwrap();
    let path = place.path().join("f");
    let new_folder = NewFleetFolder {
        record: &record,
        submission: &Submission::default(),
        program: &program,
        users: &own_users(&place),
        group: None,
    };
    let folder = FleetFolder::create(&path, &new_folder).unwrap();
    (place, folder, record)
}

/// The user who runs the tests.
fn own_users(place: &tempfile::TempDir) -> Users {
    Users::trusted_by(place.path().metadata().unwrap().uid())
}

fn run_attempt(
    folder: &FleetFolder,
    record: &FleetRecord,
    script: &mut ScriptedRunner,
) -> AttemptOutcome {
    let users = Users::trusted_by(folder.owner().unwrap());
    run_missing_steps(
        folder,
        &users,
        record,
        "n1",
        AttemptStart::default(),
        script,
    )
    .unwrap()
}

fn read_snapshot(folder: &FleetFolder, record: &FleetRecord) -> NodeSnapshot {
    folder.list_nodes().unwrap().nodes[0]
        .read_all(record)
        .unwrap()
}

#[test]
fn steps_that_lack_a_record_are_run_and_no_others() {
    let (_place, folder, record) = new_fleet();
    let mut script =
        ScriptedRunner::new(&[(StepEnd::Status(2), ""), (StepEnd::Status(3), VALID_RECORD)]);
    assert_eq!(
        run_attempt(&folder, &record, &mut script),
        AttemptOutcome::Incomplete
    );
    assert_eq!(script.ran, ["a", "b"]);
    assert_eq!(script.delivered, [0, 0, 1, 1]);
    let found = read_snapshot(&folder, &record);
    assert_eq!(
        found.record.steps[0].why.as_deref(),
        Some("two (exit status 2)")
    );
    assert_eq!(found.record.steps[1].record.as_deref(), Some("f.n1~b"));
    assert_eq!(found.record.steps[1].elapsed_s, Some(1.5));
    let mut script = ScriptedRunner::new(&[(StepEnd::Status(0), VALID_RECORD)]);
    assert_eq!(
        run_attempt(&folder, &record, &mut script),
        AttemptOutcome::Complete
    );
    assert_eq!(script.ran, ["a"]);
    let found = read_snapshot(&folder, &record);
    assert_eq!((found.record.attempts, found.unusable.len()), (2, 0));
    assert_eq!(found.record.ended.as_deref(), Some("2026-01-01T00:00:01Z"));
    let place = folder.ensure_node("n1").unwrap();
    let body = place.read_record("f", "a").unwrap().unwrap();
    assert_eq!(Summary::from_json(&body).tags, ["fleet:f", "own", "t"]);
    let mut script = ScriptedRunner::new(&[]);
    assert_eq!(
        run_attempt(&folder, &record, &mut script),
        AttemptOutcome::Complete
    );
}

#[test]
fn steps_that_another_attempt_has_finished_are_not_run() {
    let (_place, folder, record) = new_fleet();
    let mut script = ScriptedRunner::new(&[(StepEnd::Status(0), VALID_RECORD)]);
    script.rival_finishes_b_at = Some(2);
    assert_eq!(
        run_attempt(&folder, &record, &mut script),
        AttemptOutcome::Complete
    );
    assert_eq!(script.ran, ["a"]);
}

#[test]
fn output_that_is_not_a_record_fails_the_step() {
    for bad in [
        "",
        "{",
        "{}",
        r#"{"schema":"pinwise.comparison/1"}"#,
        r#"{"schema":"pinwise.comparison/9","id":"x"}"#,
    ] {
        let (_place, folder, record) = new_fleet();
        let mut script = ScriptedRunner::new(&[
            (StepEnd::Status(0), bad),
            (StepEnd::Status(0), VALID_RECORD),
        ]);
        assert_eq!(
            run_attempt(&folder, &record, &mut script),
            AttemptOutcome::Incomplete,
            "{bad}"
        );
        let why = read_snapshot(&folder, &record).record.steps[0]
            .why
            .clone()
            .unwrap();
        assert!(why.contains("its output"), "{bad}: {why}");
    }
}

#[test]
fn an_interruption_ends_the_attempt() {
    let (_place, folder, record) = new_fleet();
    let interrupted = StepEnd::Interrupted("a signal".to_owned());
    let mut script = ScriptedRunner::new(&[(interrupted, VALID_RECORD)]);
    assert_eq!(
        run_attempt(&folder, &record, &mut script),
        AttemptOutcome::Interrupted
    );
    assert_eq!(script.ran, ["a"]);
    let found = read_snapshot(&folder, &record);
    assert_eq!(found.ended.unwrap().why.as_deref(), Some("a signal"));
    assert!(found.done.is_empty());
}

#[test]
fn the_first_record_of_a_step_counts() {
    let (_place, folder, record) = new_fleet();
    let place = folder.ensure_node("n1").unwrap();
    let body = |text: &str| replace_id(text, "f.n1~a").unwrap();
    let first = body(VALID_RECORD);
    assert!(place.put_record("a", &first, 1, "t", 1.0).unwrap());
    assert!(
        !place
            .put_record("a", &body("{\"schema\":\"pinwise.bench/1\"}"), 2, "t", 2.0)
            .unwrap()
    );
    assert_eq!(place.read_record("f", "a").unwrap(), Some(first));
    let found = place.read_all(&record).unwrap();
    assert_eq!((found.record.steps[0].attempt, found.done.len()), (1, 1));
    let hidden = std::fs::read_dir(folder.path().join("nodes/n1"))
        .unwrap()
        .flatten();
    let hidden = hidden.filter(|e| e.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "no temporary file is left");
}

#[test]
fn concurrent_attempts_get_different_numbers() {
    let (_place, folder, _) = new_fleet();
    let place = folder.ensure_node("n1").unwrap();
    let numbers: Vec<u32> = std::thread::scope(|scope| {
        let claim = || {
            place
                .claim_attempt(AttemptStart::default())
                .unwrap()
                .attempt
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let distinct: std::collections::BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(distinct, (1..=8).collect(), "{numbers:?}");
}
