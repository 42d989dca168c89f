//! Study files: what every node of a fleet runs, as TOML.
//!
//! ```toml
//! [[step]]
//! name = "wiring"
//! run = ["topology", "--measure"]
//! timeout = "10m"
//! repeat = 3
//! ```
//!
//! Every mistake is reported with line and column; nothing is guessed, and a file with a mistake
//! has no steps. Whether the arguments make sense is left to the code that runs them.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::toml_error::{self, Position, TomlError};

/// Largest file, bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Maximum number of steps of a fleet, repetitions included.
pub const MAX_STEPS: usize = 1000;
/// Longest name of a step, characters.
const LONGEST_NAME: usize = 60;

/// A step of a study file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyStep {
    /// Its name, of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Arguments of pinwise.
    pub run: Vec<String>,
    /// Longest time.
    pub timeout: Option<Duration>,
    /// The position of its arguments.
    pub position: Position,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStudy {
    #[serde(default)]
    step: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    name: Spanned<String>,
    run: Spanned<Vec<String>>,
    timeout: Option<Spanned<String>>,
    repeat: Option<Spanned<i64>>,
}

/// The steps of a study file, repetitions as steps `NAME-1`, `NAME-2` …
///
/// # Errors
/// [`TomlError`] if it is not a study file.
pub fn parse(text: &str) -> Result<Vec<StudyStep>, TomlError> {
    let raw: RawStudy = toml_error::parse(text, MAX_FILE_BYTES, "this is not a study")?;
    if raw.step.is_empty() {
        let reason = "no steps: write [[step]]";
        return Err(TomlError::new(Position::START, reason));
    }
    let mut steps: Vec<StudyStep> = Vec::new();
    for value in &raw.step {
        for step in read_step(text, value.get_ref())? {
            if steps.iter().any(|other| other.name == step.name) {
                let reason = format!("name: there is a step '{}' already", step.name);
                return Err(TomlError::mistake_in_value(
                    text,
                    &value.get_ref().name,
                    reason,
                ));
            }
            steps.push(step);
        }
        if steps.len() > MAX_STEPS {
            let reason = format!("more than {MAX_STEPS} steps");
            return Err(TomlError::mistake_in_value(
                text,
                &value.get_ref().name,
                reason,
            ));
        }
    }
    Ok(steps)
}

fn read_step(text: &str, raw: &RawStep) -> Result<Vec<StudyStep>, TomlError> {
    check_name(raw.name.get_ref())
        .map_err(|reason| TomlError::mistake_in_value(text, &raw.name, reason))?;
    let run = raw.run.get_ref();
    if run.is_empty() {
        let reason = "run: it is empty (write run = [\"topology\", \"--measure\"])";
        return Err(TomlError::mistake_in_value(text, &raw.run, reason));
    }
    if run.iter().any(|word| word.contains('\0')) {
        return Err(TomlError::mistake_in_value(
            text,
            &raw.run,
            "run: it holds a NUL byte",
        ));
    }
    let timeout = read_timeout(text, raw.timeout.as_ref())?;
    let repeat = match &raw.repeat {
        None => None,
        Some(value) => {
            let number = usize::try_from(*value.get_ref()).ok();
            let number = number.filter(|number| (1..=MAX_STEPS).contains(number));
            let reason = format!("repeat: write a number from 1 to {MAX_STEPS}");
            Some(number.ok_or_else(|| TomlError::mistake_in_value(text, value, reason))?)
        }
    };
    let new_step = |name: String| StudyStep {
        name,
        run: run.clone(),
        timeout,
        position: Position::find(text, raw.run.span().start),
    };
    let name = raw.name.get_ref();
    Ok(match repeat {
        None => vec![new_step(name.clone())],
        Some(times) => (1..=times)
            .map(|n| new_step(format!("{name}-{n}")))
            .collect(),
    })
}

/// Parses a time such as `90s`.
pub(super) fn read_timeout(
    text: &str,
    value: Option<&Spanned<String>>,
) -> Result<Option<Duration>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let time = humantime::parse_duration(value.get_ref()).ok();
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok(Some(time)),
        None => {
            let reason = "timeout: write a time, such as 90s or 10m";
            Err(TomlError::mistake_in_value(text, value, reason))
        }
    }
}

/// Can this name be part of a file's name and of a record's id?
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let reason = "name: use letters, digits, -, _ and . only";
        return Err(reason.to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("name: longer than {LONGEST_NAME} characters"));
    }
    // These names would collide with files that a node writes besides its steps'.
    let is_taken = matches!(name, "node" | "log")
        || [".", "begun-", "ended-"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || name.contains(".failed-")
        || name.ends_with(".done");
    if is_taken {
        return Err(format!("name: '{name}' is taken by a file of the fleet"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_parsed_and_repeated() {
        let text = "[[step]]\nname = \"a\"\nrun = [\"bench\"]\ntimeout = \"2m\"\n\
                    [[step]]\nname = \"b\"\nrun = [\"bench\", \"fft\"]\nrepeat = 2\n";
        let steps = parse(text).unwrap();
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["a", "b-1", "b-2"]);
        assert_eq!(steps[0].timeout, Some(Duration::from_secs(120)));
        assert_eq!(steps[2].run, ["bench", "fft"]);
        assert_eq!(steps[1].position, Position { line: 7, column: 7 });
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let check = |text: &str, place: &str, words: &str| {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains(words), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        check("", "1:1", "no step");
        check("x", "1:", "");
        check(
            "[[step]]\nname = \"a/b\"\nrun = [\"bench\"]",
            "2:8",
            "letters",
        );
        check(
            "[[step]]\nname = \"node\"\nrun = [\"bench\"]",
            "2:8",
            "taken",
        );
        check(
            "[[step]]\nname = \"begun-1\"\nrun = [\"bench\"]",
            "2:8",
            "taken",
        );
        check("[[step]]\nname = \"a\"\nrun = []", "3:7", "empty");
        check(
            "[[step]]\nname = \"a\"\nrun = [\"bench\"]\nwhen = 1",
            "4:1",
            "when",
        );
        check(
            "[[step]]\nname = \"a\"\nrun = [\"bench\"]\ntimeout = \"5\"",
            "4:11",
            "timeout",
        );
        check(
            "[[step]]\nname = \"a\"\nrun = [\"bench\"]\nrepeat = 0",
            "4:10",
            "repeat",
        );
        let twice = "[[step]]\nname = \"a-1\"\nrun = [\"bench\"]\n[[step]]\nname = \"a\"\nrun = [\"bench\"]\nrepeat = 1";
        check(twice, "5:8", "a-1");
    }
}
