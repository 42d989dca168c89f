//! Opens the ledger for arms that change the host or have cgroups of their own.

use anyhow::{Context, bail};

use super::{groups, interrupts, what_if};
use crate::cli::args::CompareArgs;
use crate::cli::values::MachineSpec;
use pinwise_machine::linux::{Ledger, LedgerOptions};

/// Opens the ledger for what arms change, before the machine is open; `None` if they change
/// nothing.
pub(in crate::cli) fn open_ledger(
    args: &CompareArgs,
    machine: &MachineSpec,
) -> anyhow::Result<Option<Ledger>> {
    let host_ledger = match args.what_if.real {
        true => Some(what_if::open_ledger(
            &args.what_if,
            machine,
            args.trace,
            list_host_options()?,
        )?),
        false => open_interrupt_ledger(&args.interrupts.irqs, machine)?,
    };
    let is_here = machine.is_local();
    if !args.companions.companions.is_empty() && !is_here {
        bail!("--beside starts commands on this host: omit it with --machine {machine}");
    }
    if args.scheduling.are_given() && !is_here {
        bail!(
            "--policy and --nice are of this host's scheduler: omit them with --machine {machine}"
        );
    }
    if !args.groups.are_given() {
        return Ok(host_ledger);
    }
    if !is_here {
        bail!(
            "--limit, --exclusive and --isolate make cgroups of this host: omit them with --machine {machine}"
        );
    }
    let mut ledger = match host_ledger {
        Some(ledger) => ledger,
        // Isolation moves interrupts, which is a change of the host.
        None if !args.groups.isolate.is_empty() => {
            interrupts::check_tuners("--isolate")?;
            Ledger::open(list_host_options()?).context("--isolate")?
        }
        None => Ledger::open(list_own_options()?).context("--limit, --exclusive")?,
    };
    groups::check_groups(&args.groups, &mut ledger)?;
    Ok(Some(ledger))
}

/// Opens the ledger for `--irq`; `None` if it is not given.
pub(in crate::cli) fn open_interrupt_ledger(
    irqs: &[String],
    machine: &MachineSpec,
) -> anyhow::Result<Option<Ledger>> {
    match interrupts::parse_settings(irqs)?.as_slice() {
        [] => Ok(None),
        settings => interrupts::open_ledger(settings, machine, list_host_options()?).map(Some),
    }
}

/// The options of a ledger for changes of the whole host.
fn list_host_options() -> anyhow::Result<LedgerOptions> {
    Ok(LedgerOptions {
        is_for_host: true,
        ..list_own_options()?
    })
}

/// The options of a ledger for changes of single programs.
pub(in crate::cli) fn list_own_options() -> anyhow::Result<LedgerOptions> {
    Ok(LedgerOptions {
        fault: read_fault()?,
        ..LedgerOptions::default()
    })
}

/// The point at which pinwise is to kill itself, for tests.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn read_fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    let text = std::env::var("PINWISE_FAULT").ok();
    let parsed = text.map(|text| text.parse().map_err(anyhow::Error::msg));
    parsed.transpose().context("PINWISE_FAULT")
}

#[cfg(not(debug_assertions))]
fn read_fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    Ok(None)
}
