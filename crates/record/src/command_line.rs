//! Commands to copy: those that apply an answer, and those that repeat an experiment.
//!
//! Arguments are quoted by [`pinwise_format::shell`]. A list of CPUs or nodes is put into a command
//! only if it has nothing but digits, commas and dashes.

use pinwise_format::shell;
use serde::{Deserialize, Serialize};

/// A command to copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandRecord {
    /// What it does, to follow "Run it": `with taskset`.
    pub what: String,
    /// The line for a shell.
    pub line: String,
}

/// Stands for a recipe's program, whose folder no longer exists.
const PROGRAM_PLACEHOLDER: &str = "PROGRAM";

/// A command with its placement: the parts of the commands to copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedCommand<'a> {
    /// The program with its arguments, after the words of its launcher; `None` for a recipe.
    pub(super) command: Option<&'a [String]>,
    /// Variables added to the environment.
    pub(super) environment: &'a [(String, String)],
    /// File on standard input.
    pub(super) input: Option<&'a str>,
    /// The placement's name.
    pub(super) placement: &'a str,
    /// Is each thread bound to one CPU? A mask cannot express that.
    pub(super) is_bound: bool,
    /// Its CPUs, as a list.
    pub(super) cpus: &'a str,
    /// Memory policy and its nodes.
    pub(super) memory: Option<(&'a str, &'a [usize])>,
}

impl PlacedCommand<'_> {
    /// Commands that run the program there, the plainest first.
    pub(super) fn list_commands(&self) -> Vec<CommandRecord> {
        let program = self.write_program();
        let tool_words = self.system_tool_words();
        if tool_words.as_ref().is_some_and(Vec::is_empty) {
            return vec![CommandRecord {
                what: "as it is".to_owned(),
                line: program,
            }];
        }
        let tool = tool_words
            .filter(|_| !self.is_bound)
            .map(|words| CommandRecord {
                what: format!("with {}", words[0]),
                line: format!("{} {program}", shell::line(&words)),
            });
        let words = ["pinwise", "run", "--place", self.placement, "--"];
        let pinwise = CommandRecord {
            what: "with pinwise".to_owned(),
            line: format!("{} {program}", shell::line(&words)),
        };
        tool.into_iter().chain([pinwise]).collect()
    }

    /// The program with its environment and input.
    fn write_program(&self) -> String {
        self.write_program_with(str::to_owned)
    }

    /// As [`Self::write_program`], with each word escaped for what starts the program.
    pub(super) fn write_program_with(&self, escape: impl Fn(&str) -> String) -> String {
        let mut words: Vec<String> = Vec::new();
        if !self.environment.is_empty() {
            words.push("env".to_owned());
            let variables = self.environment.iter();
            words.extend(variables.map(|(name, value)| escape(&format!("{name}={value}"))));
        }
        match self.command {
            Some(command) => words.extend(command.iter().map(|word| escape(word))),
            None => words.push(PROGRAM_PLACEHOLDER.to_owned()),
        }
        let input = self
            .input
            .map_or_else(String::new, |input| format!(" < {}", shell::word(input)));
        format!("{}{input}", shell::line(&words))
    }

    /// The words of the system's tool (taskset or numactl) for this placement; `None` if it cannot
    /// express it, `[]` if no tool is needed.
    fn system_tool_words(&self) -> Option<Vec<String>> {
        let is_default = self.placement == "os-default";
        let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        let Some((policy, nodes)) = self.memory else {
            return match is_default {
                true => Some(Vec::new()),
                false => words(&["taskset", "-c", check_cpu_list(self.cpus)?]),
            };
        };
        let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let nodes = nodes.join(",");
        let memory = match policy {
            "local" => "--localalloc".to_owned(),
            "bind" => format!("--membind={nodes}"),
            "interleave" => format!("--interleave={nodes}"),
            "weighted" => format!("--weighted-interleave={nodes}"),
            "preferred" if nodes.contains(',') => format!("--preferred-many={nodes}"),
            "preferred" => format!("--preferred={nodes}"),
            _ => return None,
        };
        words(&["numactl", "-C", check_cpu_list(self.cpus)?, &memory])
    }
}

/// Returns a list of CPUs only if it may be put into a command.
fn check_cpu_list(text: &str) -> Option<&str> {
    let is_list = |c: char| c.is_ascii_digit() || c == ',' || c == '-';
    (!text.is_empty() && text.chars().all(is_list)).then_some(text)
}

