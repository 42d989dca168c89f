//! `apply rules`: keeps processes on the CPUs that a file assigns.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::args::{Global, RulesAction, RulesArgs, RulesCheckArgs, RulesRunArgs};
use super::input::read_text;
use super::surroundings::find_own_program;
use super::terminal::Terminal;
use super::{Exit, restore};
use pinwise_machine::linux::{
    self, LinuxProcesses, ProcessWatch, RulesJournal, may_set_any_nice, user_id, writable_by_others,
};
use pinwise_record::RuleChange;
use pinwise_rules::{RuleEnforcer, RuleEvent, RulesPlan, enforce, list_matches};
use pinwise_workload::{Position, TomlError};

pub(super) fn manage_rules(
    global: &Global,
    args: &RulesArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!("rules are about running processes; they need --machine local");
    }
    match &args.action {
        RulesAction::Check(args) => check_rules(args, terminal),
        RulesAction::Run(args) => run_rules(args, terminal),
        RulesAction::Unit(args) => print_unit(args, terminal),
    }
}

/// The largest rules file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Loads the rules; a mistake is reported as `FILE:LINE:COLUMN: reason`.
fn load_rules(file: &Path) -> anyhow::Result<RulesPlan> {
    let text = read_text(file, MAX_FILE_BYTES).with_context(|| file.display().to_string())?;
    let (topology, _) = linux::discover()?;
    let mut plan = RulesPlan::read(&text, &topology, user_id)
        .map_err(|error| anyhow::anyhow!("{}:{error}", file.display()))?;
    let warnings = [plan.rules.warnings(), find_writable_files(&plan, file)].concat();
    plan.rules.warnings.extend(warnings);
    Ok(plan)
}

/// Warnings about the rules file and named executables that other users may change.
fn find_writable_files(plan: &RulesPlan, file: &Path) -> Vec<TomlError> {
    let own =
        writable_by_others(file, None).map(|who| (Position::START, format!("these rules: {who}")));
    let executables = plan.rules.executable_paths().into_iter();
    let executables = executables.filter_map(|(rule, path)| {
        let who = writable_by_others(&path, rule.user_id)?;
        let name = &rule.name.value;
        Some((
            rule.name.position,
            format!("rule '{name}': executable: {who}"),
        ))
    });
    let all = own.into_iter().chain(executables);
    all.map(|(position, what)| TomlError::new(position, format!("{what}: anyone could replace it")))
        .collect()
}

fn print_warnings(plan: &RulesPlan, file: &Path, terminal: &Terminal) {
    for warning in &plan.rules.warnings {
        terminal.warn(&format!("{}:{warning}", file.display()));
    }
}

fn check_rules(args: &RulesCheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let plan = load_rules(&args.file)?;
    print_warnings(&plan, &args.file, terminal);
    let file = args.file.display().to_string();
    let record = list_matches(&plan, &file, &mut LinuxProcesses::open());
    terminal.show(&record, pinwise_report::render_rules)?;
    Ok(Exit::Done)
}

fn print_unit(args: &RulesCheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let plan = load_rules(&args.file)?;
    print_warnings(&plan, &args.file, terminal);
    let path = args.file.canonicalize();
    let path = path.with_context(|| args.file.display().to_string())?;
    let path = path
        .to_str()
        .with_context(|| format!("{}: the path is not UTF-8", args.file.display()))?;
    terminal.print_data(&pinwise_report::render_systemd_unit(
        &find_own_program()?,
        path,
    ))?;
    Ok(Exit::Done)
}

/// Refuses rules with nice values for a user who could not lower them again.
fn check_nice(plan: &RulesPlan) -> anyhow::Result<()> {
    let nice = plan.rules.rules.iter().find_map(|rule| rule.nice.as_ref());
    if let Some(nice) = nice.filter(|_| !may_set_any_nice()) {
        bail!(
            "{}: nice: it could not be restored without CAP_SYS_NICE; run as root, or leave nice out",
            nice.position
        );
    }
    Ok(())
}

