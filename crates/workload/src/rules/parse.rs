//! Parses rules in TOML.
//!
//! Every mistake is reported with line, column and key; nothing is guessed, and a
//! file with a mistake has no rules.

use regex_lite::RegexBuilder;
use serde::Deserialize;
use toml::Spanned;

use super::{Executable, Glob, Rule, Rules, User, WithPosition};
use crate::toml_error::{self, Position, TomlError};

/// Largest file, bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Maximum number of rules.
const MAX_RULES: usize = 1000;
/// Longest name of a rule.
const LONGEST_NAME: usize = 60;
/// Limits the compiled size of a regular expression, bytes.
const MAX_REGEX_BYTES: usize = 64 * 1024;
/// Nice values of Linux.
const NICE_VALUES: std::ops::RangeInclusive<i64> = -20..=19;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRules {
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRule {
    name: Spanned<String>,
    executable: Option<Spanned<String>>,
    cgroup: Option<Spanned<String>>,
    user: Option<Spanned<RawUser>>,
    command_line: Option<Spanned<String>>,
    place: Option<Spanned<String>>,
    nice: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a user is a name or a number")]
enum RawUser {
    Id(u32),
    Name(String),
}

/// The text, to locate mistakes in it.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn position<T>(&self, value: &Spanned<T>) -> Position {
        Position::find(self.0, value.span().start)
    }

    fn error<T>(&self, value: &Spanned<T>, reason: &str) -> TomlError {
        TomlError::mistake_in_value(self.0, value, reason)
    }

    /// A text that is not empty.
    fn require_text<'a>(
        &self,
        value: &'a Spanned<String>,
        key: &str,
    ) -> Result<&'a str, TomlError> {
        let text = value.get_ref().as_str();
        if text.trim().is_empty() {
            return Err(self.error(value, &format!("{key}: it is empty")));
        }
        if text.contains('\0') {
            return Err(self.error(value, &format!("{key}: it holds a NUL byte")));
        }
        Ok(text)
    }

    fn parse_glob(&self, value: &Spanned<String>, key: &str) -> Result<Glob, TomlError> {
        let text = self.require_text(value, key)?;
        Glob::parse(text).map_err(|reason| self.error(value, &format!("{key}: {reason}")))
    }
}

pub(super) fn parse(text: &str) -> Result<Rules, TomlError> {
    let source = Source(text);
    let raw: RawRules = toml_error::parse(text, MAX_FILE_BYTES, "these are not rules")?;
    if raw.rule.is_empty() {
        let reason = "no rules: write [[rule]]";
        return Err(TomlError::new(Position::START, reason));
    }
    if raw.rule.len() > MAX_RULES {
        let reason = format!("more than {MAX_RULES} rules");
        return Err(TomlError::new(Position::START, reason));
    }
    let mut rules: Vec<Rule> = Vec::with_capacity(raw.rule.len());
    let mut warnings = Vec::new();
    for value in &raw.rule {
        let rule = parse_rule(&source, value)?;
        let other = rules
            .iter()
            .find(|other| other.name.value == rule.name.value);
        if let Some(other) = other {
            let line = other.name.position.line;
            let reason = format!("name: line {line} has a rule of this name already");
            return Err(source.error(&value.get_ref().name, &reason));
        }
        if let Some(earlier) = rules.iter().find(|earlier| covers(earlier, &rule)) {
            let reason = format!(
                "rule '{}' can never match: '{}' before it takes all of its processes",
                rule.name.value, earlier.name.value
            );
            warnings.push(TomlError::new(rule.name.position, reason));
        }
        rules.push(rule);
    }
    Ok(Rules { rules, warnings })
}

/// Is it certain that every process of a later rule matches an earlier one? Only equal patterns and
/// patterns that match everything are considered.
fn covers(earlier: &Rule, later: &Rule) -> bool {
    let matches_all = |pattern: &String| {
        [
            "executable = \"*\"",
            "executable = \"**\"",
            "cgroup = \"**\"",
        ]
        .contains(&pattern.as_str())
    };
    earlier
        .patterns
        .iter()
        .all(|pattern| matches_all(pattern) || later.patterns.contains(pattern))
}

