//! Measures how much CPU time each tier costs the traced threads on this machine.
//!
//! Two threads pass a byte back and forth on one CPU, so that each does little but switch: the
//! worst case for a tracer. A turn is a round with the tier and one without it, in random order.
//! The result is the median over turns of the difference in the pair's CPU time, with an interval
//! from order statistics. It says nothing about a program that switches seldom, and does not
//! include the CPU time of the collecting thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::sys;
use super::{Source, Target, nanoseconds, open};
use crate::{MachineError, TierCost};
use pinwise_sched::{Event, Tid, Tier};
use pinwise_stats::describe::{median_interval, quantile};
use pinwise_topology::CpuSet;

/// Round trips in a round: about 10 to 20 ms, long compared with the clock's resolution and short
/// compared with changes of the machine's speed.
const ROUND_TRIPS: u32 = 2000;
/// Switches in a round: two in each round trip.
const SWITCHES: f64 = 2.0 * ROUND_TRIPS as f64;
/// Fewest turns that give a 95 % interval of the median.
const MIN_TURNS: usize = 6;
/// Most turns of a tier: more would add little precision.
const MAX_TURNS: usize = 200;
/// Confidence of the interval.
const CONFIDENCE: f64 = 0.95;
/// Interval at which a source is drained, as in a trace.
const ROUND: Duration = Duration::from_millis(100);

/// Measures for about `time` per tier; leaves out tiers that are unavailable or not finished by
/// `deadline`.
///
/// On a busy machine a round may take a hundred times as long: the pair waits for the CPU
/// at each of its switches.
///
/// # Errors
/// [`MachineError`] if the pair cannot be started or `is_interrupted` says so.
pub(super) fn measure(
    tiers: &[Tier],
    time: Duration,
    deadline: Duration,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<TierCost>, MachineError> {
    let mut turns: Vec<Turns> = tiers
        .iter()
        .filter(|&&tier| open_for_own_process(tier).is_some())
        .map(|&tier| Turns::new(tier))
        .collect();
    let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(sys::random_u64());
    let pair = Pair::start().map_err(pair_error)?;
    let limits = RoundLimits {
        deadline,
        is_interrupted,
    };
    // Warms up; its result is discarded.
    pair.run_round(None, &limits)?;
    let end = sys::monotonic() + time * count;
    for turn in 0..MAX_TURNS {
        let now = sys::monotonic();
        if now >= deadline || turn >= MIN_TURNS && now >= end {
            break;
        }
        turns.shuffle(&mut rng);
        for turns in &mut turns {
            turns.measure_turn(&pair, rng.random(), &limits)?;
        }
    }
    turns.sort_by_key(|turns| tiers.iter().position(|&tier| tier == turns.tier));
    Ok(turns.iter().filter_map(Turns::tier_cost).collect())
}

/// What ends a round early.
struct RoundLimits<'a> {
    deadline: Duration,
    is_interrupted: &'a dyn Fn() -> bool,
}

fn pair_error(error: io::Error) -> MachineError {
    MachineError::System {
        action: "starting a pair of threads to measure what tracing costs".to_owned(),
        reason: error.to_string(),
    }
}

/// Opens a tier that traces this process.
fn open_for_own_process(tier: Tier) -> Option<Box<dyn Source>> {
    let own = Tid::try_from(std::process::id()).ok()?;
    open(tier, Target::Process(own)).ok()
}

