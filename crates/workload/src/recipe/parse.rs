//! Parses a recipe in TOML.
//!
//! Every mistake is reported with its line and key; nothing is guessed or ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{FOLDER, MeasuredCommand, Parameter, Program, Recipe, Server};
use crate::toml_error::{Position, join_lines};
use crate::{Command, Metric, Pattern};

/// Limits the size of a recipe, bytes; real ones have a page or two.
const MAX_RECIPE_BYTES: usize = 256 * 1024;
/// Longest name.
const LONGEST_NAME: usize = 40;
/// Default time-out of a run.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a recipe was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {}{reason}", format_key(.key))]
pub struct RecipeError {
    /// Line, from 1.
    pub line: usize,
    /// The key, with its table; empty if the TOML itself is malformed.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

fn format_key(key: &str) -> String {
    match key {
        "" => String::new(),
        key => format!("{key}: "),
    }
}

type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecipe {
    name: Text,
    about: Text,
    #[serde(default)]
    threads: Option<String>,
    #[serde(default)]
    programs: BTreeMap<String, Spanned<RawProgram>>,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<RawParameter>>,
    generate: Option<Text>,
    command: Option<Text>,
    script: Option<Text>,
    input: Option<Text>,
    prepare: Option<Text>,
    conclude: Option<Text>,
    verify: Option<Text>,
    expect: Option<Text>,
    metric: Option<Text>,
    unit: Option<Text>,
    #[serde(default)]
    environment: BTreeMap<String, Text>,
    timeout_s: Option<Spanned<f64>>,
    server: Option<RawServer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgram {
    package: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    folders: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    default: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    start: Text,
    stop: Option<Text>,
    #[serde(default)]
    per: Option<Text>,
}

/// The text, to locate mistakes in it.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn line(&self, byte: usize) -> usize {
        Position::find(self.0, byte).line
    }

    fn error<T>(&self, value: &Spanned<T>, key: &str, reason: impl Into<String>) -> RecipeError {
        RecipeError {
            line: self.line(value.span().start),
            key: join_lines(key),
            reason: join_lines(&reason.into()),
        }
    }

    /// A text that is not empty and that a process can be given.
    fn require_text(&self, value: &Text, key: &str) -> Result<String, RecipeError> {
        let text = value.get_ref();
        if text.trim().is_empty() {
            return Err(self.error(value, key, "it is empty"));
        }
        if text.contains('\0') {
            return Err(self.error(value, key, "it holds a NUL byte"));
        }
        Ok(text.clone())
    }

    fn optional_text(
        &self,
        value: Option<&Text>,
        key: &str,
    ) -> Result<Option<String>, RecipeError> {
        value.map(|value| self.require_text(value, key)).transpose()
    }
}

pub(super) fn parse(text: &str) -> Result<Recipe, RecipeError> {
    let source = Source(text);
    if text.len() > MAX_RECIPE_BYTES {
        return Err(RecipeError {
            line: 1,
            key: String::new(),
            reason: format!(
                "larger than {} KiB: this is not a recipe",
                MAX_RECIPE_BYTES / 1024
            ),
        });
    }
    let raw: RawRecipe = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        RecipeError {
            line: source.line(at),
            key: String::new(),
            reason: join_lines(error.message()),
        }
    })?;
    let programs = parse_programs(&source, &raw)?;
    let parameters = parse_parameters(&source, &raw)?;
    let metric = parse_metric(&source, raw.metric.as_ref())?;
    let unit = source.optional_text(raw.unit.as_ref(), "unit")?;
    if let Some(unit) = raw.unit.as_ref().filter(|_| !metric.unit().is_empty()) {
        let reason = format!("the metric {metric} is in {} already", metric.unit());
        return Err(source.error(unit, "unit", reason));
    }
    let recipe = Recipe {
        name: parse_name(&source, &raw.name)?,
        about: source.require_text(&raw.about, "about")?,
        threads: raw.threads.clone().unwrap_or_default(),
        metric,
        unit: unit.unwrap_or_default(),
        generate: source.optional_text(raw.generate.as_ref(), "generate")?,
        measured: parse_measured(&source, &raw)?,
        prepare: source.optional_text(raw.prepare.as_ref(), "prepare")?,
        conclude: source.optional_text(raw.conclude.as_ref(), "conclude")?,
        verify: source.optional_text(raw.verify.as_ref(), "verify")?,
        expect: parse_expect(&source, &raw)?,
        input: source.optional_text(raw.input.as_ref(), "input")?,
        environment: parse_environment(&source, &raw)?,
        timeout: parse_timeout(&source, raw.timeout_s.as_ref())?,
        server: parse_server(&source, raw.server.as_ref())?,
        programs,
        parameters,
    };
    require_output_check(&source, &raw)?;
    check_placeholders(&source, &raw, &recipe)?;
    check_parameters_used(&source, &raw, &recipe)?;
    Ok(recipe)
}

