//! Google Benchmark, tested with 1.7.1 and 1.9.5.
//!
//! Reads the wall-clock time `real_time`: of several repetitions the aggregate `median` or, if it is
//! missing, the median of the repetitions. A run takes about 1 s; `--benchmark_min_time=0.1` (from
//! 1.8 on `0.1s`) makes it shorter.

use serde::Deserialize;
use serde_json::Value;

use pinwise_stats::describe::median;

use super::error::FrameworkError;
use super::json::{find_report, parse_figure};
use super::pattern::exact_pattern;
use super::time::to_seconds;

pub(super) const LIST: &[&str] = &["--benchmark_list_tests=true"];

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    name: String,
    run_name: Option<String>,
    aggregate_name: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    #[serde(default)]
    skipped: bool,
    skip_message: Option<String>,
    #[serde(default)]
    real_time: Value,
    #[serde(default)]
    time_unit: String,
}

pub(super) fn parse_list(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect()
}

pub(super) fn run_arguments(benchmark: &str) -> Vec<String> {
    vec![
        format!("--benchmark_filter={}", exact_pattern(benchmark)),
        "--benchmark_format=json".to_owned(),
    ]
}

pub(super) fn parse_seconds(benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
    let report: Report = find_report("google-benchmark", output, "{", "context")?;
    let entries: Vec<&Entry> = report
        .benchmarks
        .iter()
        .filter(|entry| entry.run_name.as_ref().unwrap_or(&entry.name) == benchmark)
        .collect();
    for entry in &entries {
        entry.check_success(benchmark)?;
    }
    let aggregate = |entry: &&&Entry| entry.aggregate_name.as_deref() == Some("median");
    if let Some(entry) = entries.iter().find(aggregate) {
        return entry.seconds(benchmark);
    }
    let runs = entries
        .iter()
        .filter(|entry| entry.aggregate_name.is_none());
    let times = runs.map(|entry| entry.seconds(benchmark));
    let times: Vec<f64> = times.collect::<Result<_, _>>()?;
    median(&times).ok_or_else(|| FrameworkError::absent(benchmark))
}

impl Entry {
    fn check_success(&self, benchmark: &str) -> Result<(), FrameworkError> {
        if !self.error_occurred && !self.skipped {
            return Ok(());
        }
        let message = self.error_message.as_ref().or(self.skip_message.as_ref());
        let message = message.map_or("it was skipped", String::as_str);
        Err(FrameworkError::failed_benchmark(benchmark, message))
    }

    fn seconds(&self, benchmark: &str) -> Result<f64, FrameworkError> {
        let value = parse_figure(benchmark, &self.real_time)?;
        to_seconds(benchmark, value, &self.time_unit)
    }
}
