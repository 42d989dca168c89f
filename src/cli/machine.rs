//! The machine that a command works on.

use anyhow::Context;
use pinwise_machine::Machine;
use pinwise_machine::linux::{CycleCounting, Ledger, LinuxMachine, Pins};
use pinwise_sim::SimulatedMachine;

use super::args::Global;
use super::plan;

/// Cycles and instructions are always counted if they are the metric.
pub(super) fn cycle_counting(metric: &str) -> CycleCounting {
    match metric {
        "cycles" | "instructions" => CycleCounting::Always,
        _ => CycleCounting::IfCheap,
    }
}

/// Opens the machine to work on. `seed` drives a simulated one.
pub(super) fn open_machine(
    global: &Global,
    seed: u64,
    cycles: CycleCounting,
) -> anyhow::Result<Box<dyn Machine>> {
    if global.machine == "local" {
        return Ok(Box::new(LinuxMachine::open(cycles)?));
    }
    simulated_machine(require_simulated(global)?, seed).context("--machine")
}

/// This host, with access to the masks of running programs and to interrupts, both of which it
/// restores.
pub(super) fn live_host(
    global: &Global,
    what: &str,
    irqs: &[String],
) -> anyhow::Result<(Pins, LinuxMachine)> {
    if global.machine != "local" {
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

/// The text after `sim:`.
pub(super) fn require_simulated(global: &Global) -> anyhow::Result<&str> {
    global.machine.strip_prefix("sim:").with_context(|| {
        format!(
            "--machine '{}' is neither local nor sim:… (such as 'sim:core:4 pu:2' or sim:FILE.toml)",
            global.machine
        )
    })
}
