//! Why a benchmark has no figure, in one line each.
//!
//! Quotes of a program's output are shortened and have no control
//! characters.

/// Limits the characters of a program's output that a message quotes.
const MAX_QUOTE: usize = 100;

/// Why there are no benchmarks, or no figure of one. It is only a sentence: callers handle all
/// reasons alike.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FrameworkError(String);

impl FrameworkError {
    pub(super) fn unknown(name: &str, known: &str) -> Self {
        let name = quote_on_one_line(name);
        Self(format!(
            "'{name}' is not a benchmark framework (known: {known})"
        ))
    }

    pub(super) fn nothing_listed(framework: &str) -> Self {
        Self(format!("the command listed no benchmarks of {framework}"))
    }

    pub(super) fn absent(benchmark: &str) -> Self {
        let benchmark = quote_on_one_line(benchmark);
        Self(format!(
            "the output has no result for the benchmark '{benchmark}'"
        ))
    }

    pub(super) fn failed_benchmark(benchmark: &str, message: &str) -> Self {
        let [benchmark, message] = [benchmark, message].map(quote_on_one_line);
        Self(format!("the benchmark '{benchmark}' failed: {message}"))
    }

    pub(super) fn no_report(framework: &str) -> Self {
        Self(format!("the output has no {framework} report"))
    }

    /// Other benchmarks ran in the same process.
    pub(super) fn not_alone(benchmark: &str, others: usize) -> Self {
        let benchmark = quote_on_one_line(benchmark);
        Self(format!(
            "the benchmark '{benchmark}' did not run alone, but with {others} more: name no files or folders in the command"
        ))
    }

    pub(super) fn report(framework: &str, reason: &str) -> Self {
        let reason = quote_on_one_line(reason);
        Self(format!(
            "the report of {framework} cannot be read: {reason}"
        ))
    }

    pub(super) fn unit(benchmark: &str, unit: &str) -> Self {
        let [benchmark, unit] = [benchmark, unit].map(quote_on_one_line);
        Self(format!(
            "the benchmark '{benchmark}' is measured in '{unit}', which is not a time"
        ))
    }

    pub(super) fn not_a_number(benchmark: &str, found: &str) -> Self {
        let [benchmark, found] = [benchmark, found].map(quote_on_one_line);
        Self(format!(
            "the result '{found}' of the benchmark '{benchmark}' is not a number"
        ))
    }

    /// A time must be above 0 for a ratio.
    pub(super) fn not_positive(benchmark: &str, value: f64) -> Self {
        let benchmark = quote_on_one_line(benchmark);
        Self(format!(
            "the benchmark '{benchmark}' took {value:?} s; it must be above 0 to be compared"
        ))
    }
}

fn quote_on_one_line(text: &str) -> String {
    let replace_control = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(MAX_QUOTE).map(replace_control).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        line.push('…');
    }
    line
}