fn run_rules(args: &RulesRunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let load = || {
        let plan = load_rules(&args.file)?;
        if !args.dry_run {
            check_nice(&plan).map_err(|e| anyhow::anyhow!("{}:{e}", args.file.display()))?;
        }
        print_warnings(&plan, &args.file, terminal);
        anyhow::Ok(plan)
    };
    let plan = load()?;
    if !args.dry_run {
        restore::note_leftovers(terminal);
    }
    let mut log = ChangeLog::open(args.log.as_deref())?;
    // The guardian must start while there is a single thread, before signals are blocked.
    let (journal, before) = match args.dry_run {
        true => (None, Vec::new()),
        false => {
            let (journal, before) = RulesJournal::open(&journal_path(args)?)?;
            (Some(journal), before)
        }
    };
    let opened = ProcessWatch::open(args.poll, args.poll_only);
    let (mut watch, why_polling) = opened.context("waiting for processes")?;
    if let Some(why) = why_polling.filter(|_| !args.once) {
        let every = humantime::format_duration(args.poll);
        terminal.note(&format!("Polling for new processes every {every}: {why}."));
    }
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut enforcer = RuleEnforcer::new(LinuxProcesses::open(), journal, plan, before, own);
    let mut has_failed = false;
    let mut notify = |message: RuleEvent| {
        let reported = report_event(message, &mut log, args.dry_run, terminal);
        // The rules stay in force if output fails; only the first failure is reported.
        if let Err(error) = reported
            && !has_failed
        {
            terminal.warn(&format!("{error:#}"));
            has_failed = true;
        }
    };
    enforcer.restore_unmatched(&mut notify);
    enforcer.consider_all(&mut notify);
    if args.once {
        close_journal(enforcer);
        return Ok(Exit::Done);
    }
    notify(RuleEvent::Note(format!(
        "The rules are in force for {} processes. SIGHUP reloads them, Ctrl-C ends.",
        enforcer.count()
    )));
    let mut reload = || load().map_err(|error| format!("{error:#}"));
    let kept = enforce(&mut enforcer, &mut watch, &mut reload, &mut notify);
    enforcer.restore_all(&mut notify);
    close_journal(enforcer);
    kept?;
    Ok(Exit::Done)
}

fn close_journal(enforcer: RuleEnforcer<LinuxProcesses, RulesJournal>) {
    if let Some(journal) = enforcer.into_journal() {
        journal.close();
    }
}

fn report_event(
    event: RuleEvent,
    log: &mut ChangeLog,
    is_dry: bool,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    match event {
        RuleEvent::Note(sentence) => terminal.note(&sentence),
        RuleEvent::Warning(sentence) => terminal.warn(&sentence),
        RuleEvent::Change(mut change) => {
            change.dry_run = is_dry;
            change.time = linux::time_of_day();
            log.append(&change)?;
            if terminal.is_json() {
                terminal.print_json(&change)?;
            } else {
                let line = pinwise_report::render_rule_change(&change, terminal.palette());
                terminal.print(&format!("{line}\n"))?;
            }
        }
    }
    Ok(())
}

/// The file of `--log`, if any, to which changes are appended.
struct ChangeLog(Option<(PathBuf, File)>);

impl ChangeLog {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.with_context(|| format!("--log {}", path.display()))?;
        Ok(Self(Some((path.to_owned(), file))))
    }

    fn append(&mut self, change: &RuleChange) -> anyhow::Result<()> {
        let Some((path, file)) = &mut self.0 else {
            return Ok(());
        };
        let line = format!("{}\n", serde_json::to_string(change)?);
        file.write_all(line.as_bytes())
            .with_context(|| format!("--log {}", path.display()))
    }
}

/// The journal of changed processes.
fn journal_path(args: &RulesRunArgs) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.state {
        return Ok(path.clone());
    }
    restore::default_rules_state()
        .context("XDG_RUNTIME_DIR is not set: choose a state file with --state")
}
