//! From arguments to printed results and an exit status: wiring only.
//!
//! Standard output carries data, standard error everything else. The exit
//! status is chosen here, once per command, and returned to `main`.

mod apply;
mod args;
mod bench;
mod bound;
mod compare;
mod config;
mod diff;
mod ending;
mod exit;
mod export;
mod files;
mod fleet;
mod gate;
mod generate;
mod history;
mod host;
mod idioms;
mod input;
mod jitter;
mod kernel;
mod logging;
mod maps;
mod named;
mod opening;
mod outputs;
mod password;
mod plan;
mod predict;
mod profile;
mod progress;
mod prune;
mod ranks;
mod recipes;
mod report;
mod reproduce;
mod restore;
mod rules;
mod search;
mod serve;
mod spin;
mod store;
mod subject;
mod tag;
mod terminal;
mod top;
mod topology;
mod trace;
mod values;
mod watch;

use std::ffi::OsString;

use anyhow::Context;
use clap::{ArgMatches, FromArgMatches};

pub use args::Cli;
pub use exit::Exit;

use args::{
    ApplyAction, BenchAction, Command, Format, Global, HelpExtent, RecordAction, RecordArgs,
    SearchAction,
};
use opening::{location, open_store, open_store_to_read, parse_location, spool};
use pinwise_machine::Machine;
use pinwise_machine::linux::{Ledger, LinuxMachine, Pins};
use pinwise_sim::SimulatedMachine;
use terminal::Terminal;

/// For terminals that are narrower or wider texts are laid out as for these.
const NARROWEST: usize = 40;
const WIDEST: usize = 200;

/// Runs pinwise with these arguments, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = idioms::with_help(arguments.into_iter().collect());
    let (config, unread) = match config::Config::load() {
        Ok(config) => (config, None),
        Err(error) => (config::Config::default(), Some(error)),
    };
    let parsed = parse(&config, &arguments);
    // Help and version need no defaults.
    let needs_defaults = parsed.as_ref().err().is_none_or(clap::Error::use_stderr);
    if let Some(error) = unread.filter(|_| needs_defaults) {
        Terminal::plain().error(&format!("{error:#}"));
        return Exit::Error;
    }
    let mut cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &arguments),
    };
    cli.global.argv = argv(arguments);
    if let Command::Compare(compare) = &mut cli.command {
        compare.usual_places = config.places();
    }
    let terminal = Terminal::new(&cli.global);
    if let Err(error) = logging::start(cli.global.verbose) {
        terminal.error(&format!("{error:#}"));
        return Exit::Error;
    }
    let is_known = match (&cli.command, cli.global.format) {
        (_, Format::Text | Format::Json) => true,
        (Command::Topology(_), format) => format == Format::Xml,
        (Command::Bench(bench), Format::Csv) => {
            matches!(bench.action, Some(BenchAction::Jitter(_)))
        }
        (Command::Record(record), _) => matches!(record.action, RecordAction::Show(_)),
        _ => false,
    };
    if !is_known {
        terminal.error(
            "--format: this command prints text or json (topology also xml, bench jitter csv); pinwise record show last --format FORMAT prints its record in another form",
        );
        return Exit::Error;
    }
    let columns = terminal.columns();
    let columns = columns.map(|columns| columns.clamp(NARROWEST, WIDEST));
    match pinwise_report::in_columns(columns, || dispatch(cli, &terminal)) {
        Ok(exit) => exit,
        Err(error) => {
            terminal.error(&format!("{error:#}"));
            Exit::Error
        }
    }
}

/// Most calls are in order, and need their own options alone.
fn parse(config: &config::Config, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let extent = idioms::extent_of(arguments);
    let read = |command| config.apply(command).try_get_matches_from(arguments);
    if extent == HelpExtent::Unseen && !config.changes_commands() {
        match read(args::called()) {
            Err(error) if error.use_stderr() => {}
            parsed => return parsed,
        }
    }
    read(args::command(extent))
}

/// Arguments for records. An address of a store can hold a password, and is no
/// part of an experiment.
fn argv(arguments: Vec<OsString>) -> Vec<String> {
    let texts: Result<Vec<String>, _> = arguments.into_iter().map(OsString::into_string).collect();
    let mut words = texts.unwrap_or_default();
    if let Some(program) = words.first_mut() {
        *program = "pinwise".to_owned();
    }
    pinwise_record::without_options(&words, &["--store"])
}

/// Help and version are data; any other answer of the parser is an error, reported
/// in one line with its hint.
fn usage(error: &clap::Error, arguments: &[OsString]) -> Exit {
    use clap::error::ErrorKind;
    let kind = error.kind();
    if !error.use_stderr() {
        // Help and version, the first with headings in bold where they can be shown;
        // a reader that has gone away is no error.
        let terminal = Terminal::plain();
        let _ = match terminal.stdout_is_ascii() {
            true => terminal.print(&error.to_string()),
            false => error.print().map_err(Into::into),
        };
        return Exit::Done;
    }
    // One and the same, but for an option that is set in the environment.
    if matches!(
        kind,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        Terminal::plain().help(&idioms::help_of(arguments));
        return Exit::Error;
    }
    Terminal::plain().error(&idioms::hint(error, arguments).unwrap_or_else(|| one_line(error)));
    match arguments.iter().any(|argument| argument == "--bisect") {
        true => Exit::StopBisecting,
        false => Exit::Error,
    }
}

