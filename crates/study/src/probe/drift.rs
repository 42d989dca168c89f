//! Watches whether the wiring changes, by measuring a few pairs of CPUs again and again.
//!
//! The vCPUs of a virtual machine may float over the host's CPUs: two of them were seen as SMT
//! siblings, as neighbours in one cache and in different caches within minutes, with a median of
//! 12.7 s between changes. A map of such a machine is valid only for that long.

use std::time::Duration;

use super::contention::Contentions;
use super::estimate::Effort;
use super::modes::{cluster_bounds, find_cluster};
use super::pairs::Pairs;
use super::session::Session;
use pinwise_format::duration;
use pinwise_machine::{MachineError, Port, Probe};
use pinwise_record::{DriftPair, DriftRecord, DriftState, LevelName};
use pinwise_stats::describe::{median, quantile};
use pinwise_wiring::{Relation, classify_relation};

/// Effort of one repetition of a pair's latency, about 3 ms.
const LATENCY: Effort = Effort {
    least: 40,
    most: 80,
    precision: 0.03,
    limit: Duration::from_millis(60),
};
/// Effort of one repetition of its contention.
const CONTENTION: Effort = Effort {
    least: 7,
    most: 14,
    precision: 0.1,
    limit: Duration::from_millis(40),
};
/// Interval between rounds of repetitions.
const INTERVAL: Duration = Duration::from_millis(350);
/// Latencies that differ by this factor belong to different states of a pair: within a state ±20 %
/// was seen, between the nearest states a factor of 1.9.
const STATES_APART: f64 = 1.5;
/// At most this many pairs are repeated.
const MAX_PAIRS: usize = 4;
/// A map counts as valid for the time after which it is still right with this probability.
const VALID_PROBABILITY: f64 = 0.9;

/// One measurement of a pair.
#[derive(Clone, Copy)]
struct Repetition {
    /// Since watching began.
    at_s: f64,
    latency_ns: f64,
    contention: Option<f64>,
}

/// Measures a few pairs again and again for `time`.
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
        let at = session.elapsed() - started;
        session.report_progress(at.as_secs_f64() / time.as_secs_f64());
        end = watch_once(session, pairs, &watched, at, &mut repetitions);
    }
    let watched_s = (session.elapsed() - started).as_secs_f64();
    let pairs: Vec<DriftPair> = watched
        .iter()
        .zip(repetitions)
        .filter(|(_, repetitions)| !repetitions.is_empty())
        .map(|(&(a, b), repetitions)| find_states(pairs.cpu(a), pairs.cpu(b), &repetitions))
        .collect();
    if pairs.is_empty() && end.is_ok() {
        session.leave_out("Watching: no pair of CPUs was measured that could be watched.");
    }
    *found = (!pairs.is_empty()).then(|| drift_record(watched_s, pairs));
    end
}

/// Measures each watched pair once, and waits for the next round.
fn watch_once(
    session: &mut Session<'_>,
    pairs: &Pairs,
    watched: &[(usize, usize)],
    at: Duration,
    repetitions: &mut [Vec<Repetition>],
) -> Result<(), MachineError> {
    let began = session.elapsed();
    for (&(a, b), repetitions) in watched.iter().zip(repetitions) {
        repetitions.extend(measure_pair(session, pairs.cpu(a), pairs.cpu(b), at)?);
    }
    let rest = INTERVAL.saturating_sub(session.elapsed() - began);
    session.machine.wait(rest)
}

/// Measures a pair once; `None` without a latency.
fn measure_pair(
    session: &mut Session<'_>,
    a: usize,
    b: usize,
    at: Duration,
) -> Result<Option<Repetition>, MachineError> {
    let transfer = Probe::Transfer { a, b, home: None };
    let latency = session.median(transfer, LATENCY)?;
    let port = Port::Float;
    let contention = session.median(Probe::Contention { a, b, port }, CONTENTION)?;
    Ok(latency.map(|latency| Repetition {
        at_s: at.as_secs_f64(),
        latency_ns: latency.value,
        contention: contention.map(|contention| contention.value),
    }))
}

/// Pairs to watch: the nearest, the farthest, and some between, each with other CPUs if possible.
fn choose_representative_pairs(pairs: &Pairs) -> Vec<(usize, usize)> {
    let n = pairs.len();
    let mut measured: Vec<(f64, (usize, usize))> = (0..n)
        .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
        .filter(|&(a, b)| pairs.is_measured(a, b))
        .map(|pair| (pairs.latency.at(pair.0, pair.1), pair))
        .collect();
    measured.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let last = measured.len().saturating_sub(1);
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    let count = MAX_PAIRS.min(measured.len());
    for step in 0..count {
        let from = step * last / count.saturating_sub(1).max(1);
        let used: Vec<usize> = chosen.iter().flat_map(|&(a, b)| [a, b]).collect();
        let is_new =
            |&&(_, (a, b)): &&(f64, (usize, usize))| !used.contains(&a) && !used.contains(&b);
        let new = measured.iter().skip(from).find(is_new);
        let pair = new.or_else(|| {
            measured
                .iter()
                .skip(from)
                .find(|(_, pair)| !chosen.contains(pair))
        });
        chosen.extend(pair.map(|(_, pair)| *pair));
    }
    chosen
}

