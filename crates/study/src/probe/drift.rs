//! Does the wiring stay the same? A few pairs, again and again.
//!
//! The vCPUs of a virtual machine may float over the host's CPUs: two of them were seen as SMT
//! siblings, as neighbours in one cache and as strangers within minutes, with a median of 12.7 s
//! between changes. A map of such a machine is true only for that long.

use std::time::Duration;

use super::contention::Contentions;
use super::estimate::Effort;
use super::modes::{cluster_bounds, cluster_of};
use super::pairs::Pairs;
use super::session::Session;
use pinwise_format::duration;
use pinwise_machine::{MachineError, Port, Probe};
use pinwise_record::{DriftPair, DriftRecord, DriftState, LevelName};
use pinwise_stats::describe::{median, quantile};
use pinwise_wiring::{Relation, classify_relation};

/// One repetition of a pair's latency, about 3 ms.
const LATENCY: Effort = Effort {
    least: 40,
    most: 80,
    precision: 0.03,
    limit: Duration::from_millis(60),
};
/// … and of its contention.
const CONTENTION: Effort = Effort {
    least: 7,
    most: 14,
    precision: 0.1,
    limit: Duration::from_millis(40),
};
/// Interval between rounds of repetitions.
const INTERVAL: Duration = Duration::from_millis(350);
/// States of a pair are this factor apart: within a state ±20 % was seen,
/// between the nearest states 1.9.
const STATES_APART: f64 = 1.5;
/// At most this many pairs are repeated.
const MAX_PAIRS: usize = 4;
/// A map counts as valid for as long as it is still true with this
/// probability.
const STILL_TRUE: f64 = 0.9;

/// One repetition: seconds, latency, contention.
type Repetition = (f64, f64, Option<f64>);

/// Repeats a few pairs for this long.
pub(super) fn watch(
    session: &mut Session<'_>,
    pairs: &Pairs,
    time: Duration,
    found: &mut Option<DriftRecord>,
) -> Result<(), MachineError> {
    let watched = choose_representative_pairs(pairs);
    let mut repetitions: Vec<Vec<Repetition>> = vec![Vec::new(); watched.len()];
    let started = session.elapsed();
    let mut end = Ok(());
    while end.is_ok() && !watched.is_empty() && session.elapsed() - started < time {
        let seen = session.elapsed() - started;
        session.report_progress(seen.as_secs_f64() / time.as_secs_f64());
        end = watch_once(session, pairs, &watched, seen, &mut repetitions);
    }
    let watched_s = (session.elapsed() - started).as_secs_f64();
    let pairs: Vec<DriftPair> = watched
        .iter()
        .zip(repetitions)
        .filter(|(_, seen)| !seen.is_empty())
        .map(|(&(a, b), seen)| describe(pairs.cpu(a), pairs.cpu(b), &seen))
        .collect();
    *found = (!pairs.is_empty()).then(|| conclude(watched_s, pairs));
    end
}

/// One round over the watched pairs, and the wait until the next.
fn watch_once(
    session: &mut Session<'_>,
    pairs: &Pairs,
    watched: &[(usize, usize)],
    at: Duration,
    repetitions: &mut [Vec<Repetition>],
) -> Result<(), MachineError> {
    let began = session.elapsed();
    for (&(a, b), seen) in watched.iter().zip(repetitions) {
        if let Some((latency, contention)) = repeat(session, pairs.cpu(a), pairs.cpu(b))? {
            seen.push((at.as_secs_f64(), latency, contention));
        }
    }
    let rest = INTERVAL.saturating_sub(session.elapsed() - began);
    session.machine.wait(rest)
}

fn repeat(
    session: &mut Session<'_>,
    a: usize,
    b: usize,
) -> Result<Option<(f64, Option<f64>)>, MachineError> {
    let transfer = Probe::Transfer { a, b, home: None };
    let latency = session.median(transfer, LATENCY)?;
    let port = Port::Float;
    let contention = session.median(Probe::Contention { a, b, port }, CONTENTION)?;
    Ok(latency.map(|latency| (latency.value, contention.map(|c| c.value))))
}

