//! The ledger for arms that change the host, or have cgroups of their own.

use anyhow::{Context, bail};

use super::{groups, interrupts, what_if};
use crate::cli::args::CompareArgs;
use crate::cli::values::MachineSpec;
use pinwise_machine::linux::{Ledger, LedgerOptions};

/// The ledger for what arms change, opened before the machine is; `None` if they change nothing.
pub(in crate::cli) fn ledger(
    args: &CompareArgs,
    machine: &MachineSpec,
) -> anyhow::Result<Option<Ledger>> {
    let of_host = match args.what_if.real {
        true => Some(what_if::ledger(
            &args.what_if,
            machine,
            args.trace,
            options()?,
        )?),
        false => interrupt_ledger(&args.interrupts.irqs, machine)?,
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
        return Ok(of_host);
    }
    if !is_here {
        bail!(
            "--limit, --exclusive and --isolate make cgroups of this host: omit them with --machine {machine}"
        );
    }
    let mut ledger = match of_host {
        Some(ledger) => ledger,
        // Interrupts are the host's.
        None if !args.groups.isolate.is_empty() => {
            interrupts::check_tuners("--isolate")?;
            Ledger::open(options()?).context("--isolate")?
        }
        None => Ledger::open(own_options()?).context("--limit, --exclusive")?,
    };
    groups::check(&args.groups, &mut ledger)?;
    Ok(Some(ledger))
}

/// The ledger for `--irq`; `None` if it is not given.
pub(in crate::cli) fn interrupt_ledger(
    irqs: &[String],
    machine: &MachineSpec,
) -> anyhow::Result<Option<Ledger>> {
    match interrupts::settings(irqs)?.as_slice() {
        [] => Ok(None),
        settings => interrupts::ledger(settings, machine, options()?).map(Some),
    }
}

/// How a ledger is opened that changes the whole host.
fn options() -> anyhow::Result<LedgerOptions> {
    Ok(LedgerOptions {
        is_for_host: true,
        ..own_options()?
    })
}

/// How one is opened that changes what runs on it.
pub(in crate::cli) fn own_options() -> anyhow::Result<LedgerOptions> {
    Ok(LedgerOptions {
        fault: fault()?,
        ..LedgerOptions::default()
    })
}

/// The point at which a test wants pinwise to be killed.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    let text = std::env::var("PINWISE_FAULT").ok();
    let parsed = text.map(|text| text.parse().map_err(anyhow::Error::msg));
    parsed.transpose().context("PINWISE_FAULT")
}

#[cfg(not(debug_assertions))]
fn fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    Ok(None)
}
