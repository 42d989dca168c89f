//! `search`: plans or resumes a search, runs it, stores and prints the record, chooses the exit
//! status.

mod joint;
mod plan;
mod threads;

use super::args::{Global, SearchArgs, SearchResultArgs};
use super::files::{NamedFile, write_file, write_json};
use super::machine::{cycle_counting, open_machine};
use super::opening::require_store;
use super::opening::{check_store, open_store};
use super::outputs::check_outputs;
use super::plan::seed_or_new;
use super::terminal::Terminal;
use super::watch::Watch;
use super::{Exit, export};
use anyhow::bail;
pub(super) use joint::run_round;
use pinwise_machine::{CommandRunner, Host, MachineError};

use pinwise_record::{AnyRecord, HostRecord, SearchAnswer, SearchRecord, Stopped};
use pinwise_study::StudyError;
use pinwise_study::is_interrupt;
use pinwise_study::search::SearchPlan;
pub(super) use plan::{find_planned_default_threads, rebuild_workload};
pub(super) use threads::too_many_threads_error;

pub(super) fn search(
    global: &Global,
    args: &SearchArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if let Some(file) = &args.joint {
        return joint::search(global, args, file, terminal);
    }
    check_outputs(
        global,
        &list_output_files(&args.results),
        &args.workload.inputs(),
    )?;
    check_store(global)?;
    let past = match &args.resume {
        Some(id) => {
            let stored = require_store(global)?.load(id)?;
            match stored.record()? {
                AnyRecord::Comparison(past) if past.joint.is_some() => {
                    return joint::resume(global, args, &past, terminal);
                }
                _ => Some(stored.decode::<SearchRecord>()?),
            }
        }
        None => None,
    };
    let seed = past
        .as_ref()
        .map_or_else(|| seed_or_new(args.seed), |past| past.seed);
    let metric = past.as_ref().map(|past| past.metric.name.as_str());
    let metric = metric.or(args.metric.as_deref()).unwrap_or_default();
    let cycles = cycle_counting(metric);
    let mut machine = open_machine(global, seed, cycles)?;
    let plan = match &past {
        Some(past) => check_machine(&past.id, &past.host, machine.as_mut())
            .and_then(|()| plan::resume(args, past, machine.as_mut())),
        None => plan::new_plan(args, &global.argv, seed, machine.as_mut(), terminal),
    };
    let plan = match plan {
        Err(error) if is_interrupt(&error) => return Ok(report_interrupt(terminal)),
        plan => plan?,
    };
    let store = open_store(global)?;
    let watch = Watch::new(store, terminal);
    let outcome = run_and_store(&plan, past.as_ref(), machine.as_mut(), watch)?;
    // First end what still runs.
    drop(machine);
    let Some((record, is_stored)) = outcome else {
        return Ok(report_interrupt(terminal));
    };
    show_and_export(&record, &args.results, terminal)?;
    let exit = exit_status(&record, args.require_verdict);
    if can_continue(&record) && is_stored && global.store.as_deref() != Some("none") {
        terminal.note(&suggest_resume(&record));
    }
    Ok(match exit {
        Exit::Done | Exit::Undecided if !is_stored => Exit::Error,
        exit => exit,
    })
}

/// Loads a stored search by its id.
pub(super) fn load_search(global: &Global, id: &str) -> anyhow::Result<SearchRecord> {
    let stored = require_store(global)?.load(id)?;
    Ok(stored.decode()?)
}

fn report_interrupt(terminal: &Terminal) -> Exit {
    terminal.warn("interrupted before the first block; nothing was stored");
    Exit::Interrupted
}

