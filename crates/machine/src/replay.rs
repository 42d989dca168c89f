//! The interface for replays: threads wait for a lock as an algorithm with given parameters would.
//!
//! Hints may be given the length that they have on another processor. `study::spin` compares the
//! measured lateness with [`pinwise_spin::lateness`].

use std::time::Duration;

use super::{Host, MachineError};
pub use pinwise_kernels::loops::wait::HintKind;
use pinwise_spin::algorithm::Wait;
use pinwise_spin::lateness::{Ending, ReleaseNotice};

/// A machine that executes ways of waiting for a lock.
pub trait Replayer: Host {
    /// Hands a lock from one thread to a waiting one repeatedly, until enough items were undisturbed
    /// or the time is used up.
    ///
    /// # Errors
    /// [`MachineError`] if threads cannot be started or placed, real-time priority is not
    /// permitted, hints cannot have that length here, or the user interrupts.
    fn hand_over(&mut self, order: &HandOverOrder<'_>) -> Result<HandOverResult, MachineError>;

    /// Lets threads contend for a lock.
    ///
    /// # Errors
    /// As [`Replayer::hand_over`], or if the machine is simulated.
    fn contend(&mut self, order: &ContendOrder<'_>) -> Result<ContentionResult, MachineError>;
}

/// How a waiter waits.
#[derive(Debug, Clone, Copy)]
pub struct Waiter<'a> {
    /// Its hints and polls.
    pub wait: &'a Wait,
    /// What follows the hints.
    pub ending: Ending,
    /// Wanted length of a hint, ns; `None`: the length that it has on this machine.
    pub hint_ns: Option<f64>,
}

/// The request to hand over a lock: for each item one thread holds it and another comes for it.
#[derive(Debug, Clone, Copy)]
pub struct HandOverOrder<'a> {
    /// How the lock is waited for.
    pub waiter: Waiter<'a>,
    /// Where the holder runs.
    pub holder_cpu: usize,
    /// Where the waiter runs: another CPU.
    pub waiter_cpu: usize,
    /// How long the lock is held for an item.
    pub hold: Duration,
    /// From the start of holding until the waiter comes.
    pub delay: Duration,
    /// Number of undisturbed items to collect.
    pub items: usize,
    /// The longest time to spend.
    pub limit: Duration,
    /// Run at real-time priority, so that other programs disturb less.
    pub is_realtime: bool,
}

/// An undisturbed item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandOver {
    /// From the holder taking the lock until the waiter has it, ns.
    pub item_ns: f64,
    /// From the release until the waiter has it, ns.
    pub late_ns: f64,
    /// How the waiter noticed the release.
    pub seen: ReleaseNotice,
    /// Number of executed hints.
    pub hints: u64,
    /// CPU time of its wait, ns.
    pub cpu_ns: f64,
}

/// The hints of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HintSummary {
    /// How they are made.
    pub kind: HintKind,
    /// Median length of a hint right before the waits, ns, including interrupts.
    pub before_ns: f64,
    /// Median length that a hint really had, ns: in the waits themselves, or right after them if
    /// they are too short to measure.
    pub achieved_ns: f64,
}

/// The result of handing over.
#[derive(Debug, Clone, PartialEq)]
pub struct HandOverResult {
    /// Undisturbed items, in order.
    pub items: Vec<HandOver>,
    /// Items left out because the waiter was preempted.
    pub switched: usize,
    /// Items left out because something else took time from a thread: the hypervisor, an interrupt,
    /// a late release or arrival.
    pub stopped: usize,
    /// Its hints; `None` if no item was begun.
    pub hint: Option<HintSummary>,
    /// Duration of a `sched_yield` on the waiter's CPU, ns, if the algorithm yields after its
    /// hints.
    pub yield_ns: Option<f64>,
}

/// The request to let threads take a lock repeatedly.
#[derive(Debug, Clone)]
pub struct ContendOrder<'a> {
    /// How the lock is waited for.
    pub waiter: Waiter<'a>,
    /// Where each thread runs; several may share a CPU.
    pub cpus: Vec<usize>,
    /// Core cycles of work under the lock, up to 512.
    pub section_cycles: u32,
    /// Time for the contention.
    pub time: Duration,
}

/// What a contending thread did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Contender {
    /// How often it had the lock.
    pub operations: u64,
    /// CPU time, ns.
    pub cpu_ns: f64,
    /// Number of executed hints.
    pub hints: u64,
    /// Times it was parked.
    pub parks: u64,
    /// The longest wait for the lock, ns.
    pub longest_ns: f64,
}

/// The result of contending.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentionResult {
    /// All threads.
    pub threads: Vec<Contender>,
    /// From the start of all until the last one ended, ns.
    pub elapsed_ns: f64,
    /// Their hints.
    pub hint: HintSummary,
}
