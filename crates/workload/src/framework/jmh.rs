//! Java Microbenchmark Harness, tried with 1.37.
//!
//! A benchmark with parameters or several modes has a result for each; its
//! figure is their geometric mean. Rates (`ops/s`) are inverted. JMH's
//! defaults take minutes; `-f 1 -wi 1 -i 1 -w 1 -r 1` before these arguments
//! makes it about 3 s for each result.

use serde::Deserialize;
use serde_json::Value;

use super::error::FrameworkError;
use super::json::{find_report, parse_figure};
use super::pattern::exact_pattern;
use super::time::{geometric_mean, invert_rate, to_seconds};

pub(super) const LIST: &[&str] = &["-l"];

#[derive(Deserialize)]
struct Entry {
    benchmark: String,
    #[serde(rename = "primaryMetric")]
    metric: Score,
}

#[derive(Deserialize)]
struct Score {
    score: Value,
    #[serde(rename = "scoreUnit")]
    unit: String,
}

/// Parses the names below a heading; the JVM may print warnings above it.
pub(super) fn parse_list(output: &str) -> Vec<&str> {
    let lines = output.lines().map(str::trim_end);
    let below = lines.skip_while(|line| *line != "Benchmarks:").skip(1);
    let is_name = |line: &&str| line.contains('.') && !line.contains(char::is_whitespace);
    below.filter(is_name).collect()
}

pub(super) fn run_arguments(benchmark: &str) -> Vec<String> {
    let options = "-foe true -rf json -rff /dev/stdout -v SILENT".split(' ');
    let mut arguments = vec![exact_pattern(benchmark)];
    arguments.extend(options.map(str::to_owned));
    arguments
}

pub(super) fn parse_seconds(benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
    let entries: Vec<Entry> = find_report("jmh", output, "[{", "jmhVersion")?;
    let entries = entries.iter().filter(|entry| entry.benchmark == benchmark);
    let times = entries.map(|entry| entry.metric.seconds(benchmark));
    let times: Vec<f64> = times.collect::<Result<_, _>>()?;
    geometric_mean(&times).ok_or_else(|| FrameworkError::absent(benchmark))
}

impl Score {
    fn seconds(&self, benchmark: &str) -> Result<f64, FrameworkError> {
        let value = parse_figure(benchmark, &self.score)?;
        if let Some(unit) = self.unit.strip_prefix("ops/") {
            return invert_rate(benchmark, value, unit);
        }
        match self.unit.strip_suffix("/op") {
            Some(unit) => to_seconds(benchmark, value, unit),
            None => Err(FrameworkError::unit(benchmark, &self.unit)),
        }
    }
}