/// Removes options of pinwise with their values from a command line; words after `--` belong to
/// another program. A short option may include its value: `-r15`.
#[must_use]
pub fn remove_options(argv: &[String], options: &[&str]) -> Vec<String> {
    let end = argv.iter().position(|word| word == "--");
    let (own_words, command) = argv.split_at(end.unwrap_or(argv.len()));
    let mut is_value = false;
    let kept = own_words.iter().filter(|word| {
        let was_value = std::mem::take(&mut is_value);
        let option = word.split_once('=').map_or(&***word, |(option, _)| option);
        let mut short = options.iter().filter(|name| name.len() == 2);
        let is_removed = options.contains(&option) || short.any(|name| word.starts_with(name));
        is_value = !was_value && options.contains(&word.as_str());
        !was_value && !is_removed
    });
    kept.chain(command).cloned().collect()
}

/// The command of a study with these effort options in place of its own; `None` if it was not
/// started by a command line. `study` is the subcommand.
#[must_use]
pub fn replace_effort(argv: &[String], study: &str, options: &[(&str, String)]) -> Option<String> {
    let mut words = argv.to_vec();
    for (name, _) in options {
        words = match *name {
            "--max-runs" => remove_options(&words, &["--max-runs", "--runs", "-r", "-M"]),
            name => remove_options(&words, &[name]),
        };
    }
    let own = words.iter().take_while(|word| *word != "--");
    let after_study = own.skip(1).position(|word| word == study)? + 2;
    let more = options.iter();
    let more = more.flat_map(|(name, value)| [(*name).to_owned(), value.clone()]);
    words.splice(after_study..after_study, more);
    Some(shell::line(&words))
}

/// Options of a search that a comparison does not have, or that have another meaning there.
const SEARCH_OPTIONS: [&str; 7] = [
    "--threads",
    "--max-slowdown",
    "--confirm",
    "--max-runs",
    "--runs",
    "-r",
    "--budget",
];

/// The command of a comparison that measures directly what a search predicted, with this option in
/// place of its threads; `None` if the search was not started by a command line.
#[must_use]
pub fn to_comparison_command(argv: &[String], threads: Option<(&str, String)>) -> Option<String> {
    let mut words = remove_options(argv, &SEARCH_OPTIONS);
    let own = words.iter().take_while(|word| *word != "--");
    let at = own.skip(1).position(|word| word == "search")? + 1;
    let threads = threads.map(|(name, value)| [name.to_owned(), value]);
    let compare = std::iter::once("compare".to_owned());
    words.splice(at..=at, compare.chain(threads.into_iter().flatten()));
    Some(shell::line(&words))
}

/// Options that name files to write: repeating an experiment should not overwrite them.
const OUTPUT_OPTIONS: [&str; 6] = [
    "--export-csv",
    "--export-hyperfine",
    "--export-json",
    "--export-markdown",
    "--export",
    "--report",
];

/// The command that repeats an experiment: its arguments, with the drawn seed if none was given,
/// and without options that write files. `study` is the subcommand.
#[must_use]
pub fn repeat_command(argv: &[String], study: &str, seed: u64) -> Option<String> {
    let mut words = remove_options(argv, &OUTPUT_OPTIONS);
    let own = words.iter().take_while(|word| *word != "--");
    let has_seed = own.clone().any(|word| word.starts_with("--seed"));
    let at = own.skip(1).position(|word| word == study)? + 1;
    if !has_seed {
        words.splice(at + 1..=at, ["--seed".to_owned(), seed.to_string()]);
    }
    Some(shell::line(&words))
}

/// The command that measures the question of an experiment anew: its arguments without a seed, and
/// without options that write files; `None` if it was not started by a command line.
#[must_use]
pub fn renew_command(argv: &[String], study: &str) -> Option<String> {
    renew_command_with(argv, study, &[])
}