/// Pairs of different kinds: the nearest, the farthest, and some between, with
/// CPUs as different as can be.
fn choose_representative_pairs(pairs: &Pairs) -> Vec<(usize, usize)> {
    let n = pairs.len();
    let mut all: Vec<(f64, (usize, usize))> = (0..n)
        .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
        .filter(|&(a, b)| pairs.is_measured(a, b))
        .map(|pair| (pairs.latency.at(pair.0, pair.1), pair))
        .collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let last = all.len().saturating_sub(1);
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    let wanted = MAX_PAIRS.min(all.len());
    for step in 0..wanted {
        let from = step * last / wanted.saturating_sub(1).max(1);
        let used: Vec<usize> = chosen.iter().flat_map(|&(a, b)| [a, b]).collect();
        let is_new =
            |&&(_, (a, b)): &&(f64, (usize, usize))| !used.contains(&a) && !used.contains(&b);
        let near = all.iter().skip(from).find(is_new);
        let any = near.or_else(|| {
            all.iter()
                .skip(from)
                .find(|(_, pair)| !chosen.contains(pair))
        });
        chosen.extend(any.map(|(_, pair)| *pair));
    }
    chosen
}

/// States of one pair and how long it stayed in each.
fn describe(a: usize, b: usize, seen: &[Repetition]) -> DriftPair {
    let latencies: Vec<f64> = seen.iter().map(|s| s.1).collect();
    let bounds = cluster_bounds(&latencies, STATES_APART);
    let samples: Vec<(f64, f64, Option<f64>, usize)> = seen
        .iter()
        .map(|&(at, latency, contention)| (at, latency, contention, cluster_of(&bounds, latency)))
        .collect();
    let visits = visits(&samples);
    let states = (0..bounds.len())
        .map(|state| {
            let own = || samples.iter().filter(|s| s.3 == state);
            let latency: Vec<f64> = own().map(|s| s.1).collect();
            let contention: Vec<f64> = own().filter_map(|s| s.2).collect();
            let lengths: Vec<f64> = visits
                .iter()
                .filter(|v| v.0 == state)
                .map(|v| v.1)
                .collect();
            let latency_ns = quantile(&latency, 0.5);
            let ratio = median(&contention);
            DriftState {
                kind: kind(classify_relation(latency_ns, ratio)),
                latency_ns,
                contention: ratio,
                share: latency.len() as f64 / samples.len() as f64,
                visits: lengths.len(),
                median_dwell_s: quantile(&lengths, 0.5),
            }
        })
        .collect();
    DriftPair {
        a,
        b,
        states,
        samples,
    }
}

/// The kind of a pair's state: the innermost level that both are in.
const fn kind(relation: Relation) -> LevelName {
    match relation {
        Relation::Stacked => LevelName::Stacked,
        Relation::SameCore => LevelName::Smt,
        Relation::SameLlc => LevelName::Llc,
        Relation::OtherLlc => LevelName::Package,
        Relation::OtherPackage | Relation::Unclear => LevelName::Unnamed,
    }
}

/// State and length of every stay, in time order.
fn visits(samples: &[(f64, f64, Option<f64>, usize)]) -> Vec<(usize, f64)> {
    let mut visits = Vec::new();
    let mut began = samples.first().map_or(0.0, |s| s.0);
    for pair in samples.windows(2) {
        if pair[0].3 != pair[1].3 {
            visits.push((pair[0].3, pair[1].0 - began));
            began = pair[1].0;
        }
    }
    if let Some(last) = samples.last() {
        visits.push((last.3, last.0 - began));
    }
    visits
}

fn conclude(watched_s: f64, pairs: Vec<DriftPair>) -> DriftRecord {
    let mut moments: Vec<f64> = pairs
        .iter()
        .flat_map(|pair| pair.samples.windows(2))
        .filter(|w| w[0].3 != w[1].3)
        .map(|w| w[1].0)
        .collect();
    moments.sort_unstable_by(f64::total_cmp);
    // Pairs that change in one round change together: the map changed once.
    moments.dedup_by(|later, earlier| *later - *earlier < INTERVAL.as_secs_f64());
    let changes = moments.len();
    let dwells: Vec<f64> = moments.windows(2).map(|w| w[1] - w[0]).collect();
    let ends = std::iter::once(0.0).chain(moments.iter().copied());
    let longest_dwell_s = ends
        .zip(moments.iter().copied().chain([watched_s]))
        .map(|(from, to)| to - from)
        .fold(0.0, f64::max);
    let valid_s = (changes > 0).then(|| -STILL_TRUE.ln() * watched_s / changes as f64);
    let listed = |s: f64| duration(Duration::from_secs_f64(s.max(0.0)));
    let sentence = match valid_s {
        // No event in a time of T: fewer than 3 / T with 95 % confidence.
        None => format!(
            "The wiring did not change in {}: with 95 % confidence it changes less than once in {}.",
            listed(watched_s),
            listed(watched_s / 3.0)
        ),
        Some(valid) => format!(
            "The wiring changed {changes} time{} in {}: a measured map stays valid for {} with 90 % probability.",
            if changes == 1 { "" } else { "s" },
            listed(watched_s),
            listed(valid)
        ),
    };
    DriftRecord {
        watched_s,
        pairs,
        changes,
        median_dwell_s: median(&dwells),
        longest_dwell_s,
        valid_s,
        sentence,
    }
}

