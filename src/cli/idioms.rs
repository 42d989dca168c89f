//! Suggestions for users who type the commands and options of other tools.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use super::args::{self, HelpExtent};
use super::parser_words::to_one_line;
use super::plan::is_program;
use pinwise_spin::table::algorithms;

/// Other tools, and words for what commands do | what to type instead.
const COMMANDS: &str = "\
cyclictest osnoise hwlatdetect | pinwise doctor
lstopo lscpu topo cpus hwloc-ls hwloc-info hwloc-distances likwid-topology | pinwise topology
taskset numactl pin place bind exec hwloc-bind likwid-pin | pinwise run --place CPUS -- PROGRAM, such as --place 0 or --place one-per-core
hyperfine time measure benchmark cmp | pinwise compare 'COMMAND A' 'COMMAND B'
perf | pinwise profile -- PROGRAM, or pinwise trace -- PROGRAM
stat sched strace timehist | pinwise trace -- PROGRAM
list ls log records | pinwise record list
latency c2c core-to-core-latency stream bandwidth | pinwise topology --measure
noise self aa | pinwise compare --self -- PROGRAM";

/// Options of other tools | the equivalent option here, which is named if the command has it | what
/// to type instead. `@NAME` stands for the command of this name, whatever its options. The last
/// five are of options before any command.
const OPTIONS: &str = "\
-m --min-runs | max-runs | the number of runs is chosen while measuring; -r N limits it per arm
-s --setup | prepare | arms take turns: run it once before pinwise, or before every run with -p
-p | pid | --pid PID attaches to a running process
-a --all-cpus | all | --all traces everything on the machine
--svg --png | explain | pinwise record report last draws a measured machine; --format xml is for lstopo
-c -C --cleanup | conclude | arms take turns: --conclude COMMAND runs after every run; CPUs are --place LIST, such as --place 0
--ignore-failure | ignore-failure | it takes no value and accepts any exit status; for some, --shell sh 'COMMAND || test $? = 1'
-u --time-unit | max-runs | units are chosen automatically; --format json has seconds
-D --parameter-scan --parameter-step-size | parameter | -P NAME=1..8 sweeps a parameter, -P NAME=0.5..2..0.5 in steps
--threads --jobs | threads-env | pass the number on, as in --parameter threads=2,4 'prog -t {threads}', or --threads-env 4 sets OMP_NUM_THREADS and the like
--reference --reference-name | baseline | write it as a command; --baseline ARM chooses the arm to compare with, --name names it
-c -C --cpus --cpu --physcpubind --cpunodebind --cpu-list | place | --place LIST names CPUs, such as --place 0; --place one-numa:0 a node
--export-asciidoc --export-orgmode | export-markdown | --export-markdown FILE writes a table
-o | export-json | --export-json FILE writes the record; pinwise record report last --help has the page
-F --freq --frequency | hz | --hz N sets the samples per second of CPU time
-g --call-graph | stacks | --stacks HOW chooses how callers are found; they always are
-d -t --duration --timeout --seconds | for | --for 10s ends it after that time
--membind --preferred | place | --place one-numa:0/mem=bind binds the memory to a node, too
--interleave -i | place | --place os-default/mem=interleave spreads the memory over all nodes
--localalloc -l | place | --place os-default/mem=local keeps memory on the node of the thread that uses it first
--style | max-runs | -q hides progress and notes, --color never disables colours
--sort | max-runs | arms are listed in the order in which they are given
--min-benchmarking-time | max-runs | --budget is the total time, --precision the interval width to stop at
--of --output-format -p --physical -l --logical --whole-io --no-io --only | explain | --format xml writes hwloc XML for lstopo; CPUs have the kernel's numbers
--json | format | --format json prints the record
--numa --nodes --caches --cores | @topology | nodes, caches and cores are always shown; --format json has all of them
--fix --repair | @doctor | doctor changes nothing; every finding names the command that helps
--all -a | @prune | --keep 0 selects all records, with --yes to remove them
-d --delay | @top | --interval 1s is the time between frames
-n --lines --max-count | limit | --limit N lists at most N records
-c -C -N --cpu-list --physcpubind --cpunodebind | version | pinwise run --place 0 -- PROGRAM runs it on CPU 0, --place one-numa:0/mem=bind on a node with its memory
-m --membind --preferred | version | pinwise run --place one-numa:0/mem=bind -- PROGRAM runs it on a node with its memory
-i --interleave | version | pinwise run --place os-default/mem=interleave -- PROGRAM spreads its memory over all nodes
-l --localalloc | version | pinwise run --place os-default/mem=local -- PROGRAM keeps memory on the node of the thread that uses it first
-p -pc --pid -a --all-tasks | version | pinwise apply --pid PID --place 0 places a running process on CPU 0
-H --hardware -s --show | version | pinwise topology shows nodes, caches, cores and allowed CPUs";