/// A search resumes only on its own machine: elsewhere its runs mean nothing.
fn check_machine(id: &str, past: &HostRecord, machine: &mut dyn Host) -> anyhow::Result<()> {
    let (topology, _) = machine.topology()?;
    let here = HostRecord::new(machine.label(), machine.is_simulated(), &topology);
    if here.machine_spec != past.machine_spec {
        bail!(
            "--resume {id}: that search ran on {0}; give --machine {0}",
            past.machine_spec
        );
    }
    if !here.simulated && here.machine.hostname != past.machine.hostname {
        bail!(
            "--resume {id}: that search ran on {}, this is {}",
            past.name(),
            here.name()
        );
    }
    if here.shape_hash != past.shape_hash || here.allowed != past.allowed {
        bail!(
            "--resume {id}: that search had CPUs {} of a machine of shape {}, now there are {} of {}; start a new one",
            past.allowed,
            past.shape_hash,
            here.allowed,
            here.shape_hash
        );
    }
    Ok(())
}

/// Runs the plan and stores its record; the flag says whether that worked. `None` if the user
/// interrupted it before the first counted run.
fn run_and_store(
    plan: &SearchPlan,
    past: Option<&SearchRecord>,
    machine: &mut dyn CommandRunner,
    mut watch: Watch<'_>,
) -> anyhow::Result<Option<(SearchRecord, bool)>> {
    match pinwise_study::search::run(plan, past, machine, &mut watch) {
        Ok(record) if record.runs.is_empty() && record.stopped == Some(Stopped::Interrupted) => {
            watch.abandon();
            Ok(None)
        }
        Ok(record) => {
            let is_stored = watch.close(|store| store.keep(&record));
            Ok(Some((record, is_stored)))
        }
        Err(StudyError::Machine(MachineError::Interrupted)) => {
            watch.abandon();
            Ok(None)
        }
        Err(error) => {
            watch.fail(&error.to_string());
            Err(error.into())
        }
    }
}

fn list_output_files(args: &SearchResultArgs) -> Vec<NamedFile<'_>> {
    let files = [
        ("--export-json", &args.export_json),
        ("--export-csv", &args.export_csv),
        ("--report", &args.report),
    ];
    let files = files.into_iter();
    files
        .filter_map(|(option, path)| {
            let path = path.as_deref()?;
            Some(NamedFile { option, path })
        })
        .collect()
}

/// Prints the record and writes the requested files.
fn show_and_export(
    record: &SearchRecord,
    results: &SearchResultArgs,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if record.stopped == Some(Stopped::Failed) {
        terminal.error(&record.verdict.sentence);
    }
    if terminal.is_json() {
        terminal.print_json(record)?;
    } else if record.stopped != Some(Stopped::Failed) {
        terminal.print(&pinwise_report::render_search(record, terminal.palette()))?;
    }
    write_json(results.export_json.as_deref(), record)?;
    if let Some(path) = &results.export_csv {
        write_file(path, &pinwise_report::list_search_rows(record).csv()?)?;
    }
    export::write_page(record, results.report.as_deref())
}

fn exit_status(record: &SearchRecord, requires_verdict: bool) -> Exit {
    let has_failed = record.arms.iter().any(|arm| arm.invalid.is_some());
    match record.stopped {
        Some(Stopped::Interrupted) => Exit::Interrupted,
        Some(Stopped::Failed) => Exit::Error,
        _ if has_failed => Exit::Error,
        _ if requires_verdict && record.verdict.kind == SearchAnswer::Undecided => Exit::Undecided,
        _ => Exit::Done,
    }
}

/// Would more time or runs help?
fn can_continue(record: &SearchRecord) -> bool {
    let is_open = record.verdict.kind == SearchAnswer::Undecided;
    match record.stopped {
        Some(Stopped::Interrupted) => true,
        Some(Stopped::Budget | Stopped::Runs) => is_open,
        _ => false,
    }
}

fn suggest_resume(record: &SearchRecord) -> String {
    let id = &record.id;
    let machine = match record.host.machine_spec.as_str() {
        "local" => String::new(),
        spec => format!(" --machine {}", pinwise_format::shell::word(spec)),
    };
    let budget = match record.stopped {
        Some(Stopped::Budget) => " --budget TIME",
        Some(Stopped::Runs) => " --max-runs N",
        _ => "",
    };
    format!("Continue with: pinwise search{machine} --resume {id}{budget}")
}
