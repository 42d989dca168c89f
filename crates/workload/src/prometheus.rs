//! Figures in Prometheus' text format, as servers publish them on `/metrics`.
//!
//! The format is that of <https://prometheus.io/docs/instrumenting/exposition_formats/>;
//! `OpenMetrics` adds exemplars behind a value, which are skipped. Malformed lines are skipped as
//! well: a page is read for one figure, not judged. Counters and histograms only mean something
//! between two readings of a page, which [`join_two_readings`] puts into one text.

use std::collections::BTreeMap;
use std::fmt;

/// Longest names and quotes in a selector, bytes.
const MAX_SELECTOR_BYTES: usize = 4096;
/// Separates two readings in one text; other parsers take it as a comment.
const READINGS_SEPARATOR: &str = "\n# pinwise: seconds until the next reading: ";

/// What to read from a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    aggregation: Aggregation,
    name: String,
    labels: Vec<(String, String)>,
}

/// How the series that a query selects are combined.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aggregation {
    /// The value itself, of exactly one series.
    Value,
    /// The increase of a counter per second, over all series.
    Rate,
    /// The mean of the values that a histogram or summary received meanwhile.
    Mean,
    /// A quantile (0 to 1) of the values that a histogram received meanwhile.
    Quantile(f64),
}

/// Why a page has no such figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No series has this name and these labels.
    #[error("no such metric: {0}")]
    Absent(String),
    /// A value of several series.
    #[error("{name} stands for {count} series: choose one by its labels, such as {example}")]
    Several {
        /// As asked.
        name: String,
        /// The number of them.
        count: usize,
        /// One of them.
        example: String,
    },
    /// A counter went backwards.
    #[error("{0} fell meanwhile: the service was restarted")]
    Reset(String),
    /// Nothing happened.
    #[error("{0} did not grow meanwhile: is there any load on the service?")]
    Idle(String),
    /// There is only one reading.
    #[error("{0} needs two readings of a page, as from a running service (compare --pid)")]
    OneReading(String),
}

/// One line of a page.
#[derive(Debug, Clone, PartialEq)]
struct Series<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// Two readings of a page, this many seconds apart, as one text.
#[must_use]
pub fn join_two_readings(first: &[u8], second: &[u8], seconds: f64) -> Vec<u8> {
    let line = format!("{READINGS_SEPARATOR}{seconds:?}\n");
    [first, line.as_bytes(), second].concat()
}

/// The first reading in a text with the seconds until the next, if there are two, and the last one.
fn split_readings(text: &str) -> (Option<(&str, f64)>, &str) {
    let split = text
        .split_once(READINGS_SEPARATOR)
        .and_then(|(first, rest)| {
            let (seconds, second) = rest.split_once('\n')?;
            let seconds: f64 = seconds.parse().ok()?;
            (seconds.is_finite() && seconds > 0.0).then_some(((first, seconds), second))
        });
    match split {
        Some((first, second)) => (Some(first), second),
        None => (None, text),
    }
}