/// Finds the rows of a table with this word in the first column; returns the other columns.
fn find_rows<'a>(table: &'static str, word: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    table.lines().filter_map(move |row| {
        let (words, rest) = row.split_once(" | ")?;
        words.split(' ').any(|known| known == word).then_some(rest)
    })
}

/// Turns `help COMMAND` into `COMMAND --help`, and `version` into `--version`.
pub(super) fn replace_help_and_version(mut arguments: Vec<OsString>) -> Vec<OsString> {
    match arguments.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            arguments.remove(1);
            arguments.push("--help".into());
        }
        Some("version") => arguments[1] = "--version".into(),
        _ => {}
    }
    arguments
}

/// How much help the arguments request.
pub(super) fn find_requested_help(arguments: &[OsString]) -> HelpExtent {
    let own = || arguments.iter().take_while(|word| *word != "--");
    // Short options may be combined.
    let is_short =
        |word: &[u8]| word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'h');
    if own().any(|word| word == "--help") {
        HelpExtent::Long
    } else if own().any(|word| is_short(word.as_encoded_bytes())) {
        HelpExtent::Brief
    } else {
        HelpExtent::None
    }
}

/// Renders the help of the command, for one that lacks its subcommand.
pub(super) fn render_help_of(arguments: &[OsString]) -> String {
    find_command(arguments).render_help().to_string()
}

/// The help of a subcommand that was called by another name (`record remove`), with that name in
/// its usage; `None` for any other.
pub(super) fn name_help_by_alias(help: &str, arguments: &[OsString]) -> Option<String> {
    let command = args::build_command(HelpExtent::Brief);
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let outer = words.find_map(|word| command.find_subcommand(word))?;
    let typed = words.next()?;
    let inner = outer.find_subcommand(typed)?.get_name();
    let [usual, typed] = [inner, typed].map(|inner| {
        let outer = outer.get_name();
        format!("Usage: pinwise {outer} {inner}")
    });
    (usual != typed).then(|| help.replacen(&usual, &typed, 1))
}

fn find_command(arguments: &[OsString]) -> Command {
    let extent = match find_requested_help(arguments) {
        HelpExtent::None => HelpExtent::Brief,
        extent => extent,
    };
    let mut command = args::build_command(extent);
    command.build();
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        let inner = command.find_subcommand(word).cloned();
        command = inner.unwrap_or(command);
    }
    command
}

/// Finds a subcommand of this name; how to type it.
fn find_nested(word: &str) -> Option<String> {
    let command = args::build_command(HelpExtent::Brief);
    // Subcommands of `record` come first: they apply to all kinds of records.
    let record = command.find_subcommand("record").into_iter();
    let mut outer = record.chain(command.get_subcommands());
    let outer = outer.find(|outer| outer.find_subcommand(word).is_some())?;
    Some(format!("pinwise {} {word}", outer.get_name()))
}