fn parse_name(source: &Source<'_>, value: &Text) -> Result<String, RecipeError> {
    let name = source.require_text(value, "name")?;
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > LONGEST_NAME || !name.chars().all(is_allowed) {
        let reason = format!("lower-case letters, digits and hyphens, at most {LONGEST_NAME}");
        return Err(source.error(value, "name", reason));
    }
    Ok(name)
}

fn is_key(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_allowed)
}

fn parse_programs(source: &Source<'_>, raw: &RawRecipe) -> Result<Vec<Program>, RecipeError> {
    let mut programs = Vec::new();
    for (key, value) in &raw.programs {
        let shown = format!("programs.{key}");
        let program = value.get_ref();
        if !is_key(key) || key == FOLDER {
            return Err(source.error(value, &shown, "letters, digits, _ and -, and not folder"));
        }
        let own = [key.clone()];
        let names: &[String] = match program.names.is_empty() {
            true => &own,
            false => &program.names,
        };
        let is_bad = |name: &String| name.is_empty() || name.contains(['/', '\0']);
        if names.iter().any(is_bad) {
            let reason = "write names of programs, without a folder";
            return Err(source.error(value, &shown, reason));
        }
        if let Some(folder) = program.folders.iter().find(|f| !f.starts_with('/')) {
            let reason = format!("the folder '{folder}' must begin with /");
            return Err(source.error(value, &shown, reason));
        }
        if program.package.trim().is_empty() {
            return Err(source.error(value, &shown, "say which package has it"));
        }
        programs.push(Program {
            key: key.clone(),
            names: names.to_vec(),
            folders: program.folders.clone(),
            package: program.package.clone(),
        });
    }
    Ok(programs)
}

fn parse_parameters(source: &Source<'_>, raw: &RawRecipe) -> Result<Vec<Parameter>, RecipeError> {
    let mut parameters = Vec::new();
    for (name, value) in &raw.parameters {
        let shown = format!("parameters.{name}");
        let parameter = value.get_ref();
        if !is_key(name) || name == FOLDER || raw.programs.contains_key(name) {
            let reason = "letters, digits, _ and -, neither folder nor a program";
            return Err(source.error(value, &shown, reason));
        }
        let all = parameter.values.iter().chain([&parameter.default]);
        if all.clone().any(|v| v.contains('\0') || v.is_empty()) {
            return Err(source.error(value, &shown, "a value is empty or holds a NUL byte"));
        }
        if !parameter.values.is_empty() && !parameter.values.contains(&parameter.default) {
            return Err(source.error(value, &shown, "the default is not one of the values"));
        }
        parameters.push(Parameter {
            name: name.clone(),
            default: parameter.default.clone(),
            values: parameter.values.clone(),
            about: parameter.about.clone(),
        });
    }
    Ok(parameters)
}

fn parse_measured(source: &Source<'_>, raw: &RawRecipe) -> Result<MeasuredCommand, RecipeError> {
    match (&raw.command, &raw.script) {
        (Some(line), None) => {
            let text = source.require_text(line, "command")?;
            let command = Command::from_line(&text)
                .map_err(|error| source.error(line, "command", error.to_string()))?;
            if let Some(syntax) = command.find_shell_syntax(Some(&text)) {
                let reason = format!("'{syntax}' would reach the program as it is: use script");
                return Err(source.error(line, "command", reason));
            }
            Ok(MeasuredCommand::Command(command.argv().to_vec()))
        }
        (None, Some(script)) => source
            .require_text(script, "script")
            .map(MeasuredCommand::Script),
        (Some(_), Some(script)) => {
            Err(source.error(script, "script", "command and script exclude each other"))
        }
        (None, None) => Err(source.error(
            &raw.name,
            "command",
            "missing: a command or script to measure",
        )),
    }
}

fn parse_metric(source: &Source<'_>, value: Option<&Text>) -> Result<Metric, RecipeError> {
    let Some(value) = value else {
        return Ok(Metric::wall());
    };
    let metric = value.get_ref().parse::<Metric>();
    metric.map_err(|error| source.error(value, "metric", error.to_string()))
}

