//! Which pairs of CPUs are measured: all of them if time allows, else through leaders.
//!
//! ```text
//! few CPUs, or undisturbed in parallel ─► every pair
//! else: `leaders` ─► a random sample of what was skipped is measured after all
//! ```
//!
//! Only as many pairs are measured in parallel as were shown, on this machine and at this moment,
//! not to change the figures.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::leaders;
use super::pairs::{Pairs, ask, least, measure_round, measure_transfers, usable_nodes};
use super::rounds::tournament;
use super::session::Session;
use pinwise_format::whole_usize;
use pinwise_machine::MachineError;
use pinwise_stats::describe::quantile;

/// Pairs in parallel may change each other's figures by this share.
const DISTURBANCE: f64 = 1.06;
/// Pairs that the disturbance is judged by.
const JUDGED_PAIRS: usize = 6;
/// With fewer CPUs the pairs are measured one after the other, which is fast enough.
const MIN_PARALLEL: usize = 8;
/// Skipped pairs that are measured after all: this share of them, within
/// these bounds.
const VERIFIED_SHARE: f64 = 0.02;
const VERIFIED: (usize, usize) = (30, 200);
/// A skipped pair disagrees if it is off by this factor: levels differ by more, places on one mesh
/// by less.
const DISAGREES: f64 = 1.5;

/// Measures the pairs of the allowed CPUs within the part's time.
pub(super) fn measure(
    session: &mut Session<'_>,
    chance: &mut ChaCha8Rng,
    pairs: &mut Pairs,
) -> Result<(), MachineError> {
    *pairs = Pairs::new(&session.topology);
    if pairs.len() < 2 {
        return Ok(());
    }
    let width = widest_undisturbed(session, pairs, chance)?;
    session.effort.parallel_pairs = width;
    let all = tournament(pairs.len());
    let homes = usable_nodes(&session.topology).min(2);
    let needed = pairs.cost * u32::try_from(all.len() * homes / width).unwrap_or(u32::MAX);
    let missed = if pairs.len() <= MIN_PARALLEL || needed <= session.time_left() {
        measure_transfers(session, pairs, &all, width)?
    } else {
        leaders::measure(session, pairs, width, chance)?
    };
    if missed > 0 {
        session.leave_out(format!(
            "{missed} of {} pairs of CPUs (time budget used up); a larger --budget measures them.",
            all.len()
        ));
    }
    verify(session, pairs, chance)
}

/// The largest number of pairs at once that leaves the figures unchanged: all, half, a quarter of
/// what fits, or 1.
fn widest_undisturbed(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    chance: &mut ChaCha8Rng,
) -> Result<usize, MachineError> {
    let n = pairs.len();
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(chance);
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
        let is_like_alone = !ratios.is_empty()
            && quantile(&ratios, 0.5) <= DISTURBANCE
            && quantile(&ratios, 0.8) <= DISTURBANCE.powi(2);
        if is_like_alone {
            return Ok(width);
        }
    }
    Ok(1)
}

/// Medians of these pairs, one after the other; also learns how long one takes.
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

/// Medians of the judged pairs while all the others run as well. They are used to judge, not kept.
fn measure_concurrently(
    session: &mut Session<'_>,
    pairs: &Pairs,
    all: &[(usize, usize)],
    judged: &[(usize, usize)],
) -> Result<Vec<f64>, MachineError> {
    let answers = ask(session, pairs, all)?;
    Ok(judged.iter().map(|&pair| least(&answers, pair)).collect())
}

/// Measures again, alone, a random sample of what was skipped, or was measured in parallel.
fn verify(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    chance: &mut ChaCha8Rng,
) -> Result<(), MachineError> {
    let mut to_verify: Vec<(usize, usize)> = tournament(pairs.len())
        .into_iter()
        .filter(|&(a, b)| !pairs.is_measured(a, b) && pairs.latency.at(a, b).is_finite())
        .collect();
    if to_verify.is_empty() && session.effort.parallel_pairs > 1 {
        to_verify = tournament(pairs.len());
    }
    to_verify.shuffle(chance);
    to_verify.truncate(sample_size(to_verify.len()));
    for (a, b) in to_verify {
        if session.time_left().is_zero() {
            break;
        }
        let measured = pairs.latency.at(a, b);
        let answers = ask(session, pairs, &[(a, b)])?;
        let found = least(&answers, (a, b));
        if !found.is_finite() {
            continue;
        }
        session.effort.pairs_verified += 1;
        if found > DISAGREES * measured || measured > DISAGREES * found {
            session.effort.pairs_disagreed += 1;
        }
        pairs.note_all(&answers);
    }
    Ok(())
}

fn sample_size(to_verify: usize) -> usize {
    let share = whole_usize((VERIFIED_SHARE * to_verify as f64).floor());
    share.clamp(VERIFIED.0, VERIFIED.1).min(to_verify)
}
