//! What people type who come from other tools, and what it is called here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use super::args::{self, HelpExtent};

/// Other tools, and words for what commands do: what to type instead.
const COMMANDS: [(&[&str], &str); 9] = [
    (&["cyclictest", "osnoise", "hwlatdetect"], "pinwise doctor"),
    (
        &[
            "lstopo",
            "lscpu",
            "topo",
            "cpus",
            "hwloc-ls",
            "hwloc-info",
            "hwloc-distances",
            "likwid-topology",
        ],
        "pinwise topology",
    ),
    (
        &[
            "taskset",
            "numactl",
            "pin",
            "bind",
            "exec",
            "hwloc-bind",
            "likwid-pin",
        ],
        "pinwise run --place CPUS -- PROGRAM, such as --place 0 or --place one-per-core",
    ),
    (
        &["hyperfine", "time", "measure", "benchmark", "cmp"],
        "pinwise compare 'COMMAND A' 'COMMAND B'",
    ),
    (
        &["perf"],
        "pinwise profile -- PROGRAM, or pinwise trace -- PROGRAM",
    ),
    (
        &["stat", "sched", "strace", "timehist"],
        "pinwise trace -- PROGRAM",
    ),
    (&["list", "ls", "log", "records"], "pinwise record history"),
    (
        &[
            "latency",
            "c2c",
            "core-to-core-latency",
            "stream",
            "bandwidth",
        ],
        "pinwise topology --measure",
    ),
    (
        &["noise", "self", "aa"],
        "pinwise compare --self -- PROGRAM",
    ),
];

/// Options of other tools: the option here that does it, and how. It is said
/// where the command has that option.
const OPTIONS: [(&[&str], &str, &str); 18] = [
    (
        &["-m", "-M", "--min-runs"],
        "max-runs",
        "the number of runs is chosen while measuring; -r N is the most per arm",
    ),
    (
        &["-s", "--setup"],
        "prepare",
        "arms take turns: run it once before pinwise, or before every run with -p",
    ),
    (
        &["-p"],
        "pid",
        "--pid PID looks at a process that runs already",
    ),
    (
        &["-a", "--all-cpus"],
        "all",
        "--all traces everything on the machine",
    ),
    (
        &["--svg", "--png"],
        "explain",
        "pinwise record report last draws a measured machine; --format xml is for lstopo",
    ),
    (&["-S"], "shell", "--shell=SHELL passes commands to a shell"),
    (
        &["-u", "--time-unit"],
        "max-runs",
        "figures choose their unit; --format json has them in seconds",
    ),
    (
        &["-D", "--parameter-scan", "--parameter-step-size"],
        "parameter",
        "-P NAME=1..8 sweeps a parameter",
    ),
    (
        &["--reference"],
        "baseline",
        "--baseline ARM names what others are compared with",
    ),
    (
        &[
            "-c",
            "-C",
            "--cpus",
            "--cpu",
            "--physcpubind",
            "--cpunodebind",
            "--cpu-list",
        ],
        "place",
        "--place 0-3 names CPUs, --place one-numa:0 a node",
    ),
    (
        &["--export-asciidoc", "--export-orgmode"],
        "export-markdown",
        "--export-markdown FILE writes a table",
    ),
    (
        &["--style"],
        "max-runs",
        "-q leaves progress and notes out, --color never the colours",
    ),
    (
        &["--sort"],
        "max-runs",
        "arms stand in the order in which they are given",
    ),
    (
        &["--min-benchmarking-time"],
        "max-runs",
        "--budget is the time for everything, --precision the width that ends it",
    ),
    (
        &[
            "--of",
            "--output-format",
            "-p",
            "--physical",
            "-l",
            "--logical",
            "--whole-io",
            "--no-io",
            "--only",
        ],
        "explain",
        "--format xml writes hwloc's, which lstopo draws; CPUs have the kernel's numbers",
    ),
    // These stand before any command.
    (
        &[
            "-c",
            "-C",
            "-N",
            "-m",
            "-i",
            "-l",
            "--cpu-list",
            "--physcpubind",
            "--cpunodebind",
            "--membind",
            "--preferred",
            "--localalloc",
            "--interleave",
        ],
        "version",
        "pinwise run --place 0-3 -- PROGRAM runs it there, --place 0-3/mem=bind with its memory",
    ),
    (
        &["-p", "-pc", "--pid", "-a", "--all-tasks"],
        "version",
        "pinwise apply --pid PID --place 0-3 places what runs already",
    ),
    (
        &["-H", "--hardware", "-s", "--show"],
        "version",
        "pinwise topology shows nodes, caches, cores and what is allowed",
    ),
];

