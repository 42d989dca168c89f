//! The seam for replays: waiting for a lock for real, by the parameters of an
//! algorithm.
//!
//! A waiter's hints are executed by count and may have the length of another
//! processor's. What it ought to take is said elsewhere
//! ([`pinwise_spin::lateness`]): a machine only executes, and says what it had to
//! leave out.

use std::time::Duration;

use super::{Host, MachineError};
use pinwise_spin::algorithm::Wait;
use pinwise_spin::lateness::{Ending, Seen};

/// A machine that executes ways of waiting for a lock.
pub trait Replayer: Host {
    /// Hands a lock from a thread to one that waits for it, item after item,
    /// until this many went undisturbed or time is over.
    ///
    /// # Errors
    /// [`MachineError`] where threads cannot be started or placed, real-time
    /// priority is not permitted, hints cannot have that length here, or the
    /// user interrupts.
    fn hand_over(&mut self, order: &HandOverOrder<'_>) -> Result<HandedOver, MachineError>;

    /// Lets threads contend for a lock.
    ///
    /// # Errors
    /// As [`Replayer::hand_over`]; and where code is not executed (a simulated
    /// machine).
    fn contend(&mut self, order: &ContendOrder<'_>) -> Result<Contended, MachineError>;
}

/// How a waiter waits.
#[derive(Debug, Clone, Copy)]
pub struct Waiter<'a> {
    /// Its hints and looks.
    pub wait: &'a Wait,
    /// What follows.
    pub ending: Ending,
    /// What a hint takes, ns; `None`: what it takes here.
    pub hint_ns: Option<f64>,
}

/// One thread holds a lock, another comes for it, item after item.
#[derive(Debug, Clone, Copy)]
pub struct HandOverOrder<'a> {
    /// How the lock is waited for.
    pub waiter: Waiter<'a>,
    /// Where the holder runs.
    pub holder_cpu: usize,
    /// Where the waiter runs: another CPU.
    pub waiter_cpu: usize,
    /// How long the lock is held for an item, by the clock.
    pub hold: Duration,
    /// How long after that began the waiter comes, by the clock.
    pub delay: Duration,
    /// Good items wanted.
    pub items: usize,
    /// For how long at most.
    pub limit: Duration,
    /// At real-time priority, so that other programs disturb less.
    pub is_realtime: bool,
}

/// An item that went undisturbed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandOver {
    /// From the holder's taking the lock until the waiter has it, ns.
    pub item_ns: f64,
    /// From the release until the waiter has it, ns.
    pub late_ns: f64,
    /// How the waiter learnt of it.
    pub seen: Seen,
    /// Hints that it executed.
    pub hints: u64,
    /// CPU time of its wait, ns.
    pub cpu_ns: f64,
}

/// What a hint was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintMade {
    /// The processor's own.
    Own,
    /// The processor's own and additions.
    Stretched,
    /// Additions alone.
    Shortened,
}

/// The hints of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HintFound {
    /// What they were made of.
    pub made: HintMade,
    /// What one took right before the waits, ns, interrupts counted in.
    pub before_ns: f64,
    /// What one really took, ns: in the waits themselves, or where these are too
    /// short right after them.
    pub achieved_ns: f64,
}

/// What came of handing over.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedOver {
    /// Good items, in order.
    pub items: Vec<HandOver>,
    /// Items left out because the waiter was pushed off its CPU.
    pub switched: usize,
    /// Items left out because something else took time from a thread: the
    /// hypervisor, an interrupt, a release or a coming that was late.
    pub stopped: usize,
    /// Its hints; `None` where not even one item was begun.
    pub hint: Option<HintFound>,
    /// A `sched_yield` on the waiter's CPU, ns, where the waiter ends with them.
    pub yield_ns: Option<f64>,
}

/// Threads that take a lock again and again.
#[derive(Debug, Clone)]
pub struct ContendOrder<'a> {
    /// How the lock is waited for.
    pub waiter: Waiter<'a>,
    /// Where each thread runs; several may share a CPU.
    pub cpus: Vec<usize>,
    /// Core cycles of work under the lock, 512 at most.
    pub section_cycles: u32,
    /// For how long.
    pub time: Duration,
}

/// What a thread did that contended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Contender {
    /// Times it had the lock.
    pub operations: u64,
    /// CPU time, ns.
    pub cpu_ns: f64,
    /// Hints that it executed.
    pub hints: u64,
    /// Times it was parked.
    pub parks: u64,
    /// The longest it waited for the lock, ns.
    pub longest_ns: f64,
}

/// What came of contending.
#[derive(Debug, Clone, PartialEq)]
pub struct Contended {
    /// All threads.
    pub threads: Vec<Contender>,
    /// From the start of all until the last one ended, ns.
    pub elapsed_ns: f64,
    /// Their hints.
    pub hint: HintFound,
}
