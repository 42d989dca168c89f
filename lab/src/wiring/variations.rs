//! Recorded machines with variations, which show whether a method fits more than 55 recordings:
//! added noise, disturbed pairs, narrower and wider gaps between levels, and parts of them as guests
//! see them.

use pinwise_wiring::{PairMatrix, infer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::corpus::KnownMachine;
use super::draw_cpus;

/// Larger machines are not varied, to save time.
const MAX_CPUS: usize = 256;
/// Draws of each random variation.
const DRAWS: u64 = 2;

/// One machine: first as recorded, then varied.
pub(super) struct Varied {
    pub(super) cases: Vec<KnownMachine>,
}

pub(super) fn vary_machines(machines: &[KnownMachine]) -> Vec<Varied> {
    let cases = machines.iter().map(vary);
    cases.map(|cases| Varied { cases }).collect()
}

fn vary(known: &KnownMachine) -> Vec<KnownMachine> {
    let mut cases = vec![known.clone()];
    if known.latency.len() > MAX_CPUS {
        return cases;
    }
    // On a coarse clock noise would come before the steps, not after.
    let notes = infer(&known.to_evidence()).notes;
    let is_coarse = notes.iter().any(|note| note.contains("coarse"));
    for seed in 0..DRAWS {
        if !is_coarse {
            cases.extend([0.03, 0.06].map(|sd| known.add_noise(sd, seed)));
        }
        cases.extend([0.01, 0.03].map(|share| disturb(known, share, seed)));
        for (size, is_dense) in [(8, false), (8, true), (16, false), (16, true), (32, true)] {
            let mut random = ChaCha8Rng::seed_from_u64(7 * seed + size as u64);
            if known.latency.len() > size {
                cases.push(known.restrict_to(&draw_cpus(known, size, is_dense, &mut random)));
            }
        }
    }
    cases.extend([0.85, 1.2].map(|power| stretch(known, power)));
    cases
}

/// Raises the latency of this share of pairs by a factor of 1.3 to 4.
fn disturb(known: &KnownMachine, share: f64, seed: u64) -> KnownMachine {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    change_figures(known, |ns| match random.random_bool(share) {
        true => ns * (1.3 + 2.7 * random.random::<f64>()),
        false => ns,
    })
}

/// Raises all ratios to the shortest latency to a power; below 1, gaps become narrower.
fn stretch(known: &KnownMachine, power: f64) -> KnownMachine {
    let all = list_latencies(&known.latency).filter(|ns| *ns > 0.0);
    let nearest = all.fold(f64::INFINITY, f64::min);
    change_figures(known, |ns| nearest * (ns / nearest).powf(power))
}

fn list_latencies(matrix: &PairMatrix) -> impl Iterator<Item = f64> {
    let n = matrix.len();
    (0..n).flat_map(move |i| (0..i).map(move |j| matrix.at(i, j)))
}

fn change_figures(known: &KnownMachine, mut change: impl FnMut(f64) -> f64) -> KnownMachine {
    let mut known = known.clone();
    for i in 0..known.latency.len() {
        for j in 0..i {
            let ns = known.latency.at(i, j);
            if ns.is_finite() {
                known.latency.set(i, j, change(ns));
            }
        }
    }
    known
}
