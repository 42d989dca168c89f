//! Why a benchmark has no figure, in one line each.
//!
//! What comes from a program's output is shortened and free of control
//! characters.

/// Characters of a program's output that a message repeats.
const MAX_QUOTE: usize = 100;

/// Why there are no benchmarks, or no figure of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameworkError {
    /// No framework has this name.
    #[error("'{name}' is not a benchmark framework (known: {known})")]
    Unknown {
        /// As written.
        name: String,
        /// All names.
        known: String,
    },
    /// The list holds no benchmark.
    #[error("the command listed no benchmarks of {0}")]
    NothingListed(&'static str),
    /// The output says nothing about this benchmark.
    #[error("the output has no result for the benchmark '{0}'")]
    Absent(String),
    /// The benchmark reported an error itself.
    #[error("the benchmark '{benchmark}' failed: {message}")]
    Failed {
        /// Its name.
        benchmark: String,
        /// Its own words.
        message: String,
    },
    /// The output holds no report.
    #[error("the output has no report of {0}")]
    NoReport(&'static str),
    /// Other benchmarks ran in the same process.
    #[error(
        "the benchmark '{benchmark}' did not run alone, but with {others} more: name no files or folders in the command"
    )]
    NotAlone {
        /// Its name.
        benchmark: String,
        /// The number of other benchmarks.
        others: usize,
    },
    /// The report cannot be read.
    #[error("the report of {framework} cannot be read: {reason}")]
    Report {
        /// The framework.
        framework: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The figure is not a time.
    #[error("the benchmark '{benchmark}' is measured in '{unit}', which is not a time")]
    Unit {
        /// Its name.
        benchmark: String,
        /// As printed.
        unit: String,
    },
    /// The figure is not a number.
    #[error("the result '{found}' of the benchmark '{benchmark}' is not a number")]
    NotANumber {
        /// Its name.
        benchmark: String,
        /// As printed.
        found: String,
    },
    /// A time must be above 0 for a ratio.
    #[error("the benchmark '{benchmark}' took {value} s; it must be above 0 to be compared")]
    NotPositive {
        /// Its name.
        benchmark: String,
        /// Seconds.
        value: String,
    },
}

impl FrameworkError {
    pub(super) fn unknown(name: &str, known: String) -> Self {
        let name = one_line(name);
        Self::Unknown { name, known }
    }

    pub(super) fn absent(benchmark: &str) -> Self {
        Self::Absent(one_line(benchmark))
    }

    pub(super) fn failed_benchmark(benchmark: &str, message: &str) -> Self {
        Self::Failed {
            benchmark: one_line(benchmark),
            message: one_line(message),
        }
    }

    pub(super) fn not_alone(benchmark: &str, others: usize) -> Self {
        let benchmark = one_line(benchmark);
        Self::NotAlone { benchmark, others }
    }

    pub(super) fn report(framework: &'static str, reason: &str) -> Self {
        let reason = one_line(reason);
        Self::Report { framework, reason }
    }

    pub(super) fn unit(benchmark: &str, unit: &str) -> Self {
        Self::Unit {
            benchmark: one_line(benchmark),
            unit: one_line(unit),
        }
    }

    pub(super) fn not_a_number(benchmark: &str, found: &str) -> Self {
        Self::NotANumber {
            benchmark: one_line(benchmark),
            found: one_line(found),
        }
    }

    pub(super) fn not_positive(benchmark: &str, value: f64) -> Self {
        Self::NotPositive {
            benchmark: one_line(benchmark),
            value: format!("{value:?}"),
        }
    }
}

fn one_line(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(MAX_QUOTE).map(printable).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        line.push('…');
    }
    line
}
