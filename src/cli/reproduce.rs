//! `reproduce`: runs the experiments of the field reports, here or simulated.

use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{Global, ReproduceArgs};
use super::ending::keep_and_show;
use super::machine::open_machine;
use super::opening::open_store;
use super::progress::ProgressLine;
use super::terminal::Terminal;
use super::{Exit, plan};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::discover;
use pinwise_record::Reproduction;
use pinwise_study::compare::{Observer, Progress};
use pinwise_study::reproduce::{REPORTS, Report, Settings, run_here, simulate};

/// Total time without `--budget`.
const DEFAULT_BUDGET: Duration = Duration::from_secs(120);

pub(super) fn reproduce(
    global: &Global,
    args: &ReproduceArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if args.list {
        let rows: Vec<pinwise_report::ReportRow> = REPORTS
            .iter()
            .map(|report| pinwise_report::ReportRow {
                name: report.name,
                machine: report.machine,
                experiments: report.experiments,
            })
            .collect();
        terminal.print(&pinwise_report::render_report_list(&rows))?;
        return Ok(Exit::Done);
    }
    let reports = select_reports(args)?;
    let (id, started) = plan::new_id_and_start();
    let settings = Settings {
        seed: plan::choose_seed(&args.effort),
        budget: args.effort.budget.unwrap_or(DEFAULT_BUDGET),
        program: super::surroundings::find_own_program()?,
        id,
        started,
        host: find_host_name(),
    };
    let mut reporter = ProgressReporter::new(terminal, args.simulated);
    let record = if args.simulated {
        if !global.machine.is_local() {
            bail!("--simulated uses the reports' own machines; omit --machine");
        }
        simulate(&reports, &settings, &mut reporter)?
    } else {
        let mut machine = open_machine(global, settings.seed, CycleCounting::IfCheap)?;
        run_here(&reports, &settings, machine.as_mut(), &mut reporter)?
    };
    reporter.finish();
    store_and_show(global, &record, terminal)
}

fn store_and_show(
    global: &Global,
    record: &Reproduction,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let show = || terminal.show(record, pinwise_report::render_reproduction);
    let exit = match record.interrupted {
        true => Exit::Interrupted,
        false => Exit::Done,
    };
    keep_and_show(open_store(global)?, record, terminal, show, exit)
}

fn select_reports(args: &ReproduceArgs) -> anyhow::Result<Vec<&'static Report>> {
    let Some(name) = args.name.as_deref() else {
        return Ok(REPORTS.iter().collect());
    };
    let found = REPORTS.iter().find(|report| report.name == name);
    let names = || REPORTS.map(|report| report.name).join(", ");
    let found = found.with_context(|| format!("'{name}' is not a field report ({})", names()))?;
    Ok(vec![found])
}

fn find_host_name() -> String {
    let found = discover().ok().and_then(|(t, _)| t.identity.hostname);
    found.unwrap_or_else(|| "unknown".to_owned())
}

/// Shows progress; nothing is stored before the end.
struct ProgressReporter<'a> {
    /// Is it simulated? Then warnings about noise are left out: noise is part of the description.
    is_simulated: bool,
    line: Option<ProgressLine>,
    terminal: &'a Terminal,
}

impl<'a> ProgressReporter<'a> {
    fn new(terminal: &'a Terminal, is_simulated: bool) -> Self {
        Self {
            is_simulated,
            line: terminal
                .shows_progress()
                .then(|| ProgressLine::new(terminal)),
            terminal,
        }
    }

    fn finish(&mut self) {
        if let Some(line) = &mut self.line {
            line.finish();
        }
    }
}

impl Observer for ProgressReporter<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        if let Some(line) = &mut self.line {
            line.show(progress);
        }
    }

    fn warn(&mut self, sentence: &str) {
        if self.is_simulated {
            return;
        }
        match &self.line {
            Some(line) => line.print_above(|| self.terminal.note(sentence)),
            None => self.terminal.note(sentence),
        }
    }
}
