//! The ledger for arms that change the whole host.

use super::{interrupts, what_if};
use crate::cli::args::CompareArgs;
use pinwise_machine::linux::{Ledger, LedgerOptions};

/// The ledger for what arms change of the whole host, opened before the machine
/// is; `None` where they change nothing.
pub(in crate::cli) fn ledger(args: &CompareArgs, machine: &str) -> anyhow::Result<Option<Ledger>> {
    if args.what_if.real {
        return what_if::ledger(&args.what_if, machine, args.trace, options()?).map(Some);
    }
    interrupt_ledger(&args.interrupts.irqs, machine)
}

/// The ledger for `--irq`; `None` where it is not given.
pub(in crate::cli) fn interrupt_ledger(
    irqs: &[String],
    machine: &str,
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

/// Where a test wants pinwise to be ended.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    let text = std::env::var("PINWISE_FAULT").ok();
    let parsed = text.map(|text| text.parse().map_err(anyhow::Error::msg));
    anyhow::Context::context(parsed.transpose(), "PINWISE_FAULT")
}

#[cfg(not(debug_assertions))]
fn fault() -> anyhow::Result<Option<pinwise_machine::linux::Fault>> {
    Ok(None)
}