fn parse_expect(source: &Source<'_>, raw: &RawRecipe) -> Result<Option<Pattern>, RecipeError> {
    let Some(value) = &raw.expect else {
        return Ok(None);
    };
    let pattern = Pattern::parse(&source.require_text(value, "expect")?);
    let pattern = pattern.map_err(|reason| source.error(value, "expect", reason))?;
    Ok(Some(pattern))
}

fn parse_environment(
    source: &Source<'_>,
    raw: &RawRecipe,
) -> Result<Vec<(String, String)>, RecipeError> {
    let mut variables = Vec::new();
    for (name, value) in &raw.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.get_ref().contains('\0') {
            let shown = format!("environment.{name}");
            return Err(source.error(value, &shown, "this cannot be a variable"));
        }
        variables.push((name.clone(), value.get_ref().clone()));
    }
    Ok(variables)
}

fn parse_timeout(
    source: &Source<'_>,
    value: Option<&Spanned<f64>>,
) -> Result<Duration, RecipeError> {
    let Some(value) = value else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let time = Duration::try_from_secs_f64(*value.get_ref());
    match time {
        Ok(time) if !time.is_zero() && time < Duration::from_secs(86_400) => Ok(time),
        _ => Err(source.error(value, "timeout_s", "seconds, above 0 and below a day")),
    }
}

fn parse_server(
    source: &Source<'_>,
    raw: Option<&RawServer>,
) -> Result<Option<Server>, RecipeError> {
    let Some(raw) = raw else { return Ok(None) };
    let is_per_run = match raw.per.as_ref() {
        None => false,
        Some(per) => match per.get_ref().as_str() {
            "run" => true,
            "experiment" => false,
            _ => return Err(source.error(per, "server.per", "run or experiment")),
        },
    };
    Ok(Some(Server {
        start: source.require_text(&raw.start, "server.start")?,
        stop: source.optional_text(raw.stop.as_ref(), "server.stop")?,
        is_per_run,
    }))
}

/// Refuses a recipe without a check of the output: its program could do nothing.
fn require_output_check(source: &Source<'_>, raw: &RawRecipe) -> Result<(), RecipeError> {
    if raw.verify.is_none() && raw.expect.is_none() {
        let reason = "missing: a check of the output, verify or expect";
        return Err(source.error(&raw.name, "verify", reason));
    }
    Ok(())
}

/// Refuses unknown placeholders where no shell is involved. (In scripts, braces may be the
/// shell's.)
fn check_placeholders(
    source: &Source<'_>,
    raw: &RawRecipe,
    recipe: &Recipe,
) -> Result<(), RecipeError> {
    let programs = recipe.programs.iter().map(|p| p.key.as_str());
    let parameters = recipe.parameters.iter().map(|p| p.name.as_str());
    let known: Vec<&str> = programs.chain(parameters).chain([FOLDER]).collect();
    let own = [
        ("command", raw.command.as_ref()),
        ("input", raw.input.as_ref()),
    ];
    let variables = raw.environment.values().map(|v| ("environment", Some(v)));
    for (key, value) in own.into_iter().chain(variables) {
        let Some(value) = value else { continue };
        for part in value.get_ref().split('{').skip(1) {
            let Some((word, _)) = part.split_once('}') else {
                continue;
            };
            if is_key(word) && !known.contains(&word) {
                let reason = format!("{{{word}}} is neither a parameter, a program nor the folder");
                return Err(source.error(value, key, reason));
            }
        }
    }
    Ok(())
}

/// Refuses unused parameters: equal arms would look different.
fn check_parameters_used(
    source: &Source<'_>,
    raw: &RawRecipe,
    recipe: &Recipe,
) -> Result<(), RecipeError> {
    let server = raw.server.iter();
    let server = server.flat_map(|s| [Some(&s.start), s.stop.as_ref()]);
    let own = [
        &raw.generate,
        &raw.command,
        &raw.script,
        &raw.input,
        &raw.prepare,
        &raw.conclude,
        &raw.verify,
    ];
    let texts: Vec<&String> = own
        .into_iter()
        .map(Option::as_ref)
        .chain(server)
        .chain(raw.environment.values().map(Some))
        .flatten()
        .map(Spanned::get_ref)
        .collect();
    for parameter in &recipe.parameters {
        let placeholder = format!("{{{}}}", parameter.name);
        if !texts.iter().any(|text| text.contains(&placeholder)) {
            let shown = format!("parameters.{}", parameter.name);
            let value = &raw.parameters[&parameter.name];
            return Err(source.error(value, &shown, format!("{placeholder} is not used")));
        }
    }
    Ok(())
}