fn parse_rule(source: &Source<'_>, value: &Spanned<RawRule>) -> Result<Rule, TomlError> {
    let raw = value.get_ref();
    let name = parse_name(source, &raw.name)?;
    let executable = parse_executable(source, raw.executable.as_ref())?;
    let cgroup = parse_cgroup(source, raw.cgroup.as_ref())?;
    let user = parse_user(source, raw.user.as_ref())?;
    let command_line = parse_command_line(source, raw.command_line.as_ref())?;
    let place = match &raw.place {
        Some(place) => Some(WithPosition {
            value: source.require_text(place, "place")?.to_owned(),
            position: source.position(place),
        }),
        None => None,
    };
    let nice = parse_nice(source, raw.nice.as_ref())?;
    let patterns = list_patterns(raw);
    if patterns.is_empty() {
        let reason = "no pattern, so every process would match; if that is meant, write \
                      executable = \"*\"";
        return Err(source.error(&raw.name, &format!("rule '{}': {reason}", name.value)));
    }
    if place.is_none() && nice.is_none() {
        let reason = format!(
            "rule '{}' does nothing: say place or nice (place = \"os-default\" leaves processes \
             where they are)",
            name.value
        );
        return Err(source.error(&raw.name, &reason));
    }
    Ok(Rule {
        name,
        executable,
        cgroup,
        command_line,
        user,
        user_id: None,
        place,
        nice,
        patterns,
    })
}

fn parse_name(
    source: &Source<'_>,
    value: &Spanned<String>,
) -> Result<WithPosition<String>, TomlError> {
    let name = source.require_text(value, "name")?;
    if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        let reason = format!("name: at most {LONGEST_NAME} characters, none a control character");
        return Err(source.error(value, &reason));
    }
    Ok(WithPosition {
        value: name.to_owned(),
        position: source.position(value),
    })
}

fn parse_executable(
    source: &Source<'_>,
    value: Option<&Spanned<String>>,
) -> Result<Option<Executable>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let glob = source.parse_glob(value, "executable")?;
    if !value.get_ref().contains('/') {
        return Ok(Some(Executable::Name(glob)));
    }
    if !glob.may_begin_with_slash() {
        let reason = "executable: it can never match, because paths begin with /; write a whole path, a name without /, or **/ before it";
        return Err(source.error(value, reason));
    }
    Ok(Some(Executable::Path(glob)))
}

fn parse_cgroup(
    source: &Source<'_>,
    value: Option<&Spanned<String>>,
) -> Result<Option<Glob>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let glob = source.parse_glob(value, "cgroup")?;
    if !glob.may_begin_with_slash() {
        let reason = "cgroup: it can never match, because cgroup paths begin with /; write /system.slice/** or **/redis.service, for example";
        return Err(source.error(value, reason));
    }
    Ok(Some(glob))
}

fn parse_user(
    source: &Source<'_>,
    value: Option<&Spanned<RawUser>>,
) -> Result<Option<WithPosition<User>>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let user = match value.get_ref() {
        RawUser::Id(id) => User::Id(*id),
        RawUser::Name(name) if name.trim().is_empty() || name.contains('\0') => {
            return Err(source.error(value, "user: it is not a name"));
        }
        RawUser::Name(name) => match name.parse() {
            Ok(id) => User::Id(id),
            Err(_) => User::Name(name.clone()),
        },
    };
    Ok(Some(WithPosition {
        value: user,
        position: source.position(value),
    }))
}

fn parse_command_line(
    source: &Source<'_>,
    value: Option<&Spanned<String>>,
) -> Result<Option<regex_lite::Regex>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let mut builder = RegexBuilder::new(source.require_text(value, "command-line")?);
    let built = builder.size_limit(MAX_REGEX_BYTES).build();
    let regex = built.map_err(|error| source.error(value, &format!("command-line: {error}")))?;
    Ok(Some(regex))
}

fn parse_nice(
    source: &Source<'_>,
    value: Option<&Spanned<i64>>,
) -> Result<Option<WithPosition<i32>>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    let nice = i32::try_from(*value.get_ref()).ok();
    let nice = nice.filter(|nice| NICE_VALUES.contains(&i64::from(*nice)));
    let nice = nice.ok_or_else(|| {
        let reason = "nice: from -20 (first) to 19 (last); 0 is the default";
        source.error(value, reason)
    })?;
    Ok(Some(WithPosition {
        value: nice,
        position: source.position(value),
    }))
}

fn list_patterns(raw: &RawRule) -> Vec<String> {
    let texts = [
        ("executable", raw.executable.as_ref()),
        ("cgroup", raw.cgroup.as_ref()),
        ("command-line", raw.command_line.as_ref()),
    ];
    let format_pattern = |(key, value): (&str, Option<&Spanned<String>>)| {
        value.map(|value| format!("{key} = \"{}\"", value.get_ref()))
    };
    let user = raw.user.as_ref().map(|user| match user.get_ref() {
        RawUser::Id(id) => format!("user = {id}"),
        RawUser::Name(name) => format!("user = \"{name}\""),
    });
    texts
        .into_iter()
        .filter_map(format_pattern)
        .chain(user)
        .collect()
}
