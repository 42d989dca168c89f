//! `rules`: keeps processes on the CPUs that a file names.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::args::{Global, RulesAction, RulesArgs, RulesCheckArgs, RulesRunArgs};
use super::input::read_text;
use super::surroundings::own_program;
use super::terminal::Terminal;
use super::{Exit, restore};
use pinwise_machine::linux::{
    self, LinuxProcesses, ProcessWatch, RulesJournal, may_set_any_nice, user_id, writable_by_others,
};
use pinwise_record::RuleChange;
use pinwise_rules::{RuleEnforcer, RuleEvent, RulesPlan, enforce, list_matches};
use pinwise_workload::{Position, TomlError};

pub(super) fn rules(
    global: &Global,
    args: &RulesArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!("rules are about running processes; they need --machine local");
    }
    match &args.action {
        RulesAction::Check(args) => check(args, terminal),
        RulesAction::Run(args) => run(args, terminal),
        RulesAction::Unit(args) => unit(args, terminal),
    }
}

/// Bytes of the largest file of rules.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the rules; a mistake is reported as `FILE:LINE:COLUMN: what`.
fn load(file: &Path) -> anyhow::Result<RulesPlan> {
    let text = read_text(file, MAX_FILE_BYTES).with_context(|| file.display().to_string())?;
    let (topology, _) = linux::discover()?;
    let mut plan = RulesPlan::read(&text, &topology, user_id)
        .map_err(|error| anyhow::anyhow!("{}:{error}", file.display()))?;
    let warnings = [plan.rules.warnings(), open_files(&plan, file)].concat();
    plan.rules.warnings.extend(warnings);
    Ok(plan)
}

/// Files that decide who gets what, and that others may change.
fn open_files(plan: &RulesPlan, file: &Path) -> Vec<TomlError> {
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

fn warn(plan: &RulesPlan, file: &Path, terminal: &Terminal) {
    for warning in &plan.rules.warnings {
        terminal.warn(&format!("{}:{warning}", file.display()));
    }
}

fn check(args: &RulesCheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let plan = load(&args.file)?;
    warn(&plan, &args.file, terminal);
    let file = args.file.display().to_string();
    let record = list_matches(&plan, &file, &mut LinuxProcesses::open());
    terminal.show(&record, pinwise_report::rules)?;
    Ok(Exit::Done)
}

fn unit(args: &RulesCheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let plan = load(&args.file)?;
    warn(&plan, &args.file, terminal);
    let path = args.file.canonicalize();
    let path = path.with_context(|| args.file.display().to_string())?;
    let path = path
        .to_str()
        .with_context(|| format!("{}: the path is not UTF-8", args.file.display()))?;
    terminal.print_data(&pinwise_report::rules_unit(&own_program()?, path))?;
    Ok(Exit::Done)
}

/// Who cannot lower nice values again must not raise them.
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

fn run(args: &RulesRunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let load = || {
        let plan = load(&args.file)?;
        if !args.dry_run {
            check_nice(&plan).map_err(|e| anyhow::anyhow!("{}:{e}", args.file.display()))?;
        }
        warn(&plan, &args.file, terminal);
        anyhow::Ok(plan)
    };
    let plan = load()?;
    if !args.dry_run {
        restore::offer(terminal);
    }
    let mut log = Log::open(args.log.as_deref())?;
    // Before signals are taken, while there is a single thread.
    let (journal, before) = match args.dry_run {
        true => (None, Vec::new()),
        false => {
            let (journal, before) = RulesJournal::open(&state(args)?)?;
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
    let mut failed = None;
    let mut notify = |message: RuleEvent| {
        let done = report_one(message, &mut log, args.dry_run, terminal);
        // The rules stay in force if nobody reads or the disk is full.
        if let Err(error) = done
            && failed.is_none()
        {
            terminal.warn(&format!("{error:#}"));
            failed = Some(());
        }
    };
    enforcer.restore_unmatched(&mut notify);
    enforcer.consider_all(&mut notify);
    if args.once {
        finish(enforcer);
        return Ok(Exit::Done);
    }
    notify(RuleEvent::Note(format!(
        "The rules are in force for {} processes. SIGHUP reloads them, Ctrl-C ends.",
        enforcer.count()
    )));
    let mut reload = || load().map_err(|error| format!("{error:#}"));
    let kept = enforce(&mut enforcer, &mut watch, &mut reload, &mut notify);
    enforcer.restore_all(&mut notify);
    finish(enforcer);
    kept?;
    Ok(Exit::Done)
}

fn finish(enforcer: RuleEnforcer<LinuxProcesses, RulesJournal>) {
    if let Some(journal) = enforcer.into_journal() {
        journal.close();
    }
}

fn report_one(
    message: RuleEvent,
    log: &mut Log,
    is_dry: bool,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    match message {
        RuleEvent::Note(sentence) => terminal.note(&sentence),
        RuleEvent::Warning(sentence) => terminal.warn(&sentence),
        RuleEvent::Change(mut change) => {
            change.dry_run = is_dry;
            change.time = linux::time_of_day();
            log.append(&change)?;
            if terminal.is_json() {
                terminal.print_json(&change)?;
            } else {
                let line = pinwise_report::rule_change(&change, terminal.palette());
                terminal.print(&format!("{line}\n"))?;
            }
        }
    }
    Ok(())
}

/// The file that changes are appended to, if any.
struct Log(Option<(PathBuf, File)>);

impl Log {
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

/// File that records which processes were changed.
fn state(args: &RulesRunArgs) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.state {
        return Ok(path.clone());
    }
    restore::default_rules_state()
        .context("XDG_RUNTIME_DIR is not set: choose a state file with --state")
}