/// The states of one pair and how long it stayed in each.
fn find_states(a: usize, b: usize, repetitions: &[Repetition]) -> DriftPair {
    let latencies: Vec<f64> = repetitions.iter().map(|one| one.latency_ns).collect();
    let bounds = cluster_bounds(&latencies, STATES_APART);
    let samples: Vec<(f64, f64, Option<f64>, usize)> = repetitions
        .iter()
        .map(|one| {
            let state = find_cluster(&bounds, one.latency_ns);
            (one.at_s, one.latency_ns, one.contention, state)
        })
        .collect();
    let visits = list_visits(&samples);
    let states = (0..bounds.len())
        .map(|state| {
            let in_state = || samples.iter().filter(|s| s.3 == state);
            let latency: Vec<f64> = in_state().map(|s| s.1).collect();
            let contention: Vec<f64> = in_state().filter_map(|s| s.2).collect();
            let lengths: Vec<f64> = visits
                .iter()
                .filter(|v| v.0 == state)
                .map(|v| v.1)
                .collect();
            let latency_ns = quantile(&latency, 0.5);
            let ratio = median(&contention);
            DriftState {
                kind: innermost_level(classify_relation(latency_ns, ratio)),
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

/// The innermost level that both CPUs of a pair are in.
const fn innermost_level(relation: Relation) -> LevelName {
    match relation {
        Relation::Stacked => LevelName::Stacked,
        Relation::SameCore => LevelName::Smt,
        Relation::SameLlc => LevelName::Llc,
        Relation::OtherLlc => LevelName::Package,
        Relation::OtherPackage | Relation::Unclear => LevelName::Unnamed,
    }
}

/// State and length in seconds of every stay, in time order.
fn list_visits(samples: &[(f64, f64, Option<f64>, usize)]) -> Vec<(usize, f64)> {
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

/// How often the wiring changed, over all pairs.
fn drift_record(watched_s: f64, pairs: Vec<DriftPair>) -> DriftRecord {
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
    // Changes as a Poisson process.
    let valid_s = (changes > 0).then(|| -VALID_PROBABILITY.ln() * watched_s / changes as f64);
    let format = |s: f64| duration(Duration::from_secs_f64(s.max(0.0)));
    let sentence = match valid_s {
        // No event within T: a rate below 3 / T with 95 % confidence.
        None => format!(
            "The wiring did not change in {}: with 95 % confidence it changes less than once in {}.",
            format(watched_s),
            format(watched_s / 3.0)
        ),
        Some(valid) => format!(
            "The wiring changed {changes} time{} in {}: a measured map stays valid for {} with 90 % probability.",
            if changes == 1 { "" } else { "s" },
            format(watched_s),
            format(valid)
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

/// Measures some pairs once more at the end; returns a full sentence for each that changed meanwhile.
///
/// Load during a measurement raises its median, so different medians prove nothing. If vCPUs moved
/// on their host (24 and 102 ns were seen within a minute), even the fastest batches differ.
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
                .and_then(super::contention::Ratios::deciding);
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

/// Latency of a pair at one time, ns: the median of batches, and what 90 % of them exceed.
#[derive(Clone, Copy)]
struct Speed {
    median: f64,
    floor: f64,
}

impl Speed {
    /// Was the pair in a faster state, whatever the load?
    fn is_faster_than(self, other: Self) -> bool {
        other.floor > STATES_APART * self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_does_not_count_as_a_change_of_the_wiring() {
        let speed = |median, floor| Speed { median, floor };
        let idle = speed(24.3, 22.0);
        let busy = speed(102.3, 26.0);
        assert!(!idle.is_faster_than(busy) && !busy.is_faster_than(idle));
        let far = speed(102.3, 88.0);
        assert!(idle.is_faster_than(far) && !far.is_faster_than(idle));
    }

    /// One repetition per second.
    fn repetitions(latencies: &[f64]) -> Vec<Repetition> {
        let at = |i: usize| f64::from(u32::try_from(i).unwrap());
        latencies
            .iter()
            .enumerate()
            .map(|(i, &latency_ns)| Repetition {
                at_s: at(i),
                latency_ns,
                contention: Some(if latency_ns < 20.0 { 1.7 } else { 1.02 }),
            })
            .collect()
    }

    #[test]
    fn states_and_changes_of_a_floating_pair_are_found() {
        let seen = repetitions(&[36.0, 35.0, 37.0, 117.0, 120.0, 14.4, 36.0, 36.5]);
        let record = drift_record(8.0, vec![find_states(0, 1, &seen)]);
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
    fn a_pair_without_changes_bounds_their_rate() {
        let seen = repetitions(&[36.0, 35.0, 37.0, 36.0, 30.0, 41.0]);
        let record = drift_record(60.0, vec![find_states(0, 1, &seen)]);
        assert_eq!((record.changes, record.valid_s), (0, None));
        assert!(
            record.sentence.contains("less than once in 20"),
            "{}",
            record.sentence
        );
    }
}
