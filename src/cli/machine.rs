//! The machine that a command works on.

use anyhow::Context;
use pinwise_machine::Machine;
use pinwise_machine::linux::{CycleCounting, Ledger, LinuxMachine, Pins};
use pinwise_sim::SimulatedMachine;
use pinwise_workload::Metric;

use super::args::Global;
use super::plan;
use super::values::MachineSpec;

/// Whether to read hardware counters: always if the metric is one.
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
            open_simulated_machine(description, seed).context("--machine")
        }
    }
}

/// Opens this host, with access to the masks of running programs and to interrupts; both are
/// restored at the end. `command` is for errors.
pub(super) fn open_live_host(
    global: &Global,
    command: &str,
    irqs: &[String],
) -> anyhow::Result<(Pins, LinuxMachine)> {
    if !global.machine.is_local() {
        anyhow::bail!(
            "{command} places what runs on this host; it needs --machine local, not {}",
            global.machine
        );
    }
    // Start the guardian before an open machine makes this process adopt orphans, and so the
    // guardian.
    let ledger = match plan::open_interrupt_ledger(irqs, &global.machine)? {
        Some(ledger) => ledger,
        None => Ledger::open(plan::list_own_options()?)
            .context("starting the guardian that gives masks back")?,
    };
    Ok((
        Pins::new(ledger),
        LinuxMachine::open(CycleCounting::IfCheap)?,
    ))
}

/// Opens the machine of a description, or of a file with one.
pub(super) fn open_simulated_machine(
    description: &str,
    seed: u64,
) -> anyhow::Result<Box<dyn Machine>> {
    Ok(Box::new(SimulatedMachine::open(description, seed)?))
}
