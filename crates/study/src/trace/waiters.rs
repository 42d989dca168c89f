//! Which threads wait, for what, and who wakes them, by looks at blocked threads and by wake-ups.
//!
//! A lock and an idle pool look alike in the scheduler's events: only what a thread is blocked in
//! tells one from the other, where the kernel shows it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pinwise_format::{count, count_of, grouped, percent, seconds};
use pinwise_record::{
    BlockedIn, BlockedPart, BlockedPlace, BlockedRecord, BlockedThread, ThreadRecord, WakerRecord,
};
use pinwise_sched::{BlockedProcess, Summary, ThreadSummary, Tid};

use super::runtimes::{TAKES_GIL, TAKES_PYTHON_LOCK, find_uninvolved, is_stuck};

/// Processes that are kept.
const MAX_PROCESSES: usize = 50;
/// Threads of a process that are kept.
const MAX_THREADS: usize = 100;
/// Wakers of a thread that are kept.
const MAX_WAKERS: usize = 3;
/// Places of a thread that are kept.
const MAX_PLACES: usize = 3;
/// A smaller share of the polls is not named in a sentence.
const NOTABLE: f64 = 0.1;
/// Names of threads in a sentence.
const NAMED: usize = 3;
/// Fewer wake-ups say too little about who wakes whom.
pub(super) const MIN_WAKES: u64 = 20;
/// Fewer wake-ups of a thread do not show which others it waits for.
const MIN_PARTNER_WAKES: u64 = 5;
/// Who wakes them is known if this share of the wake-ups by threads is by one, or by each other.
const MOSTLY: f64 = 0.8;

/// What threads of each process were blocked in.
pub(super) fn record_blocked(summary: &Summary) -> Vec<BlockedRecord> {
    let known = index_threads(summary);
    let partners = list_partners(summary);
    let is_uninvolved = find_uninvolved(&summary.blocked);
    let has_no_part = |thread: Tid, seen: &pinwise_sched::BlockedThread| {
        let known = known.get(&thread);
        // Those that are not listed were awake for less than those that are.
        let is_idle = known.is_none_or(|thread| thread.is_idle(summary.idle_divisor));
        is_uninvolved(seen) || is_idle && !partners.contains(&thread) && !is_stuck(seen)
    };
    let record = |seen: &BlockedProcess| {
        let mut threads = list_threads(seen, &known, summary.wakeups.is_some(), has_no_part);
        threads.truncate(MAX_THREADS);
        let looks = seen.looks.iter();
        BlockedRecord {
            process: seen.process,
            name: seen.name.clone(),
            looks: seen.total(),
            parts: rank(looks.map(|(&what, &looks)| (what.into(), looks))),
            threads,
        }
    };
    let all = summary.blocked.iter().take(MAX_PROCESSES);
    all.map(record).collect()
}

fn index_threads(summary: &Summary) -> BTreeMap<Tid, &ThreadSummary> {
    let threads = summary.by_thread.iter();
    threads.map(|thread| (thread.thread, thread)).collect()
}

/// The lifetimes of the threads that have a part in what happened, without the time in which they
/// awaited the end of others. Idle threads have none, unless they are stuck.
pub(super) fn involved_life_ns(summary: &Summary) -> u64 {
    let is_uninvolved = find_uninvolved(&summary.blocked);
    let threads = index_threads(summary);
    let seen = summary.blocked.iter().flat_map(|process| &process.threads);
    let (mut more_ns, mut less_ns) = (0, 0);
    for (&thread, seen) in seen {
        let known = threads.get(&thread);
        let is_idle = known.is_none_or(|known| known.is_idle(summary.idle_divisor));
        match known {
            _ if is_idle && summary.idle_divisor < u64::MAX && is_stuck(seen) => {
                let life_ns = known.map(|known| known.life_ns);
                more_ns += life_ns.unwrap_or(summary.to_ns - summary.from_ns);
            }
            _ if is_idle => {}
            Some(known) if is_uninvolved(seen) => less_ns += known.blocked_ns(),
            Some(known) => {
                let joins = seen.looks.get(&pinwise_sched::BlockedIn::Thread);
                let joins = u128::from(joins.copied().unwrap_or(0));
                let all: u64 = seen.looks.values().sum();
                let joined_ns = u128::from(known.blocked_ns()) * joins / u128::from(all.max(1));
                less_ns += u64::try_from(joined_ns).unwrap_or(0);
            }
            None => {}
        }
    }
    (summary.life_ns + more_ns).saturating_sub(less_ns)
}

