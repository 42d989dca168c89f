//! Stores: the same conditions for each that there is, servers that go away,
//! many writers at once, and the command over all of it.

mod away;
mod commands;
mod conformance;
mod filters;
mod owners;
mod password;
mod schema;
pub(crate) mod server;
mod tls;
mod writers;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pinwise_machine::Host;
use pinwise_record::{Comparison, RunRecord};
use pinwise_sim::SimulatedMachine;
use pinwise_store::{Location, Spool, Store};
use pinwise_study::compare::{self, ComparePlan, Observer, Tuning};
use pinwise_workload::Command;

/// A store of a test's own, not yet made.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    /// The argument of `--store`.
    pub(crate) url: String,
    folder: tempfile::TempDir,
    message: Arc<Mutex<Vec<String>>>,
}

impl Place {
    fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/pinwise.db");
        Self::new("SQLite", format!("sqlite:{}", path.display()), folder)
    }

    /// In an existing database.
    fn database(url: String) -> Self {
        Self::new("PostgreSQL", url, tempfile::tempdir().unwrap())
    }

    fn new(name: &'static str, url: String, folder: tempfile::TempDir) -> Self {
        Self {
            name,
            url,
            folder,
            message: Arc::default(),
        }
    }

    pub(crate) fn try_open(&self) -> Result<Store, pinwise_store::StoreError> {
        let message = Arc::clone(&self.message);
        let spool = Spool {
            folder: self.path("spool"),
            warn: Arc::new(move |line| message.lock().unwrap().push(line.to_owned())),
        };
        let location = Location::parse(&self.url).unwrap();
        Store::open_at(&location, &spool).map(Option::unwrap)
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What was reported since the last call.
    fn message(&self) -> Vec<String> {
        std::mem::take(&mut *self.message.lock().unwrap())
    }

    /// Opens it until nothing waits for a server any more: what a busy one did not confirm in time
    /// is sent again on the next opening.
    fn open_delivered(&self) -> Store {
        let deadline = std::time::Instant::now() + crate::support::PATIENCE;
        loop {
            let store = self.open();
            if self.waiting().is_empty() {
                return store;
            }
            assert!(std::time::Instant::now() < deadline, "{:?}", self.waiting());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Names of files that wait in the spool, without the journals' folder.
    fn waiting(&self) -> Vec<String> {
        fn walk(folder: &Path, names: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, names);
                } else {
                    names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.path("spool"), &mut names);
        names.sort();
        names
    }
}

/// A store of each kind that there is here, for the test of this name.
pub(crate) fn places() -> Vec<Place> {
    let database = server::database().map(Place::database);
    let places = [Some(Place::file()), database].into_iter().flatten();
    places
        .inspect(|place| eprintln!("{}: {}", crate::support::test_name(), place.name))
        .collect()
}

/// A small simulated comparison.
pub(crate) fn comparison(id: &str) -> Comparison {
    run_watched(id, &mut compare::NoObserver)
}

fn run_watched(id: &str, observer: &mut dyn Observer) -> Comparison {
    let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let placements = ["os-default", "cpu:0"].map(|name| name.parse().unwrap());
    let command = Command::from_line("prog").unwrap();
    let plan = ComparePlan {
        id: id.to_owned(),
        tuning: Tuning {
            max_runs: Some(8),
            ..Tuning::default()
        },
        ..ComparePlan::compare_placements(command, &topology, &placements).unwrap()
    };
    compare::run(&plan, &mut machine, observer).unwrap()
}

/// A run of it.
fn run() -> RunRecord {
    comparison("one").arms[0].runs[0].clone()
}

/// Stores a comparison as it grows, up to this many runs.
struct LimitedObserver<'a> {
    store: &'a mut Store,
    left: usize,
}

impl Observer for LimitedObserver<'_> {
    fn begin(&mut self, record: &Comparison) {
        self.store.begin(record).unwrap();
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        if self.left > 0 {
            self.left -= 1;
            self.store.add_run(arm, run).unwrap();
        }
    }
}

/// Writes a record whose writer ends after this many runs.
fn cut_off(store: Store, id: &str, runs: usize) {
    let mut store = store;
    run_watched(
        id,
        &mut LimitedObserver {
            store: &mut store,
            left: runs,
        },
    );
}
