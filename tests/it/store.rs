//! Stores: the same tests for each kind, servers that go away, concurrent writers, and the command.

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

use crate::support::{test_name, wait_until};

/// The location of a test's store, and its spool.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    /// The argument of `--store`.
    pub(crate) url: String,
    folder: tempfile::TempDir,
    messages: Arc<Mutex<Vec<String>>>,
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
            messages: Arc::default(),
        }
    }

    pub(crate) fn try_open(&self) -> Result<Store, pinwise_store::StoreError> {
        let messages = Arc::clone(&self.messages);
        let spool = Spool {
            folder: self.path("spool"),
            warn: Arc::new(move |line| messages.lock().unwrap().push(line.to_owned())),
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

    /// Warnings since the last call.
    fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    /// Opens the store until the spool is empty: what a busy server did not confirm in time is sent
    /// again on the next opening.
    fn open_delivered(&self) -> Store {
        let mut store = None;
        wait_until("delivery", || {
            store = Some(self.open());
            self.list_waiting().is_empty()
        });
        store.unwrap()
    }

    /// Names of the files in the spool.
    fn list_waiting(&self) -> Vec<String> {
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

/// A place for each kind of store that is available here.
pub(crate) fn list_places() -> Vec<Place> {
    let database = server::create_database().map(Place::database);
    let places = [Some(Place::file()), database].into_iter().flatten();
    places
        .inspect(|place| eprintln!("{}: {}", test_name(), place.name))
        .collect()
}

/// A small simulated comparison.
pub(crate) fn simulate_comparison(id: &str) -> Comparison {
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

/// A run of such a comparison.
fn simulate_run() -> RunRecord {
    simulate_comparison("one").arms[0].runs[0].clone()
}

/// Stores a comparison as it grows, but at most this many more runs.
struct LimitedObserver<'a> {
    store: &'a mut Store,
    runs_left: usize,
}

impl Observer for LimitedObserver<'_> {
    fn begin(&mut self, record: &Comparison) {
        self.store.begin(record).unwrap();
    }

    fn run(&mut self, arm: usize, run: &RunRecord) {
        if self.runs_left > 0 {
            self.runs_left -= 1;
            self.store.add_run(arm, run).unwrap();
        }
    }
}

/// Writes a record with this many runs that is never finished.
fn write_cut_off_record(store: Store, id: &str, runs: usize) {
    let mut store = store;
    run_watched(
        id,
        &mut LimitedObserver {
            store: &mut store,
            runs_left: runs,
        },
    );
}
