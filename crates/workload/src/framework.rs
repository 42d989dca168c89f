//! Single benchmarks of benchmark frameworks: how they are listed, run alone
//! and read.
//!
//! Nothing is run here: there are arguments to start a program with, and parsers of its output.
//! Figures are always turned into seconds per operation. Output must come through a pipe: two
//! frameworks write their report to `/dev/stdout`, which would empty a file first. Each framework's
//! module names the versions that were tried.

mod criterion;
mod error;
mod go;
mod google;
mod jmh;
mod json;
mod pattern;
mod pytest;
mod time;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

pub use error::FrameworkError;
pub(crate) use time::unit_s;

/// A benchmark framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// Criterion.rs, in a bench binary as `cargo bench --no-run` makes it.
    Criterion,
    /// Google Benchmark, for C++.
    GoogleBenchmark,
    /// Go's `testing`, in a binary as `go test -c` makes it.
    Go,
    /// Java Microbenchmark Harness, in a jar that `java -jar` runs.
    Jmh,
    /// The plugin `pytest-benchmark`, as `python3 -m pytest FILE` runs it.
    Pytest,
}

impl Framework {
    /// All variants.
    pub const ALL: [Self; 5] = [
        Self::Criterion,
        Self::GoogleBenchmark,
        Self::Go,
        Self::Jmh,
        Self::Pytest,
    ];

    /// The name in files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Criterion => "criterion",
            Self::GoogleBenchmark => "google-benchmark",
            Self::Go => "go",
            Self::Jmh => "jmh",
            Self::Pytest => "pytest",
        }
    }

    /// Arguments after the command that make it list its benchmarks.
    #[must_use]
    pub const fn list_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Criterion => criterion::LIST,
            Self::GoogleBenchmark => google::LIST,
            Self::Go => go::LIST,
            Self::Jmh => jmh::LIST,
            Self::Pytest => pytest::LIST,
        }
    }

    /// The benchmarks in a list on standard output, in its order and each once. Standard error does
    /// not belong to it: every line of Google Benchmark's list is a name.
    ///
    /// Go lists no sub-benchmarks and JMH no parameters: such a benchmark includes all of them.
    ///
    /// # Errors
    /// [`FrameworkError`] if it contains no benchmark.
    pub fn parse_list(self, output: &str) -> Result<Vec<String>, FrameworkError> {
        let names = match self {
            Self::Criterion => criterion::parse_list(output),
            Self::GoogleBenchmark => google::parse_list(output),
            Self::Go => go::parse_list(output),
            Self::Jmh => jmh::parse_list(output),
            Self::Pytest => pytest::parse_list(output),
        };
        let mut seen = BTreeSet::new();
        let names: Vec<String> = names
            .into_iter()
            .filter(|name| seen.insert(*name))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return Err(FrameworkError::nothing_listed(self.name()));
        }
        Ok(names)
    }

    /// Arguments after the command that run this benchmark alone and print its figure. pytest runs
    /// more if the command names files or folders: [`Self::command`] takes them out.
    #[must_use]
    pub fn run_arguments(self, benchmark: &str) -> Vec<String> {
        match self {
            Self::Criterion => criterion::run_arguments(benchmark),
            Self::GoogleBenchmark => google::run_arguments(benchmark),
            Self::Go => go::run_arguments(benchmark),
            Self::Jmh => jmh::run_arguments(benchmark),
            Self::Pytest => pytest::run_arguments(benchmark),
        }
    }

    /// The command, program first, that runs this benchmark alone.
    #[must_use]
    pub fn command(self, command: &[String], benchmark: &str) -> Vec<String> {
        let mut whole = match self {
            Self::Pytest => pytest::remove_selection(command, benchmark),
            _ => command.to_vec(),
        };
        whole.extend(self.run_arguments(benchmark));
        whole
    }

    /// Seconds per operation that the output gives for this benchmark; the geometric mean if it
    /// combines several (see [`Self::parse_list`]). Standard error may follow in the output.
    ///
    /// # Errors
    /// [`FrameworkError`] says why there is no figure.
    pub fn parse_seconds(self, benchmark: &str, output: &str) -> Result<f64, FrameworkError> {
        match self {
            Self::Criterion => criterion::parse_seconds(benchmark, output),
            Self::GoogleBenchmark => google::parse_seconds(benchmark, output),
            Self::Go => go::parse_seconds(benchmark, output),
            Self::Jmh => jmh::parse_seconds(benchmark, output),
            Self::Pytest => pytest::parse_seconds(benchmark, output),
        }
    }
}

impl FromStr for Framework {
    type Err = FrameworkError;

    fn from_str(text: &str) -> Result<Self, FrameworkError> {
        Self::ALL
            .into_iter()
            .find(|framework| framework.name() == text)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                FrameworkError::unknown(text, &known)
            })
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
