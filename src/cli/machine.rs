//! The machine that a command works on.

use anyhow::Context;
use pinwise_machine::Machine;
use pinwise_machine::linux::{CycleCounting, Ledger, LinuxMachine, Pins};
use pinwise_sim::SimulatedMachine;
use pinwise_workload::Metric;

use super::args::Global;
use super::plan;
use super::values::MachineSpec;

/// Hardware counters are always read if the metric is one.
pub(super) fn cycle_counting(metric: &str) -> CycleCounting {
    match metric.parse::<Metric>() {
        Ok(metric) if metric.needs_counter() => CycleCounting::Always,
        _ => CycleCounting::IfCheap,
    }
}

/// Opens the machine to work on. `seed` drives a simulated one.
pub(super) fn open_machine(
    global: &Global,
    seed: u64,
    cycles: CycleCounting,
) -> anyhow::Result<Box<dyn Machine>> {
    match &global.machine {
        MachineSpec::Local => Ok(Box::new(LinuxMachine::open(cycles)?)),
        MachineSpec::Simulated(description) => {
            simulated_machine(description, seed).context("--machine")
        }
    }
}

/// This host, with access to the masks of running programs and to interrupts, both of which it
/// restores.
pub(super) fn live_host(
    global: &Global,
    what: &str,
    irqs: &[String],
) -> anyhow::Result<(Pins, LinuxMachine)> {
    if !global.machine.is_local() {
        anyhow::bail!(
            "{what} places what runs on this host; it needs --machine local, not {}",
            global.machine
        );
    }
    // The guardian is started before this process becomes the parent of orphans.
    let ledger = match plan::interrupt_ledger(irqs, &global.machine)? {
        Some(ledger) => ledger,
        None => Ledger::open(plan::own_options()?)
            .context("starting the guardian that gives masks back")?,
    };
    Ok((
        Pins::new(ledger),
        LinuxMachine::open(CycleCounting::IfCheap)?,
    ))
}

/// A machine of a description, or of a file that holds one.
pub(super) fn simulated_machine(description: &str, seed: u64) -> anyhow::Result<Box<dyn Machine>> {
    Ok(Box::new(SimulatedMachine::open(description, seed)?))
}
