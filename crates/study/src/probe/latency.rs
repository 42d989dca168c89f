//! Measures latencies between CPUs: of all pairs if time allows, else estimated through leaders.
//!
//! ```text
//! enough time for every pair ─► every pair
//! else: `leaders` ─► a random sample of the skipped pairs is measured after all
//! ```
//!
//! Pairs are measured in parallel only as far as a test shows, on this machine and at this moment,
//! that this does not change the figures.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::leaders;
use super::pairs::{
    Pairs, count_usable_nodes, measure_round, measure_transfers, probe_pairs, smallest_latency,
};
use super::rounds::tournament;
use super::session::Session;
use pinwise_format::whole_usize;
use pinwise_machine::MachineError;
use pinwise_stats::describe::quantile;

/// Pairs in parallel may lengthen each other's latency by at most this factor.
const MAX_DISTURBANCE: f64 = 1.06;
/// Number of pairs by which the disturbance is judged.
const JUDGED_PAIRS: usize = 6;
/// With fewer CPUs the pairs are measured one after the other, which is fast enough.
const MIN_PARALLEL: usize = 8;
/// Share of the skipped pairs that are measured after all …
const VERIFIED_SHARE: f64 = 0.02;
/// … but at least and at most this many.
const VERIFIED: (usize, usize) = (30, 200);
/// A skipped pair disagrees with its estimate if it is off by this factor: levels differ by more,
/// places on one mesh by less.
const MAX_ESTIMATE_RATIO: f64 = 1.5;

/// Measures the pairs of the allowed CPUs within the part's time.
pub(super) fn measure(
    session: &mut Session<'_>,
    rng: &mut ChaCha8Rng,
    pairs: &mut Pairs,
) -> Result<(), MachineError> {
    *pairs = Pairs::new(&session.topology);
    if pairs.len() < 2 {
        return Ok(());
    }
    let width = widest_undisturbed(session, pairs, rng)?;
    session.effort.parallel_pairs = width;
    let all = tournament(pairs.len());
    let homes = count_usable_nodes(&session.topology).min(2);
    let needed = pairs.cost * u32::try_from(all.len() * homes / width).unwrap_or(u32::MAX);
    let missed = if pairs.len() <= MIN_PARALLEL || needed <= session.time_left() {
        measure_transfers(session, pairs, &all, width)?
    } else {
        leaders::measure(session, pairs, width, rng)?
    };
    if missed > 0 {
        session.leave_out(format!(
            "{missed} of {} pairs of CPUs (time budget used up); a larger --budget measures them.",
            all.len()
        ));
    }
    verify_sample(session, pairs, rng)
}

/// The largest number of pairs in parallel that leaves the figures unchanged: as many as fit, half or
/// a quarter of that, or 1.
fn widest_undisturbed(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    rng: &mut ChaCha8Rng,
) -> Result<usize, MachineError> {
    let n = pairs.len();
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(rng);
    let disjoint: Vec<(usize, usize)> = rows.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let judged = &disjoint[..disjoint.len().min(JUDGED_PAIRS)];
    let before = measure_alone(session, pairs, judged)?;
    if n < MIN_PARALLEL {
        return Ok(1);
    }
    for share in [1, 2, 4] {
        let width = (disjoint.len() / share).max(1);
        if width == 1 {
            break;
        }
        let together =
            measure_concurrently(session, pairs, &disjoint[..width.max(judged.len())], judged)?;
        let after = measure_alone(session, pairs, judged)?;
        let ratios: Vec<f64> = (0..judged.len())
            .map(|i| together[i] / (before[i] * after[i]).sqrt())
            .filter(|ratio| ratio.is_finite())
            .collect();
        let is_undisturbed = !ratios.is_empty()
            && quantile(&ratios, 0.5) <= MAX_DISTURBANCE
            && quantile(&ratios, 0.8) <= MAX_DISTURBANCE.powi(2);
        if is_undisturbed {
            return Ok(width);
        }
    }
    Ok(1)
}

/// Latencies of these pairs, measured one after the other. Also sets the time that a pair takes.
fn measure_alone(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    judged: &[(usize, usize)],
) -> Result<Vec<f64>, MachineError> {
    let started = session.elapsed();
    for &pair in judged {
        measure_round(session, pairs, &[pair])?;
    }
    let spent = session.elapsed().saturating_sub(started);
    pairs.cost = spent / u32::try_from(judged.len().max(1)).unwrap_or(1);
    Ok(judged
        .iter()
        .map(|&(a, b)| pairs.latency.at(a, b))
        .collect())
}

/// Latencies of the judged pairs while all others are measured, too. The figures are not kept.
fn measure_concurrently(
    session: &mut Session<'_>,
    pairs: &Pairs,
    all: &[(usize, usize)],
    judged: &[(usize, usize)],
) -> Result<Vec<f64>, MachineError> {
    let answers = probe_pairs(session, pairs, all)?;
    let latencies = judged.iter().map(|&pair| smallest_latency(&answers, pair));
    Ok(latencies.collect())
}

/// Measures a random sample of the pairs that were skipped, or else measured in parallel, one after
/// the other, and counts disagreements.
fn verify_sample(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    rng: &mut ChaCha8Rng,
) -> Result<(), MachineError> {
    let mut to_verify: Vec<(usize, usize)> = tournament(pairs.len())
        .into_iter()
        .filter(|&(a, b)| !pairs.is_measured(a, b) && pairs.latency.at(a, b).is_finite())
        .collect();
    if to_verify.is_empty() && session.effort.parallel_pairs > 1 {
        to_verify = tournament(pairs.len());
    }
    to_verify.shuffle(rng);
    to_verify.truncate(sample_size(to_verify.len()));
    for (a, b) in to_verify {
        if session.time_left().is_zero() {
            break;
        }
        let before = pairs.latency.at(a, b);
        let answers = probe_pairs(session, pairs, &[(a, b)])?;
        let now = smallest_latency(&answers, (a, b));
        if !now.is_finite() {
            continue;
        }
        session.effort.pairs_verified += 1;
        if now > MAX_ESTIMATE_RATIO * before || before > MAX_ESTIMATE_RATIO * now {
            session.effort.pairs_disagreed += 1;
        }
        pairs.add_answers(&answers);
    }
    Ok(())
}

fn sample_size(to_verify: usize) -> usize {
    let share = whole_usize((VERIFIED_SHARE * to_verify as f64).floor());
    share.clamp(VERIFIED.0, VERIFIED.1).min(to_verify)
}
