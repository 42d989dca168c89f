//! PAUSE became 14 times slower, and spinning with it (2018).

use std::time::Duration;

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, experiment};
use super::{Here, Simulation, profiled, replayed};
use crate::spin::probe_median;
use pinwise_machine::{Probe, Prober};
use pinwise_record::{ClaimRecord, ExperimentRecord};
use pinwise_spin::ProducerConsumer;
use pinwise_spin::algorithm::{Algorithm, Case, Setting, Wait};
use pinwise_spin::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

pub(super) const MACHINE: &str = include_str!("../../field-reports/long-pause.toml");

/// The one pair of latencies and clock that gives both totals of the report
/// (docs/machine.md): 11 and 140 cycles at 2.8 GHz.
const CLOCK_GHZ: f64 = 2.8;
const CYCLES: (f64, f64) = (11.0, 140.0);
/// A wake-up by the kernel: the report says about 1 µs or more for a switch; a
/// futex wakes in some tens.
const WAKE: Duration = Duration::from_micros(50);
/// The tolerance of the report's "about" for a time.
const ABOUT_S: f64 = 0.25;

/// On the report's machine.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let mut machine = simulation.machine("long-pause", MACHINE)?;
    let pause_ns = pause_ns(&mut machine)?.unwrap_or(f64::NAN);
    Ok(vec![
        experiment("pause-latency", "what one PAUSE costs", latencies(pause_ns)),
        experiment(
            "spin-budget",
            "how long a waiter spins before it parks",
            budgets(),
        ),
        experiment(
            "blind-gap",
            "how late a waiter can see that it may go on",
            gaps(pause_ns),
        ),
        experiment(
            "producer-consumer",
            "100 items of 10 ms, the sender coming every 1 to 9 ms",
            old_spin(pause_ns),
        ),
        experiment(
            "spin-old-new",
            "the old spin and the repaired one, same machine",
            new_spin(pause_ns),
        ),
        experiment(
            "profile-diff",
            "the slow run's profile less the fast one's",
            vec![
                Claim::new(
                    "the hot instruction is the one after PAUSE",
                    "AwareLock::Contention and others grew",
                )
                .show_given(None, "a simulated machine executes no instructions"),
            ],
        ),
    ])
}

/// Cost of PAUSE on a machine, by its probe.
fn pause_ns(machine: &mut dyn Prober) -> Result<Option<f64>> {
    let (topology, _) = machine.topology()?;
    let Some(cpu) = topology.allowed.first() else {
        return Ok(None);
    };
    let limit = Duration::from_millis(500);
    Ok(probe_median(machine, Probe::Pause { cpu }, 100, limit)?)
}

fn latencies(pause_ns: f64) -> Vec<ClaimRecord> {
    let found = ClaimResult::exactly(pause_ns);
    let sets = "sets the machine's PAUSE";
    let table = "a measured latency: nothing predicts it";
    let mut claims = vec![
        Claim::new("one PAUSE on Skylake-X", "43 ns")
            .figure(43.0, "ns")
            .show_given(Some(found), sets),
        Claim::new("1,000,000 PAUSEs on a healthy machine", "3.599 ms").show_given(None, table),
    ];
    let cycles = [
        ("Sandy Bridge", 11),
        ("Ivy Bridge", 10),
        ("Haswell", 9),
        ("Broadwell", 9),
        ("Skylake-X", 141),
    ];
    for (chip, cycles) in cycles {
        let claim = Claim::new(format!("one PAUSE on {chip}"), format!("{cycles} cycles"));
        claims.push(claim.show_given(None, table));
    }
    claims
}

fn budgets() -> Vec<ClaimRecord> {
    let total_ms = |cpus: u64, cycles: f64| {
        ClaimResult::exactly(total_pauses(cpus) as f64 * cycles / CLOCK_GHZ * 1e-6)
    };
    let holder_ms = 1000.0;
    let spun_in_full = (1..48)
        .filter(|_| total_ms(48, CYCLES.1).value < holder_ms)
        .count();
    vec![
        Claim::new("24 cores before Skylake", "19 ms")
            .figure(19.0, "ms")
            .judge_claim(total_ms(24, CYCLES.0), Judge::Within(0.5)),
        Claim::new("48 CPUs of Skylake-X", "246 ms")
            .figure(246.0, "ms")
            .judge_claim(total_ms(48, CYCLES.1), Judge::Within(0.5)),
        Claim::new("47 of 48 waiters spin it in full", "47").judge_condition(
            spun_in_full.to_string(),
            spun_in_full == 47,
            "all but the holder, where the lock is held for longer than that",
        ),
    ]
}