fn list_threads(
    seen: &BlockedProcess,
    known: &BTreeMap<Tid, &ThreadSummary>,
    knows_wakers: bool,
    has_no_part: impl Fn(Tid, &pinwise_sched::BlockedThread) -> bool,
) -> Vec<BlockedThread> {
    let waker = |&(thread, times): &(Tid, u64)| WakerRecord {
        thread,
        name: known
            .get(&thread)
            .map_or_else(String::new, |t| t.name.clone()),
        times,
    };
    let threads = seen.threads.iter().filter_map(|(&thread, of_thread)| {
        let looks = of_thread.looks.iter();
        let parts = rank(looks.map(|(&what, &looks)| (what.into(), looks)));
        let known = known.get(&thread);
        let wakers = known.filter(|_| knows_wakers);
        let wakers = wakers.map(|thread| &thread.wakers);
        let mut woken_by: Vec<WakerRecord> =
            wakers.map_or_else(Vec::new, |by| by.threads.iter().map(waker).collect());
        woken_by.sort_by_key(|waker| (Reverse(waker.times), waker.thread));
        woken_by.truncate(MAX_WAKERS);
        Some(BlockedThread {
            thread,
            name: of_thread.name.clone(),
            looks: of_thread.looks.values().sum(),
            what: parts.first()?.what.clone(),
            parts,
            is_idle: has_no_part(thread, of_thread),
            places: rank_places(&of_thread.places),
            wakes: wakers.map(|wakers| wakers.wakes),
            woken_by,
        })
    });
    let mut threads: Vec<BlockedThread> = threads.collect();
    threads.sort_by_key(|thread| (thread.is_idle, Reverse(thread.looks), thread.thread));
    threads
}

/// Threads that others with a part in what happened wait for, by their wake-ups: they have one, too,
/// however little they run.
fn list_partners(summary: &Summary) -> BTreeSet<Tid> {
    if summary.wakeups.is_none() {
        return BTreeSet::new();
    }
    let threads = summary.by_thread.iter();
    let active = threads.filter(|thread| !thread.is_idle(summary.idle_divisor));
    let partners = active.flat_map(|thread| {
        let by = &thread.wakers.threads;
        let all: u64 = by.iter().map(|(_, times)| times).sum();
        let notable = by.iter().filter(move |(_, times)| {
            all >= MIN_PARTNER_WAKES && *times as f64 >= NOTABLE * all as f64
        });
        notable.map(|(waker, _)| *waker)
    });
    partners.collect()
}

fn rank_places(seen: &BTreeMap<(pinwise_sched::BlockedIn, Box<str>), u64>) -> Vec<BlockedPlace> {
    let places = seen.iter().map(|((what, place), &looks)| BlockedPlace {
        what: (*what).into(),
        place: place.to_string(),
        looks,
    });
    let mut places: Vec<BlockedPlace> = places.collect();
    places.sort_by_key(|place| Reverse(place.looks));
    places.truncate(MAX_PLACES);
    places
}

/// The most frequent first.
pub(super) fn rank(looks: impl Iterator<Item = (BlockedIn, u64)>) -> Vec<BlockedPart> {
    BlockedPart::add_up(looks.map(|(what, looks)| BlockedPart { what, looks }))
}

/// Adds up the parts of threads.
pub(super) fn sum_parts<'a>(threads: impl Iterator<Item = &'a BlockedThread>) -> Vec<BlockedPart> {
    BlockedPart::add_up(threads.flat_map(|thread| thread.parts.iter().cloned()))
}

