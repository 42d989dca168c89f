//! Waits while CPUs idle, and their causes.

use super::*;

const MS: u64 = 1_000_000;

/// A machine of 4 CPUs, none free at first; a thread with `mask` waits on CPU 0 from 10 to 20
/// ms; `changes` are (ms, CPU, new state): '.' free, 'f' a foreign thread, 'o' an own one.
#[track_caller]
fn check(mask: &str, changes: &[(u64, u32, char)], causes: [u64; 4], episodes: IdleWaiting) {
    let mut queues = Queues::new(&CpuSet::first_n(4));
    let (mask, _) = queues.add_mask(&CpuSet::parse_list(mask).unwrap());
    let mut wait = None;
    for ms in 0..=20 {
        if ms == 10 {
            wait = Some(queues.start_wait(7, mask, 0, 10 * MS));
        }
        for &(_, cpu, what) in changes.iter().filter(|change| change.0 == ms) {
            queues.set_free(cpu, what == '.', ms * MS);
            queues.set_foreign(cpu, what == 'f', ms * MS);
        }
    }
    let found = queues.end_wait(7, wait.unwrap(), true, 20 * MS);
    let found = [found.scheduler, found.mask, found.others, found.own].map(|ns| ns / MS);
    assert_eq!(found, causes);
    assert_eq!(queues.episodes(), episodes);
}

fn episodes(scheduler: u64, mask: u64, count: u64, longest: u64) -> IdleWaiting {
    IdleWaiting {
        scheduler: scheduler * MS,
        mask: mask * MS,
        episodes: count,
        longest: longest * MS,
    }
}

#[test]
fn other_programs_cause_waits_behind_their_threads() {
    check("0-3", &[], [0, 0, 0, 10], episodes(0, 0, 0, 0));
    check("0-3", &[(0, 0, 'f')], [0, 0, 10, 0], episodes(0, 0, 0, 0));
    check(
        "0-3",
        &[(0, 0, 'f'), (14, 0, 'o')],
        [0, 0, 4, 6],
        episodes(0, 0, 0, 0),
    );
}

#[test]
fn the_scheduler_causes_waits_while_an_allowed_cpu_idles() {
    check("0-3", &[(0, 2, '.')], [10, 0, 0, 0], episodes(10, 0, 1, 10));
    check(
        "0-3",
        &[(0, 0, 'f'), (12, 2, '.'), (15, 2, 'f'), (16, 1, '.')],
        [7, 0, 3, 0],
        episodes(7, 0, 2, 4),
    );
}

#[test]
fn the_mask_causes_waits_while_only_forbidden_cpus_idle() {
    check("0-1", &[(0, 2, '.')], [0, 10, 0, 0], episodes(0, 10, 1, 10));
    check(
        "0-1",
        &[(11, 2, '.'), (13, 1, '.'), (16, 1, 'o'), (18, 2, 'o')],
        [3, 4, 0, 3],
        episodes(3, 4, 3, 3),
    );
}

#[test]
fn a_dropped_wait_adds_no_episode() {
    let mut queues = Queues::new(&CpuSet::first_n(2));
    queues.set_free(1, true, 0);
    queues.start_wait(3, 0, 0, 0);
    queues.drop_wait(3, 50 * MS);
    queues.set_free(1, false, 50 * MS);
    assert_eq!(queues.episodes(), IdleWaiting::default());
}

/// Threads with these masks wait on CPU 0 for 10 ms while these CPUs are free. `expected` are the
/// parts of their waits caused by the scheduler and by masks, ms.
#[track_caller]
fn check_many(masks: &[&str], free: &[u32], expected: [u64; 2]) {
    let mut queues = Queues::new(&CpuSet::first_n(4));
    for &cpu in free {
        queues.set_free(cpu, true, 0);
    }
    let waits: Vec<WaitStart> = (0..)
        .zip(masks)
        .map(|(slot, mask)| {
            let (mask, _) = queues.add_mask(&CpuSet::parse_list(mask).unwrap());
            queues.start_wait(slot, mask, 0, 0)
        })
        .collect();
    // The threads that waited longest leave first, so that others are matched.
    let causes: Vec<WaitCauseTotals> = (0..)
        .zip(waits)
        .map(|(slot, wait)| queues.end_wait(slot, wait, true, 10 * MS))
        .collect();
    let sum = |part: fn(&WaitCauseTotals) -> u64| causes.iter().map(part).sum::<u64>() / MS;
    assert_eq!(
        [sum(|c| c.scheduler), sum(|c| c.mask)],
        expected,
        "{causes:?}"
    );
    let total = sum(|c| c.scheduler + c.mask + c.others + c.own);
    assert_eq!(total, 10 * masks.len() as u64);
}

#[test]
fn a_free_cpu_is_matched_with_one_waiting_thread() {
    check_many(&["0-3"; 10], &[1], [10, 0]);
    check_many(&["0-3"; 10], &[1, 2], [20, 0]);
    check_many(&["0-3"; 2], &[1, 2, 3], [20, 0]);
    // CPU 1 is free; only the second may use it.
    check_many(&["0,2", "0-1"], &[1], [10, 0]);
    check_many(&["0", "0", "0-1"], &[1, 2], [10, 10]);
}