/// The parser's words in one line, its hint among them.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let parts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    // What is missing or possible stands in lines of its own.
    let line = parts.join("; ").replace(":; ", ": ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

fn dispatch(cli: Cli, terminal: &Terminal) -> anyhow::Result<Exit> {
    let global = &cli.global;
    match cli.command {
        Command::Compare(args) => compare::compare(global, &args, terminal),
        Command::Search(args) => match &args.action {
            None => search::search(global, &args, terminal),
            Some(SearchAction::Predict(args)) => predict::predict(global, args, terminal),
        },
        Command::Gate(args) => gate::gate(global, &args, terminal),
        Command::Bench(args) => match &args.action {
            None => bench::bench(global, &args, terminal),
            Some(BenchAction::Kernel(args)) => kernel::kernel(global, args, terminal),
            Some(BenchAction::Jitter(args)) => jitter::jitter(global, args, terminal),
            Some(BenchAction::Recipes(args)) => recipes::recipes(global, args, terminal),
        },
        Command::Topology(args) => topology::topology(global, &args, terminal),
        Command::Doctor => host::doctor(global, terminal),
        Command::Trace(args) => trace::trace(global, &args, terminal),
        Command::Top(args) => top::top(global, &args, terminal),
        Command::Profile(args) => profile::profile(global, &args, terminal),
        Command::Spin(args) => spin::spin(global, &args, terminal),
        Command::Run(args) => host::run(global, &args, terminal),
        Command::Apply(args) => match &args.action {
            None => apply::apply(global, &args, terminal),
            Some(ApplyAction::Rules(args)) => rules::rules(global, args, terminal),
            Some(ApplyAction::Restore(args)) => restore::restore(args, terminal),
        },
        Command::Record(args) => record(global, &args, terminal),
        Command::Serve(args) => serve::serve(global, &args, terminal),
        Command::Fleet(args) => fleet::fleet(global, &args, terminal),
        Command::Reproduce(args) => reproduce::reproduce(global, &args, terminal),
        Command::Completions(args) => generate::completions(&args, terminal),
        Command::Generate(args) => generate::generate(&args),
    }
}

fn record(global: &Global, args: &RecordArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    match &args.action {
        RecordAction::History(args) => history::history(global, args, terminal),
        RecordAction::Show(args) => history::show(global, args, terminal),
        RecordAction::Diff(args) => diff::diff(global, args, terminal),
        RecordAction::Report(args) => report::report(global, args, terminal),
        RecordAction::Tag(args) => tag::tag(global, args, terminal),
        RecordAction::Prune(args) => prune::prune(global, args, terminal),
        RecordAction::Copy(args) => store::copy(args, terminal),
    }
}

/// Opens the machine to work on. `seed` drives a simulated one.
fn open_machine(
    global: &Global,
    seed: u64,
    insist_on_cycles: bool,
) -> anyhow::Result<Box<dyn Machine>> {
    if global.machine == "local" {
        return Ok(Box::new(LinuxMachine::open(insist_on_cycles)?));
    }
    simulated_machine(simulated(global)?, seed).context("--machine")
}

/// This host, and what changes masks of what runs on it, and where interrupts are
/// taken, and gives them back.
fn live_host(global: &Global, what: &str, irqs: &[String]) -> anyhow::Result<(Pins, LinuxMachine)> {
    if global.machine != "local" {
        anyhow::bail!(
            "{what} places what runs on this host; it needs --machine local, not {}",
            global.machine
        );
    }
    // The guardian is started before this process becomes the parent of orphans.
    let ledger = match plan::interrupt_ledger(irqs, &global.machine)? {
        Some(ledger) => ledger,
        None => Ledger::open(plan::own_options()?)
            .context("starting the guardian that gives masks back")?,
    };
    Ok((Pins::on(ledger), LinuxMachine::open(false)?))
}

/// A machine of a description, or of a file that holds one.
fn simulated_machine(description: &str, seed: u64) -> anyhow::Result<Box<dyn Machine>> {
    Ok(Box::new(SimulatedMachine::open(description, seed)?))
}

/// Where files are made that nobody keeps.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn temporary_folder() -> std::path::PathBuf {
    std::env::var_os("TMPDIR")
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| "/tmp".into(), std::path::PathBuf::from)
}

/// This executable, whose kernels are started as commands.
fn own_program() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("finding pinwise itself")?;
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the path of pinwise is not UTF-8: {}", path.display()))
}

/// What stands behind `sim:`.
fn simulated(global: &Global) -> anyhow::Result<&str> {
    global.machine.strip_prefix("sim:").with_context(|| {
        format!(
            "--machine '{}' is neither local nor sim:… (such as 'sim:core:4 pu:2' or sim:FILE.toml)",
            global.machine
        )
    })
}

/// The folder that a variable names.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn named_folder(variable: &str) -> Option<std::path::PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(std::path::PathBuf::from)
}