/// CPU time of the pair per switch, ns, with a tier and without it.
#[derive(Debug)]
struct Turns {
    tier: Tier,
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Turns {
    fn new(tier: Tier) -> Self {
        Self {
            tier,
            with: Vec::new(),
            without: Vec::new(),
        }
    }

    /// Makes a turn: a round with the tier and one without it. It does not count if the tier is
    /// refused meanwhile or a round takes too long.
    fn measure_turn(
        &mut self,
        pair: &Pair,
        is_traced_first: bool,
        limits: &RoundLimits<'_>,
    ) -> Result<(), MachineError> {
        let mut without = None;
        if !is_traced_first {
            without = pair.run_round(None, limits)?;
        }
        let Some(mut source) = open_for_own_process(self.tier) else {
            return Ok(());
        };
        let with = pair.run_round(Some(&mut *source), limits)?;
        source.finish(&mut Vec::new());
        drop(source);
        let without = match without {
            Some(without) => Some(without),
            None => pair.run_round(None, limits)?,
        };
        if let Some((with, without)) = with.zip(without) {
            self.with.push(with);
            self.without.push(without);
        }
        Ok(())
    }

    /// The cost over all turns; `None` if there are too few for an interval.
    fn tier_cost(&self) -> Option<TierCost> {
        let pairs = self.with.iter().zip(&self.without);
        let differences: Vec<f64> = pairs.map(|(with, without)| with - without).collect();
        let (low_ns, high_ns) = median_interval(&differences, CONFIDENCE)?;
        Some(TierCost {
            tier: self.tier,
            ns_per_switch: quantile(&differences, 0.5),
            low_ns,
            high_ns,
            untraced_ns: quantile(&self.without, 0.5),
        })
    }
}

/// Two threads on one CPU.
struct Pair {
    /// Starts a round.
    starts: Option<Sender<()>>,
    /// CPU time that both used in a round; `None` if it ended early.
    results: Receiver<io::Result<Option<Duration>>>,
    /// Should the round end?
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The byte that the first thread sends if the second one shall only send it back.
const PASS: u8 = 1;
/// The byte that it sends if the second one shall first publish its CPU time.
const REPORT: u8 = 2;

impl Pair {
    fn start() -> io::Result<Self> {
        let cpu = sys::affinity()?.iter().last().unwrap_or(0);
        let (ping_read, ping_write) = sys::pipe(0)?;
        let (pong_read, pong_write) = sys::pipe(0)?;
        let (starts, to_start) = channel::<()>();
        let (send_result, results) = channel();
        let used = Arc::new(AtomicU64::new(0));
        let used_ns = Arc::clone(&used);
        let is_over = Arc::new(AtomicBool::new(false));
        let is_round_over = Arc::clone(&is_over);
        let second = std::thread::Builder::new().name("second".to_owned());
        let second = second.spawn(move || {
            let (ping, pong) = (File::from(ping_read), File::from(pong_write));
            run_second_thread(cpu, ping, pong, &used_ns);
        })?;
        let first = std::thread::Builder::new().name("first".to_owned());
        let first = first.spawn(move || {
            let (mut ping, mut pong) = (File::from(ping_write), File::from(pong_read));
            let pinned = sys::set_affinity(&CpuSet::single(cpu));
            let mut failed = pinned.err();
            while to_start.recv().is_ok() {
                let result = match failed.take() {
                    Some(error) => Err(error),
                    None => play_round(&mut ping, &mut pong, &used, &is_round_over),
                };
                if send_result.send(result).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self {
            starts: Some(starts),
            results,
            is_over,
            threads: vec![first, second],
        })
    }

    /// Runs one round while `source` records; returns the pair's CPU time per switch, ns. `None` if
    /// it took too long.
    fn run_round(
        &self,
        mut source: Option<&mut dyn Source>,
        limits: &RoundLimits<'_>,
    ) -> Result<Option<f64>, MachineError> {
        let gone = || pair_error(io::Error::other("a thread of the pair has ended"));
        let starts = self.starts.as_ref().ok_or_else(gone)?;
        self.is_over.store(false, Ordering::Relaxed);
        let mut is_interrupted = false;
        starts.send(()).map_err(|_| gone())?;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let wake = source.as_ref().and_then(|source| source.next_wake());
            let wait = wake.map_or(ROUND, |at| at.saturating_sub(sys::monotonic()).min(ROUND));
            match self.results.recv_timeout(wait) {
                Ok(used) => {
                    if is_interrupted || (limits.is_interrupted)() {
                        return Err(MachineError::Interrupted);
                    }
                    let used = used.map_err(pair_error)?;
                    return Ok(used.map(|used| nanoseconds(used) as f64 / SWITCHES));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            is_interrupted |= (limits.is_interrupted)();
            if is_interrupted || sys::monotonic() >= limits.deadline {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if let Some(source) = &mut source {
                source.drain(&mut events);
                events.clear();
            }
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Closing the channel ends the first thread, whose end closes the pipe of the second.
        self.starts = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Plays a round in the first thread; returns the CPU time that both threads used, or `None` if the
/// round was ended early.
fn play_round(
    ping: &mut File,
    pong: &mut File,
    used: &AtomicU64,
    is_over: &AtomicBool,
) -> io::Result<Option<Duration>> {
    let mut byte = [0];
    let mut pass = |message: u8| -> io::Result<()> {
        ping.write_all(&[message])?;
        pong.read_exact(&mut byte)
    };
    pass(REPORT)?;
    let other = used.load(Ordering::Acquire);
    let own = sys::thread_cpu_time();
    for _ in 0..ROUND_TRIPS {
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        pass(PASS)?;
    }
    let own = sys::thread_cpu_time().saturating_sub(own);
    pass(REPORT)?;
    let other = used.load(Ordering::Acquire).saturating_sub(other);
    Ok(Some(own + Duration::from_nanos(other)))
}

/// The second thread's main function: sends every byte back until the input ends.
fn run_second_thread(cpu: usize, mut ping: File, mut pong: File, used_ns: &AtomicU64) {
    if sys::set_affinity(&CpuSet::single(cpu)).is_err() {
        return;
    }
    let mut byte = [0];
    while ping.read_exact(&mut byte).is_ok() {
        if byte == [REPORT] {
            used_ns.store(nanoseconds(sys::thread_cpu_time()), Ordering::Release);
        }
        if pong.write_all(&byte).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_always_available_and_costs_almost_nothing() {
        let cost = measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| false).unwrap();
        assert_eq!(cost.len(), 1);
        let cost = cost[0];
        assert!(cost.untraced_ns > 100.0, "{cost:?}");
        assert!(cost.low_ns <= cost.ns_per_switch && cost.ns_per_switch <= cost.high_ns);
        // The interval must be compatible with less than a whole switch.
        assert!(cost.low_ns < cost.untraced_ns, "{cost:?}");
    }

    #[test]
    fn unavailable_tiers_are_left_out_and_the_others_keep_their_order() {
        let tiers = [Tier::Bpf, Tier::Proc];
        let permitted = tiers
            .into_iter()
            .filter(|&t| open_for_own_process(t).is_some());
        let permitted: Vec<Tier> = permitted.collect();
        let cost = measure(&tiers, Duration::ZERO, Duration::MAX, &|| false).unwrap();
        let measured: Vec<Tier> = cost.iter().map(|cost| cost.tier).collect();
        assert_eq!(measured, permitted);
    }

    #[test]
    fn an_interrupt_ends_the_measurement() {
        let ended = measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| true);
        assert!(matches!(ended, Err(MachineError::Interrupted)));
    }

    #[test]
    fn the_deadline_ends_the_measurement_within_a_round() {
        let ((ping_read, ping_write), (pong_read, pong_write)) =
            (sys::pipe(0).unwrap(), sys::pipe(0).unwrap());
        let cpu = sys::affinity().unwrap().first().unwrap();
        let second = std::thread::spawn(move || {
            run_second_thread(cpu, ping_read.into(), pong_write.into(), &AtomicU64::new(0));
        });
        let (mut ping, mut pong) = (ping_write.into(), pong_read.into());
        let used = AtomicU64::new(0);
        let ended = play_round(&mut ping, &mut pong, &used, &AtomicBool::new(true));
        assert_eq!(ended.unwrap(), None);
        drop(ping);
        second.join().unwrap();
        let cost = measure(&[Tier::Proc], Duration::ZERO, Duration::ZERO, &|| false);
        assert!(cost.unwrap().is_empty());
    }

    #[test]
    fn the_mask_of_the_thread_is_restored() {
        let before = sys::affinity().unwrap();
        measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| false).unwrap();
        assert_eq!(sys::affinity().unwrap(), before);
    }
}
