//! `gate`: compares two builds over a suite of benchmarks.

mod bisect;
mod builds;
mod listing;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{GateArgs, Global, Undecided};
use super::files::{NamedFile, read_file, write_file};
use super::machine::open_machine;
use super::opening::{check_store, open_store};
use super::outputs::check_outputs;
use super::progress::ProgressLine;
use super::terminal::Terminal;
use super::{Exit, export, plan};
use builds::Builds;
use pinwise_machine::CommandRunner;
use pinwise_machine::linux::CycleCounting;
use pinwise_placement::Placement;
use pinwise_record::{GateBenchmark, GateDecision, GateOutcome, GateRecord, Stopped};
use pinwise_stats::confirm::Score;
use pinwise_store::Store;
use pinwise_study::gate::{self, GatePlan, GateProgress, Observer};
use pinwise_workload::suite;

/// Two-sided error rate over the suite.
const ALPHA: f64 = 0.05;
/// The default time budget.
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

pub(super) fn run_gate(
    global: &Global,
    args: &GateArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let result = build_and_judge(global, args, terminal);
    if let Err(error) = &result {
        write_failure_comment(args, &format!("{error:#}"));
    }
    if !args.bisect {
        return result;
    }
    let exit = match result {
        Ok(Exit::Undecided | Exit::Error) => Exit::Skip,
        Ok(exit) => exit,
        Err(error) => {
            terminal.error(&format!("{error:#}"));
            // Every other commit would fail alike.
            Exit::StopBisecting
        }
    };
    let budget = args.budget.unwrap_or(DEFAULT_BUDGET);
    if let Some(end) = bisect::describe_end(&global.argv, args, budget, exit) {
        terminal.warn(&end);
    }
    Ok(exit)
}

fn build_and_judge(global: &Global, args: &GateArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let files = list_output_files(args);
    check_outputs(global, &files, &[])?;
    check_store(global)?;
    let text = read_file(&args.suite).with_context(|| {
        let suite = args.suite.display();
        format!("--suite {suite} (pinwise gate --help shows what one holds)")
    })?;
    let suite = suite::parse(&text).with_context(|| format!("--suite {}", args.suite.display()))?;
    if args.variant.is_some() && suite.build.is_none() {
        bail!(
            "--variant: {} has no build command; add build = \"…\"",
            args.suite.display()
        );
    }
    let seed = plan::seed_or_new(args.seed);
    let place: Placement = args.place.parse().context("--place")?;
    let (base, head) = match builds::prepare_both(global, args, &suite, terminal)? {
        Builds::Both(both) => *both,
        Builds::HeadFails(why) => {
            write_failure_comment(args, &why);
            terminal.error(&why);
            return Ok(Exit::Error);
        }
    };
    let benchmarks = listing::list_benchmarks(args, &suite, &base, &head)?;
    // Only now: an open machine adopts orphans, also those of builds and lists.
    let mut machine = open_machine(global, seed, CycleCounting::IfCheap)?;
    let (topology, _) = machine.topology()?;
    let (id, started) = plan::new_id_and_start();
    let has_other_end = args.open_ended || args.max_pairs.is_some();
    let are_commits = base.record.commit.is_some() && head.record.commit.is_some();
    let plan = GatePlan {
        is_chained: are_commits && !args.bisect,
        base: base.record,
        head: head.record,
        suite: file_name(&args.suite),
        benchmarks,
        place: place.realise(&topology).context("--place")?,
        alpha: ALPHA,
        budget: args.budget.or((!has_other_end).then_some(DEFAULT_BUDGET)),
        max_pairs: args.max_pairs,
        is_open_ended: args.open_ended,
        score: Score::default(),
        seed,
        id,
        started,
        argv: global.argv.clone(),
        tags: args.tags.clone(),
    };
    run_and_report(global, args, &plan, machine.as_mut(), terminal)
}