/// As [`renew_command`], with these options in place of its own.
#[must_use]
pub fn renew_command_with(
    argv: &[String],
    study: &str,
    options: &[(&str, String)],
) -> Option<String> {
    let words = remove_options(&remove_options(argv, &OUTPUT_OPTIONS), &["--seed"]);
    replace_effort(&words, study, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: [&str; 2] = ["./prog", "a b"];

    #[track_caller]
    fn check_commands(change: impl Fn(&mut PlacedCommand<'_>), lines: &[&str]) {
        let command = COMMAND.map(str::to_owned).to_vec();
        let mut placed = PlacedCommand {
            command: Some(&command),
            environment: &[],
            input: None,
            placement: "one-llc",
            is_bound: false,
            cpus: "0-3",
            memory: None,
        };
        change(&mut placed);
        let listed = placed.list_commands();
        let listed: Vec<&str> = listed.iter().map(|command| command.line.as_str()).collect();
        assert_eq!(listed, lines);
    }

    #[test]
    fn an_arm_is_run_with_taskset_and_with_pinwise() {
        let pinwise = "pinwise run --place one-llc -- ./prog 'a b'";
        check_commands(|_| (), &["taskset -c 0-3 ./prog 'a b'", pinwise]);
        // No mask says on which CPU each thread runs.
        check_commands(|placed| placed.is_bound = true, &[pinwise]);
        check_commands(|placed| placed.placement = "os-default", &["./prog 'a b'"]);
    }

    #[test]
    fn memory_environment_and_input_are_passed_on() {
        let environment = [("A".to_owned(), "x y".to_owned())];
        // Built directly: the closure of check_commands cannot lend its own variables.
        let command = COMMAND.map(str::to_owned).to_vec();
        let placed = PlacedCommand {
            command: Some(&command),
            environment: &environment,
            input: Some("in put"),
            placement: "one-llc/mem=bind",
            is_bound: false,
            cpus: "0-3",
            memory: Some(("bind", &[0, 1])),
        };
        let listed: Vec<String> = placed.list_commands().into_iter().map(|c| c.line).collect();
        assert_eq!(
            listed,
            [
                "numactl -C 0-3 --membind=0,1 env 'A=x y' ./prog 'a b' < 'in put'",
                "pinwise run --place one-llc/mem=bind -- env 'A=x y' ./prog 'a b' < 'in put'",
            ]
        );
    }

    #[test]
    fn only_valid_lists_of_cpus_enter_commands() {
        let only = ["pinwise run --place one-llc -- ./prog 'a b'"];
        check_commands(|placed| placed.cpus = "0;touch x", &only);
        check_commands(|placed| placed.cpus = "", &only);
        check_commands(
            |placed| placed.memory = Some(("of-a-newer-version", &[0])),
            &only,
        );
    }

    #[test]
    fn effort_options_are_replaced_in_all_their_forms() {
        let with = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            replace_effort(&argv, "compare", &[("--max-runs", "40".to_owned())])
        };
        let wanted = "pinwise compare --max-runs 40 -q -- prog -r 5";
        for runs in ["--max-runs 15", "--runs=15", "-r 15", "-M15", "-r=15"] {
            let line = format!("pinwise compare {runs} -q -- prog -r 5");
            assert_eq!(with(&line).as_deref(), Some(wanted), "{runs}");
        }
        assert_eq!(with("pinwise search -- prog"), None);
    }

    #[test]
    fn search_command_becomes_a_comparison() {
        let compared = |line: &str, threads| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            to_comparison_command(&argv, threads)
        };
        let line = "pinwise search --threads 2 --confirm=3 -r9 --input a.txt -- prog --threads 2";
        assert_eq!(
            compared(line, Some(("--threads-env", "2".to_owned()))).unwrap(),
            "pinwise compare --threads-env 2 --input a.txt -- prog --threads 2"
        );
        assert_eq!(
            compared("pinwise --store none search prog", None).unwrap(),
            "pinwise --store none compare prog"
        );
        assert_eq!(compared("pinwise compare -- search", None), None);
    }

    #[test]
    fn experiment_is_repeated_with_its_seed() {
        let repeat = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            repeat_command(&argv, "compare", 7)
        };
        assert_eq!(
            repeat("pinwise --machine sim:a compare --shell x -- p --seed").unwrap(),
            "pinwise --machine sim:a compare --seed 7 --shell x -- p --seed"
        );
        let seeded = "pinwise compare --seed=3 -- p";
        assert_eq!(repeat(seeded).unwrap(), seeded);
        assert_eq!(repeat("pinwise fleet node -- compare"), None);
        let written = "pinwise compare --seed 3 --report a.html --export-json=b.json -p c";
        assert_eq!(
            repeat(&format!("{written} -- p --report d")).unwrap(),
            "pinwise compare --seed 3 -p c -- p --report d"
        );
    }
}
