//! Criterion.rs, tried with 0.4.0, 0.5.1 and 0.8.2; 0.3 lacks an option.
//!
//! The ordinary output is read, not `--output-format bencher`, which rounds to whole nanoseconds (0
//! for an addition). In the interval `time: [1.0 ns 1.1 ns 1.2 ns]` the middle is the estimate,
//! with five digits. Nothing is written to disk, since the baseline is discarded. A run takes about
//! 8.5 s; `--warm-up-time 0.5 --measurement-time 1` before these arguments makes it 2.2 s.

use super::error::FrameworkError;
use super::pattern::exact_pattern;
use super::time::{parse_number, to_seconds};

pub(super) const LIST: &[&str] = &["--bench", "--list"];

/// Version 0.4 has no `--exact`; the filter is a regular expression in all versions.
const RUN_OPTIONS: [&str; 6] = [
    "--bench",
    "--noplot",
    "--quiet",
    "--color",
    "never",
    "--discard-baseline",
];

/// What follows a name in the list; the short form up to version 0.4.
const ENDINGS: [&str; 2] = [": benchmark", ": bench"];

pub(super) fn parse_list(output: &str) -> Vec<&str> {
    let names = output
        .lines()
        .filter_map(|line| ENDINGS.iter().find_map(|ending| line.strip_suffix(ending)));
    names.filter(|name| !name.is_empty()).collect()
}

pub(super) fn run_arguments(benchmark: &str) -> Vec<String> {
    let mut arguments: Vec<String> = RUN_OPTIONS.into_iter().map(str::to_owned).collect();
    arguments.push(exact_pattern(benchmark));
    arguments
}

pub(super) fn parse_seconds(benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
    let interval =
        find_interval(benchmark, output).ok_or_else(|| FrameworkError::absent(benchmark))?;
    let words: Vec<&str> = interval.split_whitespace().collect();
    match words[..] {
        [_, _, value, unit, _, _] => to_seconds(benchmark, parse_number(benchmark, value)?, unit),
        _ => Err(FrameworkError::not_a_number(benchmark, interval)),
    }
}

/// The text in brackets after `time:`, on the line of the benchmark or,
/// after a long name, on the next.
fn find_interval<'a>(benchmark: &str, output: &'a str) -> Option<&'a str> {
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix(benchmark) else {
            continue;
        };
        let rest = match rest.trim() {
            "" => lines.peek().copied().unwrap_or(""),
            _ if !rest.starts_with(' ') => continue,
            _ => rest,
        };
        let time = rest.trim().strip_prefix("time:").map(str::trim);
        if let Some(found) = time.and_then(|time| time.strip_prefix('[')?.strip_suffix(']')) {
            return Some(found);
        }
    }
    None
}
