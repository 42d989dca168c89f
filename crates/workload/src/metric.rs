//! Metrics: the figures of a run, and the costs that are compared.
//!
//! For a cost, lower is better. Rates are inverted, so that a ratio of costs below 1 always means
//! better. A metric that a run lacks is an error of that run, never 0.

mod built_in;
mod json_path;
mod pattern;

use std::fmt;
use std::str::FromStr;

use regex_lite::{Regex, RegexBuilder};

use super::framework::{Framework, FrameworkError};
use super::prometheus::{Missing, Query};
use pinwise_stats::verdict::Words;

use built_in::{BUILT_IN, CPU, WALL};
pub use built_in::{BuiltInMetric, Counts, RunFigures};
use json_path::JsonPath;

/// Largest compiled regular expression, bytes: it bounds the time that matching takes.
const MAX_REGEX_BYTES: usize = 256 * 1024;

/// Which direction of a figure is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A cost: time, memory, errors.
    Lower,
    /// A rate or a score.
    Higher,
}

/// A figure of a run.
#[derive(Debug, Clone)]
pub enum Metric {
    /// A metric that pinwise measures in every run.
    BuiltIn(&'static BuiltInMetric),
    /// The first group of a regular expression in the program's output.
    Regex(Regex, Better),
    /// A number at a path of the JSON document that the program prints.
    Json(JsonPath, Better),
    /// A figure of a service in Prometheus' text format.
    Prometheus(Query, Better),
    /// Seconds per operation of this benchmark, which ran alone.
    Framework(Framework, String),
}

/// Why a metric's name could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// No metric has this name.
    #[error(
        "'{0}' is not a metric (known: {known}, 'regex:… higher|lower', 'json:.path higher|lower', 'prometheus:NAME higher|lower')",
        known = BUILT_IN.each_ref().map(|metric| metric.names.join(" or ")).join(", ")
    )]
    Unknown(String),
    /// The direction is missing.
    #[error("'{0}' must end with higher or lower, whichever is better")]
    NoDirection(String),
    /// Not a valid regular expression.
    #[error("'{text}': {reason}")]
    Regex {
        /// The metric.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Not a valid JSON path.
    #[error("'{0}': a path looks like .summary.rates[0]")]
    Path(String),
    /// Not a valid query.
    #[error(
        "'{0}': write a name with labels, such as requests{{code=\"200\"}}, or one in rate(…), mean(…), p99(…)"
    )]
    Query(String),
}

/// Characters of the program's last line in an error.
const LONGEST_LINE: usize = 80;

/// Why a metric could not be read from a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricReadError {
    /// The run did not report this figure.
    #[error("{0} is not available on this machine")]
    Unavailable(String),
    /// The regular expression matches nowhere in the output, whose last line follows, in words.
    #[error("the metric '{0}' matches nothing in the program's output{1}")]
    NoMatch(String, String),
    /// The matching text is not a number.
    #[error("the metric '{metric}' found '{found}', which is not a number")]
    NotANumber {
        /// The metric.
        metric: String,
        /// What was found.
        found: String,
    },
    /// A program that chooses its unit by the size of the figure would be misread.
    #[error(
        "the metric '{metric}' found {found} with the unit '{unit}' behind it, which may be another in the next run: take the unit into the group, '{better}', to read it in seconds"
    )]
    Unit {
        /// The metric.
        metric: String,
        /// The number.
        found: String,
        /// The unit.
        unit: String,
        /// The metric that reads it.
        better: String,
    },
    /// The kernel reports at least the memory of pinwise, which started the command.
    #[error(
        "the metric 'max-rss' was not measured: the command needs less memory than pinwise itself, about 8 MiB, and the kernel does not report less"
    )]
    SmallMemory,
    /// The output is not JSON.
    #[error("the metric '{metric}' needs JSON on standard output: {reason}")]
    NotJson {
        /// The metric.
        metric: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The service does not report it.
    #[error("the metric '{metric}': {reason}")]
    Missing {
        /// The metric.
        metric: String,
        /// Why not.
        reason: Missing,
    },
    /// The benchmark framework gave no figure.
    #[error("{framework}: {reason}")]
    Framework {
        /// The framework.
        framework: Framework,
        /// Why not; it names the benchmark.
        reason: FrameworkError,
    },
    /// Costs are compared as ratios, so they must be above 0.
    #[error("the metric '{metric}' read {value}; it must be above 0 to be compared as a ratio")]
    NotPositive {
        /// The metric.
        metric: String,
        /// What was read.
        value: String,
    },
}

