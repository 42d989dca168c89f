//! Reads a service's figure from the output of a command or from a page.

use std::time::Duration;

use super::http;
use super::url::Url;
use crate::linux::LinuxMachine;
use crate::{CommandRunner, End, MachineError, Output, Request, Run};
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, Workload};

/// Longest time to wait for a figure, unless the user gives another.
pub(in crate::linux) const READING_TIMEOUT: Duration = Duration::from_secs(10);
/// Lines of output to show if it has no figure.
const SHOWN_LINES: usize = 3;
/// Characters of each of these lines.
const SHOWN_CHARACTERS: usize = 80;

/// Where a service's figure is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A command that prints it, run on these CPUs.
    Command(Box<Workload>, CpuSet),
    /// A page.
    Page(Url),
}

/// The result of a reading, and its CPU time.
pub(super) struct Reading {
    pub(super) text: Vec<u8>,
    pub(super) cpu_time: Duration,
}

impl Source {
    /// The source as the user wrote it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Command(workload, _) => workload.command.to_string(),
            Self::Page(url) => url.to_string(),
        }
    }

    /// Reads once; the inner error says why there is no text.
    pub(super) fn read(
        &self,
        host: &mut LinuxMachine,
    ) -> Result<Result<Reading, String>, MachineError> {
        let (workload, cpus) = match self {
            Self::Page(url) => {
                let read = http::fetch_page(url, READING_TIMEOUT).map(|text| Reading {
                    text,
                    cpu_time: Duration::ZERO,
                });
                return Ok(read.map_err(|why| format!("--metric-url {url}: {why}")));
            }
            Self::Command(workload, cpus) => (workload, cpus),
        };
        let run = host.run(&Request {
            output: Output::Keep,
            ..Request::new(workload, cpus)
        })?;
        let cpu_time = run.user.unwrap_or_default() + run.system.unwrap_or_default();
        let text = take_output(run, "--metric-command", &workload.command);
        Ok(text.map(|text| Reading { text, cpu_time }))
    }
}

/// Returns what a command printed if it succeeded; otherwise says how it ended. `option`: the
/// option that gave the command.
pub(in crate::linux) fn take_output(
    run: Run,
    option: &str,
    command: &Command,
) -> Result<Vec<u8>, String> {
    let how = match run.end {
        End::Status(0) => return Ok(run.output.unwrap_or_default()),
        End::Status(status) => format!("ended with exit status {status}"),
        End::Signal(signal) => format!("was killed by signal {signal}"),
        End::TimedOut => "took longer than its --timeout".to_owned(),
        End::Interrupted => "was interrupted".to_owned(),
        End::LeftBehind(who) => format!("left processes running ({})", who.join(", ")),
        End::NoFigure(why) => why,
    };
    let lines = quote_first_lines(&run.output.unwrap_or_default());
    Err(format!("{option} '{command}' {how}; it printed {lines}"))
}

/// Quotes the first lines of a text for a message.
pub(super) fn quote_first_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_filled = |line: &&str| !line.trim().is_empty();
    let lines: Vec<String> = text
        .lines()
        .filter(is_filled)
        .take(SHOWN_LINES)
        .map(|line| {
            let mut shown: String = line.chars().take(SHOWN_CHARACTERS).collect();
            if shown.len() < line.len() {
                shown.push('…');
            }
            format!("'{shown}'")
        })
        .collect();
    match (lines.len(), text.lines().filter(is_filled).count()) {
        (0, _) => "nothing".to_owned(),
        (shown, all) if shown < all => format!("{}, … ({all} lines)", lines.join(", ")),
        _ => lines.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read() {
        for (text, expected) in [
            (
                "http://127.0.0.1:9121/metrics",
                Some("http://127.0.0.1:9121/metrics"),
            ),
            ("http://localhost", Some("http://localhost:80/")),
            ("http://[::1]:80?a=b", Some("http://[::1]:80/?a=b")),
            ("http://[::1]/x", Some("http://[::1]:80/x")),
            ("https://localhost/", None),
            ("http://", None),
            ("http://a:0/", None),
            ("http://a:b/", None),
            ("http://a:99999/", None),
            ("http://u@h/", None),
            ("http://a/b c", None),
            ("http://a/\r\nX: y", None),
            ("file:///etc/passwd", None),
        ] {
            let found = text.parse::<Url>().ok().map(|url| url.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        let url: Url = "http://[::1]:80/".parse().unwrap();
        assert_eq!(url.address(), ("::1", 80));
    }

    #[test]
    fn first_lines_are_reported() {
        assert_eq!(quote_first_lines(b""), "nothing");
        assert_eq!(quote_first_lines(b"a\n\nb\n"), "'a', 'b'");
        assert_eq!(
            quote_first_lines(b"1\n2\n3\n4\n"),
            "'1', '2', '3', … (4 lines)"
        );
    }

    proptest! {
        #[test]
        fn any_address_is_read_or_refused(text in "(http://)?[a-z0-9:\\[\\]./?# -]{0,20}\\PC{0,5}") {
            if let Ok(url) = text.parse::<Url>() {
                prop_assert_eq!(url.to_string().parse::<Url>(), Ok(url));
            }
        }
    }
}
