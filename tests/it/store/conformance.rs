//! Tests that every kind of store must pass.

use std::time::Duration;

use pinwise_record::Stopped;
use pinwise_store::{Filter, Growth, Store, StoreError};

use super::{
    LimitedObserver, Place, list_places, run_watched, simulate_comparison, simulate_run,
    write_cut_off_record,
};
use crate::support::wait_until;

/// Runs a test on every kind of store, which must not warn.
fn check(test: impl Fn(&Place)) {
    for place in list_places() {
        test(&place);
        assert_eq!(place.take_messages(), Vec::<String>::new());
    }
}

#[test]
fn a_finished_record_is_loaded_as_it_was() {
    check(|place| {
        let mut store = place.open();
        let record = simulate_comparison("one");
        store.begin(&record).unwrap();
        store.finish(&record).unwrap();
        let stored = store.load("on").unwrap();
        assert!(stored.entry.is_complete);
        assert_eq!(stored.body, serde_json::to_string(&record).unwrap());
        assert!(stored.comparison().unwrap() == record);
        assert_eq!(store.load("last").unwrap(), stored);
        let again = place.open();
        assert_eq!(again.load("one").unwrap(), stored);
        let host = &stored.entry.host;
        let newest = again
            .find_newest_on_host(&stored.entry.schema, host)
            .unwrap();
        assert_eq!(newest.unwrap(), stored);
        let of_kind = again.find_newest(&stored.entry.schema).unwrap();
        assert_eq!(of_kind.unwrap(), stored);
        assert_eq!(
            again.find_newest_on_host("pinwise.trace/1", host).unwrap(),
            None
        );
    });
}

#[test]
fn a_killed_record_keeps_every_finished_run() {
    check(|place| {
        let mut store = place.open();
        let mut observer = LimitedObserver {
            store: &mut store,
            runs_left: 9,
        };
        run_watched("cut", &mut observer);
        let growing = store.load("cut").unwrap();
        assert_eq!(growing.runs.len(), 9, "a growing record can be read");
        drop(store);
        // Until a server notices that its client has gone, the record counts as growing.
        let store = place.open_delivered();
        let stored = store.load("cut").unwrap();
        assert!(!stored.entry.is_complete);
        let record = stored.comparison().unwrap();
        let counted: usize = record.arms.iter().map(|arm| arm.runs.len()).sum();
        let others: usize = record.arms.iter().map(|arm| arm.other_runs.len()).sum();
        assert_eq!(counted + others, 9);
        assert_eq!(record.stopped, None::<Stopped>);
        assert_eq!(record.arms[0].runs.len(), record.arms[1].runs.len());
    });
}

#[test]
fn the_last_record_is_the_one_written_last() {
    check(|place| {
        let mut store = place.open();
        // As if the clock had been set back between them.
        for (id, time) in [
            ("first", "2031-01-01T00:00:00Z"),
            ("second", "2021-01-01T00:00:00Z"),
        ] {
            let mut record = simulate_comparison(id);
            record.started = time.to_owned();
            store.keep(&record).unwrap();
        }
        let last = store.load("last").unwrap();
        assert_eq!(last.entry.id, "second");
        let (schema, host) = (&last.entry.schema, &last.entry.host);
        assert_eq!(store.find_newest(schema).unwrap().unwrap(), last);
        assert_eq!(
            store.find_newest_on_host(schema, host).unwrap().unwrap(),
            last
        );
        assert_eq!(store.list(1).unwrap()[0], last.entry);
        // The history is sorted by time.
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.lines[0].entry.id, "first");
    });
}

#[test]
fn unknown_and_ambiguous_ids_are_refused() {
    check(|place| {
        let mut store = place.open();
        let refused = |store: &Store, id: &str| store.load(id).unwrap_err().to_string();
        assert!(refused(&store, "last").contains("empty"));
        for id in ["ab1", "ab2", "a", "ab\u{10ffff}", "a'b\\\"; --"] {
            store.keep(&simulate_comparison(id)).unwrap();
        }
        assert!(refused(&store, "x").contains("no record"));
        let several = refused(&store, "ab");
        assert!(several.contains("ab1, ab2"), "{several}");
        assert_eq!(store.load("b1").unwrap().entry.id, "ab1");
        // A whole id that is also a prefix of others means only that record.
        for id in ["a", "ab\u{10ffff}", "a'b\\\"; --"] {
            assert_eq!(store.load(id).unwrap().entry.id, id);
        }
        assert_eq!(store.list(10).unwrap().len(), 5);
        assert_eq!(store.list(1).unwrap()[0].id, "a'b\\\"; --");
        assert_eq!(store.list(0).unwrap().len(), 0);
    });
}

