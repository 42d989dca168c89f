//! `search --joint`: finds where several programs should run together.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;

use super::super::args::{Cli, Command, Format, Global, RoundArgs, SearchArgs};
use super::super::compare::show_answer;
use super::super::files::write_file;
use super::super::input::read_text;
use super::super::machine::open_machine;
use super::super::opening::{check_store, open_store};
use super::super::outputs::check_outputs;
use super::super::surroundings::find_own_program;
use super::super::terminal::Terminal;
use super::super::watch::Watch;
use super::super::{Exit, export, plan};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{MachineError, linux};
use pinwise_record::{Comparison, HostRecord, JointProgramRecord, Stopped, VerdictKind};
use pinwise_study::StudyError;
use pinwise_study::joint::{self, JointSearch, PastRounds};
use pinwise_workload::joint::{JointProgram, MAX_FILE_BYTES, Round, parse};

/// Rounds without `--max-runs`, and pairs of confirming rounds without `--confirm`.
const DEFAULT_ROUNDS: usize = 80;
const DEFAULT_PAIRS: usize = 10;

pub(super) fn search(
    global: &Global,
    args: &SearchArgs,
    file: &Path,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!(
            "--joint runs real programs on this host: omit --machine {}",
            global.machine
        );
    }
    check_outputs(global, &super::list_output_files(&args.results), &[])?;
    check_store(global)?;
    let search = plan_search(global, args, file)?;
    run_and_report(&search, None, file, global, args, terminal)
}

/// Continues an interrupted search from the rounds of its record, which is not changed.
pub(super) fn resume(
    global: &Global,
    args: &SearchArgs,
    past: &Comparison,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let id = &past.id;
    if !matches!(past.stopped, None | Some(Stopped::Interrupted)) {
        bail!(
            "--resume {id}: that search is finished (pinwise record show {id}); start a new one without --resume"
        );
    }
    let named = || format!("--resume {id}");
    let former = Cli::try_parse_from(&past.argv).with_context(named)?;
    let Command::Search(former) = former.command else {
        bail!("--resume {id}: its record lacks its command line");
    };
    let file = former.joint.as_deref().with_context(named)?;
    let mut search = plan_search(global, &former, file).with_context(named)?;
    search.max_rounds = args.max_runs.unwrap_or(search.max_rounds);
    search.pairs = args.confirm.unwrap_or(search.pairs);
    search.budget = args.budget.or(search.budget);
    search.seed = past.seed;
    search.argv.clone_from(&past.argv);
    let former = past.joint.as_ref().map_or(&[][..], |joint| &joint.programs);
    let are_same = former.len() == search.programs.len()
        && former
            .iter()
            .zip(&search.programs)
            .all(|(former, now)| is_same_program(former, now));
    if !are_same {
        bail!(
            "--resume {id}: the programs of {} are others than those of that search; start a new one without --resume",
            file.display()
        );
    }
    search.past = PastRounds {
        tried: past
            .joint
            .as_ref()
            .map_or_else(Vec::new, |joint| joint.tried.clone()),
        spent: Duration::try_from_secs_f64(past.elapsed_s).unwrap_or_default(),
    };
    run_and_report(&search, Some(&past.host), file, global, args, terminal)
}

/// Are all properties equal on which the results of rounds depend?
fn is_same_program(former: &JointProgramRecord, now: &JointProgram) -> bool {
    former.name == now.name
        && former.command == now.command.argv()
        && former.load.as_deref() == now.load.as_ref().map(pinwise_workload::Command::argv)
        && former.metric.name == now.metric.to_string()
}

/// Plans a new search from a file of programs.
fn plan_search(global: &Global, args: &SearchArgs, file: &Path) -> anyhow::Result<JointSearch> {
    let named = || format!("--joint {}", file.display());
    let text = read_text(file, MAX_FILE_BYTES as u64).with_context(named)?;
    let programs = parse(&text).with_context(named)?;
    let (id, started) = plan::new_id_and_start();
    Ok(JointSearch {
        programs,
        runner: vec![find_own_program()?, "search".to_owned(), "round".to_owned()],
        max_rounds: args.max_runs.unwrap_or(DEFAULT_ROUNDS),
        pairs: args.confirm.unwrap_or(DEFAULT_PAIRS),
        budget: args.budget,
        min_effect: args.min_effect,
        timeout: args.workload.timeout,
        seed: plan::seed_or_new(args.seed),
        id,
        argv: global.argv.clone(),
        started,
        tags: args.results.tags.clone(),
        past: PastRounds::default(),
    })
}

fn run_and_report(
    search: &JointSearch,
    host: Option<&HostRecord>,
    file: &Path,
    global: &Global,
    args: &SearchArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let named = || format!("--joint {}", file.display());
    let mut machine = open_machine(global, search.seed, CycleCounting::IfCheap)?;
    if let (Some(host), Some(id)) = (host, &args.resume) {
        super::check_machine(id, host, machine.as_mut())?;
    }
    let mut watch = Watch::new(open_store(global)?, terminal);
    let result = joint::run(search, machine.as_mut(), &mut watch);
    // First end what still runs.
    drop(machine);
    let record = match result {
        Ok(record) => record,
        Err(StudyError::Machine(MachineError::Interrupted)) => {
            watch.abandon();
            return Ok(super::report_interrupt(terminal));
        }
        Err(error) => {
            watch.fail(&error.to_string());
            return match error {
                StudyError::Program { .. } => Err(error).with_context(named),
                other => Err(other.into()),
            };
        }
    };
    let is_stored = watch.close(|store| store.finish(&record));
    show_and_export(&record, args, terminal)?;
    let is_kept = is_stored && global.store.as_deref() != Some("none");
    if record.stopped == Some(Stopped::Interrupted) && is_kept {
        terminal.note(&format!(
            "Continue with: pinwise search --resume {}",
            record.id
        ));
    }
    Ok(match exit_status(&record, args.require_verdict) {
        Exit::Done | Exit::Undecided if !is_stored => Exit::Error,
        exit => exit,
    })
}

fn show_and_export(
    record: &Comparison,
    args: &SearchArgs,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let results = &args.results;
    show_answer(record, terminal)?;
    super::write_json(results.export_json.as_deref(), record)?;
    if let Some(path) = &results.export_csv {
        let id = &record.id;
        let text = export::render_as(Format::Csv, &record.clone().into(), id)?;
        write_file(path, &text)?;
    }
    export::write_page(record, results.report.as_deref())
}

fn exit_status(record: &Comparison, requires_verdict: bool) -> Exit {
    match record.stopped {
        Some(Stopped::Interrupted) => Exit::Interrupted,
        Some(Stopped::Failed) => Exit::Error,
        _ if requires_verdict && record.verdict.kind == VerdictKind::Undecided => Exit::Undecided,
        _ => Exit::Done,
    }
}

/// `search round`: runs one round in this process, and prints its figures as JSON.
pub(in crate::cli) fn run_round(args: &RoundArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let round: Round = serde_json::from_str(&args.round).context("the round")?;
    let report = linux::run_round(&round).context("becoming the parent of orphans")?;
    terminal.print_json(&report)?;
    Ok(Exit::Done)
}
