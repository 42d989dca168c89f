//! Servers that stop during a measurement and start again.

use std::time::{Duration, Instant};

use pinwise_store::{Filter, Growth, Store, StoreError};

use super::server::{Server, select_column};
use super::{Place, simulate_comparison, simulate_run, write_cut_off_record};
use crate::support::PATIENCE;

/// Starts a server with an empty database.
fn start_place() -> Option<(Server, Place)> {
    let server = Server::start_own()?;
    let place = Place::database(server.create_database());
    Some((server, place))
}

fn list_ids(store: &Store) -> Vec<String> {
    let mut entries = store.list(99).unwrap();
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries.into_iter().map(|entry| entry.id).collect()
}

#[test]
fn whole_records_wait_and_are_delivered_once() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let mut store = place.open();
    let record = simulate_comparison("begun");
    store.begin(&record).unwrap();
    server.stop();
    store.finish(&record).unwrap();
    store.keep(&simulate_comparison("kept/../x")).unwrap();
    let mut again = simulate_comparison("kept/../x");
    again.tags = vec!["second".to_owned()];
    store.keep(&again).unwrap();
    let message = place.take_messages();
    assert_eq!(message.len(), 1, "{message:?}");
    assert!(
        message[0].contains("cannot be reached") && message[0].contains("spool"),
        "{message:?}"
    );
    drop(store);
    assert_eq!(place.list_waiting().len(), 2, "{:?}", place.list_waiting());
    let refused = place.try_open().unwrap_err();
    assert!(
        matches!(refused, StoreError::Unreachable { .. }),
        "{refused}"
    );
    assert_eq!(place.list_waiting().len(), 2);
    server.start();
    let store = place.open();
    assert_eq!(place.list_waiting(), Vec::<String>::new());
    assert_eq!(list_ids(&store), ["begun", "kept/../x"]);
    assert!(store.load("begun").unwrap().comparison().unwrap() == record);
    assert_eq!(
        store.load("kept/../x").unwrap().comparison().unwrap().tags,
        ["second"]
    );
    // A delivered record that is removed does not come back.
    let mut store = store;
    store.remove(&["begun".to_owned()]).unwrap();
    drop(store);
    assert_eq!(list_ids(&place.open()), ["kept/../x"]);
    assert_eq!(place.take_messages(), Vec::<String>::new());
}

#[test]
fn a_record_that_never_reached_the_server_arrives_with_its_runs() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let store = place.open();
    server.stop();
    // The writer dies with 9 runs in its journal.
    write_cut_off_record(store, "cut", 9);
    assert_eq!(place.take_messages().len(), 1);
    server.start();
    let store = place.open();
    assert_eq!(place.list_waiting(), Vec::<String>::new());
    let stored = store.load("cut").unwrap();
    assert_eq!(stored.runs.len(), 9);
    assert!(!stored.entry.is_complete);
    assert_eq!(store.growth("cut"), Growth::CutOff);
}

#[test]
fn runs_are_sent_again_when_the_server_is_back() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let reader = Place::database(place.url.clone());
    let mut store = place.open();
    let record = simulate_comparison("grows");
    store.begin(&record).unwrap();
    let run = simulate_run();
    let mut sent = 0;
    let mut add = |store: &mut Store, count: usize| {
        for _ in 0..count {
            store.add_run(sent % 2, &run).unwrap();
            sent += 1;
        }
        sent
    };
    add(&mut store, 200);
    server.stop();
    add(&mut store, 200);
    assert_eq!(place.take_messages().len(), 1);
    server.start();
    // The store connects again after a while.
    let deadline = Instant::now() + PATIENCE;
    let count_rows = || select_column(&place.url, "SELECT count(*) FROM pinwise.run")[0].clone();
    while count_rows().parse::<usize>().unwrap() < 400 {
        assert!(Instant::now() < deadline, "{} rows", count_rows());
        add(&mut store, 1);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(matches!(
        reader.open().growth("grows"),
        Growth::Growing(400..)
    ));
    drop(store);
    let store = place.open_delivered();
    // No run is lost or doubled, and they are in order.
    let runs = store.load("grows").unwrap().runs;
    assert_eq!(runs.len(), sent);
    assert!(
        runs.iter()
            .enumerate()
            .all(|(number, (arm, _))| *arm == number % 2)
    );
}

#[test]
fn a_connection_that_breaks_is_made_again() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let mut store = place.open();
    store.keep(&simulate_comparison("one")).unwrap();
    let watched = simulate_comparison("watched");
    store.begin(&watched).unwrap();
    server.stop();
    assert!(matches!(store.list(9), Err(StoreError::Unreachable { .. })));
    assert_eq!(store.growth("one"), Growth::Unknown);
    server.start();
    assert_eq!(store.list(9).unwrap().len(), 2);
    assert_eq!(store.find(&Filter::default()).unwrap().total, 2);
    server.stop();
    server.start();
    assert!(store.create(&simulate_comparison("two")).unwrap());
    assert_eq!(store.find(&Filter::default()).unwrap().total, 3);
    store.finish(&watched).unwrap();
    assert!(store.load("watched").unwrap().entry.is_complete);
    assert_eq!(place.take_messages(), Vec::<String>::new());
}

#[test]
fn concurrent_processes_deliver_each_record_once() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let mut store = place.open();
    server.stop();
    for number in 0..20 {
        store
            .keep(&simulate_comparison(&format!("r{number:02}")))
            .unwrap();
    }
    drop(store);
    server.start();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| place.open());
        }
    });
    assert_eq!(place.open().list(99).unwrap().len(), 20);
    assert_eq!(place.list_waiting(), Vec::<String>::new());
}

#[test]
fn a_damaged_file_in_the_spool_does_not_stop_the_others() {
    let Some((server, place)) = start_place() else {
        return;
    };
    let mut store = place.open();
    server.stop();
    store.keep(&simulate_comparison("a")).unwrap();
    store.keep(&simulate_comparison("b")).unwrap();
    drop(store);
    place.take_messages();
    let spool = place.path("spool");
    let folder = std::fs::read_dir(&spool).unwrap().next().unwrap().unwrap();
    std::fs::write(folder.path().join("a.record"), "{\"id\":\"a\"").unwrap();
    server.start();
    let store = place.open();
    assert_eq!(list_ids(&store), ["b"]);
    let message = place.take_messages();
    assert!(
        message.len() == 1 && message[0].contains("a.record still undelivered"),
        "{message:?}"
    );
    assert_eq!(place.list_waiting(), ["a.record"]);
}

/// The server accepts a connection and never answers.
#[test]
fn a_silent_server_times_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("postgres://me@127.0.0.1:{port}/db?connect_timeout=1");
    let silent_server = std::thread::spawn(move || listener.accept().unwrap());
    let refused = Place::database(url).try_open().unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unreachable { reason, .. } if reason.contains("no answer")),
        "{refused}"
    );
    drop(silent_server.join().unwrap());
}