/// Suggests a command whose beginning and end are nearly those of the word.
fn suggest_command(word: &str) -> Option<String> {
    let command = args::build_command(HelpExtent::Brief);
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

/// Explains an error by what to type instead of another tool's command or option.
pub(super) fn explain(error: &Error, arguments: &[OsString]) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            if let Some(line) = suggest_for_program(word, &find_command(arguments), arguments) {
                return Some(format!("no such command: '{word}'; {line}"));
            }
            let instead = find_rows(COMMANDS, word).next().map(str::to_owned);
            let instead = instead
                .or_else(|| find_nested(word))
                .or_else(|| suggest_command(word));
            Some(match instead {
                Some(instead) => format!("no such command: '{word}'; try {instead}"),
                None => format!(
                    "no such command: '{word}'; to measure a program: pinwise compare -- PROGRAM"
                ),
            })
        }
        ErrorKind::UnknownArgument => {
            explain_unknown_argument(word(ContextKind::InvalidArg)?, arguments)
        }
        ErrorKind::MissingRequiredArgument => {
            let line = to_one_line(error);
            let hint = match line.as_str() {
                "missing: A; B" => ", two records, such as last~1 last",
                "missing: B" => ", the later record, such as last",
                "missing: ID" => ", such as last (the newest record) or last~1 (the one before)",
                _ => return None,
            };
            let command = find_command(arguments);
            let is_of_records = command.get_bin_name()?.starts_with("pinwise record ");
            is_of_records.then(|| format!("{line}{hint}"))
        }
        ErrorKind::InvalidValue => {
            let lacks_value = word(ContextKind::InvalidValue).is_none_or(str::is_empty);
            let is_algorithm = word(ContextKind::InvalidArg)?.starts_with("--algorithm");
            (lacks_value && is_algorithm).then(|| {
                let ids: Vec<&str> = algorithms().map(|row| row.id).collect();
                format!("--algorithm: name one of {}", ids.join(", "))
            })
        }
        ErrorKind::TooManyValues => {
            let word = word(ContextKind::InvalidArg)?;
            let instead = find_equivalent(word, &find_command(arguments))?;
            Some(format!("{word}: {instead}"))
        }
        ErrorKind::ArgumentConflict => {
            let has = |kind, name: &str| word(kind).is_some_and(|word| word.starts_with(name));
            let is_twice =
                has(ContextKind::InvalidArg, "[COMMAND") && has(ContextKind::PriorArg, "[COMMAND");
            let line = to_one_line(error);
            let names_one = |names: [&str; 3]| names.iter().any(|name| line.contains(name));
            if names_one(["--pid <", "--unit <", "--cgroup <"])
                && names_one(["--limit <", "--exclusive <", "--isolate <"])
            {
                return Some(format!(
                    "{line}: a running service stays in its cgroup; give its command after --, so that each run starts it, or set the limit yourself: systemctl set-property UNIT CPUQuota=100%"
                ));
            }
            is_twice.then(|| {
                "words stand before -- and a command after it: keep one; every value has its option, as in --place A --place B".to_owned()
            })
        }
        _ => None,
    }
}

/// Explains that the command has no such option or argument.
fn explain_unknown_argument(word: &str, arguments: &[OsString]) -> Option<String> {
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_meant = |pair: &&[OsString]| {
        let [option, value] = [0, 1].map(|index| pair[index].to_string_lossy());
        option.starts_with("--") && value.starts_with(word)
    };
    if word.strip_prefix('-').is_some_and(is_number)
        && let Some([option, number]) = arguments.windows(2).find(is_meant)
    {
        let [option, number] = [option, number].map(|word| word.to_string_lossy());
        return Some(format!("{option} {number}: write a number, not below 0"));
    }
    let command = find_command(arguments);
    let name = command.get_bin_name().unwrap_or("pinwise");
    let takes_program = command.get_arguments().any(Arg::is_last_set);
    let has_pid = command.get_arguments().any(|arg| arg.get_id() == "pid");
    if has_pid && word.parse::<u32>().is_ok() {
        return Some(format!(
            "unexpected argument '{word}'; a process is given by --pid {word}"
        ));
    }
    if takes_program && let Some(line) = move_after_dashes(word, &command, arguments) {
        return Some(format!(
            "unexpected argument '{word}'; write a program after --: {line}"
        ));
    }
    if takes_program && !word.starts_with('-') {
        let line = pinwise_workload::Command::from_line(word).ok();
        let needs_shell = line.and_then(|command| command.find_shell_syntax(Some(word)));
        let program = match needs_shell {
            Some(_) => format!("sh -c {}", shell_words::quote(word)),
            None => word.to_owned(),
        };
        return Some(format!(
            "unexpected argument '{word}'; write a program after --: {name} -- {program}"
        ));
    }
    if let Some(line) = suggest_for_program(word, &command, arguments) {
        return Some(format!("unexpected argument '{word}'; {line}"));
    }
    if let Some(instead) = find_equivalent(word, &command) {
        return Some(format!("no such option: {word}; {instead}"));
    }
    if let Some(line) = suggest_subcommand(word, &command, arguments) {
        return Some(format!("no such option: {word}; try {line}"));
    }
    let words = arguments.iter().map(|word| word.to_string_lossy());
    let own = words.skip_while(|word| *word != command.get_name()).skip(1);
    let program: Vec<_> = own
        .take_while(|word| word != "--")
        .skip_while(|word| !looks_like_program(word))
        .collect();
    let has_option = program.iter().any(|argument| argument.starts_with(word));
    (takes_program && has_option).then(|| {
        let line = shell_words::join(program);
        format!(
            "unexpected argument '{word}'; write a program with options after --: {name} -- {line}"
        )
    })
}

