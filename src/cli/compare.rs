//! `compare`: plan, run, store, print, choose the exit status.

mod live;

use super::apply::{ArmChoice, NOTHING_TO_APPLY};
use super::args::{CompareArgs, ExperimentArgs, Global, ResultArgs, Undecided};
use super::machine::{cycle_counting, open_machine};
use super::maps::load_newest_map;
use super::opening::{check_store, open_store};
use super::outputs::check_outputs;
use super::terminal::Terminal;
use super::watch::Watch;
use super::{Exit, apply, export, plan, recipes, restore};
use anyhow::Context;
use pinwise_doctor::describe_niceness;
use pinwise_format::shell;
use pinwise_machine::linux::{LinuxMachine, own_niceness};
use pinwise_machine::{CommandRunner, Host, Machine, Tracer};
use pinwise_placement::Placement;
use pinwise_placement::emit::{self, Target};
use pinwise_record::{Arm, Comparison, ComparisonStudy, GateOutcome, Stopped, VerdictKind};
use pinwise_study::bench::builds;
use pinwise_study::compare::noise;
use pinwise_study::compare::{self, ComparePlan};
use pinwise_study::is_interrupt;
use pinwise_topology::Topology;

/// The warning for `--real`.
const CPUS_GO_OFFLINE: &str = "--real takes CPUs of this host offline for all programs, repeatedly, until the experiment ends; they are restored however pinwise ends";
/// The warning for `--irq`.
const INTERRUPTS_MOVE: &str = "--irq moves this host's interrupts for all programs, repeatedly, until the experiment ends; they are restored however pinwise ends";

pub(super) fn compare(
    global: &Global,
    args: &CompareArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if args.with_itself {
        return compare_with_itself(global, args, terminal);
    }
    if args.live.pid.is_some() || args.live.unit.is_some() || args.live.cgroup.is_some() {
        return live::compare(global, args, terminal);
    }
    let ExperimentArgs { lines, argv, .. } = &args.experiment;
    let mut unquoted = [lines, argv]
        .into_iter()
        .map(|words| find_unquoted_commands(words));
    if let Some(hint) = find_misplaced_words(argv).or_else(|| unquoted.find_map(|hint| hint)) {
        terminal.note(&hint);
    }
    let seed = plan::choose_seed(&args.experiment.effort);
    let targets = parse_emit_targets(args, terminal)?;
    let outputs = export::list_result_files(&args.experiment.results);
    check_outputs(global, &outputs, &args.experiment.workload.inputs())?;
    check_store(global)?;
    let metric = args.metric.as_deref().unwrap_or_default();
    // Starts the guardian: before opening the machine, which makes this process a subreaper, so
    // that it would adopt the guardian.
    let ledger = plan::open_ledger(args, &global.machine)?;
    let mut machine: Box<dyn Machine> = match ledger {
        None => open_machine(global, seed, cycle_counting(metric))?,
        Some(ledger) => {
            restore::note_leftovers(terminal);
            if args.what_if.real {
                terminal.warn(CPUS_GO_OFFLINE);
            }
            if !args.interrupts.irqs.is_empty() {
                terminal.warn(INTERRUPTS_MOVE);
            }
            Box::new(LinuxMachine::open(cycle_counting(metric))?.with_ledger(ledger))
        }
    };
    match recipes::open(args, machine.as_mut(), terminal) {
        Err(error) if is_interrupt(&error) => Ok(report_interrupt(terminal)),
        Err(error) => Err(error),
        Ok(recipe) => {
            let exit = compare_arms(
                global,
                args,
                seed,
                recipe.as_ref(),
                machine.as_mut(),
                &targets,
                terminal,
            );
            let folder = recipe.and_then(|recipe| recipe.close(machine.as_mut()));
            // First stop what still runs, then close what it may be writing to.
            drop(machine);
            drop(folder);
            exit
        }
    }
}

/// Options of pinwise that hardly any other program has.
const DISTINCTIVE_OPTIONS: [&str; 8] = [
    "--budget",
    "--fail-if-slower",
    "--max-runs",
    "--min-effect",
    "--open-ended",
    "--place",
    "--precision",
    "--require-verdict",
];

