//! Programs whose runtime or database has its own threads, and its own tools.

use super::*;

#[test]
fn a_lock_of_postgresql_is_named_and_its_own_view_advised() {
    let looks = [(BlockedIn::Condition, 60)];
    let lives = [20, 21].map(|thread| life(thread, "postgres", 0.4, &looks));
    let mut record = trace(&lives);
    name_places(&mut record, "PGSemaphoreLock");
    conclude(&mut record);
    let answer = record.answer.unwrap();
    assert!(
        answer.sentence.contains("a lightweight lock of PostgreSQL"),
        "{answer:?}"
    );
    assert!(answer.advice.contains("pg_stat_activity"), "{answer:?}");
}

#[test]
fn programs_of_go_and_python_are_looked_at_with_their_own_tools() {
    let looks = [(BlockedIn::Timer, 40), (BlockedIn::Lock, 30)];
    let lives = [20, 21, 22].map(|thread| life(thread, "server", 0.4, &looks));
    let mut record = trace(&lives);
    name_places(&mut record, "Go's scheduler");
    conclude(&mut record);
    check(
        &record,
        "Its goroutines mostly wait, and not for CPUs: its threads spent 92.0 % of their time \
         blocked and 8.0 % running.",
        "/debug/pprof/goroutine?debug=1",
    );
    name_places(&mut record, "time_sleep (libpython3.11.so.1.0)");
    conclude(&mut record);
    let advice = &record.answer.as_ref().unwrap().advice;
    assert!(advice.contains("py-spy dump --pid 7"), "{advice}");
}

#[test]
fn parked_threads_of_go_do_not_hide_its_work() {
    let looks = [(BlockedIn::Lock, 40)];
    let lives = [20, 21, 22, 23].map(|thread| Life {
        wait_s: 0.6,
        ..life(thread, "server", 0.8, &looks)
    });
    let mut record = trace(&lives);
    name_places(&mut record, "Go's scheduler");
    conclude(&mut record);
    let start = "Limited by its own work: ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}

/// A database whose other backends are idle.
#[test]
fn one_backend_at_a_lock_is_named_among_idle_ones() {
    let lives =
        [20, 21, 22].map(|thread| life(thread, "postgres", 0.01, &[(BlockedIn::Events, 50)]));
    let mut record = trace(&lives);
    name_places(&mut record, "clients of this backend");
    for (at, thread) in record.blocked[0].threads.iter_mut().enumerate() {
        thread.is_idle = at != 1;
    }
    record.blocked[0].threads[1].places[0].place = "a row or table lock of PostgreSQL".to_owned();
    conclude(&mut record);
    let start = "Held up by waiting for a row or table lock of PostgreSQL: its threads spent ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}

#[test]
fn a_collector_that_takes_most_of_the_time_is_the_limit() {
    let waits = [(BlockedIn::Condition, 30)];
    let mut record = trace(&[
        Life {
            is_idle: true,
            ..life(8, "GC Thread#0", 4.3, &waits)
        },
        life(9, "java", 0.7, &waits),
    ]);
    conclude(&mut record);
    let start = "Limited by garbage collection, 86.0 % of its CPU time: ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    check(&record, &record.verdict(), "-Xmx");
}
