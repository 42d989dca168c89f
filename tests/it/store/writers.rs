//! Concurrent writers.

use std::sync::Barrier;

use pinwise_store::{Filter, Growth};

use tokio_postgres::error::SqlState;

use super::server::{create_database, execute, select_column, try_execute};
use super::{Place, list_places, simulate_comparison, simulate_run, write_cut_off_record};

const WRITERS: usize = 64;
const RUNS: usize = 70;

/// Writes a record over a connection of its own, once all writers have one.
fn write(place: &Place, writer: usize, all_connected: &Barrier) {
    let mut store = place.open();
    all_connected.wait();
    let mut record = simulate_comparison(&format!("writer{writer:02}"));
    let run = simulate_run();
    record.tags = vec![format!("of{}", writer % 4)];
    store.begin(&record).unwrap();
    for number in 0..RUNS {
        store.add_run(number % 2, &run).unwrap();
    }
    // A quarter never finishes.
    if !writer.is_multiple_of(4) {
        store.finish(&record).unwrap();
    }
}

#[test]
fn no_record_of_64_writers_is_lost() {
    for place in list_places() {
        let started = place.open();
        // Writers of a file wait for each other for 5 s at most.
        let writers = match place.name {
            "SQLite" => 8,
            _ => WRITERS,
        };
        let all_connected = Barrier::new(writers);
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let (place, all_connected) = (&place, &all_connected);
                scope.spawn(move || write(place, writer, all_connected));
            }
        });
        drop(started);
        let store = place.open();
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.total, writers);
        assert_eq!(found.tags, ["of0", "of1", "of2", "of3"]);
        for line in &found.lines {
            let stored = store.load(&line.entry.id).unwrap();
            let number: usize = line.entry.id["writer".len()..].parse().unwrap();
            let is_killed = number.is_multiple_of(4);
            assert_eq!(stored.entry.is_complete, !is_killed, "{}", line.entry.id);
            assert_eq!(stored.runs.len(), if is_killed { RUNS } else { 0 });
            if is_killed {
                assert_eq!(store.growth(&line.entry.id), Growth::CutOff);
            }
            stored.comparison().unwrap();
        }
        assert_eq!(place.take_messages(), Vec::<String>::new());
    }
}

/// Makes the server wait for a lock between its check whether an id exists and the entry in the
/// index of ids: an index before it takes the lock.
const LATE: &str = r"
    ALTER TABLE pinwise.record DROP CONSTRAINT record_pkey CASCADE,
        DROP CONSTRAINT record_id_owner_key CASCADE;
    CREATE FUNCTION pinwise.late(id TEXT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(7, 7);
        RETURN id;
    END $$;
    CREATE INDEX ON pinwise.record (pinwise.late(id));
    ALTER TABLE pinwise.record ADD PRIMARY KEY (id), ADD UNIQUE (id, owner);
";

/// Advisory locks of this kind in this database.
const LOCKS: &str = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Writes a record while `late` writes the same one. Both have seen that there is none, and this
/// one is faster.
fn overtake<T>(url: &str, id: &str, late: impl FnOnce() -> T) -> T {
    let faster = format!(
        "DO $$
         BEGIN
            PERFORM pg_advisory_xact_lock(7, 7);
            WHILE NOT EXISTS ({LOCKS} AND NOT granted) LOOP
                PERFORM pg_sleep(0.01);
            END LOOP;
            INSERT INTO pinwise.record (id, schema, time, host, title, verdict, complete, body)
            VALUES ('{id}', '', '', '', '', '', true, 'faster');
         END $$"
    );
    std::thread::scope(|scope| {
        let faster = scope.spawn(move || execute(url, &faster));
        while !faster.is_finished() {
            let held = select_column(url, &format!("SELECT count(*) FROM ({LOCKS}) AS held"));
            if held != ["0"] {
                break;
            }
        }
        let done = late();
        faster.join().unwrap();
        done
    })
}

#[test]
fn two_writers_of_one_record_both_succeed() {
    let Some(url) = create_database() else { return };
    let place = Place::database(url);
    let mut store = place.open();
    execute(&place.url, LATE);
    // The statement alone fails because of the race.
    let insert = "INSERT INTO pinwise.record
            (id, schema, time, host, title, verdict, complete, body)
        VALUES ('raced', '', '', '', '', '', true, 'late') ON CONFLICT (id) DO NOTHING";
    let raced = overtake(&place.url, "raced", || try_execute(&place.url, insert));
    let raced = raced.unwrap_err();
    assert_eq!(raced.code(), Some(&SqlState::UNIQUE_VIOLATION), "{raced}");
    // The store sends it again, and replaces the record that it then finds.
    let record = simulate_comparison("kept");
    overtake(&place.url, "kept", || store.keep(&record)).unwrap();
    assert_eq!(place.take_messages(), Vec::<String>::new());
    assert!(store.load("kept").unwrap().comparison().unwrap() == record);
    // If it must not replace, it leaves that record.
    let created = overtake(&place.url, "left", || {
        store.create(&simulate_comparison("left"))
    });
    assert!(!created.unwrap());
    let body = "SELECT body FROM pinwise.record WHERE id = 'left'";
    assert_eq!(select_column(&place.url, body), ["faster"]);
    assert_eq!(place.take_messages(), Vec::<String>::new());
    // The same for a writer that adds runs, in a transaction.
    let file = Place::file();
    write_cut_off_record(file.open(), "cut", 3);
    let cut = file.open().load("cut").unwrap();
    assert_eq!(cut.runs.len(), 3);
    let adopted = overtake(&place.url, "cut", || store.adopt(vec![cut]));
    assert_eq!(adopted.unwrap(), 0);
    let runs = "SELECT count(*) FROM pinwise.run";
    assert_eq!(select_column(&place.url, runs), ["0"]);
}