/// A path means a program even if it does not exist.
fn looks_like_program(word: &str) -> bool {
    is_program(word) || word.starts_with(['.', '/'])
}

/// Options of `perf record`, whose users type `record` first.
const PERF_OPTIONS: [&str; 8] = ["-g", "-F", "-e", "-c", "-o", "-a", "-p", "--call-graph"];

/// What to type to examine a program with a command that has only subcommands, if that is meant:
/// `spin ./prog`, `record -g ./prog`.
fn suggest_for_program(word: &str, command: &Command, arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let own = &words[words.iter().position(|own| own == command.get_name())? + 1..];
    let after_dashes = own.iter().position(|word| word == "--").map(|at| at + 1);
    let first = after_dashes.or_else(|| own.iter().position(|word| looks_like_program(word)));
    let program = first.map(|at| &own[at..]).filter(|words| !words.is_empty());
    let is_of_perf = PERF_OPTIONS.contains(&word);
    let is_for_program = program.is_some_and(|words| words[0] == word);
    let program = program.map_or("PROGRAM".to_owned(), shell_words::join);
    match command.get_bin_name()? {
        "pinwise spin" if is_for_program => Some(format!(
            "for the spin-waits of a program: pinwise spin attach -- {program}"
        )),
        "pinwise record" if is_for_program || is_of_perf => Some(format!(
            "record is for stored records; to profile a program: pinwise profile -- {program}"
        )),
        _ => None,
    }
}

/// The line with the program, which begins with `word`, after `--`; without the `record` and `stat`
/// of perf. `None` if the word is not the only one out of place.
fn move_after_dashes(word: &str, command: &Command, arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let from = words.iter().position(|own| own == command.get_name())? + 1;
    let at = from + words[from..].iter().position(|own| own == word)?;
    let (options, program) = (&words[1..at], &words[at..]);
    let program = match ["record", "stat"].contains(&word) {
        true => match program.iter().position(|word| looks_like_program(word)) {
            Some(first) => &program[first..],
            None => return Some(format!("{} -- PROGRAM", command.get_bin_name()?)),
        },
        false if program.len() > 1 && !word.starts_with('-') => program,
        false => return None,
    };
    let is_own = |word: &&String| {
        let name = word.split('=').next().unwrap_or_default();
        let mut long = command.get_arguments().filter_map(Arg::get_long);
        long.any(|long| name.strip_prefix("--") == Some(long))
    };
    // Options of pinwise behind the program come before it.
    let end = program
        .iter()
        .position(|word| is_own(&word) || word == "--");
    let (program, later) = program.split_at(end.unwrap_or(program.len()));
    if later.iter().any(|word| word == "--") {
        return None;
    }
    let line = [
        &["pinwise".to_owned()],
        options,
        later,
        &["--".to_owned()],
        program,
    ]
    .concat();
    Some(shell_words::join(line))
}

/// Suggests the same line with the subcommand that has this option, for a command that needs one.
fn suggest_subcommand(word: &str, command: &Command, arguments: &[OsString]) -> Option<String> {
    let long = word.strip_prefix("--")?;
    let has = |inner: &&Command| {
        inner
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    };
    let is_outer = command.is_subcommand_required_set() && command.get_name() != "pinwise";
    let inner = command.get_subcommands().filter(|_| is_outer).find(has)?;
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    let mut words: Vec<_> = words.collect();
    let at = words.iter().position(|word| *word == command.get_name())?;
    words.insert(at + 1, inner.get_name().into());
    Some(format!("pinwise {}", shell_words::join(words)))
}

/// What to type instead of another tool's option, if this command has its equivalent.
fn find_equivalent(word: &str, command: &Command) -> Option<&'static str> {
    let has = |option: &str| {
        let mut known = command.get_arguments().filter_map(Arg::get_long);
        option.strip_prefix('@') == Some(command.get_name()) || known.any(|long| long == option)
    };
    let mut meant = find_rows(OPTIONS, word).filter_map(|row| row.split_once(" | "));
    meant.find(|row| has(row.0)).map(|row| row.1)
}