#[test]
fn the_line_of_a_record_changes_when_it_is_finished() {
    check(|place| {
        let mut store = place.open();
        let record = simulate_comparison("one");
        store.begin(&record).unwrap();
        let begun = store.find(&Filter::default()).unwrap();
        assert!(!begun.lines[0].entry.is_complete);
        assert_eq!(begun.lines[0].entry.verdict, "");
        store.finish(&record).unwrap();
        let ended = store.find(&Filter::default()).unwrap();
        assert_eq!(ended.total, 1);
        assert!(ended.lines[0].entry.is_complete);
        assert_eq!(ended.lines[0].entry.verdict, record.verdict.sentence);
    });
}

#[test]
fn a_record_is_created_once() {
    check(|place| {
        let mut store = place.open();
        let mut record = simulate_comparison("one");
        assert!(store.create(&record).unwrap());
        let before = store.load("one").unwrap();
        record.tags.push("other".to_owned());
        assert!(!store.create(&record).unwrap());
        let body = serde_json::to_string(&record).unwrap();
        assert!(!store.create_json(&body).unwrap());
        assert_eq!(store.load("one").unwrap(), before);
        store.keep(&record).unwrap();
        assert_eq!(store.load("one").unwrap().body, body);
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!((found.total, found.tags), (1, vec!["other".to_owned()]));
    });
}

#[test]
fn one_of_many_creators_succeeds() {
    check(|place| {
        drop(place.open());
        let record = simulate_comparison("one");
        let created = std::thread::scope(|scope| {
            let create = || place.open().create(&record).unwrap();
            let creators: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
            let created = creators.into_iter().map(|c| c.join().unwrap());
            created.filter(|&is_new| is_new).count()
        });
        assert_eq!(created, 1);
        assert_eq!(place.open().list(9).unwrap().len(), 1);
    });
}

#[test]
fn many_records_are_kept_together_and_passed_one_by_one() {
    check(|place| {
        let mut store = place.open();
        let base = simulate_comparison("base");
        let record = |number: usize| {
            let mut record = base.clone();
            record.id = format!("r{number:04}");
            record.started = format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60);
            record.tags = vec![format!("t{}", number % 3)];
            record
        };
        assert_eq!(store.keep_all((0..600).map(record)).unwrap(), 600);
        // Existing ones are replaced; of one id twice the last counts.
        let mut twice: Vec<_> = (590..600).map(record).collect();
        twice.push(twice[0].clone());
        twice[10].tags = vec!["last".to_owned()];
        assert_eq!(store.keep_all(twice).unwrap(), 11);
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.total, 600);
        assert_eq!(found.tags, ["last", "t0", "t1", "t2"]);
        let filter = Filter {
            tag: Some("t1".to_owned()),
            limit: Some(50),
            offset: 7,
            ..Filter::default()
        };
        let wanted = store.find(&filter).unwrap().lines;
        assert_eq!(wanted.len(), 50);
        let mut passed = Vec::new();
        store
            .visit_bodies(&filter, |entry, body| passed.push((entry, body.to_owned())))
            .unwrap();
        let wanted = wanted.into_iter().map(|line| {
            let body = store.load(&line.entry.id).unwrap().body;
            (line.entry, body)
        });
        assert_eq!(passed, wanted.collect::<Vec<_>>());
    });
}

#[test]
fn files_without_a_record_are_refused() {
    check(|place| {
        let mut store = place.open();
        let mut nameless = serde_json::to_value(simulate_comparison("one")).unwrap();
        nameless.as_object_mut().unwrap().remove("id");
        for body in [
            "",
            "{",
            &nameless.to_string(),
            "[]",
            "{\"schema\":\"pinwise.comparison/1\"}",
            "{\"schema\":\"pinwise.comparison/99\",\"id\":\"1\"}",
            "{\"schema\":\"other/1\"}",
        ] {
            let refused = store.create_json(body).unwrap_err();
            assert!(
                matches!(refused, StoreError::Record { .. }),
                "{body}: {refused}"
            );
        }
        assert_eq!(store.list(9).unwrap().len(), 0);
    });
}

