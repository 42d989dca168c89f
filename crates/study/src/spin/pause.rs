//! Measures the cost of PAUSE on every CPU, in rounds.
//!
//! On busy and on virtual machines the cost has levels that last for seconds (77 and 87 cycles were
//! seen on one), so that a single short measurement would give one of them by chance. So each CPU
//! is measured briefly in many rounds; the estimate is the median of the rounds, and two levels are
//! reported if they are found.

use std::time::Duration;

use super::chips;
use crate::probe::modes::find_two_modes;
use pinwise_machine::{Batches, Hint, MachineError, Probe, Prober};
use pinwise_record::{
    CpuPauseRecord, CycleMethod, Header, HintCostRecord, HostRecord, LevelRecord, Modes,
    PauseCheckRecord, SpinPauseRecord, TooLongRecord,
};
use pinwise_spin::prediction::{Limits, PauseCost, Prediction};
use pinwise_spin::table::algorithms;
use pinwise_stats::describe::{median, median_interval, quantile};
use pinwise_topology::CpuSet;

/// Batches per round; with a PAUSE of 30 ns they take about 2 ms.
const BATCHES: usize = 25;
/// A probe gives up its round after this time: its CPU is busy.
const MAX_PROBE_TIME: Duration = Duration::from_millis(100);
/// Rounds that are measured even if the plan's time is over.
const MIN_ROUNDS: usize = 5;
/// Levels last for seconds: more rounds do not improve the estimate.
const MAX_ROUNDS: usize = 400;
/// Two levels of cycles differ at least by this factor. Batches of one level scatter by 0.1 to 1 %;
/// the levels seen differed by 5 and by 12 %.
const MIN_LEVEL_RATIO: f64 = 1.03;
/// The same for levels of times, which also vary with the clock frequency.
const MIN_TIME_LEVEL_RATIO: f64 = 1.25;
const CONFIDENCE: f64 = 0.95;

/// What to measure.
#[derive(Debug, Clone)]
pub struct PausePlan {
    /// CPUs to measure, one after the other.
    pub cpus: CpuSet,
    /// Time for all of them together.
    pub time: Duration,
    /// If given, known algorithms are checked against these limits.
    pub limits: Option<Limits>,
}

/// Measures PAUSE; the caller names and dates the record.
///
/// # Errors
/// [`MachineError`], see [`Prober::probe`].
pub fn run(plan: &PausePlan, machine: &mut dyn Prober) -> Result<SpinPauseRecord, MachineError> {
    let (topology, _) = machine.topology()?;
    let started = machine.now();
    let mut all: Vec<CpuRounds> = plan.cpus.iter().map(CpuRounds::new).collect();
    for round in 0..MAX_ROUNDS {
        let spent = machine.now().saturating_sub(started);
        if round >= MIN_ROUNDS && spent >= plan.time {
            break;
        }
        for cpu in &mut all {
            cpu.measure_round(machine)?;
        }
    }
    for cpu in &mut all {
        cpu.measure_other_hints(machine)?;
    }
    let counter_unavailable = all.iter().find_map(|cpu| {
        let is_counted = !cpu.counted.medians.is_empty();
        let reason = cpu.counted.unavailable.clone();
        reason.filter(|_| !is_counted)
    });
    let notes = list_notes(&all);
    let cpus: Vec<CpuPauseRecord> = all.into_iter().filter_map(CpuRounds::summarize).collect();
    let processors = topology.allowed.len() as u64;
    let chips = chips::compare_with_known(&topology, &cpus);
    Ok(SpinPauseRecord {
        header: Header {
            notes,
            ..Header::default()
        },
        host: HostRecord::new(machine.label(), machine.is_simulated(), &topology),
        instruction: hint_instruction(topology.identity.arch.as_deref()).to_owned(),
        check: plan
            .limits
            .map(|limits| check_algorithms(limits, &cpus, processors)),
        chips,
        cpus,
        counter_unavailable,
        spent_s: machine.now().saturating_sub(started).as_secs_f64(),
    })
}

/// Measures PAUSE quickly, on the first allowed CPU only; `None` if it cannot be measured.
///
/// # Errors
/// [`MachineError`], see [`Prober::probe`].
pub fn measure_quickly(machine: &mut dyn Prober) -> Result<Option<PauseCost>, MachineError> {
    const TIME: Duration = Duration::from_millis(300);
    let (topology, _) = machine.topology()?;
    let cpus = topology.allowed.first().map(CpuSet::single);
    let plan = PausePlan {
        cpus: cpus.unwrap_or_default(),
        time: TIME,
        limits: None,
    };
    let record = run(&plan, machine)?;
    Ok(record.cpus.first().map(|cpu| PauseCost {
        pause_ns: cpu.pause_ns,
        pause_cycles: cpu.pause_cycles,
        ghz: cpu.pause_cycles.map(|cycles| cycles / cpu.pause_ns),
    }))
}

