//! How often the inference finds the wiring of real machines, from recorded
//! latency matrices whose truth is known; beside it what complete linkage with
//! one gap ratio finds.
//!
//! `PINWISE_CORPUS` names the folder of recordings; without it there is nothing to
//! measure.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark may fail by panicking"
)]

#[path = "../../tests/it/wiring/corpus.rs"]
mod corpus;
mod reliability;
mod validation;
mod variations;

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use corpus::{Groups, KnownMachine, Score, list_levels, read_machines};
use pinwise_wiring::{Evidence, LevelKind, PairMatrix, infer};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::table::Table;

/// Seeds of simulated contention columns and of added noise.
const SEEDS: u64 = 5;
/// The baseline's gap: the best of 1.25, 1.35 and 1.5 on all matrices known.
const BASELINE_GAP: f64 = 1.35;
/// CPU counts of guests.
const GUESTS: [usize; 4] = [4, 8, 16, 32];
/// Guests of each size per machine.
const DRAWN: usize = 8;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let Some(folder) = std::env::var_os("PINWISE_CORPUS") else {
        println!("Not measured: `PINWISE_CORPUS`, the folder of recorded matrices, is not set.");
        return Ok(());
    };
    let machines = read_machines(Path::new(&folder));
    let mut table = Table::new(
        "wiring",
        "method | SMT | LLC or cluster | package or die | flat kept | spurious levels | all exact",
    );
    let baseline = judge_answers(&machines, |known| link_completely(&known.latency));
    table.add_row(format_row(
        "complete linkage, gap 1.35 (any kind)",
        &baseline,
        true,
    ));
    let alone = judge_answers(&machines, |known| list_levels(&infer(&known.to_evidence())));
    table.add_row(format_row("pinwise, latency alone", &alone, false));
    table.add_row(format_row("the same, under any kind", &alone, true));
    let contention = judge_repeated_answers(&machines, |known, seed| {
        list_levels(&infer(&known.add_contention(seed)))
    });
    table.add_row(format_row(
        "pinwise, simulated contention",
        &contention,
        false,
    ));
    for sd in [0.03, 0.05] {
        let noisy = judge_repeated_answers(&machines, |known, seed| {
            list_levels(&infer(&known.add_noise(sd, seed).add_contention(seed)))
        });
        let name = format!("the same, {:.0} % noise on every latency", 100.0 * sd);
        table.add_row(format_row(&name, &noisy, false));
    }
    table.publish()?;
    publish_guests(&machines)?;
    let varied = variations::vary_machines(&machines);
    validation::publish(&varied)?;
    reliability::publish(&varied)?;
    print_mistakes("latency alone", &alone);
    print_mistakes("simulated contention", &contention);
    print_speed();
    Ok(())
}

fn judge_answers(
    machines: &[KnownMachine],
    answer: impl Fn(&KnownMachine) -> Vec<(LevelKind, Groups)>,
) -> Score {
    let mut score = Score::default();
    for known in machines {
        score.add(known, &answer(known));
    }
    score
}

fn judge_repeated_answers(
    machines: &[KnownMachine],
    answer: impl Fn(&KnownMachine, u64) -> Vec<(LevelKind, Groups)>,
) -> Score {
    let mut score = Score::default();
    for seed in 0..SEEDS {
        for known in machines {
            score.add(known, &answer(known, seed));
        }
    }
    score
}

fn format_row(name: &str, score: &Score, is_any_kind: bool) -> String {
    let which = usize::from(is_any_kind);
    let level = |place: usize| {
        let counts = score.levels[place];
        format!("{}/{}", counts[which], counts[2])
    };
    let exact = if is_any_kind {
        score.exact
    } else {
        score.perfect
    };
    format!(
        "{name} | {} | {} | {} | {}/{} | {} | {exact}/{}",
        level(0),
        level(1),
        level(2),
        score.flat[0],
        score.flat[1],
        score.spurious,
        score.machines
    )
}