impl Metric {
    /// Wall-clock time of the whole process tree.
    #[must_use]
    pub const fn wall() -> Self {
        Self::BuiltIn(&WALL)
    }

    /// User and system time together.
    #[must_use]
    pub const fn cpu() -> Self {
        Self::BuiltIn(&CPU)
    }

    /// Is it wall-clock time?
    #[must_use]
    pub fn is_wall(&self) -> bool {
        matches!(self, Self::BuiltIn(metric) if metric.names == WALL.names)
    }

    /// Is it read from a hardware counter, which may slow the command down?
    #[must_use]
    pub const fn needs_counter(&self) -> bool {
        matches!(self, Self::BuiltIn(metric) if metric.needs_counter)
    }

    /// Must the program's output be kept to read this?
    #[must_use]
    pub const fn needs_output(&self) -> bool {
        matches!(
            self,
            Self::Regex(..) | Self::Json(..) | Self::Prometheus(..) | Self::Framework(..)
        )
    }

    /// Does it describe what happened between two readings of a page?
    #[must_use]
    pub const fn needs_two_readings(&self) -> bool {
        matches!(self, Self::Prometheus(query, _) if query.needs_two_readings())
    }

    /// The names of built-in metrics.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().flat_map(|metric| metric.names).copied()
    }

    /// Which direction is good.
    #[must_use]
    pub const fn better(&self) -> Better {
        match self {
            Self::Regex(_, better) | Self::Json(_, better) | Self::Prometheus(_, better) => *better,
            _ => Better::Lower,
        }
    }

    /// Is it a time? The program's own figure is one if its name ends with `seconds`.
    #[must_use]
    pub fn is_time(&self) -> bool {
        match self {
            Self::BuiltIn(metric) => metric.unit == "s",
            Self::Framework(..) => true,
            Self::Json(path, Better::Lower) => path.text.ends_with("seconds"),
            Self::Regex(_, Better::Lower) => self.takes_unit(),
            _ => false,
        }
    }

    /// Is it an exact count rather than a time or rate? `None` if the name does not say.
    #[must_use]
    pub fn is_count(&self) -> Option<bool> {
        let has_time_word = match self {
            Self::BuiltIn(_) | Self::Framework(..) => return Some(!self.is_time()),
            Self::Regex(..) if self.takes_unit() => return Some(false),
            Self::Regex(regex, _) => {
                pattern::has_time_word(&pattern::strip_escapes(regex.as_str()))
            }
            Self::Json(path, _) => pattern::has_time_word(&path.text),
            Self::Prometheus(query, _) => pattern::has_time_word(&query.to_string()),
        };
        has_time_word.then_some(false)
    }

    /// Unit of the value; empty if it is the program's own figure.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self {
            Self::BuiltIn(metric) => metric.unit,
            _ if self.is_time() || self.takes_unit() => "s",
            _ => "",
        }
    }

    /// Is it a time that is printed with its unit, and read in seconds?
    fn takes_unit(&self) -> bool {
        matches!(self, Self::Regex(regex, _) if pattern::takes_unit(regex.as_str()))
    }

    /// The unit that a regular expression has after the number; `None` without one, and for other
    /// metrics.
    #[must_use]
    pub fn printed_unit(&self) -> Option<String> {
        match self {
            Self::Regex(regex, _) => pattern::find_unit(regex.as_str()),
            _ => None,
        }
    }

    /// Its name in tables and sentences.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::BuiltIn(metric) => metric.label.to_owned(),
            Self::Regex(regex, _) => {
                pattern::find_name(regex.as_str()).unwrap_or_else(|| match self.printed_unit() {
                    Some(unit) => format!("the program's figure in {unit}"),
                    None => "the program's own figure".to_owned(),
                })
            }
            Self::Json(path, _) => path.text.clone(),
            Self::Prometheus(query, _) => query.to_string(),
            Self::Framework(..) => "time per operation".to_owned(),
        }
    }

    /// The name of a figure that the program prints, if its pattern or path has one.
    #[must_use]
    pub fn figure_name(&self) -> Option<String> {
        match self {
            Self::BuiltIn(_) | Self::Framework(..) => None,
            Self::Regex(regex, _) => pattern::find_name(regex.as_str()),
            Self::Json(..) | Self::Prometheus(..) => Some(self.label()),
        }
    }

    /// Words for its cost.
    #[must_use]
    pub fn words(&self) -> Words {
        match self {
            Self::BuiltIn(metric) => metric.words,
            _ if self.is_time() || self.is_printed_time() => Words::SPEED,
            _ => Words::OWN,
        }
    }

    fn is_printed_time(&self) -> bool {
        let unit = self.printed_unit();
        self.better() == Better::Lower && unit.is_some_and(|unit| pattern::is_time(&unit))
    }

    /// Reads the figure of a run: a finite number above 0.
    ///
    /// # Errors
    /// [`MetricReadError`] says why there is no value.
    pub fn read(&self, run: &RunFigures<'_>) -> Result<f64, MetricReadError> {
        let value = match self {
            Self::BuiltIn(metric) => (metric.read)(run).ok_or_else(|| match metric.words {
                Words::MEMORY => MetricReadError::SmallMemory,
                _ => MetricReadError::Unavailable(self.to_string()),
            })?,
            Self::Regex(regex, _) => self.read_regex(regex, run)?,
            Self::Json(path, _) => self.read_json(path, run)?,
            Self::Prometheus(query, _) => {
                let missing = |reason| MetricReadError::Missing {
                    metric: self.to_string(),
                    reason,
                };
                query.read(&self.require_output(run)?).map_err(missing)?
            }
            Self::Framework(framework, benchmark) => {
                let missing = |reason| MetricReadError::Framework {
                    framework: *framework,
                    reason,
                };
                let output = self.require_output(run)?;
                framework
                    .parse_seconds(benchmark, &output)
                    .map_err(missing)?
            }
        };
        if value > 0.0 && value.is_normal() {
            return Ok(value);
        }
        Err(MetricReadError::NotPositive {
            metric: self.to_string(),
            value: value.to_string(),
        })
    }

    /// The cost of a value: the value itself, or its inverse if higher is better.
    #[must_use]
    pub fn cost(&self, value: f64) -> f64 {
        match self.better() {
            Better::Lower => value,
            Better::Higher => 1.0 / value,
        }
    }

    fn require_output<'a>(
        &self,
        run: &RunFigures<'a>,
    ) -> Result<std::borrow::Cow<'a, str>, MetricReadError> {
        run.output
            .map(String::from_utf8_lossy)
            .ok_or_else(|| MetricReadError::Unavailable(self.to_string()))
    }

    fn read_regex(&self, regex: &Regex, run: &RunFigures<'_>) -> Result<f64, MetricReadError> {
        let output = self.require_output(run)?;
        let found = regex
            .captures(&output)
            .and_then(|captures| captures.get(1).or_else(|| captures.get(0)))
            .ok_or_else(|| self.no_match(&output))?;
        let text = found.as_str();
        let pattern = regex.as_str();
        let value = match self.takes_unit() {
            true => pattern::parse_time(text),
            false => parse_number(text),
        };
        let value = value.ok_or_else(|| MetricReadError::NotANumber {
            metric: self.to_string(),
            found: text.to_owned(),
        })?;
        let unit = pattern::unit_behind(&output[found.end()..]);
        match unit.filter(|unit| !pattern::names_unit(pattern, unit)) {
            None => Ok(value),
            Some(unit) => Err(MetricReadError::Unit {
                metric: self.to_string(),
                found: text.to_owned(),
                unit: unit.to_owned(),
                better: format!(
                    "regex:{} {}",
                    pattern::with_unit_in_group(pattern),
                    self.direction()
                ),
            }),
        }
    }

    /// Which direction is good, as on the command line.
    const fn direction(&self) -> &'static str {
        match self.better() {
            Better::Lower => "lower",
            Better::Higher => "higher",
        }
    }

    fn no_match(&self, output: &str) -> MetricReadError {
        let lines = output.lines().rev();
        let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
        let ends = lines.next().map_or_else(String::new, |line| {
            let shown: String = line.chars().take(LONGEST_LINE).collect();
            format!(", which ends with '{shown}'")
        });
        MetricReadError::NoMatch(self.to_string(), ends)
    }

    fn read_json(&self, path: &JsonPath, run: &RunFigures<'_>) -> Result<f64, MetricReadError> {
        let output = self.require_output(run)?;
        let mut documents = serde_json::Deserializer::from_str(&output).into_iter();
        let document: serde_json::Value = documents
            .next()
            .unwrap_or(Ok(serde_json::Value::Null))
            .map_err(|error| MetricReadError::NotJson {
            metric: self.to_string(),
            reason: error.to_string(),
        })?;
        let found = path
            .follow(&document)
            .ok_or_else(|| self.no_match(&output))?;
        let number = found
            .as_f64()
            .or_else(|| found.as_str().and_then(parse_number));
        number.ok_or_else(|| MetricReadError::NotANumber {
            metric: self.to_string(),
            found: found.to_string(),
        })
    }
}