/// A hint if words after `--` look as if they were meant for pinwise; all of them are arguments of
/// the first word.
fn find_misplaced_words(argv: &[String]) -> Option<String> {
    let (program, words) = argv.split_first()?;
    let program = shell::word(program);
    let is_option = |word: &&String| {
        word.split('=')
            .next()
            .is_some_and(|name| DISTINCTIVE_OPTIONS.contains(&name))
    };
    if let Some(option) = words.iter().find(is_option) {
        let option = option.split('=').next().unwrap_or_default();
        return Some(format!(
            "{option} after -- is an argument of {program}; options of pinwise come before --"
        ));
    }
    let is_path = |word: &String| word.contains('/') && plan::is_program(word);
    let second = words.first().filter(|word| is_path(word))?;
    is_path(&argv[0]).then(|| {
        let second = shell::word(second);
        format!(
            "{second} is an argument of {program}; to compare the two: pinwise compare {program} {second}"
        )
    })
}

/// A hint if the first word is repeated, as in `./prog 1 ./prog 2`, which is one command.
fn find_unquoted_commands(words: &[String]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let has_blanks = |word: &String| word.contains(char::is_whitespace);
    let are_commands = rest.iter().all(|word| plan::is_program(word));
    if !rest.contains(program) || words.iter().any(has_blanks) || are_commands {
        return None;
    }
    let commands = words.split(|word| word == program).skip(1);
    let commands = commands.map(|arguments| {
        let words = std::iter::once(program).chain(arguments);
        let words: Vec<String> = words.cloned().collect();
        shell::word(&shell::line(&words))
    });
    let commands: Vec<String> = commands.collect();
    Some(format!(
        "{} is one command; several need quotes: pinwise compare {}",
        shell::line(words),
        commands.join(" ")
    ))
}

/// Reports that all arms run at a low priority.
fn add_niceness(plan: &mut ComparePlan, machine: &dyn Host) {
    let nice = match machine.is_simulated() {
        true => 0,
        false => own_niceness(),
    };
    plan.known.extend(describe_niceness(nice));
}

fn report_interrupt(terminal: &Terminal) -> Exit {
    terminal.warn("interrupted before the first counted run; nothing was stored");
    Exit::Interrupted
}

fn compare_arms(
    global: &Global,
    args: &CompareArgs,
    seed: u64,
    recipe: Option<&recipes::ReadyRecipe>,
    machine: &mut dyn Tracer,
    targets: &[Target],
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let spec = machine.label();
    let load_map = |topology: &Topology| load_newest_map(global, topology, &spec);
    let mut plan = match plan::plan_comparison(args, seed, recipe, machine, load_map, terminal) {
        Err(error) if is_interrupt(&error) => return Ok(report_interrupt(terminal)),
        planned => planned?,
    };
    plan.argv.clone_from(&global.argv);
    // These options need a comparison, even if two placements are equal here.
    let needs_comparison = args.fail_if_slower.is_some() || args.require_verdict;
    add_niceness(&mut plan, machine);
    plan.is_timing = plan.arms.len() == 1 && args.places.len() <= 1 && !needs_comparison;
    let (record, exit) = run_and_report(global, args, &plan, machine, terminal)?;
    if exit == Exit::Done && !targets.is_empty() {
        emit_best(&record, &plan, targets, machine, terminal)?;
    }
    Ok(match exit {
        Exit::Done => exit_status_of_gates(&record, args, terminal),
        other => other,
    })
}

/// The tools of `--emit`, checked before an hour of measuring.
fn parse_emit_targets(args: &CompareArgs, terminal: &Terminal) -> anyhow::Result<Vec<Target>> {
    let Some(tools) = &args.emit else {
        return Ok(Vec::new());
    };
    if terminal.is_json() {
        anyhow::bail!(
            "--emit prints text after the verdict: with --format json, run pinwise apply last --as TOOL --format json afterwards"
        );
    }
    Target::parse_list(tools).context("--emit")
}

