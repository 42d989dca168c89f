//! Commands as argument vectors, and sweeps over their parameters.
//!
//! A command is passed to a shell only on request: quoting is read the way
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
    /// [`CommandError`] if there is no program or an argument holds NUL.
    pub fn from_argv(argv: Vec<String>) -> Result<Self, CommandError> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(CommandError::Empty);
        }
        if let Some(invalid) = argv.iter().find(|argument| argument.contains('\0')) {
            return Err(CommandError::Nul(invalid.replace('\0', "\\0")));
        }
        Ok(Self { argv })
    }

    /// A command from one line, split at white space outside quotes.
    ///
    /// # Errors
    /// [`CommandError`] if it is empty or a quote is not closed.
    pub fn from_line(line: &str) -> Result<Self, CommandError> {
        let argv = shell_words::split(line).map_err(|_| CommandError::Quote(line.to_owned()))?;
        Self::from_argv(argv)
    }

    /// `shell -c line`; the shell may have options.
    ///
    /// # Errors
    /// [`CommandError`] if the shell or the line is empty or holds NUL.
    pub fn wrap_in_shell(shell: &str, line: &str) -> Result<Self, CommandError> {
        if line.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        let mut command = Self::from_line(shell)?;
        command.argv.push("-c".to_owned());
        command.argv.push(line.to_owned());
        Self::from_argv(command.argv)
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

    /// The first syntax that only a shell would act on: characters outside quotes in the line that
    /// the command was written as, or without one a word of it; `None` if there is none.
    #[must_use]
    pub fn find_shell_syntax(&self, line: Option<&str>) -> Option<String> {
        const OPERATORS: [&str; 8] = ["|", "||", "&&", "&", ";", ">", ">>", "<"];
        const BUILT_IN: [&str; 6] = ["cd", "eval", "export", "source", "ulimit", "umask"];
        let first = self.program();
        let assigned = first.split_once('=').map(|(name, _)| name);
        if assigned.is_some_and(is_parameter_name) || BUILT_IN.contains(&first) {
            return Some(first.to_owned());
        }
        let is_word = |word: &&String| OPERATORS.contains(&word.as_str()) || word.starts_with("2>");
        match line {
            Some(line) => find_unquoted_syntax(line),
            None => self.argv.iter().find(is_word).cloned(),
        }
    }
}

/// The first unquoted syntax in a line that a shell would act on.
fn find_unquoted_syntax(line: &str) -> Option<String> {
    let (mut quote, mut previous) = (None, ' ');
    let mut letters = line.char_indices();
    while let Some((start, letter)) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                letters.next();
            }
            (None, '\'' | '"') => quote = Some(letter),
            (_, '$') => {
                let rest = &line[start + 1..];
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                if end > 0 || rest.starts_with(['{', '(']) {
                    return Some(line[start..=start + end.max(1)].to_owned());
                }
            }
            (_, '`') | (None, '*' | ';' | '|' | '&' | '<' | '>') => return Some(letter.into()),
            (None, '~') if previous.is_whitespace() => return Some(letter.into()),
            _ => {}
        }
        previous = letter;
    }
    None
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
    #[error("'{0}' is not NAME=VALUES such as threads=1,2,4 or threads=1..8")]
    Syntax(String),
    /// A range that is not two numbers, the lower first, and perhaps a step.
    #[error("'{0}' is not a range such as 1..8, or in steps 0.5..2..0.5")]
    BadRange(String),
    /// Nothing mentions the parameter.
    #[error("nothing uses the parameter: write {{{0}}} in the command or an option")]
    Unused(String),
    /// `{NAME}` of no parameter.
    #[error(
        "{{{0}}} is not a parameter: add --parameter {0}=VALUES; or {0}={{{0}}} to keep it as it is"
    )]
    Unknown(String),
    /// A parameter appears twice.
    #[error("'{0}' is given twice")]
    Twice(String),
    /// More combinations than are allowed.
    #[error("the parameters make more than {MAX_COMMANDS} commands")]
    TooMany,
}

