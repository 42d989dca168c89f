//! Measures on this machine what each tier costs the traced threads.
//!
//! Two threads pass a byte back and forth on one CPU that does nothing but switch: the worst case
//! to trace. Rounds with and without a tier take turns in random order; the result is the median,
//! over turns, of the difference in the pair's CPU time, with an interval from order statistics. It
//! says nothing about a program that switches seldom, and leaves out the collecting thread's own
//! time.

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
/// Each round trip has two switches.
const SWITCHES: f64 = 2.0 * ROUND_TRIPS as f64;
/// The minimum of turns for a 95 % interval of the median.
const FEWEST_TURNS: usize = 6;
/// More would add nothing.
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
        .filter(|&&tier| open_for_us(tier).is_some())
        .map(|&tier| Turns::new(tier))
        .collect();
    let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut chance = ChaCha8Rng::seed_from_u64(sys::random_u64());
    let pair = Pair::start().map_err(system)?;
    let patience = Patience {
        deadline,
        is_interrupted,
    };
    pair.round(None, &patience)?;
    let end = sys::monotonic() + time * count;
    for turn in 0..MAX_TURNS {
        let now = sys::monotonic();
        if now >= deadline || turn >= FEWEST_TURNS && now >= end {
            break;
        }
        turns.shuffle(&mut chance);
        for turns in &mut turns {
            turns.take_one(&pair, chance.random(), &patience)?;
        }
    }
    turns.sort_by_key(|turns| tiers.iter().position(|&tier| tier == turns.tier));
    Ok(turns.iter().filter_map(Turns::judge).collect())
}

/// Limits on waiting for rounds.
struct Patience<'a> {
    deadline: Duration,
    is_interrupted: &'a dyn Fn() -> bool,
}

fn system(error: io::Error) -> MachineError {
    MachineError::System {
        action: "starting a pair of threads to measure what tracing costs".to_owned(),
        reason: error.to_string(),
    }
}