/// Writes why the gate failed, so that the comment of an earlier gate is not mistaken for this
/// one's. An error in writing does not matter: the gate fails anyway.
fn write_failure_comment(args: &GateArgs, why: &str) {
    if let Some(path) = &args.export_markdown {
        let comment = pinwise_report::render_gate_not_made(&args.base, &args.head, why);
        let _ = write_file(path, &comment);
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn list_output_files(args: &GateArgs) -> Vec<NamedFile<'_>> {
    let files = [
        ("--export-json", &args.export_json),
        ("--export-csv", &args.export_csv),
        ("--export-markdown", &args.export_markdown),
        ("--report", &args.report),
    ];
    files
        .into_iter()
        .filter_map(|(option, path)| {
            let path = path.as_deref()?;
            Some(NamedFile { option, path })
        })
        .collect()
}

fn run_and_report(
    global: &Global,
    args: &GateArgs,
    plan: &GatePlan,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut watch = GateWatch {
        store: open_store(global)?,
        terminal,
        line: terminal
            .shows_progress()
            .then(|| ProgressLine::new(terminal)),
    };
    let result = gate::run(plan, machine, &mut watch);
    if let Some(line) = &mut watch.line {
        line.finish();
    }
    let record = result?;
    if record
        .benchmarks
        .iter()
        .all(|benchmark| benchmark.pairs.is_empty())
        && record.stopped == Some(Stopped::Interrupted)
    {
        terminal.warn("interrupted before the first counted pair; nothing was stored");
        return Ok(Exit::Interrupted);
    }
    super::ending::keep_and_show(
        watch.store,
        &record,
        terminal,
        || {
            terminal.show(&record, pinwise_report::render_gate)?;
            write_files(&record, args)
        },
        exit_status(&record, args.undecided),
    )
}

fn write_files(record: &GateRecord, args: &GateArgs) -> anyhow::Result<()> {
    super::files::write_json(args.export_json.as_deref(), record)?;
    if let Some(path) = &args.export_csv {
        write_file(path, &pinwise_report::list_gate_rows(record).csv()?)?;
    }
    export::write_page(record, args.report.as_deref())?;
    // Last: if another file fails, the comment says so.
    if let Some(path) = &args.export_markdown {
        write_file(path, &pinwise_report::render_gate_markdown(record))?;
    }
    Ok(())
}

fn exit_status(record: &GateRecord, undecided: Undecided) -> Exit {
    if record.stopped == Some(Stopped::Interrupted) {
        return Exit::Interrupted;
    }
    match &record.verdict.decision {
        GateDecision::Pass => Exit::Done,
        GateDecision::Fail => Exit::GateFailed,
        GateDecision::Undecided => undecided.exit(),
        _ => Exit::Error,
    }
}

/// Shows the progress of a gate, and saves partial results.
struct GateWatch<'a> {
    store: Option<Store>,
    terminal: &'a Terminal,
    line: Option<ProgressLine>,
}

impl GateWatch<'_> {
    fn print_above_progress(&self, print: impl FnOnce()) {
        match &self.line {
            Some(line) => line.print_above(print),
            None => print(),
        }
    }
}

impl Observer for GateWatch<'_> {
    fn progress(&mut self, progress: &GateProgress<'_>) {
        if let Some(line) = &mut self.line {
            line.show_gate(progress);
        }
    }

    fn warn(&mut self, sentence: &str) {
        self.print_above_progress(|| self.terminal.warn(sentence));
    }

    fn decided(&mut self, benchmark: &GateBenchmark) {
        if benchmark.outcome != GateOutcome::Passed {
            self.print_above_progress(|| self.terminal.note(&benchmark.sentence));
        }
    }

    fn round(&mut self, record: &GateRecord) {
        // An error is reported when the whole record is stored.
        if let Some(store) = &mut self.store {
            let _ = store.keep(record);
        }
    }
}

/// An error if no benchmark is in both builds.
fn refuse_without_shared(benchmarks: &[gate::PlannedBenchmark]) -> anyhow::Result<()> {
    let is_shared = |b: &gate::PlannedBenchmark| b.base.is_some() && b.head.is_some();
    if benchmarks.iter().any(is_shared) {
        return Ok(());
    }
    bail!("nothing to compare: no benchmark is in both builds (and matches --filter)")
}