/// Measures some pairs once more at the end: those that changed meanwhile, as
/// full sentences.
///
/// Load during either measurement raises its median, so a different median proves nothing. If vCPUs
/// moved on their host (24 and 102 ns were seen within a minute), even the fastest batches are in
/// another state.
pub(super) fn recheck(
    session: &mut Session<'_>,
    pairs: &Pairs,
    contentions: &Contentions,
) -> Result<Vec<String>, MachineError> {
    let mut changed = Vec::new();
    for (a, b) in choose_representative_pairs(pairs) {
        let (cpu_a, cpu_b) = (pairs.cpu(a), pairs.cpu(b));
        let pair = (a.min(b), a.max(b));
        let home = pairs.homes.get(&pair).and_then(|h| h.first());
        let transfer = Probe::Transfer {
            a: cpu_a,
            b: cpu_b,
            home: home.and_then(|home| home.home_node),
        };
        let samples = session.estimate(&[transfer], LATENCY)?;
        let now = samples.first().and_then(|sample| {
            let median = sample.median()?.value;
            Some(Speed {
                median,
                floor: sample.floor(),
            })
        });
        let before = home
            .zip(pairs.floors.get(&pair))
            .map(|(home, floor)| Speed {
                median: home.median.value,
                floor: *floor,
            });
        let (Some(before), Some(now)) = (before, now) else {
            continue;
        };
        if before.is_faster_than(now) || now.is_faster_than(before) {
            let ratio = contentions
                .get(&(a, b))
                .and_then(super::contention::Ratios::value);
            let (before, now) = (before.median, now.median);
            changed.push(format!(
                "CPUs {cpu_a} and {cpu_b} were at {before:.1} ns at the start ({}) and at {now:.1} ns at the end ({}).",
                classify_relation(before, ratio).words(),
                classify_relation(now, None).words()
            ));
        }
    }
    Ok(changed)
}

/// Latency of a pair at one time, ns.
#[derive(Clone, Copy)]
struct Speed {
    median: f64,
    floor: f64,
}

impl Speed {
    /// In a faster state, whatever load there was?
    fn is_faster_than(self, other: Self) -> bool {
        other.floor > STATES_APART * self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_no_change_of_the_wiring() {
        let speed = |median, floor| Speed { median, floor };
        let idle = speed(24.3, 22.0);
        let busy = speed(102.3, 26.0);
        assert!(!idle.is_faster_than(busy) && !busy.is_faster_than(idle));
        let far = speed(102.3, 88.0);
        assert!(idle.is_faster_than(far) && !far.is_faster_than(idle));
    }

    fn samples(latencies: &[f64]) -> Vec<Repetition> {
        let at = |i: usize| f64::from(u32::try_from(i).unwrap());
        latencies
            .iter()
            .enumerate()
            .map(|(i, &latency)| {
                (
                    at(i),
                    latency,
                    Some(if latency < 20.0 { 1.7 } else { 1.02 }),
                )
            })
            .collect()
    }

    #[test]
    fn a_floating_pair_is_described() {
        let seen = samples(&[36.0, 35.0, 37.0, 117.0, 120.0, 14.4, 36.0, 36.5]);
        let record = conclude(8.0, vec![describe(0, 1, &seen)]);
        assert_eq!(record.changes, 3);
        let kinds: Vec<&str> = record.pairs[0]
            .states
            .iter()
            .map(|s| s.kind.as_str())
            .collect();
        assert_eq!(kinds, ["smt", "llc", "package"]);
        assert_eq!(record.pairs[0].states[1].visits, 2);
        assert!((record.longest_dwell_s - 3.0).abs() < 1e-9);
        assert_eq!(record.median_dwell_s, Some(1.5));
        assert!(
            record.sentence.contains("changed 3 times in 8"),
            "{}",
            record.sentence
        );
    }

    #[test]
    fn a_steady_pair_bounds_the_rate() {
        let seen = samples(&[36.0, 35.0, 37.0, 36.0, 30.0, 41.0]);
        let record = conclude(60.0, vec![describe(0, 1, &seen)]);
        assert_eq!((record.changes, record.valid_s), (0, None));
        assert!(
            record.sentence.contains("less than once in 20"),
            "{}",
            record.sentence
        );
    }
}