#[test]
fn hostile_texts_are_kept() {
    check(|place| {
        let mut store = place.open();
        let mut record = simulate_comparison("a\u{1}b");
        let hostile = "\0\u{1b}[31m\u{202e}'; DROP TABLE record; --\u{10ffff}\n\\x00{}";
        record.verdict.sentence = hostile.to_owned();
        record.tags = vec![hostile.to_owned(), String::new()];
        record.host.simulated = false;
        record.host.machine.hostname = Some(hostile.to_owned());
        store.begin(&record).unwrap();
        store.add_run(0, &simulate_run()).unwrap();
        store.finish(&record).unwrap();
        let stored = store.load("a\u{1}b").unwrap();
        assert_eq!(stored.body, serde_json::to_string(&record).unwrap());
        assert!(stored.comparison().unwrap() == record);
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.lines[0].summary.tags, record.tags);
        for filter in [
            Filter {
                tag: Some(hostile.to_owned()),
                ..Filter::default()
            },
            Filter {
                host: Some(hostile.to_owned()),
                ..Filter::default()
            },
            Filter {
                text: Some("DROP TABLE".to_owned()),
                ..Filter::default()
            },
        ] {
            assert_eq!(store.find(&filter).unwrap().total, 1, "{filter:?}");
        }
        // A record that does not grow has no file, so that its id may contain any character.
        store.keep(&simulate_comparison("a\0b")).unwrap();
        assert_eq!(store.load("a\0").unwrap().comparison().unwrap().id, "a\0b");
        let both = ["a\0b".to_owned(), "a\u{1}b".to_owned()];
        assert_eq!(store.remove(&both).unwrap().gone, both);
        assert_eq!(store.list(9).unwrap().len(), 0);
    });
}

#[test]
fn tags_change_in_the_record_and_in_its_line() {
    check(|place| {
        let mut store = place.open();
        store.keep(&simulate_comparison("one")).unwrap();
        store.keep(&simulate_comparison("two")).unwrap();
        let add = |tags: &[String]| tags.iter().cloned().chain(["x".to_owned()]).collect();
        let before = store.load("one").unwrap();
        let retagged = store.retag("one", add).unwrap();
        assert_eq!(
            (retagged.before.len(), retagged.after),
            (0, vec!["x".to_owned()])
        );
        let after = store.load("one").unwrap();
        assert_eq!(after.comparison().unwrap().tags, ["x"]);
        assert_eq!(after.entry, before.entry);
        let of_x = Filter {
            tag: Some("x".to_owned()),
            ..Filter::default()
        };
        let found = store.find(&of_x).unwrap();
        assert_eq!(found.total, 1);
        assert_eq!(found.lines[0].summary.tags, ["x"]);
        store.retag("one", |_| Vec::new()).unwrap();
        assert_eq!(store.find(&of_x).unwrap().total, 0);
        assert!(matches!(store.retag("x", add), Err(StoreError::Id(_))));
    });
}