/// `--emit`: prints the best arm in the syntax of other tools.
fn emit_best(
    record: &Comparison,
    plan: &ComparePlan,
    targets: &[Target],
    machine: &mut dyn Host,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if record.verdict.kind == VerdictKind::Undecided {
        terminal.note(
            "--emit: undecided; `pinwise apply last --arm ARM --as TOOL` prints any arm for a tool.",
        );
        return Ok(());
    }
    if record.verdict.not_recommended.is_some() {
        terminal.note(&format!("--emit: {}", record.verdict.advice));
        return Ok(());
    }
    let answer = apply::answer_from_comparison(record, &ArmChoice::default())?;
    if answer.has_nothing_to_apply() {
        terminal.note(&format!("--emit: {NOTHING_TO_APPLY}"));
        return Ok(());
    }
    let best = record
        .recommended_arm()
        .map_or(&record.baseline, |arm| &arm.name);
    if matches!(
        record.verdict.kind,
        VerdictKind::Same | VerdictKind::LeaveAlone
    ) {
        terminal.note("--emit: nothing needs applying; this is the baseline.");
    }
    let arm = plan.arms.iter().find(|arm| arm.name == *best);
    let (topology, _) = machine.topology()?;
    let realised = match arm {
        Some(arm) => arm.place.clone(),
        None => answer.placement.parse::<Placement>()?.realise(&topology)?,
    };
    let context = answer.context();
    answer.note_conditions(terminal);
    let emissions: Vec<emit::Emission> = targets
        .iter()
        .map(|target| emit::emit(target, &realised, &topology, &context))
        .collect();
    terminal.print("\n")?;
    apply::print(&realised, &emissions, terminal)
}

/// `--self`: one command at one place under several names.
fn compare_with_itself(
    global: &Global,
    args: &CompareArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let seed = plan::choose_seed(&args.experiment.effort);
    let outputs = export::list_result_files(&args.experiment.results);
    check_outputs(global, &outputs, &args.experiment.workload.inputs())?;
    let mut machine = open_machine(
        global,
        seed,
        cycle_counting(args.metric.as_deref().unwrap_or_default()),
    )?;
    let mut plan = plan::plan_self_comparison(args, seed, machine.as_mut(), terminal)?;
    plan.argv.clone_from(&global.argv);
    add_niceness(&mut plan, machine.as_ref());
    let (_, exit) = run_and_report(global, args, &plan, machine.as_mut(), terminal)?;
    Ok(exit)
}

/// Runs the plan; stores, prints and writes the result.
fn run_and_report(
    global: &Global,
    args: &CompareArgs,
    plan: &ComparePlan,
    machine: &mut dyn Tracer,
    terminal: &Terminal,
) -> anyhow::Result<(Comparison, Exit)> {
    let (mut record, mut watch) = run_plan(global, plan, machine, terminal)?;
    if args.trace {
        compare::trace_arms(&mut record, plan, machine, &mut watch);
    }
    let (record, is_stored) = conclude_and_store(record, plan, watch);
    if record.stopped == Some(Stopped::Interrupted) && record.blocks == 0 && !is_stored {
        return Ok((record, report_interrupt(terminal)));
    }
    show_and_export(&record, &args.experiment.results, terminal)?;
    let exit = match exit_status(&record) {
        Exit::Done if !is_stored => Exit::Error,
        other => other,
    };
    Ok((record, exit))
}

/// Runs the plan and stores its record; the flag says whether it was stored.
pub(super) fn run_and_store(
    global: &Global,
    plan: &ComparePlan,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<(Comparison, bool)> {
    let (record, watch) = run_plan(global, plan, machine, terminal)?;
    Ok(conclude_and_store(record, plan, watch))
}

/// Adds the study's conclusions and stores the record, unless nothing was measured; the flag says
/// whether it was stored.
fn conclude_and_store(
    record: Comparison,
    plan: &ComparePlan,
    watch: Watch<'_>,
) -> (Comparison, bool) {
    let mut record = if plan.study == ComparisonStudy::Noise {
        noise::conclude_noise(record)
    } else {
        record
    };
    if plan.study == ComparisonStudy::Compare {
        builds::add_gain(&mut record);
    }
    if watch.has_no_figure() {
        watch.abandon();
        return (record, false);
    }
    let is_stored = watch.close(|store| store.finish(&record));
    (record, is_stored)
}

/// Runs the plan; the caller closes the watch with the record.
fn run_plan<'a>(
    global: &Global,
    plan: &ComparePlan,
    machine: &mut dyn CommandRunner,
    terminal: &'a Terminal,
) -> anyhow::Result<(Comparison, Watch<'a>)> {
    plan.check()?;
    let store = open_store(global)?;
    let mut watch = Watch::new(store, terminal);
    match compare::run(plan, machine, &mut watch) {
        Ok(record) => Ok((record, watch)),
        Err(error) => {
            watch.fail(&error.to_string());
            Err(error.into())
        }
    }
}

fn show_and_export(
    record: &Comparison,
    results: &ResultArgs,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    show_answer(record, terminal)?;
    export::write_results(record, results)
}