/// Parts of machines, as guests see them.
fn publish_guests(machines: &[KnownMachine]) -> Result<()> {
    let mut table = Table::new(
        "wiring-guests",
        "CPUs of a guest | random, baseline | random | with contention | \
         whole cores, baseline | whole cores | with contention",
    );
    for size in GUESTS {
        let mut cells = vec![size.to_string()];
        for is_dense in [false, true] {
            let mut random = ChaCha8Rng::seed_from_u64(size as u64);
            let mut scores = [Score::default(), Score::default(), Score::default()];
            for known in machines.iter().filter(|known| known.latency.len() > size) {
                for seed in 0..DRAWN {
                    let guest = known.restrict_to(&draw_cpus(known, size, is_dense, &mut random));
                    scores[0].add(&guest, &link_completely(&guest.latency));
                    scores[1].add(&guest, &list_levels(&infer(&guest.to_evidence())));
                    let evidence = guest.add_contention(seed as u64);
                    scores[2].add(&guest, &list_levels(&infer(&evidence)));
                }
            }
            for score in scores {
                let share = 100.0 * score.exact as f64 / score.machines as f64;
                cells.push(format!("{share:.0} %"));
            }
        }
        table.add_row(cells.join(" | "));
    }
    table.publish()
}

/// CPUs of a guest: any, or whole cores.
fn draw_cpus(
    known: &KnownMachine,
    size: usize,
    is_dense: bool,
    random: &mut ChaCha8Rng,
) -> Vec<usize> {
    let mut all: Vec<usize> = (0..known.latency.len()).collect();
    all.shuffle(random);
    let mut cpus: Vec<usize> = Vec::new();
    for cpu in all {
        let core = known
            .smt
            .iter()
            .find(|group| is_dense && group.contains(cpu));
        let together = core.map_or_else(|| vec![cpu], |core| core.iter().collect());
        if !cpus.contains(&cpu) {
            cpus.extend(together);
        }
    }
    cpus.truncate(size);
    cpus.sort_unstable();
    cpus
}

fn print_mistakes(name: &str, score: &Score) {
    println!("\nMistakes ({name}):\n");
    let mut all = score.mistakes.clone();
    all.sort();
    all.dedup();
    for mistake in &all {
        println!("- {mistake}");
    }
    if all.is_empty() {
        println!("- none");
    }
}

/// The time for the largest possible matrix.
fn print_speed() {
    let n = PairMatrix::MAX_CPUS;
    let mut latency = PairMatrix::new((0..n).collect());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for a in 0..n {
        for b in 0..a {
            let base = match () {
                () if a % 512 == b % 512 => 8.0,
                () if a % 512 / 8 == b % 512 / 8 => 25.0,
                () if a % 512 / 256 == b % 512 / 256 => 110.0,
                () => 200.0,
            };
            latency.set(a, b, base * (0.05 * corpus::draw_normal(&mut random)).exp());
        }
    }
    let start = Instant::now();
    let wiring = infer(&Evidence {
        latency_ns: latency,
        contention: None,
    });
    println!(
        "\n1,024 simulated CPUs: {} levels in {:.2} s.",
        wiring.levels.len(),
        start.elapsed().as_secs_f64()
    );
}

/// Complete linkage; a level wherever the next merge is 1.35 times as far.
fn link_completely(latency: &PairMatrix) -> Vec<(LevelKind, Groups)> {
    let n = latency.len();
    let mut clusters: Vec<Vec<usize>> = (0..n).map(|cpu| vec![cpu]).collect();
    let mut distance: Vec<Vec<f64>> = (0..n)
        .map(|a| (0..n).map(|b| latency.at(a, b)).collect())
        .collect();
    let mut levels = Vec::new();
    let mut height = 0.0;
    while clusters.len() > 1 {
        let (a, b) = find_nearest(&distance);
        if height > 0.0 && distance[a][b] >= BASELINE_GAP * height {
            let mut groups: Groups = clusters
                .iter()
                .filter(|cluster| cluster.len() > 1)
                .map(|cluster| cluster.iter().map(|&row| latency.cpus()[row]).collect())
                .collect();
            groups.sort_by_key(pinwise_topology::CpuSet::first);
            levels.push((LevelKind::Other, groups));
        }
        height = f64::max(height, distance[a][b]);
        let gone = clusters.remove(b);
        clusters[a].extend(gone);
        let row = distance.remove(b);
        for (other, line) in distance.iter_mut().enumerate() {
            let far = row[if other < b { other } else { other + 1 }];
            line.remove(b);
            if other != a {
                line[a] = line[a].max(far);
            }
        }
        let column: Vec<f64> = distance.iter().map(|line| line[a]).collect();
        distance[a] = column;
    }
    levels
}

fn find_nearest(distance: &[Vec<f64>]) -> (usize, usize) {
    let mut best = (0, 1);
    for a in 0..distance.len() {
        for b in a + 1..distance.len() {
            if distance[a][b] < distance[best.0][best.1] {
                best = (a, b);
            }
        }
    }
    best
}
