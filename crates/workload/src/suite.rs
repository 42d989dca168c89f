//! Suites: the benchmarks of a program, as TOML.
//!
//! ```toml
//! build = "cargo build --release"   # run by sh in each build's folder
//! min_effect = "1%"
//!
//! [[benchmark]]
//! name = "compress"
//! run = "./target/release/tool -9 big.txt"
//!
//! [[benchmark]]
//! name = "server"
//! run = "./target/release/load --seconds 2"
//! metric = "regex:([0-9.]+) req/s higher"
//! min_effect = "3%"
//!
//! [[benchmark]]
//! adapter = "criterion"             # all benchmarks of the framework, one at a time
//! run = "cargo bench --bench codec --"
//! filter = "decode"
//! ```
//!
//! Every mistake is reported with line and column.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::framework::Framework;
use super::study_file::read_timeout;
use super::toml_error::{self, Position, TomlError};
use super::{Command, Metric, Pattern};

/// Largest file, bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Maximum number of benchmarks of a suite.
pub const MAX_BENCHMARKS: usize = 1000;
/// Longest name of a benchmark, characters.
const LONGEST_NAME: usize = 200;
/// Default for the smallest effect of interest.
const DEFAULT_MIN_EFFECT: f64 = 0.01;

/// The benchmarks of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Command for a shell in the build's folder that builds it; `None` if there is nothing to
    /// build.
    pub build: Option<String>,
    /// Its entries, at least one.
    pub benchmarks: Vec<SuiteEntry>,
}

/// A benchmark, or all benchmarks of a framework.
#[derive(Debug, Clone)]
pub struct SuiteEntry {
    /// What is run, in the build's folder.
    pub command: Command,
    /// The benchmarks that it stands for.
    pub content: SuiteContent,
    /// Smallest slow-down of interest, as a share.
    pub min_effect: f64,
    /// A run that takes longer fails.
    pub timeout: Option<Duration>,
    /// Added to the inherited environment.
    pub environment: Vec<(String, String)>,
    /// Its position in the file.
    pub position: Position,
}

impl PartialEq for SuiteEntry {
    fn eq(&self, other: &Self) -> bool {
        self.command == other.command && self.position == other.position
    }
}

