//! Commands to copy: what applies an answer, and what makes a record again.
//!
//! Arguments are quoted by [`pinwise_format::shell`]. A list of CPUs or nodes with anything but
//! digits, commas and dashes is never put into a command.

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

/// Placeholder for a recipe's program, whose folder no longer exists.
const PROGRAM: &str = "PROGRAM";

/// What is run where: the parts of every command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    /// The program with its arguments, and what precedes them; `None` for a recipe.
    pub(super) command: Option<&'a [String]>,
    /// Added environment.
    pub(super) environment: &'a [(String, String)],
    /// File on standard input.
    pub(super) input: Option<&'a str>,
    /// The placement's name.
    pub(super) placement: &'a str,
    /// Has each thread a CPU of its own? No mask says so.
    pub(super) is_bound: bool,
    /// Its CPUs, as a list.
    pub(super) cpus: &'a str,
    /// Memory policy and its nodes.
    pub(super) memory: Option<(&'a str, &'a [usize])>,
}

impl Placed<'_> {
    /// Commands that run it there, the plainest first.
    pub(super) fn commands(&self) -> Vec<CommandRecord> {
        let program = self.program();
        let own = self.own();
        if own.as_ref().is_some_and(Vec::is_empty) {
            return vec![CommandRecord {
                what: "as it is".to_owned(),
                line: program,
            }];
        }
        let tool = own.filter(|_| !self.is_bound).map(|words| CommandRecord {
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
    fn program(&self) -> String {
        self.program_of(str::to_owned)
    }

    /// The same, with each word as its starter needs it.
    pub(super) fn program_of(&self, given: impl Fn(&str) -> String) -> String {
        let mut words: Vec<String> = Vec::new();
        if !self.environment.is_empty() {
            words.push("env".to_owned());
            let variables = self.environment.iter();
            words.extend(variables.map(|(name, value)| given(&format!("{name}={value}"))));
        }
        match self.command {
            Some(command) => words.extend(command.iter().map(|word| given(word))),
            None => words.push(PROGRAM.to_owned()),
        }
        let input = self
            .input
            .map_or_else(String::new, |input| format!(" < {}", shell::word(input)));
        format!("{}{input}", shell::line(&words))
    }

    /// The words of the system's own tool; `None` if it has none for this, `[]` if nothing needs to
    /// be said.
    fn own(&self) -> Option<Vec<String>> {
        let is_default = self.placement == "os-default";
        let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        let Some((policy, nodes)) = self.memory else {
            return match is_default {
                true => Some(Vec::new()),
                false => words(&["taskset", "-c", cpu_list(self.cpus)?]),
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
        words(&["numactl", "-C", cpu_list(self.cpus)?, &memory])
    }
}

/// A list of CPUs that may be put into a command.
fn cpu_list(text: &str) -> Option<&str> {
    let is_list = |c: char| c.is_ascii_digit() || c == ',' || c == '-';
    (!text.is_empty() && text.chars().all(is_list)).then_some(text)
}

/// A command line without these options of pinwise and their values; what follows `--` belongs to
/// another program. A short option may include its value: `-r15`.
#[must_use]
pub fn remove_options(argv: &[String], options: &[&str]) -> Vec<String> {
    let end = argv.iter().position(|word| word == "--");
    let (own, command) = argv.split_at(end.unwrap_or(argv.len()));
    let mut is_value = false;
    let kept = own.iter().filter(|word| {
        let was_value = std::mem::take(&mut is_value);
        let option = word.split_once('=').map_or(&***word, |(option, _)| option);
        let mut short = options.iter().filter(|name| name.len() == 2);
        let is_left_out = options.contains(&option) || short.any(|name| word.starts_with(name));
        is_value = !was_value && options.contains(&word.as_str());
        !was_value && !is_left_out
    });
    kept.chain(command).cloned().collect()
}

/// The command of a comparison with these effort options in place of its own; `None` if no command
/// line made it.
#[must_use]
pub fn replace_effort(argv: &[String], options: &[(&str, String)]) -> Option<String> {
    let mut words = argv.to_vec();
    for (name, _) in options {
        words = match *name {
            "--max-runs" => remove_options(&words, &["--max-runs", "--runs", "-r", "-M"]),
            name => remove_options(&words, &[name]),
        };
    }
    let own = words.iter().take_while(|word| *word != "--");
    let at = own.skip(1).position(|word| word == "compare")? + 2;
    let more = options.iter();
    let more = more.flat_map(|(name, value)| [(*name).to_owned(), value.clone()]);
    words.splice(at..at, more);
    Some(shell::line(&words))
}

/// Options of a search that a comparison does not have, or that mean runs of all arms there.
const SEARCHED: [&str; 7] = [
    "--threads",
    "--max-slowdown",
    "--confirm",
    "--max-runs",
    "--runs",
    "-r",
    "--budget",
];

/// The comparison that measures directly what a search was asked for, with this option in place of
/// its threads; `None` if no command line made it.
#[must_use]
pub fn as_comparison(argv: &[String], threads: Option<(&str, String)>) -> Option<String> {
    let mut words = remove_options(argv, &SEARCHED);
    let own = words.iter().take_while(|word| *word != "--");
    let at = own.skip(1).position(|word| word == "search")? + 1;
    let threads = threads.map(|(name, value)| [name.to_owned(), value]);
    let compare = std::iter::once("compare".to_owned());
    words.splice(at..=at, compare.chain(threads.into_iter().flatten()));
    Some(shell::line(&words))
}

/// Options that name files to write: doing an experiment again is no reason to
/// write over those of the first time.
const WRITTEN: [&str; 6] = [
    "--export-csv",
    "--export-hyperfine",
    "--export-json",
    "--export-markdown",
    "--export",
    "--report",
];

/// The command that makes a record again: its arguments, with the drawn seed if none was given, and
/// without files that it wrote. `study`: the subcommand.
#[must_use]
pub fn again(argv: &[String], study: &str, seed: u64) -> Option<String> {
    let mut words = remove_options(argv, &WRITTEN);
    let own = words.iter().take_while(|word| *word != "--");
    let has_seed = own.clone().any(|word| word.starts_with("--seed"));
    let at = own.skip(1).position(|word| word == study)? + 1;
    if !has_seed {
        words.splice(at + 1..=at, ["--seed".to_owned(), seed.to_string()]);
    }
    Some(shell::line(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: [&str; 2] = ["./prog", "a b"];

    #[track_caller]
    fn check(change: impl Fn(&mut Placed<'_>), lines: &[&str]) {
        let command = COMMAND.map(str::to_owned).to_vec();
        let mut placed = Placed {
            command: Some(&command),
            environment: &[],
            input: None,
            placement: "one-llc",
            is_bound: false,
            cpus: "0-3",
            memory: None,
        };
        change(&mut placed);
        let listed = placed.commands();
        let listed: Vec<&str> = listed.iter().map(|command| command.line.as_str()).collect();
        assert_eq!(listed, lines);
    }

    #[test]
    fn an_arm_is_run_with_taskset_and_with_pinwise() {
        let pinwise = "pinwise run --place one-llc -- ./prog 'a b'";
        check(|_| (), &["taskset -c 0-3 ./prog 'a b'", pinwise]);
        // No mask says on which CPU each thread runs.
        check(|placed| placed.is_bound = true, &[pinwise]);
        check(|placed| placed.placement = "os-default", &["./prog 'a b'"]);
    }

    #[test]
    fn memory_environment_and_input_are_passed_on() {
        let environment = [("A".to_owned(), "x y".to_owned())];
        // The closure cannot hold a reference to what it is given.
        let command = COMMAND.map(str::to_owned).to_vec();
        let placed = Placed {
            command: Some(&command),
            environment: &environment,
            input: Some("in put"),
            placement: "one-llc/mem=bind",
            is_bound: false,
            cpus: "0-3",
            memory: Some(("bind", &[0, 1])),
        };
        let listed: Vec<String> = placed.commands().into_iter().map(|c| c.line).collect();
        assert_eq!(
            listed,
            [
                "numactl -C 0-3 --membind=0,1 env 'A=x y' ./prog 'a b' < 'in put'",
                "pinwise run --place one-llc/mem=bind -- env 'A=x y' ./prog 'a b' < 'in put'",
            ]
        );
    }

    #[test]
    fn only_lists_of_cpus_enter_commands() {
        let only = ["pinwise run --place one-llc -- ./prog 'a b'"];
        check(|placed| placed.cpus = "0;touch x", &only);
        check(|placed| placed.cpus = "", &only);
        check(
            |placed| placed.memory = Some(("of-a-newer-version", &[0])),
            &only,
        );
    }

    #[test]
    fn options_on_effort_are_replaced_however_they_are_written() {
        let with = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            replace_effort(&argv, &[("--max-runs", "40".to_owned())])
        };
        let wanted = "pinwise compare --max-runs 40 -q -- prog -r 5";
        for runs in ["--max-runs 15", "--runs=15", "-r 15", "-M15", "-r=15"] {
            let line = format!("pinwise compare {runs} -q -- prog -r 5");
            assert_eq!(with(&line).as_deref(), Some(wanted), "{runs}");
        }
        assert_eq!(with("pinwise search -- prog"), None);
    }

    #[test]
    fn what_a_search_was_asked_for_is_compared_directly() {
        let compared = |line: &str, threads| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            as_comparison(&argv, threads)
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
    fn an_experiment_is_made_again_with_its_seed() {
        let again = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            again(&argv, "compare", 7)
        };
        assert_eq!(
            again("pinwise --machine sim:a compare --shell x -- p --seed").unwrap(),
            "pinwise --machine sim:a compare --seed 7 --shell x -- p --seed"
        );
        let seeded = "pinwise compare --seed=3 -- p";
        assert_eq!(again(seeded).unwrap(), seeded);
        assert_eq!(again("pinwise fleet node -- compare"), None);
        let written = "pinwise compare --seed 3 --report a.html --export-json=b.json -p c";
        assert_eq!(
            again(&format!("{written} -- p --report d")).unwrap(),
            "pinwise compare --seed 3 -p c -- p --report d"
        );
    }
}
