//! Waits beside idle CPUs, and whose doing they are.

use super::*;

const MS: u64 = 1_000_000;

/// A machine of 4 CPUs, none free at first; a thread with `mask` waits on CPU 0 from 10 to 20
/// ms; `changes` are (ms, CPU, new state).
#[track_caller]
fn check(mask: &str, changes: &[(u64, u32, char)], causes: [u64; 4], episodes: IdleWaiting) {
    let mut queues = Queues::new(&CpuSet::first_n(4));
    let (mask, _) = queues.mask_number(&CpuSet::parse_list(mask).unwrap());
    let mut mark = None;
    for ms in 0..=20 {
        if ms == 10 {
            mark = Some(queues.enter(7, mask, 0, 10 * MS));
        }
        for &(_, cpu, what) in changes.iter().filter(|change| change.0 == ms) {
            queues.set_free(cpu, what == '.', ms * MS);
            queues.set_foreign(cpu, what == 'f', ms * MS);
        }
    }
    let found = queues.leave(7, mark.unwrap(), true, 20 * MS);
    let found = [found.scheduler, found.mask, found.others, found.own].map(|ns| ns / MS);
    assert_eq!(found, causes);
    assert_eq!(queues.episodes(), episodes);
}

fn episodes(scheduler: u64, mask: u64, many: u64, longest: u64) -> IdleWaiting {
    IdleWaiting {
        scheduler: scheduler * MS,
        mask: mask * MS,
        episodes: many,
        longest: longest * MS,
    }
}

#[test]
fn waits_behind_other_programs_are_their_doing() {
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
fn waits_beside_an_idle_allowed_cpu_are_the_schedulers_doing() {
    check("0-3", &[(0, 2, '.')], [10, 0, 0, 0], episodes(10, 0, 1, 10));
    check(
        "0-3",
        &[(0, 0, 'f'), (12, 2, '.'), (15, 2, 'f'), (16, 1, '.')],
        [7, 0, 3, 0],
        episodes(7, 0, 2, 4),
    );
}

#[test]
fn waits_beside_idle_forbidden_cpus_are_the_masks_doing() {
    check("0-1", &[(0, 2, '.')], [0, 10, 0, 0], episodes(0, 10, 1, 10));
    check(
        "0-1",
        &[(11, 2, '.'), (13, 1, '.'), (16, 1, 'o'), (18, 2, 'o')],
        [3, 4, 0, 3],
        episodes(3, 4, 3, 3),
    );
}

#[test]
fn a_wait_that_is_forgotten_leaves_no_episode() {
    let mut queues = Queues::new(&CpuSet::first_n(2));
    queues.set_free(1, true, 0);
    queues.enter(3, 0, 0, 0);
    queues.forget(3, 50 * MS);
    queues.set_free(1, false, 50 * MS);
    assert_eq!(queues.episodes(), IdleWaiting::default());
}

/// Threads with these masks wait on CPU 0 for 10 ms while these CPUs are free: the scheduler's
/// and the masks' part of their waits, ms.
#[track_caller]
fn check_many(masks: &[&str], free: &[u32], whole: [u64; 2]) {
    let mut queues = Queues::new(&CpuSet::first_n(4));
    for &cpu in free {
        queues.set_free(cpu, true, 0);
    }
    let marks: Vec<Mark> = (0..)
        .zip(masks)
        .map(|(slot, mask)| {
            let (mask, _) = queues.mask_number(&CpuSet::parse_list(mask).unwrap());
            queues.enter(slot, mask, 0, 0)
        })
        .collect();
    // The threads that waited longest leave first, so others get their chance.
    let causes: Vec<WaitCauseTotals> = (0..)
        .zip(marks)
        .map(|(slot, mark)| queues.leave(slot, mark, true, 10 * MS))
        .collect();
    let sum = |part: fn(&WaitCauseTotals) -> u64| causes.iter().map(part).sum::<u64>() / MS;
    assert_eq!([sum(|c| c.scheduler), sum(|c| c.mask)], whole, "{causes:?}");
    let total = sum(|c| c.scheduler + c.mask + c.others + c.own);
    assert_eq!(total, 10 * masks.len() as u64);
}

#[test]
fn a_free_cpu_could_have_run_one_thread() {
    check_many(&["0-3"; 10], &[1], [10, 0]);
    check_many(&["0-3"; 10], &[1, 2], [20, 0]);
    check_many(&["0-3"; 2], &[1, 2, 3], [20, 0]);
    // The second may only use CPU 1, which the first does not need.
    check_many(&["0,2", "0-1"], &[1], [10, 0]);
    check_many(&["0", "0", "0-1"], &[1, 2], [10, 10]);
}
