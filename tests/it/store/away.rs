//! Servers that go away in the middle and come back.

use std::time::{Duration, Instant};

use pinwise_store::{Filter, Growth, Store, StoreError};

use super::server::{Server, select};
use super::{Place, comparison, cut_off, run};

/// A server of its own with a store on it.
fn place() -> Option<(Server, Place)> {
    let server = Server::own()?;
    let place = Place::database(server.database());
    Some((server, place))
}

fn ids(store: &Store) -> Vec<String> {
    let mut entries = store.list(99).unwrap();
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries.into_iter().map(|entry| entry.id).collect()
}

#[test]
fn whole_records_wait_and_are_delivered_once() {
    let Some((server, place)) = place() else {
        return;
    };
    let mut store = place.open();
    let record = comparison("begun");
    store.begin(&record).unwrap();
    server.stop();
    store.finish(&record).unwrap();
    store.keep(&comparison("kept/../x")).unwrap();
    let mut again = comparison("kept/../x");
    again.tags = vec!["second".to_owned()];
    store.keep(&again).unwrap();
    let message = place.message();
    assert_eq!(message.len(), 1, "{message:?}");
    assert!(
        message[0].contains("cannot be reached") && message[0].contains("spool"),
        "{message:?}"
    );
    drop(store);
    assert_eq!(place.waiting().len(), 2, "{:?}", place.waiting());
    let refused = place.try_open().unwrap_err();
    assert!(
        matches!(refused, StoreError::Unreachable { .. }),
        "{refused}"
    );
    assert_eq!(place.waiting().len(), 2);
    server.start();
    let store = place.open();
    assert_eq!(place.waiting(), Vec::<String>::new());
    assert_eq!(ids(&store), ["begun", "kept/../x"]);
    assert!(store.load("begun").unwrap().comparison().unwrap() == record);
    assert_eq!(
        store.load("kept/../x").unwrap().comparison().unwrap().tags,
        ["second"]
    );
    // What is removed afterwards does not come back.
    let mut store = store;
    store.remove(&["begun".to_owned()]).unwrap();
    drop(store);
    assert_eq!(ids(&place.open()), ["kept/../x"]);
    assert_eq!(place.message(), Vec::<String>::new());
}

#[test]
fn a_record_that_never_reached_the_server_arrives_with_its_runs() {
    let Some((server, place)) = place() else {
        return;
    };
    let store = place.open();
    server.stop();
    // The writer dies with 9 runs in its journal.
    cut_off(store, "cut", 9);
    assert_eq!(place.message().len(), 1);
    server.start();
    let store = place.open();
    assert_eq!(place.waiting(), Vec::<String>::new());
    let stored = store.load("cut").unwrap();
    assert_eq!(stored.runs.len(), 9);
    assert!(!stored.entry.is_complete);
    assert_eq!(store.growth("cut"), Growth::CutOff);
}

#[test]
fn runs_are_sent_again_when_the_server_is_back() {
    let Some((server, place)) = place() else {
        return;
    };
    let reader = Place::database(place.url.clone());
    let mut store = place.open();
    let record = comparison("grows");
    store.begin(&record).unwrap();
    let run = run();
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
    assert_eq!(place.message().len(), 1);
    server.start();
    // It is asked again after a while.
    let deadline = Instant::now() + crate::support::PATIENCE;
    let rows = || select(&place.url, "SELECT count(*) FROM pinwise.run")[0].clone();
    while rows().parse::<usize>().unwrap() < 400 {
        assert!(Instant::now() < deadline, "{} rows", rows());
        add(&mut store, 1);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(matches!(
        reader.open().growth("grows"),
        Growth::Growing(400..)
    ));
    drop(store);
    let store = place.open_delivered();
    // No run is lost or doubled, and their order is kept.
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
    let Some((server, place)) = place() else {
        return;
    };
    let mut store = place.open();
    store.keep(&comparison("one")).unwrap();
    let watched = comparison("watched");
    store.begin(&watched).unwrap();
    server.stop();
    assert!(matches!(store.list(9), Err(StoreError::Unreachable { .. })));
    assert_eq!(store.growth("one"), Growth::Unknown);
    server.start();
    assert_eq!(store.list(9).unwrap().len(), 2);
    assert_eq!(store.find(&Filter::default()).unwrap().total, 2);
    server.stop();
    server.start();
    assert!(store.create(&comparison("two")).unwrap());
    assert_eq!(store.find(&Filter::default()).unwrap().total, 3);
    store.finish(&watched).unwrap();
    assert!(store.load("watched").unwrap().entry.is_complete);
    assert_eq!(place.message(), Vec::<String>::new());
}

#[test]
fn what_one_process_delivers_no_other_does() {
    let Some((server, place)) = place() else {
        return;
    };
    let mut store = place.open();
    server.stop();
    for number in 0..20 {
        store.keep(&comparison(&format!("r{number:02}"))).unwrap();
    }
    drop(store);
    server.start();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| place.open());
        }
    });
    assert_eq!(place.open().list(99).unwrap().len(), 20);
    assert_eq!(place.waiting(), Vec::<String>::new());
}

#[test]
fn a_damaged_file_in_the_spool_keeps_nothing_else_back() {
    let Some((server, place)) = place() else {
        return;
    };
    let mut store = place.open();
    server.stop();
    store.keep(&comparison("a")).unwrap();
    store.keep(&comparison("b")).unwrap();
    drop(store);
    place.message();
    let spool = place.path("spool");
    let folder = std::fs::read_dir(&spool).unwrap().next().unwrap().unwrap();
    std::fs::write(folder.path().join("a.record"), "{\"id\":\"a\"").unwrap();
    server.start();
    let store = place.open();
    assert_eq!(ids(&store), ["b"]);
    let message = place.message();
    assert!(
        message.len() == 1 && message[0].contains("a.record still undelivered"),
        "{message:?}"
    );
    assert_eq!(place.waiting(), ["a.record"]);
}

/// A server that receives everything and answers nothing: measured results wait for it no longer
/// than necessary.
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