/// The benchmarks that an entry stands for.
#[derive(Debug, Clone)]
pub enum SuiteContent {
    /// One benchmark, the command itself.
    Single {
        /// Its name.
        name: String,
        /// Its figure; `None` for both wall-clock time and CPU time.
        metric: Option<Metric>,
    },
    /// Every benchmark of a framework.
    Framework {
        /// Which framework.
        framework: Framework,
        /// Only those whose name matches.
        filter: Option<Pattern>,
        /// Prefix of their names; empty if none was given.
        prefix: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    build: Option<Spanned<String>>,
    #[serde(alias = "min-effect")]
    min_effect: Option<Spanned<String>>,
    metric: Option<Spanned<String>>,
    #[serde(default)]
    benchmark: Vec<Spanned<RawBenchmark>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBenchmark {
    name: Option<Spanned<String>>,
    run: Spanned<String>,
    adapter: Option<Spanned<String>>,
    filter: Option<Spanned<String>>,
    metric: Option<Spanned<String>>,
    #[serde(alias = "min-effect")]
    min_effect: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    #[serde(default)]
    environment: std::collections::BTreeMap<String, String>,
}

/// The benchmarks of a suite file.
///
/// # Errors
/// [`TomlError`] says what is wrong, and where.
pub fn parse(text: &str) -> Result<Suite, TomlError> {
    let raw: RawSuite = toml_error::parse(text, MAX_FILE_BYTES, "this is not a suite")?;
    if raw.benchmark.is_empty() {
        let reason = "no benchmarks: write [[benchmark]]";
        return Err(TomlError::new(Position::START, reason));
    }
    let default_effect = match &raw.min_effect {
        Some(value) => parse_effect(text, value)?,
        None => DEFAULT_MIN_EFFECT,
    };
    let build = match &raw.build {
        Some(value) if value.get_ref().trim().is_empty() => {
            let reason = "build: it is empty (write build = \"make\", or leave it out)";
            return Err(TomlError::mistake_in_value(text, value, reason));
        }
        Some(value) => Some(value.get_ref().clone()),
        None => None,
    };
    let metric = read_metric(text, raw.metric.as_ref())?;
    let mut benchmarks: Vec<SuiteEntry> = Vec::new();
    for value in &raw.benchmark {
        let mut entry = read_entry(text, value.get_ref(), default_effect)?;
        if let SuiteContent::Single { metric: own, .. } = &mut entry.content
            && own.is_none()
        {
            own.clone_from(&metric);
        }
        let has_same_name = |other: &SuiteEntry| match (&entry.content, &other.content) {
            (SuiteContent::Single { name, .. }, SuiteContent::Single { name: other, .. }) => {
                name == other
            }
            _ => false,
        };
        if let Some(name) = value.get_ref().name.as_ref()
            && benchmarks.iter().any(has_same_name)
        {
            let reason = format!("name: there is a benchmark '{}' already", name.get_ref());
            return Err(TomlError::mistake_in_value(text, name, reason));
        }
        benchmarks.push(entry);
        if benchmarks.len() > MAX_BENCHMARKS {
            let reason = format!("more than {MAX_BENCHMARKS} benchmarks");
            return Err(TomlError::mistake_in_value(
                text,
                &value.get_ref().run,
                reason,
            ));
        }
    }
    Ok(Suite { build, benchmarks })
}

fn read_entry(
    text: &str,
    raw: &RawBenchmark,
    default_effect: f64,
) -> Result<SuiteEntry, TomlError> {
    let command = Command::from_line(raw.run.get_ref())
        .map_err(|why| TomlError::mistake_in_value(text, &raw.run, format!("run: {why}")))?;
    if let Some((name, value)) = command.program().split_once('=') {
        let reason = format!("run: write environment = {{ {name} = \"{value}\" }} for '{name}=…'");
        return Err(TomlError::mistake_in_value(text, &raw.run, reason));
    }
    if let Some(syntax) = command.find_shell_syntax(Some(raw.run.get_ref())) {
        let reason = format!("run: '{syntax}' is for a shell: write run = \"sh -c '…'\"");
        return Err(TomlError::mistake_in_value(text, &raw.run, reason));
    }
    Ok(SuiteEntry {
        content: parse_content(text, raw, &command)?,
        command,
        min_effect: match &raw.min_effect {
            Some(value) => parse_effect(text, value)?,
            None => default_effect,
        },
        timeout: read_timeout(text, raw.timeout.as_ref())?,
        environment: raw.environment.clone().into_iter().collect(),
        position: Position::find(text, raw.run.span().start),
    })
}

fn read_metric(text: &str, value: Option<&Spanned<String>>) -> Result<Option<Metric>, TomlError> {
    let Some(value) = value else { return Ok(None) };
    match value.get_ref().parse() {
        Ok(metric) => Ok(Some(metric)),
        Err(why) => Err(TomlError::mistake_in_value(
            text,
            value,
            format!("metric: {why}"),
        )),
    }
}

fn parse_content(
    text: &str,
    raw: &RawBenchmark,
    command: &Command,
) -> Result<SuiteContent, TomlError> {
    let name = match &raw.name {
        None => String::new(),
        Some(name) => check_name(text, name)?,
    };
    let Some(adapter) = &raw.adapter else {
        if let Some(filter) = &raw.filter {
            let reason = "filter: only the benchmarks of an adapter can be filtered";
            return Err(TomlError::mistake_in_value(text, filter, reason));
        }
        let metric = read_metric(text, raw.metric.as_ref())?;
        return Ok(SuiteContent::Single {
            name: match name.is_empty() {
                true => command.to_string(),
                false => name,
            },
            metric,
        });
    };
    if let Some(metric) = &raw.metric {
        let reason = "metric: an adapter reads its framework's own figure; leave it out";
        return Err(TomlError::mistake_in_value(text, metric, reason));
    }
    Ok(SuiteContent::Framework {
        framework: adapter
            .get_ref()
            .parse()
            .map_err(|why| TomlError::mistake_in_value(text, adapter, format!("adapter: {why}")))?,
        filter: match &raw.filter {
            None => None,
            Some(value) => Some(Pattern::parse(value.get_ref()).map_err(|why| {
                TomlError::mistake_in_value(text, value, format!("filter: {why}"))
            })?),
        },
        prefix: name,
    })
}

fn check_name(text: &str, name: &Spanned<String>) -> Result<String, TomlError> {
    let given = name.get_ref();
    let reason = if given.trim().is_empty() {
        "name: it is empty".to_owned()
    } else if given.chars().count() > LONGEST_NAME {
        format!("name: longer than {LONGEST_NAME} characters")
    } else if given.chars().any(char::is_control) {
        "name: it holds a control character".to_owned()
    } else {
        return Ok(given.clone());
    };
    Err(TomlError::mistake_in_value(text, name, reason))
}

/// Parses `1%` or `0.01`.
fn parse_effect(text: &str, value: &Spanned<String>) -> Result<f64, TomlError> {
    let given = value.get_ref().trim();
    let number = match given.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => given.parse(),
    };
    let share = number.ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| {
        let reason = "min_effect: write a share, such as \"2%\"".to_owned();
        TomlError::mistake_in_value(text, value, reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_without_a_metric_get_the_suites() {
        let text = "metric = \"cpu\"\n[[benchmark]]\nrun = \"./a\"\n\
            [[benchmark]]\nrun = \"./b\"\nmetric = \"wall\"\n\
            [[benchmark]]\nadapter = \"go\"\nrun = \"./pkg.test\"\n";
        let suite = parse(text).unwrap();
        let metrics = suite.benchmarks.iter().map(|entry| match &entry.content {
            SuiteContent::Single { metric, .. } => metric.as_ref().map(ToString::to_string),
            SuiteContent::Framework { .. } => None,
        });
        let expected = [Some("cpu".to_owned()), Some("wall".to_owned()), None];
        assert_eq!(metrics.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn benchmarks_are_parsed_with_inherited_settings() {
        let text = "build = \"make\"\nmin_effect = \"2%\"\n\
            [[benchmark]]\nname = \"a\"\nrun = \"./a -x 'y z'\"\nenvironment = { N = \"1\" }\n\
            [[benchmark]]\nrun = \"./b\"\nmetric = \"cpu\"\nmin-effect = \"0.5%\"\ntimeout = \"3s\"\n\
            [[benchmark]]\nadapter = \"go\"\nrun = \"./pkg.test\"\nfilter = \"Encode\"\n";
        let suite = parse(text).unwrap();
        assert_eq!(suite.build.as_deref(), Some("make"));
        let [a, b, go] = &suite.benchmarks[..] else {
            panic!("{suite:?}")
        };
        assert_eq!(a.command.argv(), ["./a", "-x", "y z"]);
        assert!((a.min_effect - 0.02).abs() < 1e-12);
        assert_eq!(a.environment, [("N".to_owned(), "1".to_owned())]);
        let SuiteContent::Single { name, metric } = &b.content else {
            panic!("{b:?}")
        };
        let metric = metric.as_ref().unwrap().to_string();
        assert_eq!((name.as_str(), metric.as_str()), ("./b", "cpu"));
        assert!(matches!(
            &a.content,
            SuiteContent::Single { metric: None, .. }
        ));
        assert!((b.min_effect - 0.005).abs() < 1e-12);
        assert_eq!(b.timeout, Some(Duration::from_secs(3)));
        assert!(matches!(
            &go.content,
            SuiteContent::Framework {
                framework: Framework::Go,
                filter: Some(_),
                ..
            }
        ));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let check = |text: &str, place: &str, words: &str| {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains(words), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        check("", "1:1", "no benchmark");
        check("x", "1:", "");
        check("[[benchmark]]\nrun = \"\"", "2:7", "empty");
        check("[[benchmark]]\nrun = \"a | b\"", "2:7", "shell");
        check(
            "[[benchmark]]\nrun = \"X=1 a\"",
            "2:7",
            "environment = { X = ",
        );
        check("[[benchmark]]\nrun = \"a\"\nname = \" \"", "3:8", "empty");
        let metric = "[[benchmark]]\nrun = \"a\"\nmetric = \"speed\"";
        check(metric, "3:10", "not a metric");
        let adapter = "[[benchmark]]\nrun = \"a\"\nadapter = \"junit\"";
        check(adapter, "3:11", "adapter");
        let filter = "[[benchmark]]\nrun = \"a\"\nfilter = \"x\"";
        check(filter, "3:10", "adapter");
        let both = "[[benchmark]]\nrun = \"a\"\nadapter = \"go\"\nmetric = \"cpu\"";
        check(both, "4:10", "own figure");
        let effect = "min_effect = \"0\"\n[[benchmark]]\nrun = \"a\"";
        check(effect, "1:14", "min_effect");
        let twice =
            "[[benchmark]]\nname = \"a\"\nrun = \"x\"\n[[benchmark]]\nname = \"a\"\nrun = \"y\"";
        check(twice, "5:8", "already");
        check("[[benchmark]]\nrun = \"a\"\nwhen = 1", "3:1", "when");
    }
}
