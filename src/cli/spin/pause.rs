//! `spin pause`: measures the cost of PAUSE.

use std::time::Duration;

use anyhow::bail;

use crate::cli::Exit;
use crate::cli::args::{Global, SpinPauseArgs};
use crate::cli::ending::keep_and_show;
use crate::cli::machine::open_machine;
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use crate::cli::values::parse_cpus;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::random_seed;
use pinwise_record::SpinPauseRecord;
use pinwise_spin::prediction::Limits;
use pinwise_study::spin::pause::PausePlan;

/// Measuring time without `--for`. In a virtual machine the cost of PAUSE can change every few
/// seconds; two seconds see some of these changes.
const BASE_TIME: Duration = Duration::from_secs(2);
const TIME_PER_CPU: Duration = Duration::from_millis(100);

pub(super) fn pause(
    global: &Global,
    args: &SpinPauseArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut machine = open_machine(
        global,
        args.seed.unwrap_or_else(random_seed),
        CycleCounting::IfCheap,
    )?;
    let (topology, _) = machine.topology()?;
    let cpus = parse_cpus(args.cpus.as_deref(), &topology)?;
    let many = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let default_time = BASE_TIME.saturating_add(TIME_PER_CPU.saturating_mul(many));
    let plan = PausePlan {
        cpus,
        time: args.time.unwrap_or(default_time),
        limits: args.check.then_some(Limits {
            total_ns: args.max_total.as_secs_f64() * 1e9,
            blind_gap_ns: args.max_blind_gap.as_secs_f64() * 1e9,
        }),
    };
    let store = open_store(global)?;
    let mut record = pinwise_study::spin::pause::run(&plan, machine.as_mut())?;
    (record.id, record.started) = new_id_and_start();
    if record.cpus.is_empty() && record.check.is_none() {
        let why = record.notes.first().cloned().unwrap_or_default();
        bail!("PAUSE could not be measured: {why}");
    }
    let show = || match &record.check {
        Some(check) if !terminal.is_json() => terminal.print(&pinwise_report::render_spin_check(
            check,
            terminal.palette(),
        )),
        _ => show(&record, terminal),
    };
    let exit = match record.check.as_ref().is_none_or(|check| check.is_fine) {
        true => Exit::Done,
        false => Exit::GateFailed,
    };
    keep_and_show(store, &record, terminal, show, exit)
}

/// Prints a measurement, new or stored.
pub(in crate::cli) fn show(record: &SpinPauseRecord, terminal: &Terminal) -> anyhow::Result<()> {
    terminal.show(record, pinwise_report::render_spin_pause)
}