/// What all threads waited for but idle ones, which say nothing about the others.
pub(super) fn sum_active(blocked: &[BlockedRecord]) -> Vec<BlockedPart> {
    BlockedPart::add_up(blocked.iter().flat_map(BlockedRecord::active_parts))
}

/// What most polls of blocked threads found, and of which threads.
pub(super) fn describe_reasons(blocked: &[BlockedRecord]) -> String {
    let mut parts = sum_active(blocked);
    let looks_of = |parts: &[BlockedPart], what| {
        let part = parts.iter().find(|part| part.what == what);
        part.map_or(0, |part| part.looks)
    };
    // Who awaits the end of others has nothing to do meanwhile.
    let joins = looks_of(&parts, BlockedIn::Thread);
    parts.retain(|part| part.what != BlockedIn::Thread);
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    if all == 0 && joins > 0 {
        return "until other threads of the program ended".to_owned();
    }
    if 2 * looks_of(&parts, BlockedIn::Unknown) >= all {
        return "on locks, timers, input or a disk, not for want of a CPU".to_owned();
    }
    let share = |part: &BlockedPart| part.looks as f64 / all as f64;
    let notable = parts
        .iter()
        .filter(|part| part.what != BlockedIn::Unknown && share(part) >= NOTABLE);
    let mut said: Vec<String> = Vec::new();
    let mut named = String::new();
    for part in notable {
        let who = name_waiters(blocked, &part.what);
        let subject = match (said.is_empty(), who.as_str()) {
            (true, "") => "they waited ".to_owned(),
            (true, who) => format!("{who} waited "),
            (false, who) if who.is_empty() || who == named => String::new(),
            (false, who) => format!("{who} "),
        };
        said.push(format!(
            "{subject}for {} in {}",
            describe_wait(blocked, &part.what),
            percent(share(part))
        ));
        named = who;
    }
    let looks = count_of(all, "look", "looks");
    format!("not for want of a CPU: {} of {looks}", said.join(", "))
}

/// Where in the program threads mostly waited for this: ` at add()`; empty if that is unknown.
pub(super) fn name_places(blocked: &[BlockedRecord], what: &BlockedIn) -> String {
    let ranked = count_places(blocked, what);
    let all: u64 = ranked.iter().map(|(_, looks)| looks).sum();
    match ranked.as_slice() {
        [] => String::new(),
        [(place, _)] => format!(" at {}", call(place)),
        [(place, looks), ..] if *looks as f64 >= MOSTLY * all as f64 => {
            format!(" mostly at {}", call(place))
        }
        [(first, _), (second, _)] => format!(" at {} and {}", call(first), call(second)),
        [(first, _), (second, _), rest @ ..] => {
            let [first, second] = [first, second].map(|place| call(place));
            format!(" at {first}, {second} and {} more", rest.len())
        }
    }
}

/// Where threads waited for this, with the looks that found them there, the most first.
fn count_places<'b>(blocked: &'b [BlockedRecord], what: &BlockedIn) -> Vec<(&'b str, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let places = list_active(blocked).flat_map(|thread| &thread.places);
    for place in places.filter(|place| place.what == *what) {
        *sums.entry(&place.place).or_default() += place.looks;
    }
    let mut ranked: Vec<(&str, u64)> = sums.into_iter().collect();
    // Most looks found it elsewhere, then.
    let placed: u64 = ranked.iter().map(|(_, looks)| looks).sum();
    let parts = list_active(blocked).flat_map(|thread| &thread.parts);
    let all: u64 = parts
        .filter(|part| part.what == *what)
        .map(|part| part.looks)
        .sum();
    if 2 * placed < all {
        return Vec::new();
    }
    ranked.sort_by_key(|(_, looks)| Reverse(*looks));
    ranked
}

/// Where threads waited for this most often; empty if that is unknown.
pub(super) fn main_place<'b>(blocked: &'b [BlockedRecord], what: &BlockedIn) -> &'b str {
    let ranked = count_places(blocked, what);
    ranked.first().map_or("", |(place, _)| place)
}

