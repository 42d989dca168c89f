//! Logs what pinwise does to standard error, with `-v` or `PINWISE_LOG`. Nothing is written
//! while a command is measured.

use std::io::Write;
use std::time::Instant;

use anyhow::Context;
use log::{LevelFilter, Log, Metadata, Record};

use super::terminal::read_variable;
use pinwise_report::visible;

/// The environment variable with a level: `info`, `debug` …
const LEVEL_VARIABLE: &str = "PINWISE_LOG";

struct StderrLogger {
    begin: Instant,
}

impl Log for StderrLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Log lines of libraries are of use only to their developers.
        metadata.target().starts_with("pinwise")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let seconds = self.begin.elapsed().as_secs_f64();
            let text = visible(&record.args().to_string());
            // A reader that has gone away is not an error.
            let _ = writeln!(std::io::stderr(), "[{seconds:8.3} s] {text}");
        }
    }

    fn flush(&self) {}
}

/// Starts logging at the level of `-v` (`info`), `-vv` (`debug`) or the variable.
///
/// # Errors
/// A variable that names no level.
pub(super) fn start(verbosity: u8) -> anyhow::Result<()> {
    let level = match (verbosity, read_variable(LEVEL_VARIABLE)) {
        (0, Some(name)) => name.parse().ok().with_context(|| {
            format!(
                "{LEVEL_VARIABLE}: '{name}' is not a level (off, error, warn, info, debug, trace)"
            )
        })?,
        (0, None) => LevelFilter::Off,
        (1, _) => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    if level > LevelFilter::Off {
        #[expect(
            clippy::disallowed_methods,
            reason = "people read the log, beside their own clock"
        )]
        let begin = Instant::now();
        log::set_boxed_logger(Box::new(StderrLogger { begin }))?;
        log::set_max_level(level);
    }
    Ok(())
}
