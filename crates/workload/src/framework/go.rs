//! Go's `testing`, tried with 1.26.8.
//!
//! Only top-level benchmarks are listed. One that has sub-benchmarks runs all
//! of them, and its figure is their geometric mean; a sub-benchmark can be
//! named itself, as `BenchmarkX/size=8`. A run takes about 1.1 s for each
//! line; `-test.benchtime 100ms` makes it shorter.

use super::error::FrameworkError;
use super::pattern::exact_pattern;
use super::time::{geometric_mean, parse_number, to_seconds};

pub(super) const LIST: &[&str] = &["-test.list=^Benchmark"];

pub(super) fn parse_list(output: &str) -> Vec<&str> {
    let is_name =
        |line: &&str| line.starts_with("Benchmark") && !line.contains(char::is_whitespace);
    output.lines().map(str::trim_end).filter(is_name).collect()
}

pub(super) fn run_arguments(benchmark: &str) -> Vec<String> {
    let levels: Vec<String> = benchmark.split('/').map(exact_pattern).collect();
    vec![
        "-test.run=^$".to_owned(),
        format!("-test.bench={}", levels.join("/")),
        "-test.count=1".to_owned(),
    ]
}

pub(super) fn parse_seconds(benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
    let mut times = Vec::new();
    // The benchmark's own output may come between its name and its result.
    let mut is_result_pending = false;
    for line in output.lines() {
        let result = if line.starts_with("Benchmark") {
            is_result_pending = false;
            let (name, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
            is_result_of(benchmark, name).then_some(rest)
        } else {
            is_result_pending.then_some(line)
        };
        let Some(rest) = result else { continue };
        match find_ns_per_operation(rest) {
            Some(value) => {
                times.push(to_seconds(
                    benchmark,
                    parse_number(benchmark, value)?,
                    "ns",
                )?);
                is_result_pending = false;
            }
            None => is_result_pending = true,
        }
    }
    geometric_mean(&times).ok_or_else(|| FrameworkError::absent(benchmark))
}

/// Is it a result of the benchmark or a sub-benchmark? Go adds `-` and the number of processors
/// unless that is 1.
fn is_result_of(benchmark: &str, printed: &str) -> bool {
    let Some(rest) = printed.strip_prefix(benchmark) else {
        return false;
    };
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || rest.starts_with('/') || rest.strip_prefix('-').is_some_and(is_number)
}

/// The value before `ns/op` in a line with the number of iterations, then pairs of value and unit.
fn find_ns_per_operation(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.next()?.parse::<u64>().ok()?;
    while let (Some(value), Some(unit)) = (words.next(), words.next()) {
        if unit == "ns/op" {
            return Some(value);
        }
    }
    None
}
