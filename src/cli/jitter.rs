//! `bench jitter`.

use std::path::Path;

use super::Exit;
use super::args::{Format, Global, JitterArgs};
use super::ending::keep_and_show;
use super::machine::open_machine;
use super::opening::open_store;
use super::plan::new_id_and_start;
use super::terminal::Terminal;
use super::values::parse_cpus;
use pinwise_machine::Isolation;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::{random_seed, read_interrupts, read_isolation};
use pinwise_record::JitterRecord;
use pinwise_study::jitter::JitterPlan;

pub(super) fn run_jitter(
    global: &Global,
    args: &JitterArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut machine = open_machine(
        global,
        args.seed.unwrap_or_else(random_seed),
        CycleCounting::IfCheap,
    )?;
    let (mut topology, _) = machine.topology()?;
    let plan = JitterPlan {
        cpus: parse_cpus(args.cpus.as_deref(), &topology)?,
        time: args.time,
        threshold: args.threshold,
        isolation: match machine.is_simulated() {
            true => Isolation::default(),
            false => read_isolation(Path::new("/")),
        },
    };
    if !machine.is_simulated() {
        read_interrupts(&mut topology);
    }
    let store = open_store(global)?;
    let (id, started) = new_id_and_start();
    let mut record = pinwise_study::jitter::run(&plan, machine.as_mut(), &topology)?;
    (record.id, record.started) = (id, started);
    if record.interrupted {
        terminal.warn("interrupted: partial results are kept");
    }
    let exit = match record.interrupted {
        true => Exit::Interrupted,
        false => Exit::Done,
    };
    keep_and_show(store, &record, terminal, || show(&record, terminal), exit)
}

/// Prints jitter, new or stored.
pub(super) fn show(record: &JitterRecord, terminal: &Terminal) -> anyhow::Result<()> {
    match terminal.format() {
        Format::Csv => terminal.print_data(&pinwise_report::list_jitter_rows(record).csv()?),
        _ => terminal.show(record, pinwise_report::render_jitter),
    }
}