/// `help COMMAND` as `COMMAND --help`.
pub(super) fn with_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// How much help is asked for.
pub(super) fn extent_of(arguments: &[OsString]) -> HelpExtent {
    let own = || arguments.iter().take_while(|word| *word != "--");
    // Short options may stand together.
    let is_short = |word: &[u8]| word.starts_with(b"-") && word.contains(&b'h');
    if own().any(|word| word == "--help") {
        HelpExtent::Long
    } else if own().any(|word| is_short(word.as_encoded_bytes())) {
        HelpExtent::Brief
    } else {
        HelpExtent::Unseen
    }
}

/// The help of the command that stands there, without what it should do.
pub(super) fn help_of(arguments: &[OsString]) -> String {
    command_of(arguments).render_help().to_string()
}

fn command_of(arguments: &[OsString]) -> Command {
    let extent = match extent_of(arguments) {
        HelpExtent::Unseen => HelpExtent::Brief,
        extent => extent,
    };
    let mut command = args::command(extent);
    command.build();
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        let inner = command.find_subcommand(word).cloned();
        command = inner.unwrap_or(command);
    }
    command
}

/// The command below another one that is called so, as it is typed.
fn nested(word: &str) -> Option<String> {
    let command = args::command(HelpExtent::Brief);
    // What is done with records comes before what only some kinds have.
    let record = command.find_subcommand("record").into_iter();
    let mut outer = record.chain(command.get_subcommands());
    let outer = outer.find(|outer| outer.find_subcommand(word).is_some())?;
    Some(format!("pinwise {} {word}", outer.get_name()))
}

/// The command that begins like this word and ends like it, or nearly.
fn near(word: &str) -> Option<String> {
    let command = args::command(HelpExtent::Brief);
    let shared = |a: &mut dyn Iterator<Item = (char, char)>| a.take_while(|(a, b)| a == b).count();
    let is_near = |name: &str| {
        let first = shared(&mut word.chars().zip(name.chars()));
        let last = shared(&mut word.chars().rev().zip(name.chars().rev()));
        first + last + 2 >= name.len().max(word.len()) && first + last >= 3
    };
    let mut names = command.get_subcommands().map(Command::get_name);
    let name = names.find(|name| is_near(name))?;
    Some(format!("pinwise {name}"))
}

/// What to type instead of a command or an option that other tools have.
pub(super) fn hint(error: &Error, arguments: &[OsString]) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            let instead = COMMANDS.iter().find(|(words, _)| words.contains(&word));
            let instead = instead.map(|(_, instead)| (*instead).to_owned());
            let instead = instead.or_else(|| nested(word)).or_else(|| near(word));
            Some(match instead {
                Some(instead) => format!("no such command: '{word}'; try {instead}"),
                None => format!(
                    "no such command: '{word}'; a program is measured by pinwise compare -- PROGRAM"
                ),
            })
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let command = command_of(arguments);
            let has = |option: &str| {
                let mut known = command.get_arguments().filter_map(Arg::get_long);
                known.any(|long| long == option)
            };
            if !word.starts_with('-') && command.get_arguments().any(Arg::is_last_set) {
                let name = command.get_bin_name().unwrap_or("pinwise");
                return Some(format!(
                    "unexpected argument '{word}'; a program stands after --: {name} -- {word}"
                ));
            }
            let mut meant = OPTIONS.iter().filter(|row| row.0.contains(&word));
            let (_, _, instead) = meant.find(|(_, option, _)| has(option))?;
            Some(format!("no such option: {word}; {instead}"))
        }
        _ => None,
    }
}