/// Opens a tier that sees this process.
fn open_for_us(tier: Tier) -> Option<Box<dyn Source>> {
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

    /// One round with the tier and one without it. There is no turn if a tier is refused meanwhile
    /// or a round takes too long.
    fn take_one(
        &mut self,
        pair: &Pair,
        with_it_first: bool,
        patience: &Patience<'_>,
    ) -> Result<(), MachineError> {
        let mut without = None;
        if !with_it_first {
            without = pair.round(None, patience)?;
        }
        let Some(mut source) = open_for_us(self.tier) else {
            return Ok(());
        };
        let with = pair.round(Some(&mut *source), patience)?;
        source.finish(&mut Vec::new());
        drop(source);
        let without = match without {
            Some(without) => Some(without),
            None => pair.round(None, patience)?,
        };
        if let Some((with, without)) = with.zip(without) {
            self.with.push(with);
            self.without.push(without);
        }
        Ok(())
    }

    fn judge(&self) -> Option<TierCost> {
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
    orders: Option<Sender<()>>,
    /// CPU time that both used in a round; `None` if it ended early.
    results: Receiver<io::Result<Option<Duration>>>,
    /// Should the round end?
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Orders of the first thread to the second.
const PASS: u8 = 1;
const REPORT: u8 = 2;

impl Pair {
    fn start() -> io::Result<Self> {
        let cpu = sys::affinity()?.iter().last().unwrap_or(0);
        let (ping_read, ping_write) = sys::pipe(0)?;
        let (pong_read, pong_write) = sys::pipe(0)?;
        let (orders, received) = channel::<()>();
        let (results_to, results) = channel();
        let used = Arc::new(AtomicU64::new(0));
        let used_ns = Arc::clone(&used);
        let is_over = Arc::new(AtomicBool::new(false));
        let is_round_over = Arc::clone(&is_over);
        let second = std::thread::Builder::new().name("second".to_owned());
        let second = second.spawn(move || {
            let (ping, pong) = (File::from(ping_read), File::from(pong_write));
            answer(cpu, ping, pong, &used_ns);
        })?;
        let first = std::thread::Builder::new().name("first".to_owned());
        let first = first.spawn(move || {
            let (mut ping, mut pong) = (File::from(ping_write), File::from(pong_read));
            let pinned = sys::set_affinity(&CpuSet::single(cpu));
            let mut failed = pinned.err();
            while received.recv().is_ok() {
                let result = match failed.take() {
                    Some(error) => Err(error),
                    None => play(&mut ping, &mut pong, &used, &is_round_over),
                };
                if results_to.send(result).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self {
            orders: Some(orders),
            results,
            is_over,
            threads: vec![first, second],
        })
    }

    /// One round while `source` records; CPU time per switch, ns. `None` if it took too long.
    fn round(
        &self,
        mut source: Option<&mut dyn Source>,
        patience: &Patience<'_>,
    ) -> Result<Option<f64>, MachineError> {
        let gone = || system(io::Error::other("a thread of the pair has ended"));
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        self.is_over.store(false, Ordering::Relaxed);
        let mut is_interrupted = false;
        orders.send(()).map_err(|_| gone())?;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let wake = source.as_ref().and_then(|source| source.wake());
            let wait = wake.map_or(ROUND, |at| at.saturating_sub(sys::monotonic()).min(ROUND));
            match self.results.recv_timeout(wait) {
                Ok(used) => {
                    if is_interrupted || (patience.is_interrupted)() {
                        return Err(MachineError::Interrupted);
                    }
                    let used = used.map_err(system)?;
                    return Ok(used.map(|used| nanoseconds(used) as f64 / SWITCHES));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            is_interrupted |= (patience.is_interrupted)();
            if is_interrupted || sys::monotonic() >= patience.deadline {
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
        // The first thread ends without orders, the second without the first.
        self.orders = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The first thread's round: returns what both used, unless told to end early.
fn play(
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

/// The second thread: returns every byte until the input ends.
fn answer(cpu: usize, mut ping: File, mut pong: File, used_ns: &AtomicU64) {
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
    fn polling_is_always_there_and_costs_about_nothing() {
        let cost = measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| false).unwrap();
        assert_eq!(cost.len(), 1);
        let cost = cost[0];
        assert!(cost.untraced_ns > 100.0, "{cost:?}");
        assert!(cost.low_ns <= cost.ns_per_switch && cost.ns_per_switch <= cost.high_ns);
        // The interval must be compatible with less than a whole switch.
        assert!(cost.low_ns < cost.untraced_ns, "{cost:?}");
    }

    #[test]
    fn unavailable_tiers_are_left_out_and_the_order_is_kept() {
        let tiers = [Tier::Bpf, Tier::Proc];
        let permitted = tiers.into_iter().filter(|&t| open_for_us(t).is_some());
        let permitted: Vec<Tier> = permitted.collect();
        let cost = measure(&tiers, Duration::ZERO, Duration::MAX, &|| false).unwrap();
        let measured: Vec<Tier> = cost.iter().map(|cost| cost.tier).collect();
        assert_eq!(measured, permitted);
    }

    #[test]
    fn an_interrupt_ends_it() {
        let ended = measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| true);
        assert!(matches!(ended, Err(MachineError::Interrupted)));
    }

    #[test]
    fn the_deadline_ends_it_within_a_round() {
        let ((ping_read, ping_write), (pong_read, pong_write)) =
            (sys::pipe(0).unwrap(), sys::pipe(0).unwrap());
        let cpu = sys::affinity().unwrap().first().unwrap();
        let second = std::thread::spawn(move || {
            answer(cpu, ping_read.into(), pong_write.into(), &AtomicU64::new(0));
        });
        let (mut ping, mut pong) = (ping_write.into(), pong_read.into());
        let used = AtomicU64::new(0);
        let ended = play(&mut ping, &mut pong, &used, &AtomicBool::new(true));
        assert_eq!(ended.unwrap(), None);
        drop(ping);
        second.join().unwrap();
        let cost = measure(&[Tier::Proc], Duration::ZERO, Duration::ZERO, &|| false);
        assert!(cost.unwrap().is_empty());
    }

    #[test]
    fn the_mask_is_left_as_it_was() {
        let before = sys::affinity().unwrap();
        measure(&[Tier::Proc], Duration::ZERO, Duration::MAX, &|| false).unwrap();
        assert_eq!(sys::affinity().unwrap(), before);
    }
}
