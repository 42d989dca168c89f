//! Sequential tests of pairs on recorded noise: how often equal arms are ever found to differ, and
//! whether a simulated effect is found.

use pinwise_machine::{CommandRunner, Request};
use pinwise_sim::SimulatedMachine;
use pinwise_stats::anytime::Sequence;
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, Workload};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::replay::read_series;
use crate::support::replay_count;

/// Recordings with an assumed standard deviation of a difference, from an idle machine to a busy
/// one.
const SERIES: [(&str, f64); 4] = [
    ("light_cpu.csv.xz", 0.03),
    ("medium_mem.csv.xz", 0.05),
    ("aa_bg.csv.xz", 0.1),
    ("aa_cpu1.csv.xz", 0.1),
];
const PAIRS: usize = 60;

/// Logarithmic differences of pairs in random order. The second arm takes `effect` times as long.
fn simulate_pairs(path: &str, effect: f64, seed: u64) -> Vec<f64> {
    let mut machine = SimulatedMachine::open(path, seed).expect("a description");
    let workload = Workload::new(Command::from_line("prog").expect("a command"));
    let cpus: CpuSet = "0-1".parse().expect("CPUs");
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut run = || {
        let request = Request::new(&workload, &cpus);
        let run = machine.run(&request).expect("a run");
        run.wall.as_secs_f64().ln()
    };
    (0..PAIRS)
        .map(|_| {
            let (first, second) = (run(), run());
            let is_first = chance.random::<bool>();
            let difference = first - second;
            let sign = if is_first { 1.0 } else { -1.0 };
            sign * difference + effect.ln()
        })
        .collect()
}

/// Share of experiments in which the interval excludes 0 at any look.
fn share_excluded(noise: &str, effect: f64, scale: f64, experiments: u64) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("machine.toml");
    let text = format!(
        "topology = \"core:2 pu:1\"\n[workload.default]\nbase_s = 0.05\n[noise]\n{}\n",
        read_series(noise)
    );
    std::fs::write(&path, text).expect("a writable folder");
    let path = path.to_str().expect("a UTF-8 path");
    let sequence = Sequence::new(0.05, scale, 30);
    let excluded = (0..experiments).filter(|&seed| {
        let differences = simulate_pairs(path, effect, seed);
        (1..=PAIRS).any(|n| sequence.evidence(&differences[..n], 0.0) >= 20.0)
    });
    excluded.count() as f64 / experiments as f64
}

#[test]
fn recorded_noise_is_not_taken_for_a_difference() {
    for (noise, scale) in SERIES {
        for scale in [scale, 0.2 * scale] {
            let experiments = replay_count(150);
            let share = share_excluded(noise, 1.0, scale, experiments as u64);
            let chance = 2.0 * (0.05 * 0.95 / experiments as f64).sqrt();
            assert!(share <= 0.05 + chance, "{noise}, {scale}: {share}");
        }
    }
}

#[test]
fn an_effect_of_a_tenth_is_found_on_recorded_noise() {
    for (noise, scale) in SERIES {
        let share = share_excluded(noise, 1.1, scale, replay_count(30) as u64);
        assert!(share >= 0.8, "{noise}: {share}");
    }
}
