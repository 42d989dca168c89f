//! The table of times at the end of a check.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::programs::{Usage, measure_usage, target};

/// Printed tests.
const SLOWEST: usize = 10;

/// One step and its result.
pub(crate) struct Timed {
    name: &'static str,
    wall: Duration,
    usage: Usage,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Timed {
    /// A step that has not run yet.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            wall: Duration::ZERO,
            usage: Usage::default(),
            failure: None,
        }
    }

    /// Runs it, and returns its result unless it failed.
    pub(crate) fn run<T>(&mut self, step: impl FnOnce() -> Result<T>) -> Option<T> {
        let begun = Instant::now();
        let (result, usage) = measure_usage(step);
        self.wall = begun.elapsed();
        self.usage = usage;
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let text = format!("{error:#}");
                eprintln!("xtask: {text}");
                self.failure = Some(text);
                None
            }
        }
    }

    fn format_row(&self) -> String {
        let crates = match self.usage.crates {
            0 => String::new(),
            crates => crates.to_string(),
        };
        let row = format!(
            "{:<32}{:>9}{:>9}{crates:>9}",
            self.name,
            format_minutes(self.wall),
            format_minutes(self.usage.cpu)
        );
        let row = row.trim_end();
        match self.failure {
            Some(_) => format!("{row}   FAILED"),
            None => row.to_owned(),
        }
    }
}

/// All steps of a check.
pub(crate) struct Table {
    begun: Instant,
    steps: Vec<Timed>,
    left_out: Vec<String>,
}

impl Table {
    pub(crate) fn begin() -> Self {
        Self {
            begun: Instant::now(),
            steps: Vec::new(),
            left_out: Vec::new(),
        }
    }

    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<T>,
    ) -> Option<T> {
        let mut timed = Timed::new(name);
        let value = timed.run(step);
        self.steps.push(timed);
        value
    }

    pub(crate) fn add(&mut self, steps: impl IntoIterator<Item = Timed>) {
        self.steps.extend(steps);
    }

    /// Adds a line about steps that are not run, and why.
    pub(crate) fn leave_out(&mut self, name: &str, why: &str) {
        self.left_out.push(format!("not run: {name}: {why}"));
    }

    /// Prints the table, and keeps the time of all tests; fails if a step failed.
    pub(crate) fn finish_whole(self) -> Result<()> {
        self.write_tests()?;
        self.finish()
    }

    /// Prints the table; fails if a step failed.
    pub(crate) fn finish(self) -> Result<()> {
        eprintln!("\n{}", self.format());
        let failures: Vec<&str> = self
            .steps
            .iter()
            .filter_map(|step| step.failure.as_deref())
            .collect();
        if !failures.is_empty() {
            bail!(
                "{} of the checks failed:\n{}",
                failures.len(),
                failures.join("\n")
            );
        }
        eprintln!(
            "xtask: all checks passed; tests that could not run here are named above as SKIPPED"
        );
        Ok(())
    }

    fn format(&self) -> String {
        let mut lines = vec![format!(
            "{:<32}{:>9}{:>9}{:>9}",
            "step", "wall", "CPU", "crates"
        )];
        lines.extend(self.steps.iter().map(Timed::format_row));
        let cpu = self.steps.iter().map(|step| step.usage.cpu).sum();
        lines.push(format!(
            "{:<32}{:>9}{:>9}",
            "all",
            format_minutes(self.begun.elapsed()),
            format_minutes(cpu)
        ));
        lines.extend(self.left_out.iter().cloned());
        let unstable = self.steps.iter().flat_map(|step| &step.usage.unstable);
        lines.extend(unstable.map(|name| {
            format!("UNSTABLE: {name}: it failed beside others and passed alone: mend the test")
        }));
        lines.extend(self.list_slowest());
        lines.join("\n")
    }

    /// The time of each test, the longest first.
    fn list_tests(&self) -> Vec<(&String, &f64)> {
        let steps = self.steps.iter();
        let mut tests: Vec<_> = steps.flat_map(|step| step.usage.tests.iter()).collect();
        tests.sort_by(|a, b| b.1.total_cmp(a.1));
        tests
    }

    /// Writes the time of every test to a file in the folder of built files.
    fn write_tests(&self) -> Result<()> {
        let lines = self.list_tests().into_iter();
        let lines = lines.map(|(name, seconds)| format!("{seconds:.3}\t{name}\n"));
        std::fs::write(times_path(), lines.collect::<String>())?;
        Ok(())
    }

    /// The longest tests of all steps.
    fn list_slowest(&self) -> Vec<String> {
        let tests = self.list_tests();
        let lines = tests.iter().take(SLOWEST);
        let lines = lines.map(|(name, seconds)| format!("  {seconds:>7.1} s  {name}"));
        let head =
            (!tests.is_empty()).then(|| "\nslowest tests (all: target/test-times.tsv)".to_owned());
        head.into_iter().chain(lines).collect()
    }
}

fn times_path() -> PathBuf {
    target().join("test-times.tsv")
}

/// The time of each test in the last complete run; empty if there was none.
pub(crate) fn read_tests() -> Seconds {
    let text = std::fs::read_to_string(times_path()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let tests = lines.filter_map(|(seconds, name)| Some((name.to_owned(), seconds.parse().ok()?)));
    tests.collect()
}

/// Minutes and seconds.
fn format_minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Seconds that each test took, by name.
pub(crate) type Seconds = BTreeMap<String, f64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_check_and_is_marked() {
        let mut table = Table::begin();
        assert_eq!(table.run("one", || Ok(7)), Some(7));
        assert_eq!(
            table.run("two", || -> Result<()> { bail!("no disk") }),
            None
        );
        table.leave_out("three", "nobody asked");
        table.steps[0].usage.unstable.push("it a::b".to_owned());
        let text = table.format();
        assert!(
            text.contains("two                                  0:00     0:00   FAILED"),
            "{text}"
        );
        assert!(text.contains("not run: three: nobody asked"), "{text}");
        assert!(
            text.contains("UNSTABLE: it a::b: it failed beside"),
            "{text}"
        );
        let error = table.finish().unwrap_err().to_string();
        assert_eq!(error, "1 of the checks failed:\nno disk");
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let mut table = Table::begin();
        let mut timed = Timed::new("tests");
        timed.usage.tests = (0..12).map(|i| (format!("t{i}"), f64::from(i))).collect();
        table.add([timed]);
        let lines = table.list_slowest();
        assert_eq!(lines.len(), 1 + SLOWEST);
        assert_eq!(lines[1], "     11.0 s  t11");
    }

    #[test]
    fn times_are_in_minutes() {
        assert_eq!(format_minutes(Duration::from_secs(605)), "10:05");
    }
}