/// The instruction that [`Probe::Pause`] executes on an architecture.
fn hint_instruction(arch: Option<&str>) -> &'static str {
    match arch {
        Some("aarch64" | "arm64") => "ISB",
        _ => "PAUSE",
    }
}

/// The results of one probe on one CPU.
#[derive(Debug, Default)]
struct Figures {
    /// The median of each round.
    medians: Vec<f64>,
    /// The values of all batches.
    all: Vec<f64>,
    /// Batches dropped because of a context switch.
    switched: usize,
    /// Batches dropped because the hypervisor took the CPU.
    stolen: usize,
    /// Why the machine cannot run the probe.
    unavailable: Option<String>,
}

impl Figures {
    fn add(&mut self, batches: Option<Batches>) {
        let Some(batches) = batches else { return };
        let finite: Vec<f64> = batches
            .values
            .into_iter()
            .filter(|v| v.is_finite() && *v > 0.0)
            .collect();
        if !finite.is_empty() {
            self.medians.push(quantile(&finite, 0.5));
            self.all.extend(finite);
        }
        self.switched += batches.switched;
        self.stolen += batches.stolen;
        self.unavailable = batches.unavailable.or(self.unavailable.take());
    }

    /// The median of the rounds.
    fn estimate(&self) -> Option<f64> {
        median(&self.medians)
    }

    /// The interval of the median, over rounds: batches of one round are not independent, as they
    /// share a level and a clock frequency.
    fn interval(&self) -> (Option<f64>, Option<f64>) {
        median_interval(&self.medians, CONFIDENCE).unzip()
    }
}

/// The rounds of one CPU.
struct CpuRounds {
    cpu: usize,
    /// PAUSE, ns.
    pause: Figures,
    /// PAUSE, cycles as measured by a chain of additions.
    cycles: Figures,
    /// PAUSE, cycles as counted by a hardware counter.
    counted: Figures,
    /// A cycle, ns.
    cycle: Figures,
    /// Other hints, ns.
    hints: Vec<(Hint, Figures)>,
}

impl CpuRounds {
    fn new(cpu: usize) -> Self {
        Self {
            cpu,
            pause: Figures::default(),
            cycles: Figures::default(),
            counted: Figures::default(),
            cycle: Figures::default(),
            hints: Vec::new(),
        }
    }

    fn measure_round(&mut self, machine: &mut dyn Prober) -> Result<(), MachineError> {
        let cpu = self.cpu;
        let mut measure = |probe: Probe| -> Result<Option<Batches>, MachineError> {
            let results = machine.probe(&[probe], BATCHES, MAX_PROBE_TIME)?;
            Ok(results.into_iter().next())
        };
        self.pause.add(measure(Probe::Pause { cpu })?);
        self.cycles.add(measure(Probe::PauseCycles { cpu })?);
        self.cycle.add(measure(Probe::Cycle { cpu })?);
        if self.counted.unavailable.is_none() {
            self.counted.add(measure(Probe::PauseCounted { cpu })?);
        }
        Ok(())
    }

    fn measure_other_hints(&mut self, machine: &mut dyn Prober) -> Result<(), MachineError> {
        for hint in Hint::ALL {
            let probe = Probe::Hint {
                cpu: self.cpu,
                hint,
            };
            let mut figures = Figures::default();
            for _ in 0..MIN_ROUNDS {
                let results =
                    machine.probe(std::slice::from_ref(&probe), BATCHES, MAX_PROBE_TIME)?;
                figures.add(results.into_iter().next());
                if figures.unavailable.is_some() {
                    break;
                }
            }
            self.hints.push((hint, figures));
        }
        Ok(())
    }