/// Functions that say more of a wait than its system call, by the start of their names.
const TELLING: [(&str, &str); 3] = [
    (TAKES_GIL, "Python's global lock (take_gil)"),
    (
        TAKES_PYTHON_LOCK,
        "a lock, queue or event of Python (threading)",
    ),
    ("PGSemaphoreLock", "a lightweight lock of PostgreSQL"),
];

/// What threads waited for, and where: `a lock at add()`.
pub(super) fn describe_wait(blocked: &[BlockedRecord], what: &BlockedIn) -> String {
    let most = main_place(blocked, what);
    if let Some((_, wait)) = TELLING.iter().find(|(start, _)| most.starts_with(start)) {
        return (*wait).to_owned();
    }
    let places = name_places(blocked, what);
    match what {
        BlockedIn::Events if !most.is_empty() => most.to_owned(),
        BlockedIn::OtherCall if !most.is_empty() => format!("the call {most}"),
        // What it is shows there.
        BlockedIn::Condition if !places.is_empty() => format!("work or another thread{places}"),
        _ => format!("{}{places}", what.words()),
    }
}

/// A function's name as one: `add()`. Others have more than a name.
fn call(place: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    match place.chars().all(is_name) {
        true => format!("{place}()"),
        false => place.to_owned(),
    }
}

/// Threads that have a part in what happened.
pub(super) fn list_active(blocked: &[BlockedRecord]) -> impl Iterator<Item = &BlockedThread> {
    let threads = blocked.iter().flat_map(|seen| &seen.threads);
    threads.filter(|thread| !thread.is_idle)
}

/// Which part of the looks at a thread found it waiting for this.
pub(super) fn share_in(thread: &BlockedThread, what: &BlockedIn) -> f64 {
    let part = thread.parts.iter().find(|part| part.what == *what);
    part.map_or(0.0, |part| part.looks as f64 / thread.looks.max(1) as f64)
}

/// The threads that notably waited for this: `worker (4 threads), main (7)`.
pub(super) fn name_waiters(blocked: &[BlockedRecord], what: &BlockedIn) -> String {
    let mut named: Vec<(&str, i32, usize)> = Vec::new();
    for thread in list_active(blocked).filter(|thread| share_in(thread, what) >= NOTABLE) {
        match named.iter_mut().find(|(name, ..)| *name == thread.name) {
            Some((.., many)) => *many += 1,
            None => named.push((&thread.name, thread.thread, 1)),
        }
    }
    let rest = named.len().saturating_sub(NAMED);
    let shown = named.iter().take(NAMED);
    let shown = shown.map(|(name, thread, many)| match many {
        1 => format!("{name} ({thread})"),
        many => format!("{name} ({})", count(*many, "thread")),
    });
    let mut shown: Vec<String> = shown.collect();
    if rest > 0 {
        shown.push(format!("{rest} more"));
    }
    shown.join(", ")
}

/// How often each thread, with its name, woke these.
pub(super) fn tally_wakers<'a>(
    threads: impl Iterator<Item = &'a BlockedThread>,
) -> BTreeMap<(i32, &'a str), u64> {
    let mut by: BTreeMap<(i32, &str), u64> = BTreeMap::new();
    for waker in threads.flat_map(|thread| &thread.woken_by) {
        *by.entry((waker.thread, &waker.name)).or_default() += waker.times;
    }
    by
}

/// The thread that mostly woke these, `, woken by feeder (12)`; empty if that is not known.
pub(super) fn name_waker<'a>(threads: impl Iterator<Item = &'a BlockedThread>) -> String {
    let by = tally_wakers(threads);
    let all: u64 = by.values().sum();
    let most = by.into_iter().max_by_key(|(_, times)| *times);
    match most {
        Some(((thread, name), times))
            if all >= MIN_WAKES && times as f64 >= MOSTLY * all as f64 =>
        {
            format!(", woken by {name} ({thread})")
        }
        _ => String::new(),
    }
}

