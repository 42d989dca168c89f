//! `spin advise`.

use std::time::Duration;

use anyhow::{Context, bail};

use super::predict::own_cpus;
use super::processor;
use crate::cli::args::{Global, SpinAdviseArgs};
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, open_machine};
use pinwise_machine::linux::random_seed;
use pinwise_study::spin::advise::{self as advising, AdvicePlan};

/// For wake-ups and switches, each.
const TIME: Duration = Duration::from_millis(500);

pub(super) fn advise(
    global: &Global,
    args: &SpinAdviseArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let named = processor::named(&args.processor)?;
    let is_other = named.is_some();
    let mut machine = open_machine(global, args.seed.unwrap_or_else(random_seed), false)?;
    let processor = match named {
        Some(processor) => processor,
        None => processor::here(machine.as_mut(), args.processor.ghz)?,
    };
    let cpus = match args.cpus {
        Some(0) => bail!("--cpus 0: a machine has 1 CPU at least"),
        Some(cpus) => cpus,
        None => own_cpus(machine.as_mut())?.first().copied().unwrap_or(1),
    };
    let plan = AdvicePlan {
        processor,
        cpus,
        time: TIME,
        is_other,
    };
    let record = advising::run(&plan, machine.as_mut())?
        .context("neither wake-ups nor switches could be measured here: there is nothing to hold spinning against")?;
    terminal.show(&record, pinwise_report::spin_advice)?;
    Ok(Exit::Done)
}