fn gaps(pause_ns: f64) -> Vec<ClaimRecord> {
    let gap = wait(&NETFX_AWARELOCK, 24, pause_ns).blind_gap(pause_ns);
    let ms = gap.as_secs_f64() * 1e3;
    vec![
        Claim::new(
            "worst late wake-up, from the last round's length",
            "several ms",
        )
        .judge_condition(
            format!("{ms:.1} ms"),
            ms > 2.0,
            "328,050 PAUSEs without a look",
        ),
    ]
}

const DELAYS: std::ops::RangeInclusive<u64> = 1..=9;

fn experiment_of(delay_ms: u64) -> ProducerConsumer {
    ProducerConsumer {
        items: 100,
        hold: Duration::from_millis(10),
        delay: Duration::from_millis(delay_ms),
    }
}

/// An algorithm's wait; all named here are known.
fn wait(algorithm: &Algorithm, cpus: u64, hint_ns: f64) -> Wait {
    let setting = Setting { cpus, hint_ns };
    let wait = algorithm.compute_wait(&setting, Case::Typical);
    wait.unwrap_or(Wait {
        runs: Vec::new(),
        is_endless: false,
    })
}

/// PAUSEs of the report's algorithm before it parks.
fn total_pauses(cpus: u64) -> u64 {
    let wait = wait(&NETFX_AWARELOCK, cpus, 1.0);
    wait.total_hints().unwrap_or_default()
}

fn old_spin(pause_ns: f64) -> Vec<ClaimRecord> {
    let wait = wait(&NETFX_AWARELOCK, 24, pause_ns);
    DELAYS
        .map(|delay| {
            let time = experiment_of(delay).total_when_spinning(&wait, pause_ns);
            let found = ClaimResult::exactly(time.as_secs_f64());
            let claim = format!("a sender every {delay} ms");
            if delay <= 2 {
                let claim = Claim::new(claim, "2.2 to 2.3 s").figure(2.25, "s");
                claim.judge_claim(found, Judge::Within(0.1))
            } else {
                let claim = Claim::new(claim, "about 1.2 s").figure(1.2, "s");
                claim.judge_claim(found, Judge::Within(ABOUT_S))
            }
        })
        .collect()
}

fn new_spin(pause_ns: f64) -> Vec<ClaimRecord> {
    let spin = wait(&CORECLR_MONITOR, 24, pause_ns).total(pause_ns);
    let spin = spin.unwrap_or_default();
    DELAYS
        .map(|delay| {
            let time = experiment_of(delay).total_when_parking(spin, WAKE);
            Claim::new(
                format!("repaired, a sender every {delay} ms"),
                "about 1.2 s",
            )
            .figure(1.2, "s")
            .judge_claim(
                ClaimResult::exactly(time.as_secs_f64()),
                Judge::Within(ABOUT_S),
            )
        })
        .collect()
}

/// On this machine: the duration of the same loops with its PAUSE.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let pause = pause_ns(here.machine())?;
    let cpus = here.topology().allowed.len() as u64;
    let latency = Claim::new("1,000,000 PAUSEs on a healthy machine", "3.599 ms");
    let latency = match pause {
        // There is a separate class in between: the long ones begin at about 30 ns.
        Some(ns) => latency
            .figure(3.599, "ms")
            .judge_claim(ClaimResult::exactly(ns), Judge::Within(5.0)),
        None => latency.not_here("PAUSE cannot be measured here"),
    };
    let budget = |claim: &str, reported: &str, pauses: u64| {
        let claim = Claim::new(claim, reported);
        match pause {
            None => claim.not_here("PAUSE cannot be measured here"),
            Some(ns) => claim.not_here(&format!(
                "another processor: with this one's PAUSE of {ns:.1} ns and {cpus} CPUs it is {:.2} ms",
                pauses as f64 * ns * 1e-6
            )),
        }
    };
    let total = total_pauses(cpus);
    let gap = wait(&NETFX_AWARELOCK, cpus, 1.0).blind_gap_hints();
    let mut experiments = vec![
        experiment("pause-latency", "what one PAUSE costs", vec![latency]),
        experiment(
            "spin-budget",
            "how long a waiter spins before it parks",
            vec![budget("48 CPUs of Skylake-X", "246 ms", total)],
        ),
        experiment(
            "blind-gap",
            "how late a waiter can see that it may go on",
            vec![budget("worst late wake-up", "several ms", gap)],
        ),
    ];
    experiments.extend(replayed::run_experiments(here.machine())?);
    let program = here.program.clone();
    experiments.extend(profiled::run_experiments(here.machine(), &program)?);
    Ok(experiments)
}
