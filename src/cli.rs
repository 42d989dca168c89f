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
mod machine;
mod maps;
mod named;
mod opening;
mod outputs;
mod parser_words;
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
mod surroundings;
mod tag;
mod terminal;
mod top;
mod topology;
mod trace;
mod usage;
mod values;
mod watch;

use std::ffi::OsString;

use clap::{ArgMatches, FromArgMatches};

pub use args::Cli;
pub use exit::Exit;

use args::{
    ApplyAction, BenchAction, Command, Global, RecordAction, RecordArgs, SearchAction,
    refuse_format,
};
use pinwise_machine::linux::fail_writes_beyond_file_limit;
use terminal::Terminal;

/// Text is laid out for this many columns at least, and at most, on any terminal.
const MIN_WIDTH: usize = 40;
const MAX_WIDTH: usize = 200;

/// Runs pinwise with these arguments, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    fail_writes_beyond_file_limit();
    let arguments = idioms::replace_help_and_version(arguments.into_iter().collect());
    let (config, config_error) = match config::Config::load() {
        Ok(config) => (config, None),
        Err(error) => (config::Config::default(), Some(error)),
    };
    let parsed = usage::parse(&config, &arguments);
    // Help and version need no defaults: a broken file must not hide them.
    let needs_defaults = parsed.as_ref().err().is_none_or(clap::Error::use_stderr);
    if let Some(error) = config_error.filter(|_| needs_defaults) {
        Terminal::plain().error(&format!("{error:#}"));
        return Exit::Error;
    }
    let read_matches = |matches: ArgMatches| {
        let refusal = refuse_format(&matches);
        Ok((Cli::from_arg_matches(&matches)?, refusal))
    };
    let (mut cli, refusal) = match parsed.and_then(read_matches) {
        Ok(cli_and_refusal) => cli_and_refusal,
        Err(error) => return usage::report(&error, &arguments),
    };
    cli.global.argv = argv_for_records(arguments);
    if let Command::Compare(compare) = &mut cli.command {
        compare.default_places = config.places();
    }
    let terminal = Terminal::new(&cli.global);
    if let Err(error) = logging::start(cli.global.verbose) {
        terminal.error(&format!("{error:#}"));
        return Exit::Error;
    }
    if let Some(reason) = refusal {
        terminal.error(&reason);
        return Exit::Error;
    }
    let columns = terminal.columns();
    let columns = columns.map(|columns| columns.clamp(MIN_WIDTH, MAX_WIDTH));
    match pinwise_report::lay_out_for_columns(columns, || dispatch(cli, &terminal)) {
        Ok(exit) => exit,
        Err(error) => {
            terminal.error(&format!("{error:#}"));
            Exit::Error
        }
    }
}

/// The arguments as records keep them: without the store, whose address can contain a password and
/// which is not part of an experiment.
fn argv_for_records(arguments: Vec<OsString>) -> Vec<String> {
    let texts: Result<Vec<String>, _> = arguments.into_iter().map(OsString::into_string).collect();
    let mut words = texts.unwrap_or_default();
    if let Some(program) = words.first_mut() {
        *program = "pinwise".to_owned();
    }
    pinwise_record::remove_options(&words, &["--store"])
}

fn dispatch(cli: Cli, terminal: &Terminal) -> anyhow::Result<Exit> {
    let global = &cli.global;
    match cli.command {
        Command::Compare(args) => compare::compare(global, &args, terminal),
        Command::Search(args) => match &args.action {
            None => search::search(global, &args, terminal),
            Some(SearchAction::Predict(args)) => predict::predict(global, args, terminal),
            Some(SearchAction::Round(args)) => search::run_round(args, terminal),
        },
        Command::Gate(args) => gate::run_gate(global, &args, terminal),
        Command::Bench(args) => match &args.action {
            None => bench::run_bench(global, &args, terminal),
            Some(BenchAction::Kernel(args)) => kernel::run_kernel(global, args, terminal),
            Some(BenchAction::Jitter(args)) => jitter::run_jitter(global, args, terminal),
            Some(BenchAction::Recipes(args)) => recipes::run_recipes(global, args, terminal),
        },
        Command::Topology(args) => topology::run_topology(global, &args, terminal),
        Command::Doctor => host::run_doctor(global, terminal),
        Command::Trace(args) => trace::trace(global, &args, terminal),
        Command::Top(args) => top::run_top(global, &args, terminal),
        Command::Profile(args) => profile::profile(global, &args, terminal),
        Command::Spin(args) => spin::run_spin(global, &args, terminal),
        Command::Run(args) => host::run(global, &args, terminal),
        Command::Apply(args) => match &args.action {
            None => apply::apply(global, &args, terminal),
            Some(ApplyAction::Rules(args)) => rules::manage_rules(global, args, terminal),
            Some(ApplyAction::Restore(args)) => restore::restore(args, terminal),
        },
        Command::Record(args) => run_record_action(global, &args, terminal),
        Command::Serve(args) => serve::serve(global, &args, terminal),
        Command::Fleet(args) => fleet::run_fleet(global, &args, terminal),
        Command::Reproduce(args) => reproduce::reproduce(global, &args, terminal),
        Command::Completions(args) => generate::print_completions(&args, terminal),
        Command::Generate(args) => generate::generate(&args),
    }
}

fn run_record_action(
    global: &Global,
    args: &RecordArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        RecordAction::History(args) => history::run_history(global, args, terminal),
        RecordAction::Show(args) => history::show(global, args, terminal),
        RecordAction::Diff(args) => diff::diff(global, args, terminal),
        RecordAction::Report(args) => report::report(global, args, terminal),
        RecordAction::Tag(args) => tag::tag(global, args, terminal),
        RecordAction::Prune(args) => prune::prune(global, args, terminal),
        RecordAction::Copy(args) => store::copy(args, terminal),
    }
}
