//! Commands as argument vectors, and sweeps over their parameters.
//!
//! A command is never passed to a shell unless asked: quoting is read the way
//! a shell reads it, but `|`, `>`, `*` and `$X` are plain characters.

use std::fmt;

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program first; never empty.
    pub(super) argv: Vec<String>,
}

/// Why a command line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no program in it.
    #[error("the command is empty")]
    Empty,
    /// A quote is not closed.
    #[error("'{0}': a quote is not closed")]
    Quote(String),
    /// A NUL byte, which no argument can hold.
    #[error("'{0}' holds a NUL byte, which no argument can")]
    Nul(String),
}

impl Command {
    /// A command from its arguments, the program first.
    ///
    /// # Errors
    /// [`CommandError`] where there is no program or an argument holds NUL.
    pub fn from_argv(argv: Vec<String>) -> Result<Self, CommandError> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(CommandError::Empty);
        }
        if let Some(bad) = argv.iter().find(|argument| argument.contains('\0')) {
            return Err(CommandError::Nul(bad.replace('\0', "\\0")));
        }
        Ok(Self { argv })
    }

    /// A command from one line, split at white space outside quotes.
    ///
    /// # Errors
    /// [`CommandError`] where it is empty or a quote is not closed.
    pub fn from_line(line: &str) -> Result<Self, CommandError> {
        let argv = shell_words::split(line).map_err(|_| CommandError::Quote(line.to_owned()))?;
        Self::from_argv(argv)
    }

    /// `shell -c line`.
    ///
    /// # Errors
    /// [`CommandError`] where the line is empty or holds NUL.
    pub fn in_shell(shell: &str, line: &str) -> Result<Self, CommandError> {
        if line.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        Self::from_argv(vec![shell.to_owned(), "-c".to_owned(), line.to_owned()])
    }

    /// The arguments, the program first.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The program as it was written.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.argv[0]
    }

    /// The program's name without its folder.
    #[must_use]
    pub fn program_name(&self) -> &str {
        let program = self.program();
        program.rsplit('/').next().unwrap_or(program)
    }

    /// Characters that a shell would act on and this command passes on as
    /// they are; `None` where there are none.
    #[must_use]
    pub fn shell_characters(&self) -> Option<&str> {
        const MARKS: [&str; 8] = ["|", "||", "&&", "&", ";", ">", ">>", "<"];
        self.argv
            .iter()
            .map(String::as_str)
            .find(|argument| MARKS.contains(argument) || argument.starts_with("2>"))
    }
}

impl fmt::Display for Command {
    /// The command as it could be typed into a shell.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&shell_words::join(&self.argv))
    }
}

/// One parameter of a command and the values it takes: `threads=1,2,4` or
/// `size=1..8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// Written as `{name}` in the command.
    pub name: String,
    /// Values in the order given.
    pub values: Vec<String>,
}

/// Why a sweep could not be read or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// Not `NAME=VALUES`.
    #[error("'{0}' is not NAME=VALUE,VALUE,… such as threads=1,2,4")]
    NotASweep(String),
    /// A range that is not two whole numbers, the lower first.
    #[error("'{0}' is not a range such as 1..8")]
    BadRange(String),
    /// A command does not mention the parameter.
    #[error("the command '{command}' does not use the parameter {{{name}}}")]
    Unused {
        /// The parameter.
        name: String,
        /// The command.
        command: String,
    },
    /// A parameter stands twice.
    #[error("'{0}' stands twice")]
    Twice(String),
    /// Far more combinations than anyone compares.
    #[error("the parameters make more than {MOST_COMMANDS} commands")]
    TooMany,
}

/// Most commands that sweeps may multiply into.
const MOST_COMMANDS: usize = 2000;

/// Longest range that is written out.
const LONGEST_RANGE: i64 = 1000;

impl std::str::FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let bad = || SweepError::NotASweep(text.to_owned());
        let (name, values) = text.split_once('=').ok_or_else(bad)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(bad());
        }
        let values = match values.split_once("..") {
            Some((low, high)) => range(low, high.trim_start_matches('='))
                .ok_or_else(|| SweepError::BadRange(values.to_owned()))?,
            None => values.split(',').map(str::to_owned).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(bad());
        }
        Ok(Self {
            name: name.to_owned(),
            values,
        })
    }
}

fn range(low: &str, high: &str) -> Option<Vec<String>> {
    let (low, high) = (low.parse::<i64>().ok()?, high.parse::<i64>().ok()?);
    let length = high.checked_sub(low)?;
    (0..=LONGEST_RANGE)
        .contains(&length)
        .then(|| (low..=high).map(|n| n.to_string()).collect())
}

impl Sweep {
    /// All combinations of the parameters' values put into a command line:
    /// what was chosen, such as `threads=2`, and the line.
    ///
    /// # Errors
    /// [`SweepError::Unused`] where the line does not name a parameter,
    /// [`SweepError::Twice`] where two have one name,
    /// [`SweepError::TooMany`] where the combinations are too many.
    pub fn expand(sweeps: &[Self], line: &str) -> Result<Vec<(String, String)>, SweepError> {
        let is_unused = |sweep: &&Self| !line.contains(&format!("{{{}}}", sweep.name));
        if let Some(sweep) = sweeps.iter().find(is_unused) {
            return Err(SweepError::Unused {
                name: sweep.name.clone(),
                command: line.to_owned(),
            });
        }
        let choices = Self::combinations(sweeps)?;
        let labelled = choices.iter().map(|choice| {
            let parts: Vec<String> = choice.iter().map(|(n, v)| format!("{n}={v}")).collect();
            (parts.join(","), fill(line, choice))
        });
        Ok(labelled.collect())
    }

