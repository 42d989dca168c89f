//! Finds the JSON report in a program's output among other text.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::FrameworkError;
use super::time::parse_number;

/// Limits the positions at which the report is looked for; at each it is parsed once or twice.
const MAX_TRIES: usize = 16;

/// Finds and parses the report. It begins with `opening`, such as `[{`, right before the first key
/// `key`.
pub(super) fn find_report<T: DeserializeOwned>(
    framework: &'static str,
    output: &str,
    opening: &str,
    key: &str,
) -> Result<T, FrameworkError> {
    let key = format!("\"{key}\"");
    let starts = output
        .match_indices(&key)
        .filter_map(|(key_start, _)| find_opening(&output[..key_start], opening));
    let mut error = FrameworkError::no_report(framework);
    for start in starts.take(MAX_TRIES) {
        let text = &output[start..];
        match parse(text).or_else(|_| parse(&replace_bare_numbers(text))) {
            Ok(report) => return Ok(report),
            Err(reason) => error = FrameworkError::report(framework, &reason.to_string()),
        }
    }
    Err(error)
}

/// The position of the opening at the end of a text, ignoring white space.
fn find_opening(before: &str, opening: &str) -> Option<usize> {
    let mut rest = before;
    for character in opening.chars().rev() {
        rest = rest.trim_ascii_end().strip_suffix(character)?;
    }
    Some(rest.len())
}

fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    T::deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// Replaces infinite numbers and NaN, which Python and Google Benchmark print but JSON lacks, by
/// `null`.
fn replace_bare_numbers(text: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    for (index, part) in split_at_unescaped_quotes(text).enumerate() {
        if index % 2 == 1 {
            replaced.push_str(part);
            continue;
        }
        let plain = part
            .replace("-Infinity", "null")
            .replace("Infinity", "null")
            .replace("NaN", "null");
        replaced.push_str(&plain);
    }
    replaced
}

/// Parts of a text, in turn outside and inside of strings; each but the last
/// ends with a quote.
fn split_at_unescaped_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split_inclusive(move |c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })
}

/// Parses a figure of a report: a number, possibly in quotes.
pub(super) fn parse_figure(benchmark: &str, value: &Value) -> Result<f64, FrameworkError> {
    match value {
        Value::String(text) => parse_number(benchmark, text),
        other => other
            .as_f64()
            .ok_or_else(|| FrameworkError::not_a_number(benchmark, &describe_value(other))),
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        plain => plain.to_string(),
    }
}
