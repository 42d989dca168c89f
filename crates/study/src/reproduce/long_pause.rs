//! The 2018 report: PAUSE became 14 times slower, and spin-waiting with it.

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

/// Clock of the report's machines. Only this clock with these cycles per PAUSE gives both totals of the
/// report (docs/machine.md).
const CLOCK_GHZ: f64 = 2.8;
/// Cycles of a PAUSE before Skylake-X.
const SHORT_CYCLES: f64 = 11.0;
/// Cycles of a PAUSE on Skylake-X.
const LONG_CYCLES: f64 = 140.0;
/// Assumed time of a wake-up by the kernel: the report says 1 µs or more for a switch; a futex takes
/// some tens of µs.
const WAKE: Duration = Duration::from_micros(50);
/// Tolerance of the report's "about" for a time.
const ABOUT_S: f64 = 0.25;

/// Runs the experiments on the report's machine, simulated.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let mut machine = simulation.machine("long-pause", MACHINE)?;
    let pause_ns = measure_pause_ns(&mut machine)?.unwrap_or(f64::NAN);
    Ok(vec![
        experiment(
            "pause-latency",
            "what one PAUSE costs",
            list_latencies(pause_ns),
        ),
        experiment(
            "spin-budget",
            "how long a waiter spins before it parks",
            judge_spin_budgets(),
        ),
        experiment(
            "blind-gap",
            "how late a waiter can see that it may go on",
            judge_blind_gap(pause_ns),
        ),
        experiment(
            "producer-consumer",
            "100 items of 10 ms, the sender coming every 1 to 9 ms",
            judge_old_spin(pause_ns),
        ),
        experiment(
            "spin-old-new",
            "the old spin and the repaired one, same machine",
            judge_new_spin(pause_ns),
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

/// Measures the cost of a PAUSE, ns; `None` if that is not possible.
fn measure_pause_ns(machine: &mut dyn Prober) -> Result<Option<f64>> {
    let (topology, _) = machine.topology()?;
    let Some(cpu) = topology.allowed.first() else {
        return Ok(None);
    };
    let limit = Duration::from_millis(500);
    Ok(probe_median(machine, Probe::Pause { cpu }, 100, limit)?)
}

fn list_latencies(pause_ns: f64) -> Vec<ClaimRecord> {
    let measured = ClaimResult::exactly(pause_ns);
    let sets = "sets the machine's PAUSE";
    let table = "a measured latency: nothing predicts it";
    let mut claims = vec![
        Claim::new("one PAUSE on Skylake-X", "43 ns")
            .with_figure(43.0, "ns")
            .show_given(Some(measured), sets),
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

fn judge_spin_budgets() -> Vec<ClaimRecord> {
    let total_ms = |cpus: u64, cycles: f64| {
        ClaimResult::exactly(total_pauses(cpus) as f64 * cycles / CLOCK_GHZ * 1e-6)
    };
    let holder_ms = 1000.0;
    let spun_in_full = (1..48)
        .filter(|_| total_ms(48, LONG_CYCLES).value < holder_ms)
        .count();
    vec![
        Claim::new("24 cores before Skylake", "19 ms")
            .with_figure(19.0, "ms")
            .judge_figure(total_ms(24, SHORT_CYCLES), Judge::Within(0.5)),
        Claim::new("48 CPUs of Skylake-X", "246 ms")
            .with_figure(246.0, "ms")
            .judge_figure(total_ms(48, LONG_CYCLES), Judge::Within(0.5)),
        Claim::new("47 of 48 waiters spin it in full", "47").judge_condition(
            spun_in_full.to_string(),
            spun_in_full == 47,
            "all but the holder, where the lock is held for longer than that",
        ),
    ]
}

fn judge_blind_gap(pause_ns: f64) -> Vec<ClaimRecord> {
    let gap = wait_of(&NETFX_AWARELOCK, 24, pause_ns).blind_gap(pause_ns);
    let ms = gap.as_secs_f64() * 1e3;
    vec![
        Claim::vague(
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

/// Intervals of the sender, ms.
const DELAYS: std::ops::RangeInclusive<u64> = 1..=9;

fn producer_consumer(delay_ms: u64) -> ProducerConsumer {
    ProducerConsumer {
        items: 100,
        hold: Duration::from_millis(10),
        delay: Duration::from_millis(delay_ms),
    }
}

/// The wait of an algorithm; those used here are all known.
fn wait_of(algorithm: &Algorithm, cpus: u64, hint_ns: f64) -> Wait {
    let setting = Setting { cpus, hint_ns };
    let wait = algorithm.compute_wait(&setting, Case::Typical);
    wait.unwrap_or(Wait {
        runs: Vec::new(),
        is_endless: false,
    })
}

/// PAUSEs of the report's algorithm before it parks.
fn total_pauses(cpus: u64) -> u64 {
    let wait = wait_of(&NETFX_AWARELOCK, cpus, 1.0);
    wait.total_hints().unwrap_or_default()
}

fn judge_old_spin(pause_ns: f64) -> Vec<ClaimRecord> {
    let wait = wait_of(&NETFX_AWARELOCK, 24, pause_ns);
    DELAYS
        .map(|delay| {
            let time = producer_consumer(delay).total_when_spinning(&wait, pause_ns);
            let result = ClaimResult::exactly(time.as_secs_f64());
            let claim = format!("a sender every {delay} ms");
            if delay <= 2 {
                let claim = Claim::new(claim, "2.2 to 2.3 s").with_figure(2.25, "s");
                claim.judge_figure(result, Judge::Within(0.1))
            } else {
                let claim = Claim::vague(claim, "about 1.2 s").with_figure(1.2, "s");
                claim.judge_figure(result, Judge::Within(ABOUT_S))
            }
        })
        .collect()
}

fn judge_new_spin(pause_ns: f64) -> Vec<ClaimRecord> {
    let spin = wait_of(&CORECLR_MONITOR, 24, pause_ns).total(pause_ns);
    let spin = spin.unwrap_or_default();
    DELAYS
        .map(|delay| {
            let time = producer_consumer(delay).total_when_parking(spin, WAKE);
            Claim::vague(
                format!("repaired, a sender every {delay} ms"),
                "about 1.2 s",
            )
            .with_figure(1.2, "s")
            .judge_figure(
                ClaimResult::exactly(time.as_secs_f64()),
                Judge::Within(ABOUT_S),
            )
        })
        .collect()
}

/// Runs the experiments on this machine: how long the same loops take with its PAUSE.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let pause = measure_pause_ns(here.machine())?;
    let cpus = here.topology().allowed.len() as u64;
    let latency = Claim::new("1,000,000 PAUSEs on a healthy machine", "3.599 ms");
    let latency = match pause {
        // 5 ns allowed: the next class of processors has PAUSEs of 30 ns and more.
        Some(ns) => latency
            .with_figure(3.599, "ms")
            .judge_figure(ClaimResult::exactly(ns), Judge::Within(5.0)),
        None => latency.mark_untestable("PAUSE cannot be measured here"),
    };
    let show_here = |claim: &str, reported: &str, pauses: u64| {
        let claim = Claim::new(claim, reported);
        match pause {
            None => claim.mark_untestable("PAUSE cannot be measured here"),
            Some(ns) => claim.mark_untestable(&format!(
                "another processor: with this one's PAUSE of {ns:.1} ns and {cpus} CPUs it is {:.2} ms",
                pauses as f64 * ns * 1e-6
            )),
        }
    };
    let total = total_pauses(cpus);
    let gap = wait_of(&NETFX_AWARELOCK, cpus, 1.0).blind_gap_hints();
    let mut experiments = vec![
        experiment("pause-latency", "what one PAUSE costs", vec![latency]),
        experiment(
            "spin-budget",
            "how long a waiter spins before it parks",
            vec![show_here("48 CPUs of Skylake-X", "246 ms", total)],
        ),
        experiment(
            "blind-gap",
            "how late a waiter can see that it may go on",
            vec![show_here("worst late wake-up", "several ms", gap)],
        ),
    ];
    experiments.extend(replayed::run_experiments(here.machine())?);
    let program = here.program.clone();
    experiments.extend(profiled::run_experiments(here.machine(), &program)?);
    Ok(experiments)
}
