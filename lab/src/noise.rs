//! The parts of the noise of a pair of runs, and the effect of two ways around it: CPU time in
//! place of wall time, and both arms of a pair at once.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Setting;
use crate::process::{BUSY, Group, ResourceUse, measure};
use crate::rounds::median;
use crate::table::Table;

/// Pairs of each kind under each load.
const PAIRS: usize = 300;
/// Turns of the loops that are compared: 2 % apart.
const TURNS: [u32; 2] = [80_000, 81_600];
/// Other loads on the two CPUs that are used.
const LOADS: [(&str, &[&str]); 4] = [
    ("nothing else", &[]),
    ("one busy process", &[BUSY]),
    ("two busy processes", &[BUSY, BUSY]),
    ("bursts of two, 0.3 of 0.8 s", &[BURSTS, BURSTS]),
];
const BURSTS: &str = "while :; do timeout 0.3 sh -c 'while :; do :; done'; sleep 0.5; done";

pub(crate) fn run(_: &Setting) -> Result<()> {
    let mut table = Table::new(
        "noise",
        "other load | in turn, wall | in turn, CPU | at once, wall | at once, CPU | \
         CPU time needs | at once needs",
    );
    for (name, others) in LOADS {
        let others = others
            .iter()
            .map(|line| Group::start(Command::new("sh").args(["-c", line])));
        let others: Vec<Group> = others.collect::<Result<_>>()?;
        sleep(Duration::from_millis(300));
        table.add_row(format_row(name)?);
        drop(others);
    }
    table.publish()
}

/// `ln(ratio)` of pairs, and the time that they took.
#[derive(Default)]
struct Pairs {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    seconds: f64,
}

impl Pairs {
    fn add(&mut self, [a, b]: [ResourceUse; 2], is_at_once: bool) {
        let ratio =
            |of: fn(&ResourceUse) -> Duration| (of(&b).as_secs_f64() / of(&a).as_secs_f64()).ln();
        self.wall.push(ratio(|taken| taken.wall));
        self.cpu.push(ratio(|taken| taken.cpu));
        self.seconds += match is_at_once {
            true => a.wall.max(b.wall).as_secs_f64(),
            false => (a.wall + b.wall).as_secs_f64(),
        };
    }
}

fn format_row(name: &str) -> Result<String> {
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let (mut in_turn, mut at_once) = (Pairs::default(), Pairs::default());
    for _ in 0..PAIRS {
        let cpu = usize::from(chance.random::<bool>());
        let (a, b) = match chance.random::<bool>() {
            true => (run_loop(0, cpu)?, run_loop(1, cpu)?),
            false => {
                let second = run_loop(1, cpu)?;
                (run_loop(0, cpu)?, second)
            }
        };
        in_turn.add([a, b], false);
        let cpu = usize::from(chance.random::<bool>());
        let taken = std::thread::scope(|scope| {
            let other = scope.spawn(|| run_loop(1, 1 - cpu));
            let a = run_loop(0, cpu);
            Ok::<_, anyhow::Error>([a?, other.join().expect("the other of the pair")?])
        })?;
        at_once.add(taken, true);
    }
    let noises =
        [&in_turn.wall, &in_turn.cpu, &at_once.wall, &at_once.cpu].map(|d| estimate_noise(d));
    let [wall, cpu, both, _] = noises;
    let time = at_once.seconds / in_turn.seconds;
    Ok(format!(
        "{name} | {} | {} | {} | {} | {:.0} % | {:.1} ×",
        format_percent(noises[0]),
        format_percent(noises[1]),
        format_percent(noises[2]),
        format_percent(noises[3]),
        100.0 * (cpu / wall).powi(2),
        time * (both / wall).powi(2)
    ))
}

fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn run_loop(arm: usize, cpu: usize) -> Result<ResourceUse> {
    let turns = TURNS[arm];
    let line = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    measure(Command::new("taskset").args(["-c", &cpu.to_string(), "sh", "-c", &line]))
}

fn estimate_noise(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.48 * median(&distances)
}
