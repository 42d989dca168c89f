//! What only the file shows, under good and bad conditions.

use std::path::Path;

use super::*;
use crate::Store;
use crate::tests::{comparison, store};
use pinwise_record::{Comparison, Stopped};
use pinwise_study::compare::Observer;

struct StoringObserver<'a> {
    store: &'a mut Store,
    kill_after: usize,
}

impl Observer for StoringObserver<'_> {
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

#[test]
fn a_killed_record_keeps_every_finished_run() {
    let (folder, mut store) = store();
    let mut observer = StoringObserver {
        store: &mut store,
        kill_after: 9,
    };
    comparison("cut", &mut observer);
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
fn damaged_stores_and_those_of_other_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    std::fs::write(
        &path,
        "this is not a database, but long enough to look like a file of one",
    )
    .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");

    let path = folder.path().join("other.db");
    for version in [-1, 2, 99] {
        let store = Connection::open(&path).unwrap();
        store.pragma_update(None, "user_version", version).unwrap();
        let before = std::fs::read(&path).unwrap();
        for open in [Sqlite::open, Sqlite::open_to_read, Sqlite::open_to_change] {
            let error = open(&path).unwrap_err();
            assert!(
                matches!(error, StoreError::OtherVersion { found, .. } if found == version),
                "{error}"
            );
            assert!(error.to_string().contains("--store"), "{error}");
        }
        assert!(std::fs::read(&path).unwrap() == before);
    }

    let error = Store::open(Path::new("/proc/none/x.db")).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}
