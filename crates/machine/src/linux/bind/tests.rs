use std::time::Duration;

use proptest::prelude::{Just, Strategy, prop, proptest};

use super::ptrace::Orphans;
use super::{Binder, Thread, is_child, is_stopping};
use crate::Binding;

/// An id above every Linux thread id (`PID_MAX_LIMIT` is 2^22): requests to it fail and touch
/// nobody.
const NOBODY: libc::pid_t = 1 << 23;

fn new_binder(order: &[usize]) -> Binder {
    let binding = Binding {
        order: order.to_vec(),
        settle: None,
    };
    Binder::new(&binding, NOBODY, Duration::ZERO, Orphans::GoOn)
}

fn cpu_of(binder: &Binder, id: libc::pid_t) -> Option<usize> {
    binder.threads.get(&id).and_then(|thread| thread.cpu)
}

#[test]
fn threads_get_cpus_in_order_of_creation() {
    let mut binder = new_binder(&[4, 2, 7]);
    binder.note_exec(NOBODY);
    assert!(binder.has_executed());
    assert_eq!(cpu_of(&binder, NOBODY), Some(4));
    // The event may come before the new thread's own stop, or after.
    binder.add_announced(NOBODY, NOBODY + 1, true);
    binder.bind_new_thread(NOBODY + 1);
    binder.bind_new_thread(NOBODY + 2);
    binder.add_announced(NOBODY, NOBODY + 2, false);
    binder.add_announced(NOBODY + 2, NOBODY + 3, true);
    binder.bind_new_thread(NOBODY + 3);
    let cpus: Vec<_> = (1..4).map(|id| cpu_of(&binder, NOBODY + id)).collect();
    assert_eq!(cpus, [Some(2), Some(7), Some(4)]);
    let process = |id| binder.threads[&(NOBODY + id)].process;
    assert_eq!(process(1), Some(NOBODY));
    assert_eq!(process(2), Some(NOBODY + 2));
    assert_eq!(process(3), Some(NOBODY + 2));
    assert!(binder.threads[&NOBODY].is_creator);
    assert!(!binder.threads[&(NOBODY + 1)].is_creator);
    // A stop that is not its first changes nothing.
    binder.bind_new_thread(NOBODY + 1);
    assert_eq!(cpu_of(&binder, NOBODY + 1), Some(2));
}

#[test]
fn a_thread_that_ended_before_its_creator_reported_it_is_not_added() {
    let mut binder = new_binder(&[0, 1]);
    binder.note_exec(NOBODY);
    binder.bind_new_thread(NOBODY + 1);
    binder.forget(NOBODY + 1);
    binder.add_announced(NOBODY, NOBODY + 1, true);
    assert!(!binder.threads.contains_key(&(NOBODY + 1)));
    assert!(binder.unannounced.is_empty());
    // The same id again is another thread.
    binder.add_announced(NOBODY, NOBODY + 1, true);
    assert_eq!(cpu_of(&binder, NOBODY + 1), Some(0));
}

#[test]
fn no_thread_is_bound_after_the_settling_time() {
    let mut binder = new_binder(&[0, 1]);
    binder.note_exec(NOBODY);
    binder.release_all();
    binder.add_announced(NOBODY, NOBODY + 1, true);
    binder.bind_new_thread(NOBODY + 1);
    assert_eq!(cpu_of(&binder, NOBODY + 1), None);
    binder.resume(NOBODY + 1, 0);
    binder.resume(NOBODY, 0);
    assert!(binder.threads.is_empty());
    assert_eq!(binder.coverage().threads, 0);
}

#[test]
fn the_settling_time_counts_from_the_start_of_the_command() {
    let binding = Binding {
        order: vec![0],
        settle: Some(Duration::from_secs(2)),
    };
    let mut binder = Binder::new(&binding, NOBODY, Duration::from_secs(5), Orphans::Die);
    assert_eq!(binder.next_wake(), Duration::from_secs(7));
    binder.release_all();
    assert_eq!(binder.next_wake(), Duration::MAX);
}

#[test]
fn parents_are_distinguished_from_other_processes() {
    assert!(!is_child(NOBODY));
    assert!(!is_child(1));
    assert!(is_stopping(libc::SIGTTOU));
    assert!(!is_stopping(libc::SIGTRAP));
}

/// The two events of each thread in any order: (thread, is it the creator's report rather than the
/// first stop?).
fn any_event_order() -> impl Strategy<Value = Vec<(libc::pid_t, bool)>> {
    let all: Vec<_> = (1..9).flat_map(|id| [(id, false), (id, true)]).collect();
    Just(all).prop_shuffle()
}

proptest! {
    /// In any order of events, each thread gets a CPU once, at its first event, and none remains
    /// after all have ended.
    #[test]
    fn each_thread_gets_a_cpu_once(
        order in any_event_order(),
        cpus in prop::collection::vec(0usize..64, 1..5),
    ) {
        let mut binder = new_binder(&cpus);
        binder.note_exec(NOBODY);
        let mut seen: Vec<libc::pid_t> = Vec::new();
        for (id, is_reported) in order {
            if !seen.contains(&id) {
                seen.push(id);
            }
            if is_reported {
                binder.add_announced(NOBODY, NOBODY + id, true);
            } else {
                binder.bind_new_thread(NOBODY + id);
            }
        }
        for (number, &id) in seen.iter().enumerate() {
            assert_eq!(cpu_of(&binder, NOBODY + id), Some(cpus[(number + 1) % cpus.len()]));
        }
        let ids: Vec<libc::pid_t> = binder.threads.keys().copied().collect();
        for id in ids {
            let thread: Thread = binder.threads[&id];
            assert!(thread.is_announced && thread.has_arrived);
            binder.forget(id);
        }
        assert!(binder.unannounced.is_empty());
    }
}