#[test]
fn a_record_that_is_being_written_is_not_changed() {
    check(|place| {
        let mut store = place.open();
        store.keep(&simulate_comparison("one")).unwrap();
        let mut writer = place.open();
        let record = simulate_comparison("growing");
        writer.begin(&record).unwrap();
        let refused = store.retag("growing", |_| Vec::new()).unwrap_err();
        assert!(
            matches!(refused, StoreError::BeingWritten { .. }),
            "{refused}"
        );
        let asked = ["growing".to_owned(), "one".to_owned()];
        let removed = store.remove(&asked).unwrap();
        assert_eq!(removed.gone, ["one"]);
        assert_eq!(removed.being_written, ["growing"]);
        writer.finish(&record).unwrap();
        assert!(store.retag("growing", <[String]>::to_vec).is_ok());
        // A record of a killed writer can be changed.
        write_cut_off_record(writer, "killed", 3);
        // A program that another test starts has its lock, too, for a moment.
        let mut tries = 0;
        while let Err(error) = store.retag("killed", |_| vec!["x".to_owned()]) {
            let is_locked = matches!(error, StoreError::BeingWritten { .. });
            assert!(is_locked && tries < 1_000, "{error}");
            tries += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(store.remove(&asked[..1]).unwrap().gone, ["growing"]);
    });
}

#[test]
fn a_record_grows_until_its_writer_is_gone() {
    check(|place| {
        let reader = place.open();
        assert_eq!(reader.growth("grows"), Growth::Unknown);
        let mut writer = place.open();
        writer.begin(&simulate_comparison("grows")).unwrap();
        assert_eq!(reader.growth("grows"), Growth::Growing(0));
        let run = simulate_run();
        for _ in 0..100 {
            writer.add_run(0, &run).unwrap();
        }
        assert!(matches!(reader.growth("grows"), Growth::Growing(1..)));
        drop(writer);
        // A server may take a moment to end the session of a closed connection.
        wait_until("the writer is gone", || {
            reader.growth("grows") == Growth::CutOff
        });
        // The next opening moves the runs from the journal into the store.
        drop(place.open());
        assert_eq!(reader.growth("grows"), Growth::CutOff);
        assert_eq!(reader.load("grows").unwrap().runs.len(), 100);
    });
}

#[test]
fn a_reader_sees_new_records_and_cannot_write() {
    check(|place| {
        let mut reader = place.open();
        reader.read_only(Duration::from_millis(1)).unwrap();
        let before = reader.generation().unwrap();
        let mut writer = place.open();
        writer.keep(&simulate_comparison("one")).unwrap();
        assert_ne!(before, reader.generation().unwrap());
        assert_eq!(reader.list(9).unwrap().len(), 1);
        assert!(reader.keep(&simulate_comparison("two")).is_err());
        assert!(reader.withdraw("one").is_err());
        assert!(reader.retag("one", |_| vec!["x".to_owned()]).is_err());
        assert!(reader.remove(&["one".to_owned()]).is_err());
        assert_eq!(writer.list(9).unwrap().len(), 1);
    });
}

#[test]
fn a_withdrawn_record_leaves_nothing() {
    check(|place| {
        let mut store = place.open();
        store.keep(&simulate_comparison("one")).unwrap();
        store.begin(&simulate_comparison("two")).unwrap();
        store.withdraw("two").unwrap();
        // A finished record is not withdrawn.
        store.withdraw("one").unwrap();
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.total, 1);
        assert_eq!(found.lines[0].entry.id, "one");
        assert_eq!(store.growth("two"), Growth::Unknown);
        assert_eq!(place.list_waiting(), Vec::<String>::new());
    });
}

#[test]
fn a_removed_record_leaves_nothing() {
    check(|place| {
        write_cut_off_record(place.open(), "cut", 9);
        // The runs are in a journal until another process has written them to the server.
        let mut store = place.open();
        wait_until("all runs are on the server", || {
            store = place.open_delivered();
            let stored = store.load("cut").unwrap();
            let runs: usize = stored.runs.iter().map(|(_, run)| run.len()).sum();
            store.bytes_of("cut").unwrap() == (stored.body.len() + runs) as u64
        });
        store.keep(&simulate_comparison("one")).unwrap();
        store.retag("cut", |_| vec!["x".to_owned()]).unwrap();
        store
            .remove(&["cut".to_owned(), "none".to_owned()])
            .unwrap();
        let found = store.find(&Filter::default()).unwrap();
        assert_eq!(found.total, 1);
        assert_eq!(found.tags, Vec::<String>::new());
        assert_eq!(store.bytes_of("cut").unwrap(), 0);
        store.reclaim_space().unwrap();
        assert!(store.load("one").unwrap().comparison().is_ok());
    });
}

#[test]
fn a_record_is_adopted_with_its_runs() {
    check(|place| {
        for other in list_places() {
            let mut source = other.open();
            source
                .keep(&simulate_comparison(&format!("whole-{}", other.name)))
                .unwrap();
            let cut = format!("cut-{}", other.name);
            write_cut_off_record(source, &cut, 5);
            let source = other.open();
            let entries = source.list(9).unwrap();
            let load = || entries.iter().map(|entry| source.load(&entry.id).unwrap());
            let mut store = place.open();
            assert_eq!(store.adopt(load().collect()).unwrap(), 2);
            assert_eq!(store.adopt(load().collect()).unwrap(), 0);
            for stored in load() {
                assert_eq!(store.load(&stored.entry.id).unwrap(), stored);
            }
            assert_eq!(store.growth(&cut), Growth::CutOff);
            assert_eq!(store.load(&cut).unwrap().runs.len(), 5);
        }
    });
}
