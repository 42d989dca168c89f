//! The journal of a comparison whose writer was killed: whatever it contains, the store opens, and
//! a whole line at the end is not lost.
//!
//! The journal's parser is private; it is reached by opening a store with a journal beside it.

use std::path::Path;
use std::sync::LazyLock;

use pinwise_machine::Host;
use pinwise_sim::SimulatedMachine;
use pinwise_record::{Comparison, RunRecord};
use pinwise_store::Store;
use pinwise_study::compare::{self, ComparePlan, Tuning, NoObserver};
use pinwise_workload::Command;

const ID: &str = "one";

thread_local! {
    static FOLDER: tempfile::TempDir = crate::invariants::create_folder();
}

/// The file of a store with a record that has begun, and a whole line of its journal.
static BEGUN: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let folder = crate::invariants::create_folder();
    let path = folder.path().join("x.db");
    let (record, run) = simulate_comparison();
    let mut store = Store::open(&path).expect("a store");
    store.begin(&record).expect("a record");
    store.add_run(0, &run).expect("a run");
    drop(store);
    let read = |path: &Path| std::fs::read(path).expect("a file of the store");
    (read(&path), read(&folder.path().join("x.db.one.runs")))
});

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let (database, line) = &*BEGUN;
    FOLDER.with(|folder| {
        let path = folder.path().join("x.db");
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("x.db{ending}")));
        }
        std::fs::write(&path, database).expect("a file");
        let journal = [bytes, b"\n", line].concat();
        std::fs::write(folder.path().join("x.db.one.runs"), journal).expect("a file");
        let store = Store::open(&path).expect("a damaged journal spoils no store");
        let stored = store.load(ID).expect("the record is there");
        assert!(!stored.entry.is_complete);
        let (arm, last) = stored.runs.last().expect("the whole line at the end");
        let wanted: serde_json::Value = serde_json::from_slice(line).expect("a line");
        let last: serde_json::Value = serde_json::from_str(last).expect("a run");
        assert_eq!((*arm, &last), (0, &wanted["run"]));
        if let Ok(record) = stored.comparison() {
            let runs = |arm: &pinwise_record::Arm| arm.runs.len() + arm.other_runs.len();
            let kept: usize = record.arms.iter().map(runs).sum();
            assert!((1..=stored.runs.len()).contains(&kept));
        }
    });
}

/// A small simulated comparison without its runs, and one of them.
fn simulate_comparison() -> (Comparison, RunRecord) {
    let mut machine = SimulatedMachine::open("core:2 pu:1", 1).expect("a machine");
    let (topology, _) = machine.topology().expect("its topology");
    let placements = ["os-default", "cpu:0"].map(|name| name.parse().expect("a placement"));
    let command = Command::from_line("prog").expect("a command");
    let plan = ComparePlan {
        id: ID.to_owned(),
        tuning: Tuning {
            max_runs: Some(8),
            ..Tuning::default()
        },
        ..ComparePlan::compare_placements(command, &topology, &placements).expect("a plan")
    };
    let mut record = compare::run(&plan, &mut machine, &mut NoObserver).expect("a comparison");
    let run = record.arms[0].runs[0].clone();
    for arm in &mut record.arms {
        arm.runs.clear();
        arm.other_runs.clear();
    }
    (record, run)
}
