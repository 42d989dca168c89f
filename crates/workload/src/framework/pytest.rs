//! The pytest plugin `pytest-benchmark`, tried with 5.3.1 on pytest 9.2.0 and
//! with 4.0.0 on pytest 7.4.4.
//!
//! `--collect-only` lists tests of all kinds; `--setup-plan` says which use the fixture
//! `benchmark`, and runs none. A benchmark is named by its node id, such as
//! `tests/bench.py::test_sum[8]`. It is relative to the folder that the command runs in, and the
//! file must be below that folder. pytest runs an id in addition to the files that a command names,
//! so these are removed; if other benchmarks still run, the figure is refused. A command needs
//! `-n 0` if a project's settings start pytest-xdist.
//!
//! The median round is read. A run takes about 1.5 s; `--benchmark-max-time
//! 0.1` makes it shorter. The report holds every round, 43 bytes each and up
//! to 200,000 by default; `--benchmark-min-time 0.0001` makes them fewer.

use serde::Deserialize;
use serde_json::Value;

use super::error::FrameworkError;
use super::json::{find_report, parse_figure};
use super::time::to_seconds;

/// `--verbosity` and `--benchmark-enable` override what a project's settings
/// add; `-q` would add to it.
pub(super) const LIST: &[&str] = &[
    "--setup-plan",
    "--benchmark-only",
    "--benchmark-enable",
    "--verbosity=-1",
    "--rootdir=.",
];

const RUN_OPTIONS: [&str; 6] = [
    "--benchmark-only",
    "--benchmark-enable",
    "--verbosity=-1",
    "--rootdir=.",
    "--benchmark-quiet",
    "--benchmark-json=/dev/stdout",
];

/// The text between a node id and the names of its fixtures.
const FIXTURES: &str = " (fixtures used: ";

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    fullname: String,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    #[serde(default)]
    median: Value,
}

pub(super) fn parse_list(output: &str) -> Vec<&str> {
    output.lines().filter_map(parse_plan_line).collect()
}

/// The node id in a line of the plan, if it is a benchmark's. An id that begins with `::` belongs
/// to a file above the folder and cannot be run.
fn parse_plan_line(line: &str) -> Option<&str> {
    let (id, fixtures) = line.trim().strip_suffix(')')?.rsplit_once(FIXTURES)?;
    let uses_fixture = |name: &str| fixtures.split(", ").any(|fixture| fixture == name);
    let is_runnable = id.contains("::") && !id.starts_with("::");
    (is_runnable && (uses_fixture("benchmark") || uses_fixture("benchmark_weave"))).then_some(id)
}

pub(super) fn run_arguments(benchmark: &str) -> Vec<String> {
    let arguments = RUN_OPTIONS.into_iter().chain([benchmark]);
    arguments.map(str::to_owned).collect()
}

/// Removes the arguments that choose benchmarks: all Python files after the word `pytest`, and
/// arguments that contain this benchmark.
pub(super) fn remove_selection(command: &[String], benchmark: &str) -> Vec<String> {
    let is_pytest = |argument: &String| {
        let name = argument.rsplit('/').next();
        matches!(name, Some("pytest" | "py.test"))
    };
    let program = command.iter().position(is_pytest);
    let is_file = |argument: &str| {
        let file = argument.split("::").next().unwrap_or(argument);
        program.is_some() && file.ends_with(".py") && !argument.starts_with('-')
    };
    let kept = command.iter().enumerate().filter(|(index, argument)| {
        *index <= program.unwrap_or(0) || !(is_file(argument) || selects(argument, benchmark))
    });
    kept.map(|(_, argument)| argument.clone()).collect()
}

/// Does an argument name the benchmark's file, a folder above it, or the beginning of its id?
fn selects(argument: &str, benchmark: &str) -> bool {
    let file = benchmark.split("::").next().unwrap_or(benchmark);
    let plain = argument.strip_prefix("./").unwrap_or(argument);
    if let Some(rest) = benchmark.strip_prefix(plain)
        && plain.contains("::")
    {
        return rest.is_empty() || rest.starts_with("::") || rest.starts_with('[');
    }
    let plain = plain.trim_end_matches('/');
    let folder_ends = file.match_indices('/').map(|(slash, _)| slash);
    let is_same = |path: &str| match argument.starts_with('/') {
        true => plain
            .strip_suffix(path)
            .is_some_and(|before| before.ends_with('/')),
        false => plain == path,
    };
    let mut ends = folder_ends.chain([file.len()]);
    argument == "." || argument == "./" || ends.any(|end| is_same(&file[..end]))
}

pub(super) fn parse_seconds(benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
    let report: Report = find_report("pytest-benchmark", output, "{", "machine_info")?;
    let is_this = |entry: &&Entry| entry.fullname == benchmark;
    let entry = report.benchmarks.iter().find(is_this);
    let entry = entry.ok_or_else(|| FrameworkError::absent(benchmark))?;
    if report.benchmarks.len() > 1 {
        return Err(FrameworkError::not_alone(
            benchmark,
            report.benchmarks.len() - 1,
        ));
    }
    let value = parse_figure(benchmark, &entry.stats.median)?;
    to_seconds(benchmark, value, "s")
}
