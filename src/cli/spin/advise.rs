//! `spin advise`: suggests spin settings for known runtimes.

use std::time::Duration;

use anyhow::{Context, bail};

use super::predict::count_cpus;
use super::processor;
use crate::cli::Exit;
use crate::cli::args::{Global, SpinAdviseArgs};
use crate::cli::ending::keep_and_show;
use crate::cli::machine::open_machine;
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::random_seed;
use pinwise_study::spin::advise::AdvicePlan;

/// Time to measure wake-ups, and again context switches.
const MEASURING_TIME: Duration = Duration::from_millis(500);

pub(super) fn advise(
    global: &Global,
    args: &SpinAdviseArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let given_processor = processor::find_processor(&args.processor)?;
    let is_other = given_processor.is_some();
    let mut machine = open_machine(
        global,
        args.seed.unwrap_or_else(random_seed),
        CycleCounting::IfCheap,
    )?;
    let processor = match given_processor {
        Some(processor) => processor,
        None => processor::measure_this_machine(machine.as_mut(), args.processor.ghz)?,
    };
    let cpus = match args.cpu_count {
        Some(0) => bail!("--cpu-count 0: a machine has at least 1 CPU"),
        Some(cpus) => cpus,
        None => count_cpus(machine.as_mut())?.first().copied().unwrap_or(1),
    };
    let plan = AdvicePlan {
        processor,
        cpus,
        time: MEASURING_TIME,
        is_other,
    };
    let store = open_store(global)?;
    let mut record = pinwise_study::spin::advise::run(&plan, machine.as_mut())?
        .context("neither wake-ups nor context switches could be measured here, so there is nothing to compare spinning with")?;
    (record.id, record.started) = new_id_and_start();
    let show = || terminal.show(&record, pinwise_report::render_spin_advice);
    keep_and_show(store, &record, terminal, show, Exit::Done)
}