/// Which threads of their process woke those that wait for other threads, as a sentence: whoever
/// holds what they want, or hands it to them. `None` if that is not known.
pub(super) fn describe_wakers(
    blocked: &[BlockedRecord],
    threads: &[ThreadRecord],
) -> Option<String> {
    let of_threads = |what: &BlockedIn| {
        matches!(
            what,
            BlockedIn::Lock
                | BlockedIn::Mutex
                | BlockedIn::Condition
                | BlockedIn::Pipe
                | BlockedIn::Events
        )
    };
    let all = list_active(blocked);
    let waits = |thread: &&BlockedThread| of_threads(&thread.what) && !thread.woken_by.is_empty();
    let waiting: Vec<&BlockedThread> = all.filter(waits).collect();
    let what = &waiting.iter().max_by_key(|thread| thread.looks)?.what;
    let group = waiting.iter().filter(|thread| thread.what == *what);
    let members: BTreeSet<i32> = group.clone().map(|thread| thread.thread).collect();
    let by = tally_wakers(group.clone().copied());
    let known: u64 = by.values().sum();
    let is_most = |times: u64| times >= MIN_WAKES && times as f64 >= MOSTLY * known as f64;
    let inside = by
        .iter()
        .filter(|((thread, _), _)| members.contains(thread));
    let inside: u64 = inside.map(|(_, times)| times).sum();
    let (&(first, name), &most) = by.iter().max_by_key(|(_, times)| **times)?;
    let (times, by_whom) = match name {
        _ if is_most(inside) && members.len() > 1 => (inside, "each other".to_owned()),
        name if is_most(most) && !name.is_empty() => (most, format!("{name} ({first})")),
        _ => return None,
    };
    let wakes: u64 = group.filter_map(|thread| thread.wakes).sum();
    let cpu = threads
        .iter()
        .filter(|thread| members.contains(&thread.thread));
    let each_s = cpu.map(|thread| thread.cpu_s).sum::<f64>() / wakes.max(1) as f64;
    let who = name_waiters(blocked, what);
    let verb = if members.len() == 1 { "was" } else { "were" };
    Some(format!(
        "{who} {verb} woken {} times by {by_whom}, and ran for {} per wake-up.",
        grouped(times),
        seconds(each_s)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that was found waiting for this ten times, woken as often as said, by whom.
    fn thread(
        thread: i32,
        name: &str,
        what: BlockedIn,
        wakes: u64,
        by: &[(i32, &str, u64)],
    ) -> BlockedThread {
        let waker = |&(thread, name, times): &(i32, &str, u64)| WakerRecord {
            thread,
            name: name.to_owned(),
            times,
        };
        BlockedThread {
            thread,
            name: name.to_owned(),
            looks: 10,
            parts: rank([(what.clone(), 10)].into_iter()),
            what,
            is_idle: false,
            places: Vec::new(),
            wakes: Some(wakes),
            woken_by: by.iter().map(waker).collect(),
        }
    }

    fn process(threads: Vec<BlockedThread>) -> Vec<BlockedRecord> {
        let parts = threads.iter().map(|t| (t.what.clone(), t.looks));
        let mut sums: BTreeMap<BlockedIn, u64> = BTreeMap::new();
        parts.for_each(|(what, looks)| *sums.entry(what).or_default() += looks);
        vec![BlockedRecord {
            process: 7,
            name: "server".to_owned(),
            looks: sums.values().sum(),
            parts: rank(sums.into_iter()),
            threads,
        }]
    }

    #[test]
    fn a_place_of_a_few_looks_is_not_that_of_all() {
        let mut waits = thread(8, "reader", BlockedIn::Timer, 0, &[]);
        let mut name = |looks: u64| {
            waits.places = vec![BlockedPlace {
                what: BlockedIn::Timer,
                place: "pause".to_owned(),
                looks,
            }];
            name_places(&process(vec![waits.clone()]), &BlockedIn::Timer)
        };
        assert_eq!(name(4), "");
        assert_eq!(name(5), " at pause()");
    }

    fn ran(thread: i32, cpu_s: f64) -> ThreadRecord {
        let text = include_str!("../../../../tests/data/records/trace.json");
        let record: pinwise_record::TraceRecord = serde_json::from_str(text).unwrap();
        ThreadRecord {
            thread,
            cpu_s,
            ..record.threads[0].clone()
        }
    }

    #[test]
    fn the_threads_of_a_pool_are_named_with_who_hands_them_work() {
        let worker = |tid| {
            let by = [(7, "server", 98), (1, "other", 2)];
            thread(tid, "worker", BlockedIn::Condition, 100, &by)
        };
        let blocked = process(vec![
            worker(8),
            worker(9),
            thread(7, "server", BlockedIn::Events, 50, &[]),
        ]);
        assert_eq!(
            describe_reasons(&blocked),
            "not for want of a CPU: worker (2 threads) waited for work or another thread \
             (condition variable, semaphore or similar) in 66.7 %, server (7) for events (poll, epoll, select) in \
             33.3 % of 30 looks"
        );
        assert_eq!(
            describe_wakers(&blocked, &[ran(8, 0.1), ran(9, 0.1)]).unwrap(),
            "worker (2 threads) were woken 196 times by server (7), and ran for 1.00 ms per wake-up."
        );
    }

    #[test]
    fn threads_that_hand_on_a_lock_wake_each_other() {
        let worker = |tid, other, places: &[(&str, u64)]| {
            let by = [(other, "job", 90), (7, "main", 10)];
            let place = |&(place, looks): &(&str, u64)| BlockedPlace {
                what: BlockedIn::Mutex,
                place: place.to_owned(),
                looks,
            };
            let mut worker = thread(tid, "job", BlockedIn::Mutex, 100, &by);
            worker.places = places.iter().map(place).collect();
            worker
        };
        let reasons = |places: &[(&str, u64)]| {
            let joiner = thread(7, "main", BlockedIn::Thread, 0, &[]);
            let workers = vec![worker(8, 9, places), worker(9, 8, places), joiner];
            describe_reasons(&process(workers))
        };
        let said = "not for want of a CPU: job (2 threads) waited for a lock";
        assert_eq!(reasons(&[]), format!("{said} in 100 % of 20 looks"));
        let cases: [(&[(&str, u64)], &str); 4] = [
            (&[("add", 10)], "at add()"),
            (&[("add", 9), ("sub", 1)], "mostly at add()"),
            (&[("add", 6), ("sub", 4)], "at add() and sub()"),
            (
                &[("add", 6), ("sub", 3), ("mul", 1)],
                "at add(), sub() and 1 more",
            ),
        ];
        for (places, at) in cases {
            assert_eq!(reasons(places), format!("{said} {at} in 100 % of 20 looks"));
        }
        let blocked = process(vec![worker(8, 9, &[]), worker(9, 8, &[])]);
        let said = describe_wakers(&blocked, &[ran(8, 0.1), ran(9, 0.1)]).unwrap();
        assert!(said.contains("woken 180 times by each other,"), "{said}");
    }

    #[test]
    fn nothing_is_said_of_wakers_that_are_not_known() {
        let alone = |wakes, by: &[(i32, &str, u64)]| {
            describe_wakers(
                &process(vec![thread(8, "a", BlockedIn::Lock, wakes, by)]),
                &[],
            )
        };
        assert_eq!(alone(100, &[(7, "main", 40), (6, "io", 30)]), None);
        assert_eq!(alone(5, &[(7, "main", 5)]), None);
        assert_eq!(alone(100, &[(7, "", 100)]), None);
        assert!(
            alone(100, &[(7, "main", 100)])
                .unwrap()
                .starts_with("a (8) was woken 100 times")
        );
        // A timer wakes it.
        let slept = process(vec![thread(
            8,
            "a",
            BlockedIn::Timer,
            100,
            &[(7, "main", 100)],
        )]);
        assert_eq!(describe_wakers(&slept, &[]), None);
    }
}
