//! Machines as they might have been recorded: with noise, with disturbed pairs,
//! with narrower and wider gaps between levels, and parts of them as guests see
//! them. A method that fits 55 recordings only does not fit these.

use pinwise_wiring::{PairMatrix, infer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::corpus::KnownMachine;
use super::draw_cpus;

/// Larger machines are judged as they were recorded, for time's sake.
const MAX_CPUS: usize = 256;
/// Draws of each kind of variation that has chance in it.
const DRAWS: u64 = 2;

/// One machine: as it was recorded first, then varied.
pub(super) struct Varied {
    pub(super) cases: Vec<KnownMachine>,
}

/// All machines with their variations.
pub(super) fn all(machines: &[KnownMachine]) -> Vec<Varied> {
    let varied = |known: &KnownMachine| Varied {
        cases: cases(known),
    };
    machines.iter().map(varied).collect()
}

fn cases(known: &KnownMachine) -> Vec<KnownMachine> {
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

/// With this many pairs measured while something else ran: 1.3 to 4 times the time.
fn disturb(known: &KnownMachine, share: f64, seed: u64) -> KnownMachine {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    change_figures(known, |ns| match random.random_bool(share) {
        true => ns * (1.3 + 2.7 * random.random::<f64>()),
        false => ns,
    })
}

/// With all ratios to the nearest pair raised to a power: narrower gaps below 1.
fn stretch(known: &KnownMachine, power: f64) -> KnownMachine {
    let all = pairs(&known.latency).filter(|ns| *ns > 0.0);
    let nearest = all.fold(f64::INFINITY, f64::min);
    change_figures(known, |ns| nearest * (ns / nearest).powf(power))
}

fn pairs(matrix: &PairMatrix) -> impl Iterator<Item = f64> {
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