/// Maximum number of commands that sweeps may multiply into.
const MAX_COMMANDS: usize = 2000;

/// Longest range that is written out.
const LONGEST_RANGE: i64 = 1000;

impl std::str::FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let invalid = || SweepError::Syntax(text.to_owned());
        let (name, values) = text.split_once('=').ok_or_else(invalid)?;
        if !is_name(name) {
            return Err(invalid());
        }
        let values = match values.split_once("..") {
            Some((low, rest)) => {
                expand_range(low, rest).ok_or_else(|| SweepError::BadRange(values.to_owned()))?
            }
            None => values.split(',').map(str::to_owned).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(invalid());
        }
        Ok(Self {
            name: name.to_owned(),
            values,
        })
    }
}

/// Expands a range: `LOW`, then `HIGH` or `HIGH..STEP`. It counts in units of the last decimal
/// place, because floating point would round.
fn expand_range(low: &str, rest: &str) -> Option<Vec<String>> {
    let rest = rest.trim_start_matches('=');
    let (high, step) = match rest.split_once("..") {
        Some((high, step)) => (high, Some(step)),
        None => (rest, None),
    };
    let parts =
        [low, high, step.unwrap_or("1")].map(|text| text.split_once('.').unwrap_or((text, "")));
    let places = parts.iter().map(|(_, decimals)| decimals.len()).max()?;
    let scaled = |(whole, decimals): (&str, &str)| {
        let digits = format!("{whole}{decimals:0<places$}");
        digits.parse::<i64>().ok()
    };
    let (low, high) = (scaled(parts[0])?, scaled(parts[1])?);
    // For decimals, the default step of 1 is unlikely to be meant.
    if places > 0 && step.is_none() {
        return None;
    }
    let step = scaled(parts[2])?;
    if step < 1 || !(0..=LONGEST_RANGE).contains(&(high.checked_sub(low)? / step)) || high < low {
        return None;
    }
    let format_number = |value: i64| {
        let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, decimals) = digits.split_at(digits.len() - places);
        let point = if places > 0 { "." } else { "" };
        format!("{sign}{whole}{point}{decimals}")
    };
    let steps = 0..=(high - low) / step;
    Some(
        steps
            .map(|index| format_number(low + index * step))
            .collect(),
    )
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(is_letter)
}