/// Parses a number as programs print it: `1234.5`, `1,234.5`, `1.2e3`.
fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain: String = text.chars().filter(|&c| c != ',' && c != '_').collect();
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("regex:") {
            let (pattern, better) = split_direction(text, rest)?;
            let regex = RegexBuilder::new(pattern)
                .size_limit(MAX_REGEX_BYTES)
                .build()
                .map_err(|error| MetricError::Regex {
                    text: text.to_owned(),
                    reason: error.to_string(),
                })?;
            return Ok(Self::Regex(regex, better));
        }
        if let Some(rest) = text.strip_prefix("json:") {
            let (path, better) = split_direction(text, rest)?;
            let path = JsonPath::parse(path).ok_or_else(|| MetricError::Path(text.to_owned()))?;
            return Ok(Self::Json(path, better));
        }
        // Functions such as rate(…) need no prefix: only Prometheus metrics have them.
        let is_prometheus_function = !text.starts_with("prometheus:") && text.contains('(');
        let page = text.strip_prefix("prometheus:");
        if let Some(rest) = page.or(is_prometheus_function.then_some(text)) {
            let (query, better) = split_direction(text, rest)?;
            let query = Query::parse(query).ok_or_else(|| MetricError::Query(text.to_owned()))?;
            return Ok(Self::Prometheus(query, better));
        }
        match BUILT_IN.iter().find(|metric| metric.names.contains(&text)) {
            Some(metric) => Ok(Self::BuiltIn(metric)),
            None => Err(MetricError::Unknown(text.to_owned())),
        }
    }
}

/// Splits off `higher` or `lower` at the end of a metric.
fn split_direction<'a>(text: &str, rest: &'a str) -> Result<(&'a str, Better), MetricError> {
    let missing = || MetricError::NoDirection(text.to_owned());
    let (head, word) = rest.rsplit_once(char::is_whitespace).ok_or_else(missing)?;
    let better = match word {
        "higher" => Better::Higher,
        "lower" => Better::Lower,
        _ => return Err(missing()),
    };
    Ok((head.trim_end(), better))
}

impl fmt::Display for Metric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.direction();
        match self {
            Self::BuiltIn(metric) => out.write_str(metric.names[0]),
            Self::Regex(regex, _) => write!(out, "regex:{regex} {word}"),
            Self::Json(path, _) => write!(out, "json:{} {word}", path.text),
            Self::Prometheus(query, _) => write!(out, "prometheus:{query} {word}"),
            Self::Framework(framework, benchmark) => write!(out, "{framework}:{benchmark}"),
        }
    }
}

#[cfg(test)]
mod tests;