    /// All combinations of the parameters' values, by name; one empty
    /// combination where there are no parameters.
    ///
    /// # Errors
    /// [`SweepError::Twice`] where two have one name,
    /// [`SweepError::TooMany`] where the combinations are too many.
    pub fn combinations(sweeps: &[Self]) -> Result<Vec<Vec<(&str, &str)>>, SweepError> {
        let mut choices: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (index, sweep) in sweeps.iter().enumerate() {
            if sweeps[..index].iter().any(|other| other.name == sweep.name) {
                return Err(SweepError::Twice(sweep.name.clone()));
            }
            if choices.len().saturating_mul(sweep.values.len()) > MOST_COMMANDS {
                return Err(SweepError::TooMany);
            }
            choices = choices
                .iter()
                .flat_map(|choice| {
                    sweep.values.iter().map(move |value| {
                        let added = (sweep.name.as_str(), value.as_str());
                        choice.iter().copied().chain([added]).collect()
                    })
                })
                .collect();
        }
        Ok(choices)
    }
}

/// Puts values in place of their marks, all in one pass: a value that looks
/// like a mark is text, so that values cannot multiply each other.
pub(super) fn fill(line: &str, choice: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let found = choice.iter().find_map(|(name, value)| {
            let tail = after.strip_prefix(name)?.strip_prefix('}')?;
            Some((tail, value))
        });
        rest = match found {
            Some((tail, value)) => {
                filled.push_str(value);
                tail
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &str, argv: &[&str]) {
        let command = Command::from_line(line).unwrap();
        assert_eq!(command.argv(), argv);
        assert_eq!(Command::from_line(&command.to_string()).unwrap(), command);
    }

    #[test]
    fn lines_are_split_like_a_shell_would() {
        check("xz -9 'my file'", &["xz", "-9", "my file"]);
        check("a \"b c\"d e\\ f", &["a", "b cd", "e f"]);
        check("grep '|' x", &["grep", "|", "x"]);
        assert_eq!(Command::from_line(" "), Err(CommandError::Empty));
        assert!(matches!(
            Command::from_line("a 'b"),
            Err(CommandError::Quote(_))
        ));
        assert!(Command::from_argv(vec!["a\0b".into()]).is_err());
    }

    #[test]
    fn shell_characters_are_noticed() {
        let marks = |line: &str| {
            let command = Command::from_line(line).unwrap();
            command.shell_characters().map(str::to_owned)
        };
        assert_eq!(marks("a | b").as_deref(), Some("|"));
        assert_eq!(marks("a > b").as_deref(), Some(">"));
        assert_eq!(marks("a b"), None);
    }

    #[test]
    fn sweeps_multiply() {
        let sweeps: Vec<Sweep> = ["t=1,2", "s=5..6"]
            .iter()
            .map(|s| s.parse().unwrap())
            .collect();
        let lines = Sweep::expand(&sweeps, "p -t {t} -s {s}").unwrap();
        let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(
            lines,
            ["p -t 1 -s 5", "p -t 1 -s 6", "p -t 2 -s 5", "p -t 2 -s 6"]
        );
        assert!(Sweep::expand(&sweeps, "p {t}").is_err());
        let both = [sweeps[0].clone(), sweeps[0].clone()];
        assert!(Sweep::expand(&both, "p {t}").is_err());
        for bad in ["", "t", "t=", "=1", "t=1,,2", "t=9..1", "t=a..b", "t t=1"] {
            assert!(bad.parse::<Sweep>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sweeps_do_not_grow_beyond_bounds() {
        let sweep = |text: &str| text.parse::<Sweep>().unwrap();
        let long = ["a=0..1000", "b=0..1000", "c=0..1000"].map(sweep);
        assert_eq!(Sweep::expand(&long, "{a}{b}{c}"), Err(SweepError::TooMany));
        let marks = ["a={b}{b}", "b=x"].map(sweep);
        let lines = Sweep::expand(&marks, "{a} {b} {c} {").unwrap();
        assert_eq!(lines[0].1, "{b}{b} x {c} {");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            if let Ok(command) = Command::from_line(&text) {
                prop_assert_eq!(Command::from_line(&command.to_string()).unwrap(), command);
            }
            let _ = text.parse::<Sweep>();
        }

        #[test]
        fn sweeps_keep_their_values(name in "[a-z0-9_-]{1,8}", values in prop::collection::vec("[a-z0-9 {}=-]{1,6}", 1..5)) {
            let sweep: Sweep = format!("{name}={}", values.join(",")).parse().unwrap();
            prop_assert_eq!(&sweep, &Sweep { name: name.clone(), values: values.clone() });
            let lines = Sweep::expand(&[sweep], &format!("p {{{name}}}")).unwrap();
            let filled: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
            let wanted: Vec<String> = values.iter().map(|value| format!("p {value}")).collect();
            prop_assert_eq!(filled, wanted);
        }
    }
}