/// Can this be a parameter's name in a text? `{0}` and `{}` belong to other tools.
fn is_parameter_name(name: &str) -> bool {
    is_name(name) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

impl Sweep {
    /// Refuses a parameter that none of the texts uses.
    ///
    /// # Errors
    /// [`SweepError::Unused`] names the parameter.
    pub fn check_used(sweeps: &[Self], texts: &[&str]) -> Result<(), SweepError> {
        let is_unused = |sweep: &&Self| {
            let mark = format!("{{{}}}", sweep.name);
            !texts.iter().any(|text| text.contains(&mark))
        };
        match sweeps.iter().find(is_unused) {
            Some(sweep) => Err(SweepError::Unused(sweep.name.clone())),
            None => Ok(()),
        }
    }

    /// The name of a combination, such as `threads=2,size=1`.
    #[must_use]
    pub fn label(choice: &[(&str, &str)]) -> String {
        let parts: Vec<String> = choice.iter().map(|(n, v)| format!("{n}={v}")).collect();
        parts.join(",")
    }

    /// The text with a combination's values in place of `{NAME}`.
    ///
    /// # Errors
    /// [`SweepError::Unknown`] if it names an unknown parameter: it would be measured with the name
    /// in place of a value.
    pub fn fill(text: &str, choice: &[(&str, &str)]) -> Result<String, SweepError> {
        let is_known = |name: &str| choice.iter().any(|(known, _)| *known == name);
        match find_marks(text).find(|name| !is_known(name)) {
            Some(name) => Err(SweepError::Unknown(name.to_owned())),
            None => Ok(replace_marks(text, choice)),
        }
    }

    /// All combinations of the parameters' values, by name; one empty combination if there are no
    /// parameters.
    ///
    /// # Errors
    /// [`SweepError::Twice`] if two have the same name, [`SweepError::TooMany`] if there are too
    /// many combinations.
    pub fn combinations(sweeps: &[Self]) -> Result<Vec<Vec<(&str, &str)>>, SweepError> {
        let mut choices: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (index, sweep) in sweeps.iter().enumerate() {
            if sweeps[..index].iter().any(|other| other.name == sweep.name) {
                return Err(SweepError::Twice(sweep.name.clone()));
            }
            if choices.len().saturating_mul(sweep.values.len()) > MAX_COMMANDS {
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

/// The names in `{NAME}` marks of a text; `${NAME}` belongs to a shell.
fn find_marks(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('{').filter_map(|(start, _)| {
        let (name, _) = text[start + 1..].split_once('}')?;
        (is_parameter_name(name) && !text[..start].ends_with('$')).then_some(name)
    })
}

/// Replaces marks by values, all in one pass: a value that looks like a mark is text, so that
/// values cannot multiply each other.
pub(super) fn replace_marks(line: &str, choice: &[(&str, &str)]) -> String {
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
    fn check_split(line: &str, argv: &[&str]) {
        let command = Command::from_line(line).unwrap();
        assert_eq!(command.argv(), argv);
        assert_eq!(Command::from_line(&command.to_string()).unwrap(), command);
    }

    #[test]
    fn lines_are_split_like_a_shell_would() {
        check_split("xz -9 'my file'", &["xz", "-9", "my file"]);
        check_split("a \"b c\"d e\\ f", &["a", "b cd", "e f"]);
        check_split("grep '|' x", &["grep", "|", "x"]);
        assert_eq!(Command::from_line(" "), Err(CommandError::Empty));
        assert!(matches!(
            Command::from_line("a 'b"),
            Err(CommandError::Quote(_))
        ));
        assert!(Command::from_argv(vec!["a\0b".into()]).is_err());
    }

    #[test]
    fn shell_syntax_is_found_outside_quotes() {
        let find_syntax = |line: &str| {
            let command = Command::from_line(line).unwrap();
            command.find_shell_syntax(Some(line))
        };
        for (line, syntax) in [
            ("a | b", "|"),
            ("a > b", ">"),
            ("a 2>/dev/null", ">"),
            ("a; b", ";"),
            ("a&& b", "&"),
            ("ls ~/x", "~"),
            ("ls $HOME/x", "$HOME"),
            ("ls \"${HOME}\"", "${"),
            ("a $(b)", "$("),
            ("a `b`", "`"),
            ("ls *.c", "*"),
            ("X=1 a", "X=1"),
            ("cd x", "cd"),
        ] {
            assert_eq!(find_syntax(line).as_deref(), Some(syntax), "{line}");
        }
        for line in [
            "a b",
            "a '$HOME * ; `'",
            "grep '|' a",
            "a \\* \"*\"",
            "a b~ 5$ --x=1",
            "a $",
        ] {
            assert_eq!(find_syntax(line), None, "{line}");
        }
        let argv = Command::from_argv(vec!["ls".into(), "*".into()]).unwrap();
        assert_eq!(argv.find_shell_syntax(None), None);
    }

    #[test]
    fn sweeps_multiply() {
        let sweeps: Vec<Sweep> = ["t=1,2", "s=5..6"]
            .iter()
            .map(|s| s.parse().unwrap())
            .collect();
        let choices = Sweep::combinations(&sweeps).unwrap();
        let labels: Vec<String> = choices.iter().map(|choice| Sweep::label(choice)).collect();
        assert_eq!(labels, ["t=1,s=5", "t=1,s=6", "t=2,s=5", "t=2,s=6"]);
        let line = Sweep::fill("p -t {t} -s {s}", &choices[1]);
        assert_eq!(line.as_deref(), Ok("p -t 1 -s 6"));
        assert!(Sweep::check_used(&sweeps, &["p {t}", "x {s}"]).is_ok());
        let unused = Sweep::check_used(&sweeps, &["p {t}"]);
        assert_eq!(unused, Err(SweepError::Unused("s".into())));
        let both = [sweeps[0].clone(), sweeps[0].clone()];
        assert!(Sweep::combinations(&both).is_err());
        for invalid in ["", "t", "t=", "=1", "t=1,,2", "t=9..1", "t=a..b", "t t=1"] {
            assert!(invalid.parse::<Sweep>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn ranges_have_steps_and_decimals() {
        let values = |text: &str| text.parse::<Sweep>().map(|sweep| sweep.values.join(" "));
        for (text, wanted) in [
            ("t=1..3", "1 2 3"),
            ("t=1..=3", "1 2 3"),
            ("t=2..9..3", "2 5 8"),
            ("t=0.3..0.7..0.2", "0.3 0.5 0.7"),
            ("t=-1..1..0.5", "-1.0 -0.5 0.0 0.5 1.0"),
            ("t=-0.5..0..0.25", "-0.50 -0.25 0.00"),
        ] {
            assert_eq!(values(text).as_deref(), Ok(wanted), "{text}");
        }
        for invalid in [
            "t=0.1..0.9",
            "t=1..9..0",
            "t=1..9..-1",
            "t=1..9..",
            "t=1..2..3..4",
            "t=1..9..x",
            "t=0.0..9999..0.001",
            "t=1..1.+5..1",
            "t=1..9223372036854775807",
            "t=-9223372036854775808..1",
        ] {
            assert!(values(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn marks_of_unknown_parameters_are_refused() {
        let choice = [("n", "{other}")];
        for (text, filled) in [
            ("a {n}", "a {other}"),
            ("find -exec x {} +", "find -exec x {} +"),
            ("git show HEAD@{1}", "git show HEAD@{1}"),
            ("echo ${HOME} { x; } {a,b}", "echo ${HOME} { x; } {a,b}"),
        ] {
            assert_eq!(Sweep::fill(text, &choice).as_deref(), Ok(filled), "{text}");
        }
        let unknown = Err(SweepError::Unknown("threads".into()));
        assert_eq!(Sweep::fill("a {n} -t {threads}", &choice), unknown);
    }

    #[test]
    fn sweeps_are_limited() {
        let sweep = |text: &str| text.parse::<Sweep>().unwrap();
        let long = ["a=0..1000", "b=0..1000", "c=0..1000"].map(sweep);
        assert_eq!(Sweep::combinations(&long), Err(SweepError::TooMany));
        let filled = replace_marks("{a} {b} {c} {", &[("a", "{b}{b}"), ("b", "x")]);
        assert_eq!(filled, "{b}{b} x {c} {");
    }

    proptest! {
        #[test]
        fn sweeps_keep_their_values(name in "[a-z0-9_-]{1,8}", values in prop::collection::vec("[a-z0-9 {}=-]{1,6}", 1..5)) {
            let sweep: Sweep = format!("{name}={}", values.join(",")).parse().unwrap();
            prop_assert_eq!(&sweep, &Sweep { name: name.clone(), values: values.clone() });
            let sweeps = [sweep];
            let choices = Sweep::combinations(&sweeps).unwrap();
            let line = format!("p {{{name}}}");
            let filled: Vec<String> = choices.iter().map(|c| Sweep::fill(&line, c).unwrap()).collect();
            let wanted: Vec<String> = values.iter().map(|value| format!("p {value}")).collect();
            prop_assert_eq!(filled, wanted);
        }
    }
}