    /// Sums up the rounds; `None` if no batch of PAUSE was usable.
    fn summarize(self) -> Option<CpuPauseRecord> {
        let pause_ns = self.pause.estimate()?;
        let (chain, counted) = (self.cycles.estimate(), self.counted.estimate());
        let (method, figures) = if counted.is_some() {
            (CycleMethod::Counter, &self.counted)
        } else {
            (CycleMethod::Additions, &self.cycles)
        };
        let ghz = self.cycle.estimate().map(|cycle_ns| 1.0 / cycle_ns);
        let (pause_ns_low, pause_ns_high) = self.pause.interval();
        let (pause_cycles_low, pause_cycles_high) = figures.interval();
        let hint = |(hint, figures): &(Hint, Figures)| {
            figures.estimate().map(|ns| HintCostRecord {
                hint: hint.name().to_owned(),
                ns,
                cycles: ghz.map(|ghz| ns * ghz),
            })
        };
        Some(CpuPauseRecord {
            cpu: self.cpu,
            pause_ns,
            pause_ns_low,
            pause_ns_high,
            pause_cycles: figures.estimate(),
            pause_cycles_low,
            pause_cycles_high,
            method: figures.estimate().map(|_| method),
            chain_cycles: chain,
            counted_cycles: counted,
            disagreement_share: chain
                .zip(counted)
                .map(|(chain, counted)| (chain - counted).abs() / counted),
            ghz,
            levels: find_levels(&figures.all, &self.pause.all, ghz),
            hints: self.hints.iter().filter_map(hint).collect(),
            rounds: self.pause.medians.len(),
            batches: self.pause.all.len() + self.cycles.all.len() + self.counted.all.len(),
            switched: self.pause.switched + self.cycles.switched + self.counted.switched,
            stolen: self.pause.stolen + self.cycles.stolen + self.counted.stolen,
        })
    }
}

/// The two levels of PAUSE, or none. They are looked for in cycles and only then in times, which
/// also vary with the clock frequency.
fn find_levels(cycles: &[f64], ns: &[f64], ghz: Option<f64>) -> Vec<LevelRecord> {
    let list_both = |modes: Modes, level: &dyn Fn(f64) -> (f64, Option<f64>)| {
        let shares = [
            (modes.low_ns, modes.low_share),
            (modes.high_ns, 1.0 - modes.low_share),
        ];
        let record = |(centre, share)| {
            let (pause_ns, pause_cycles) = level(centre);
            LevelRecord {
                pause_ns,
                pause_cycles,
                share,
            }
        };
        shares.into_iter().map(record).collect()
    };
    match (ghz, find_cycle_levels(cycles)) {
        (Some(ghz), Some(modes)) => list_both(modes, &|cycles| (cycles / ghz, Some(cycles))),
        _ => find_two_modes(ns, MIN_TIME_LEVEL_RATIO).map_or_else(Vec::new, |modes| {
            list_both(modes, &|ns| (ns, ghz.map(|g| g * ns)))
        }),
    }
}

/// Two clusters; or one sharp level, and above it values that scatter. The latter happens while
/// another guest comes and goes on the core's other hardware thread.
fn find_cycle_levels(cycles: &[f64]) -> Option<Modes> {
    find_two_modes(cycles, MIN_LEVEL_RATIO).or_else(|| find_scattered_level(cycles))
}

/// A sharp level and the scattered values above it, as two levels.
fn find_scattered_level(cycles: &[f64]) -> Option<Modes> {
    /// The lower end of a sharp level: its 5th percentile is at most this factor above its 1st.
    const MAX_EDGE_RATIO: f64 = 1.002;
    /// All of a sharp level is at most this factor above its lower end.
    const MAX_WIDTH: f64 = 1.015;
    /// Each of the levels has at least this share of the values.
    const MIN_SHARE: f64 = 0.1;
    let edge = quantile(cycles, 0.05);
    if cycles.is_empty() || edge > MAX_EDGE_RATIO * quantile(cycles, 0.01) {
        return None;
    }
    let (level, above): (Vec<f64>, Vec<f64>) = cycles
        .iter()
        .partition(|cycles| **cycles <= MAX_WIDTH * edge);
    let share = level.len() as f64 / cycles.len() as f64;
    let (low_ns, high_ns) = (quantile(&level, 0.5), quantile(&above, 0.5));
    let is_apart = high_ns >= MIN_LEVEL_RATIO * low_ns;
    (is_apart && (MIN_SHARE..=1.0 - MIN_SHARE).contains(&share)).then_some(Modes {
        low_ns,
        high_ns,
        low_share: share,
    })
}