impl Query {
    /// Parses `NAME{label="value"}`, alone or in `rate(…)`, `mean(…)` or `p99(…)`; `None` if the
    /// text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_SELECTOR_BYTES {
            return None;
        }
        let text = text.trim();
        let (aggregation, selector) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some(("rate", inside)) => (Aggregation::Rate, inside),
            Some(("mean", inside)) => (Aggregation::Mean, inside),
            Some((function, inside)) => (Aggregation::Quantile(parse_quantile(function)?), inside),
            None => (Aggregation::Value, text),
        };
        let (name, rest) = split_name(selector.trim())?;
        let labels = match rest.trim() {
            "" => Vec::new(),
            rest => {
                let (labels, after) = parse_labels(rest.strip_prefix('{')?)?;
                if !after.trim().is_empty() {
                    return None;
                }
                let owned = labels.into_iter();
                owned
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }
        };
        Some(Self {
            aggregation,
            name: name.to_owned(),
            labels,
        })
    }

    /// Does it need two readings, some time apart?
    #[must_use]
    pub const fn needs_two_readings(&self) -> bool {
        !matches!(self.aggregation, Aggregation::Value)
    }

    /// Reads the figure off a page, or off two readings of it.
    ///
    /// # Errors
    /// [`Missing`] says why there is no value.
    pub fn read(&self, text: &str) -> Result<f64, Missing> {
        let (first, second) = split_readings(text);
        if self.aggregation == Aggregation::Value {
            return self.read_value(second);
        }
        let (first, seconds) = first.ok_or_else(|| Missing::OneReading(self.to_string()))?;
        match self.aggregation {
            Aggregation::Value | Aggregation::Rate => {
                let grown = self.read_growth(&self.name, first, second)?;
                self.require_growth(grown / seconds)
            }
            Aggregation::Mean => {
                let sum = self.read_growth(&format!("{}_sum", self.name), first, second)?;
                let count = self.read_growth(&format!("{}_count", self.name), first, second)?;
                self.require_growth(count)?;
                Ok(sum / count)
            }
            Aggregation::Quantile(share) => self.read_quantile(share, first, second),
        }
    }

    fn require_growth(&self, value: f64) -> Result<f64, Missing> {
        if value < 0.0 {
            return Err(Missing::Reset(self.format_selector()));
        }
        if value > 0.0 {
            return Ok(value);
        }
        Err(Missing::Idle(self.format_selector()))
    }

    fn read_value(&self, page: &str) -> Result<f64, Missing> {
        let found: Vec<Series<'_>> = self.select(&self.name, page).collect();
        match found.as_slice() {
            [] => Err(Missing::Absent(self.format_selector())),
            [one] => Ok(one.value),
            [first, ..] => Err(Missing::Several {
                name: self.format_selector(),
                count: found.len(),
                example: write_selector(
                    first.name,
                    first.labels.iter().map(|(name, value)| (*name, value)),
                ),
            }),
        }
    }

    /// The total increase of the series of a name.
    fn read_growth(&self, name: &str, first: &str, second: &str) -> Result<f64, Missing> {
        let sum = |page: &str| {
            let found = self.select(name, page).map(|series| series.value);
            found.fold(None, |sum: Option<f64>, value| {
                Some(sum.unwrap_or(0.0) + value)
            })
        };
        let absent = || Missing::Absent(name.to_owned());
        // A series that is missing in the first reading began at 0.
        let grown = sum(second).ok_or_else(absent)? - sum(first).unwrap_or(0.0);
        if grown < 0.0 {
            return Err(Missing::Reset(self.format_selector()));
        }
        Ok(grown)
    }

    /// Computes a quantile as `histogram_quantile` of Prometheus does: it assumes that values are
    /// spread evenly in their bucket and that the first bucket begins at 0. For a quantile in the
    /// last bucket, which has no end, it gives the beginning of that bucket.
    fn read_quantile(&self, share: f64, first: &str, second: &str) -> Result<f64, Missing> {
        let mut buckets = self.read_buckets(second)?;
        for (end, count) in self.read_buckets(first).unwrap_or_default() {
            if let Some(now) = buckets
                .iter_mut()
                .find(|(other, _)| other.total_cmp(&end).is_eq())
            {
                now.1 -= count;
            }
        }
        let total = buckets.last().map_or(0.0, |(_, count)| *count);
        self.require_growth(total)?;
        let rank = share * total;
        let (mut below, mut start) = (0.0, 0.0);
        for (end, count) in buckets {
            if count >= rank && count > below {
                if end.is_infinite() {
                    return Ok(start);
                }
                let start = if end < start { end } else { start };
                return Ok(start + (end - start) * (rank - below) / (count - below));
            }
            (below, start) = (below.max(count), end);
        }
        Ok(start)
    }

    /// Ends of the buckets and the number of values below each, in order.
    fn read_buckets(&self, page: &str) -> Result<Vec<(f64, f64)>, Missing> {
        let name = format!("{}_bucket", self.name);
        let mut counts: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for series in self.select(&name, page) {
            let end = series.labels.iter().find(|(label, _)| *label == "le");
            let Some(end) = end.and_then(|(_, text)| parse_number(text)) else {
                continue;
            };
            // Keys that sort as the numbers do: their bits, inverted for negative numbers.
            let bits = end.to_bits().cast_signed();
            let key = if bits < 0 { i64::MIN ^ !bits } else { bits };
            counts.entry(key).or_insert((end, 0.0)).1 += series.value;
        }
        if counts.is_empty() {
            return Err(Missing::Absent(name));
        }
        Ok(counts.into_values().collect())
    }

    fn select<'a>(&'a self, name: &'a str, page: &'a str) -> impl Iterator<Item = Series<'a>> {
        page.lines()
            .filter(move |line| line.trim_start().starts_with(name))
            .filter_map(parse_line)
            .filter(move |series| series.name == name)
            .filter(|series| {
                self.labels.iter().all(|(name, value)| {
                    let mut labels = series.labels.iter();
                    labels.any(|(other, own)| other == name && own == value)
                })
            })
    }

    fn format_selector(&self) -> String {
        let labels = self.labels.iter();
        write_selector(
            &self.name,
            labels.map(|(name, value)| (name.as_str(), value)),
        )
    }
}

impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selector = self.format_selector();
        match self.aggregation {
            Aggregation::Value => out.write_str(&selector),
            Aggregation::Rate => write!(out, "rate({selector})"),
            Aggregation::Mean => write!(out, "mean({selector})"),
            Aggregation::Quantile(share) => {
                // 0.999 times 100 is not a round number in binary.
                let percent = (share * 1e8).round() / 1e6;
                write!(out, "p{percent}({selector})")
            }
        }
    }
}

fn write_selector<'a>(name: &str, labels: impl Iterator<Item = (&'a str, &'a String)>) -> String {
    let labels: Vec<String> = labels
        .map(|(name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{}\"", value.replace('\n', "\\n"))
        })
        .collect();
    if labels.is_empty() {
        return name.to_owned();
    }
    format!("{name}{{{}}}", labels.join(","))
}

/// `p99`, `p99.9`, `median` as a share.
fn parse_quantile(function: &str) -> Option<f64> {
    if function == "median" {
        return Some(0.5);
    }
    let digits = function.strip_prefix('p')?;
    let is_plain = digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent: f64 = digits.parse().ok().filter(|_| is_plain)?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}

/// A line's name, labels and value; `None` for comments and malformed lines.
fn parse_line(text: &str) -> Option<Series<'_>> {
    let (name, rest) = split_name(text.trim())?;
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => parse_labels(inside)?,
        None => (Vec::new(), rest),
    };
    let value = parse_number(rest.split_ascii_whitespace().next()?)?;
    Some(Series {
        name,
        labels,
        value,
    })
    .filter(|series| !series.value.is_nan())
}

/// Splits a name off the beginning of a text.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let has_valid_start = name.starts_with(|c: char| !c.is_ascii_digit() && c != '.');
    has_valid_start.then_some((name, rest))
}

type Labels<'a> = Vec<(&'a str, String)>;

/// Labels up to the closing brace, and what follows it.
fn parse_labels(mut text: &str) -> Option<(Labels<'_>, &str)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(after) = text.strip_prefix('}') {
            return Some((found, after));
        }
        let (label, rest) = split_name(text)?;
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let (value, rest) = take_quoted(rest.strip_prefix('"')?)?;
        found.push((label, value));
        let rest = rest.trim_start();
        text = rest.strip_prefix(',').unwrap_or(rest);
        if text.len() == rest.len() && !rest.starts_with('}') {
            return None;
        }
    }
}

/// A label's value up to its closing quote, and what follows it.
fn take_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[position + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
