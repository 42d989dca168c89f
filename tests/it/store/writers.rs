//! Many that write at once.

use std::sync::Barrier;

use pinwise::store::{Filter, Growth};

use super::{Place, comparison, places, run};

const WRITERS: usize = 64;
const RUNS: usize = 70;

/// Each has a connection of its own, as processes have.
fn write(place: &Place, writer: usize, all_are_here: &Barrier) {
    let mut store = place.open();
    all_are_here.wait();
    let mut record = comparison(&format!("writer{writer:02}"));
    let run = run();
    record.tags = vec![format!("of{}", writer % 4)];
    store.begin(&record).unwrap();
    for number in 0..RUNS {
        store.add_run(number % 2, &run).unwrap();
    }
    // A quarter of them is killed.
    if !writer.is_multiple_of(4) {
        store.finish(&record).unwrap();
    }
}

#[test]
fn no_record_of_64_writers_is_lost() {
    for place in places("store::no_record_of_64_writers_is_lost") {
        let started = place.open();
        // Writers of a file wait for each other 5 s at most.
        let writers = match place.name {
            "SQLite" => 8,
            _ => WRITERS,
        };
        let all_are_here = Barrier::new(writers);
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let (place, all_are_here) = (&place, &all_are_here);
                scope.spawn(move || write(place, writer, all_are_here));
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
        assert_eq!(place.told(), Vec::<String>::new());
    }
}