/// A note if a CPU's cycles scatter by more than [`MIN_LEVEL_RATIO`] without two clear levels.
fn note_unsteadiness(cpu: &CpuRounds) -> Option<String> {
    let figures = if cpu.counted.all.is_empty() {
        &cpu.cycles.all
    } else {
        &cpu.counted.all
    };
    if figures.is_empty() || find_cycle_levels(figures).is_some() {
        return None;
    }
    let (low, high) = (quantile(figures, 0.1), quantile(figures, 0.9));
    (high > MIN_LEVEL_RATIO * low).then(|| {
        format!(
            "CPU {}: cycles go from {low:.1} to {high:.1} (10th to 90th percentile) without two clear levels: unsteady.",
            cpu.cpu
        )
    })
}

fn list_notes(all: &[CpuRounds]) -> Vec<String> {
    let mut notes = Vec::new();
    for cpu in all {
        if cpu.pause.estimate().is_none() {
            let why = cpu.pause.unavailable.clone();
            let why = why.unwrap_or_else(|| {
                "no batch without a context switch or interruption; the CPU is too busy.".to_owned()
            });
            notes.push(format!("CPU {}: {why}", cpu.cpu));
        } else if cpu.cycles.estimate().is_none() && cpu.counted.estimate().is_none() {
            let why = cpu.cycles.unavailable.clone();
            let why = why.unwrap_or_else(|| "no undisturbed batch.".to_owned());
            notes.push(format!("CPU {}, cycles: {why}", cpu.cpu));
        } else {
            notes.extend(note_unsteadiness(cpu));
        }
    }
    notes
}

/// Compares every known algorithm with the limits, on the CPU with the slowest PAUSE.
fn check_algorithms(limits: Limits, cpus: &[CpuPauseRecord], processors: u64) -> PauseCheckRecord {
    let slowest = cpus.iter().map(|cpu| cpu.pause_ns).reduce(f64::max);
    let processor = PauseCost {
        pause_ns: slowest.unwrap_or(f64::NAN),
        pause_cycles: None,
        ghz: None,
    };
    let mut waits: Vec<Prediction> = algorithms()
        .map(|algorithm| Prediction::new(algorithm, &processor, processors))
        .filter(|prediction| limits.are_exceeded(prediction))
        .collect();
    let length = |wait: &Prediction| wait.longest_ns().unwrap_or(f64::MAX);
    waits.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let too_long = waits.iter().map(|wait| describe_excess(wait, &limits));
    let too_long: Vec<TooLongRecord> = too_long.collect();
    // A million times this many ns are as many ms.
    let million_ms = processor.pause_ns;
    let word = if processors == 1 {
        "processor"
    } else {
        "processors"
    };
    let measured = format!("1,000,000 PAUSEs in {million_ms:.1} ms, {processors} {word}");
    let sentence = match (slowest, too_long.len()) {
        (None, _) => "PAUSE could not be measured.".to_owned(),
        (_, 0) => format!("{measured}: no long-PAUSE problem."),
        (_, 1) => format!("{measured}: 1 known algorithm would wait too long."),
        (_, n) => format!("{measured}: {n} known algorithms would wait too long."),
    };
    PauseCheckRecord {
        limit_total_ms: limits.total_ns * 1e-6,
        limit_blind_gap_ms: limits.blind_gap_ns * 1e-6,
        million_ms,
        processors,
        is_fine: slowest.is_some() && too_long.is_empty(),
        too_long,
        sentence,
    }
}

/// By how much an algorithm's wait exceeds the limits.
fn describe_excess(wait: &Prediction, limits: &Limits) -> TooLongRecord {
    let ratio = |ns: Option<f64>, limit: f64| ns.map(|ns| ns / limit);
    let gap_ns = wait.blind_gap.map(|hints| hints.ns);
    let total_ratio = ratio(wait.longest_ns(), limits.total_ns);
    let blind_gap_ratio = ratio(gap_ns, limits.blind_gap_ns);
    let part = |what: &str, ns: Option<f64>, ratio: Option<f64>| {
        let ratio = ratio.filter(|ratio| *ratio >= 1.0)?;
        Some(format!(
            "{what} {:.1} ms ({ratio:.1} times the limit)",
            ns.unwrap_or(0.0) * 1e-6
        ))
    };
    let parts = [
        part("would spin", wait.longest_ns(), total_ratio),
        part("would not look for", gap_ns, blind_gap_ratio),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let ms = |ns: Option<f64>| ns.map(|ns| ns * 1e-6);
    TooLongRecord {
        algorithm: wait.algorithm.id.to_owned(),
        total_ms: ms(wait.longest_ns()),
        total_ratio,
        blind_gap_ms: ms(gap_ns),
        blind_gap_ratio,
        sentence: format!("{} {}", wait.algorithm.id, parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests;
