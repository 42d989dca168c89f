//! Parses a template from TOML. Every mistake is reported with line and column.

use regex_lite::{Regex, RegexBuilder};
use serde::Deserialize;
use toml::Spanned;

use super::fill::{ACCOUNT, PLACEHOLDERS, Piece, Quoting, split_placeholders};
use crate::launcher::Stage;
use pinwise_workload::toml_error::{self, Position, TomlError};

/// Maximum size of a file, bytes.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// Maximum size of a compiled regular expression, bytes.
const MAX_REGEX_BYTES: usize = 64 * 1024;
/// Maximum number of commands at a time.
const MAX_PARALLEL: i64 = 256;

/// A launcher described by a file.
#[derive(Debug, Clone)]
pub struct Template {
    pub(super) name: String,
    pub(super) submit: Option<String>,
    pub(super) job: Option<Regex>,
    pub(super) script: Option<String>,
    pub(super) ending: String,
    pub(super) quoting: Quoting,
    pub(super) status: Option<String>,
    pub(super) states: Vec<(Regex, Stage)>,
    pub(super) cancel: Option<String>,
    pub(super) parallel: usize,
    pub(super) prefix: Option<String>,
    pub(super) arguments: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTemplate {
    name: Spanned<String>,
    submit: Spanned<RawSubmit>,
    status: Option<RawStatus>,
    cancel: Option<RawCancel>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    nodes: RawNodes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubmit {
    command: Option<Spanned<String>>,
    job: Option<Spanned<String>>,
    script: Option<Spanned<String>>,
    ending: Option<Spanned<String>>,
    quote: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatus {
    command: Spanned<String>,
    #[serde(default)]
    states: Vec<RawState>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawState {
    pattern: Spanned<String>,
    stage: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCancel {
    command: Spanned<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    parallel: Option<Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawNodes {
    prefix: Option<Spanned<String>>,
    take_turns: Option<bool>,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TomlError`] if it is invalid.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        let source = Source(text);
        let raw: RawTemplate = toml_error::parse(text, MAX_FILE_BYTES, "this is not a template")?;
        let submit = raw.submit.get_ref();
        if submit.command.is_none() && submit.script.is_none() {
            let reason = "[submit]: it has neither command nor script".to_owned();
            return Err(source.error(&raw.submit, reason));
        }
        let job = source.parse_job(&raw.submit)?;
        let status = raw.status.as_ref();
        let cancel = raw.cancel.as_ref().map(|cancel| &cancel.command);
        let turns = raw.nodes.take_turns.unwrap_or_default();
        Ok(Self {
            name: source.check_name(&raw.name)?,
            job,
            submit: source.check_text(submit.command.as_ref(), &["job"])?,
            script: source.check_text(submit.script.as_ref(), &["job", "script"])?,
            ending: source.parse_ending(submit.ending.as_ref())?,
            quoting: source.parse_quoting(submit.quote.as_ref())?,
            status: source.check_text(status.map(|status| &status.command), &["script"])?,
            states: source.parse_states(status.map_or(&[], |status| &status.states))?,
            cancel: source.check_text(cancel, &["script"])?,
            parallel: source.parse_parallel(raw.limits.parallel.as_ref())?,
            prefix: source.check_prefix(raw.nodes.prefix.as_ref())?,
            arguments: turns.then(|| "--turn".to_owned()).into_iter().collect(),
        })
    }

    /// Does the submit command or the script use a placeholder? For `time`, {time} or {seconds}.
    pub(super) fn uses(&self, placeholder: &str) -> bool {
        let texts = [&self.submit, &self.script];
        let seconds = placeholder == "time";
        texts
            .into_iter()
            .flatten()
            .flat_map(|t| split_placeholders(t))
            .any(|piece| {
                piece == Piece::Placeholder(placeholder)
                    || (seconds && piece == Piece::Placeholder("seconds"))
            })
    }
}

/// The template's text, in which the lines of values are found.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn error<T>(&self, value: &Spanned<T>, reason: String) -> TomlError {
        TomlError::mistake_in_value(self.0, value, reason)
    }

    fn check_name(&self, value: &Spanned<String>) -> Result<String, TomlError> {
        let name = value.get_ref();
        if crate::hostlist::is_node_name(name) {
            return Ok(name.clone());
        }
        let reason = "name: use letters, digits, -, _ and . only";
        Err(self.error(value, reason.to_owned()))
    }

    /// Checks that a text has only known placeholders, and none of those without a value here.
    fn check_text(
        &self,
        value: Option<&Spanned<String>>,
        without_value: &[&str],
    ) -> Result<Option<String>, TomlError> {
        let Some(value) = value else { return Ok(None) };
        let text = value.get_ref();
        if text.trim().is_empty() || text.contains('\0') {
            let reason = "it is empty, or contains a NUL byte".to_owned();
            return Err(self.error(value, reason));
        }
        for piece in split_placeholders(text) {
            let Piece::Placeholder(name) = piece else {
                continue;
            };
            let is_known = name == ACCOUNT || PLACEHOLDERS.iter().any(|(n, _)| *n == name);
            if is_known && !without_value.contains(&name) {
                continue;
            }
            // The line within the value, if it is written without escapes.
            let span = value.span();
            let written = self.0.get(span.clone()).unwrap_or_default();
            let within = written.find(&format!("{{{name}}}")).unwrap_or(0);
            let reason = if is_known {
                format!("{{{name}}} has no value here")
            } else {
                format!(
                    "no such placeholder: {{{name}}} (for braces of a shell write {{{{{name}}}}})"
                )
            };
            let position = Position::find(self.0, span.start + within);
            return Err(TomlError::new(position, reason));
        }
        Ok(Some(text.clone()))
    }

    fn compile_regex(&self, value: &Spanned<String>) -> Result<Regex, TomlError> {
        let built = RegexBuilder::new(value.get_ref())
            .size_limit(MAX_REGEX_BYTES)
            .multi_line(true)
            .build();
        built.map_err(|error| self.error(value, format!("not a regular expression: {error}")))
    }

    fn parse_job(&self, submit: &Spanned<RawSubmit>) -> Result<Option<Regex>, TomlError> {
        let raw = submit.get_ref();
        match (&raw.command, &raw.job) {
            (Some(_), Some(value)) => {
                let regex = self.compile_regex(value)?;
                if regex.captures_len() < 2 {
                    let reason = "job: it has no group for the id, such as ^([0-9]+)$";
                    return Err(self.error(value, reason.to_owned()));
                }
                Ok(Some(regex))
            }
            (Some(command), None) => {
                let reason = "job is missing: the pattern of the job's id in the command's output";
                Err(self.error(command, reason.to_owned()))
            }
            (None, Some(value)) => {
                let reason = "job: no command, so no job id";
                Err(self.error(value, reason.to_owned()))
            }
            (None, None) => Ok(None),
        }
    }

    fn parse_states(&self, raw: &[RawState]) -> Result<Vec<(Regex, Stage)>, TomlError> {
        let parse_state = |state: &RawState| {
            let stage = match state.stage.get_ref().as_str() {
                "queued" => Stage::Queued,
                "running" => Stage::Running,
                "ended" => Stage::Ended,
                "failed" => Stage::Failed,
                _ => {
                    let reason = "stage: queued, running, ended or failed".to_owned();
                    return Err(self.error(&state.stage, reason));
                }
            };
            Ok((self.compile_regex(&state.pattern)?, stage))
        };
        raw.iter().map(parse_state).collect()
    }

    fn parse_quoting(&self, value: Option<&Spanned<String>>) -> Result<Quoting, TomlError> {
        let Some(value) = value else {
            return Ok(Quoting::Shell);
        };
        match value.get_ref().as_str() {
            "shell" => Ok(Quoting::Shell),
            "json" => Ok(Quoting::Json),
            _ => Err(self.error(value, "quote: shell or json".to_owned())),
        }
    }

    fn parse_ending(&self, value: Option<&Spanned<String>>) -> Result<String, TomlError> {
        let Some(value) = value else {
            return Ok(".sh".to_owned());
        };
        let ending = value.get_ref();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        if ending.starts_with('.') && ending.len() <= 10 && ending.chars().all(is_plain) {
            return Ok(ending.clone());
        }
        let reason = "ending: a dot and letters, such as .yaml".to_owned();
        Err(self.error(value, reason))
    }

    fn parse_parallel(&self, value: Option<&Spanned<i64>>) -> Result<usize, TomlError> {
        let Some(value) = value else { return Ok(1) };
        let number = Some(*value.get_ref()).filter(|n| (1..=MAX_PARALLEL).contains(n));
        let number = number.and_then(|number| usize::try_from(number).ok());
        let reason = format!("parallel: a number from 1 to {MAX_PARALLEL}");
        number.ok_or_else(|| self.error(value, reason))
    }

    fn check_prefix(&self, value: Option<&Spanned<String>>) -> Result<Option<String>, TomlError> {
        value.map(|value| self.check_name(value)).transpose()
    }
}
