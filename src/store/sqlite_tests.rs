//! The store under good and bad conditions.

use super::*;
use crate::machine::Machine;
use crate::machine::sim::SimulatedMachine;
use crate::record::Stopped;
use crate::study::compare::{self, Observer, Plan, Tuning};
use crate::workload::Command;

/// A small simulated comparison.
pub(in crate::store) fn comparison(id: &str, observer: &mut dyn Observer) -> Comparison {
    let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let placements = ["os-default", "cpu:0"].map(|name| name.parse().unwrap());
    let command = Command::from_line("prog").unwrap();
    let plan = Plan {
        id: id.to_owned(),
        tuning: Tuning {
            max_runs: Some(8),
            ..Tuning::default()
        },
        ..Plan::of_placements(command, &topology, &placements).unwrap()
    };
    compare::run(&plan, &mut machine, observer).unwrap()
}

struct Keeper<'a> {
    store: &'a mut Store,
    kill_after: usize,
}

impl Observer for Keeper<'_> {
    fn begin(&mut self, record: &Comparison) {
        self.store.begin(record).unwrap();
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        if self.kill_after > 0 {
            self.kill_after -= 1;
            self.store.add_run(arm, run).unwrap();
        }
    }
}

pub(in crate::store) fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a/b/pinwise.db")).unwrap();
    (folder, store)
}

#[test]
fn a_finished_record_comes_back_whole() {
    let (_folder, mut store) = store();
    let record = comparison("one", &mut compare::Unwatched);
    store.begin(&record).unwrap();
    store.finish(&record).unwrap();
    let stored = store.load("on").unwrap();
    assert!(stored.entry.is_complete);
    assert!(
        stored.comparison().unwrap() == record,
        "the record changed in the store"
    );
    assert_eq!(store.load("last").unwrap().entry.id, "one");
}

#[test]
fn a_killed_record_keeps_every_finished_run() {
    let (folder, mut store) = store();
    let mut keeper = Keeper {
        store: &mut store,
        kill_after: 9,
    };
    comparison("cut", &mut keeper);
    assert_eq!(
        store.load("cut").unwrap().runs.len(),
        9,
        "a growing record can be read"
    );
    drop(store);
    let store = Store::open(&folder.path().join("a/b/pinwise.db")).unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path().join("a/b"))
        .unwrap()
        .collect();
    assert!(
        names.iter().all(|n| !format!("{n:?}").contains(".runs")),
        "{names:?}"
    );
    let stored = store.load("cut").unwrap();
    assert!(!stored.entry.is_complete);
    let record = stored.comparison().unwrap();
    let counted: usize = record.arms.iter().map(|arm| arm.runs.len()).sum();
    let others: usize = record.arms.iter().map(|arm| arm.other_runs.len()).sum();
    assert_eq!(counted + others, 9);
    assert_eq!(record.stopped, None::<Stopped>);
    assert_eq!(record.arms[0].runs.len(), record.arms[1].runs.len());
}

#[test]
fn ids_must_be_known_and_unique() {
    let (_folder, mut store) = store();
    assert!(
        store
            .load("last")
            .unwrap_err()
            .to_string()
            .contains("empty")
    );
    for id in ["ab1", "ab2"] {
        let record = comparison(id, &mut compare::Unwatched);
        store.begin(&record).unwrap();
    }
    assert!(
        store
            .load("x")
            .unwrap_err()
            .to_string()
            .contains("no record")
    );
    let several = store.load("ab").unwrap_err().to_string();
    assert!(several.contains("ab1, ab2"), "{several}");
    assert_eq!(store.list(10).unwrap().len(), 2);
    assert_eq!(store.list(1).unwrap()[0].id, "ab2");
}

#[test]
fn damaged_newer_and_locked_stores_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    std::fs::write(
        &path,
        "this is not a database, but long enough to look like a file of one",
    )
    .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");

    let path = folder.path().join("new.db");
    Store::open(&path)
        .unwrap()
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );

    let error = Store::open(Path::new("/proc/none/x.db")).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}