/// Shows a comparison that has just ended; why it failed is an error, below the runs before it.
pub(super) fn show_answer(record: &Comparison, terminal: &Terminal) -> anyhow::Result<()> {
    let has_failed = record.stopped == Some(Stopped::Failed);
    if terminal.is_json() {
        terminal.print_json(record)?;
    } else if !has_failed || record.blocks > 0 {
        let show = match terminal.is_verbose() {
            true => pinwise_report::render_comparison,
            false => pinwise_report::render_comparison_answer,
        };
        terminal.print(&show(record, terminal.palette()))?;
    }
    if has_failed {
        terminal.error(&record.verdict.sentence);
    }
    Ok(())
}

fn exit_status(record: &Comparison) -> Exit {
    if record.stopped == Some(Stopped::Interrupted) {
        return Exit::Interrupted;
    }
    let has_failed = record.arms.iter().any(|arm| arm.invalid.is_some());
    if has_failed || record.stopped == Some(Stopped::Failed) {
        return Exit::Error;
    }
    Exit::Done
}

/// The exit status by `--fail-if-slower` and `--require-verdict`.
fn exit_status_of_gates(record: &Comparison, args: &CompareArgs, terminal: &Terminal) -> Exit {
    let limited = match args.fail_if_slower {
        Some(limit) => check_slowdown_limit(record, limit, args.undecided, terminal),
        None => Exit::Done,
    };
    let is_open = record.verdict.kind == VerdictKind::Undecided;
    match limited {
        Exit::Done if args.require_verdict && is_open => Exit::Undecided,
        other => other,
    }
}

/// 1 if an arm is slower by more, 0 if none is; otherwise as the user chose.
fn check_slowdown_limit(
    record: &Comparison,
    limit: f64,
    undecided: Undecided,
    terminal: &Terminal,
) -> Exit {
    let (mut is_slower, mut is_open) = (false, false);
    for outcome in record.contrasts.iter().filter_map(|c| c.limit.as_ref()) {
        is_slower |= outcome.outcome == GateOutcome::Slower;
        is_open |= outcome.outcome == GateOutcome::Undecided;
        if outcome.outcome != GateOutcome::Passed {
            terminal.warn(&format!("--fail-if-slower: {}", outcome.sentence));
        }
    }
    let is_judged = |name: &str| {
        name == record.baseline || record.contrasts.iter().any(|contrast| contrast.arm == name)
    };
    let is_late_baseline = |arm: &Arm| arm.name == record.baseline && arm.timed_out.is_some();
    let has_late_baseline = record.arms.iter().any(is_late_baseline);
    let open = record.arms.iter().filter(|arm| !is_judged(&arm.name));
    for arm in open.filter(|_| !has_late_baseline) {
        let late = arm.timed_out.as_ref();
        if let Some(late) = late.filter(|late| late.at_least > 1.0 + limit) {
            is_slower = true;
            terminal.warn(&format!("--fail-if-slower: {}", late.sentence));
            continue;
        }
        is_open = true;
        terminal.warn(&format!(
            "--fail-if-slower: {} is undecided: it could not be measured.",
            arm.name
        ));
    }
    match (is_slower, is_open) {
        (true, _) => Exit::GateFailed,
        (false, true) => undecided.exit(),
        (false, false) => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_program_is_taken_for_a_second_command_without_quotes() {
        let hint = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            find_unquoted_commands(&words)
        };
        assert_eq!(
            hint("/bin/sleep 1 /bin/sleep 2").as_deref(),
            Some(
                "/bin/sleep 1 /bin/sleep 2 is one command; several need quotes: pinwise compare '/bin/sleep 1' '/bin/sleep 2'"
            )
        );
        // These are two commands.
        for line in ["/bin/ls /bin/ls", "/bin/ls /tmp", "/bin/ls"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }

    #[test]
    fn words_after_the_dashes_meant_for_pinwise_are_reported() {
        let hint = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            find_misplaced_words(&words)
        };
        let option = "--budget after -- is an argument of ./old; options of pinwise come before --";
        for line in ["./old ./new --budget 3s", "./old --budget=3s"] {
            assert_eq!(hint(line).as_deref(), Some(option));
        }
        assert_eq!(
            hint("/bin/ls /bin/sh -c true").as_deref(),
            Some(
                "/bin/sh is an argument of /bin/ls; to compare the two: pinwise compare /bin/ls /bin/sh"
            )
        );
        for line in [
            "env /bin/sh",
            "/bin/ls /tmp",
            "/bin/ls",
            "prog --seed 7 --name x",
        ] {
            assert_eq!(hint(line), None, "{line}");
        }
    }
}
