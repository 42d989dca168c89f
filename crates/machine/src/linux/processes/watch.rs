//! Waits for new processes and signals.
//!
//! A lone exec is reported at once; in a storm of them they are reported together, some
//! milliseconds later, since waking up costs more than examining a process. If the connector is not
//! permitted, `/proc` is listed repeatedly: only new list_numbers count, and they are checked twice
//! more, because a fork comes before its exec.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::super::signals::Signals;
use super::super::sys;
use super::connector::Connector;
use super::list_numbers;
use crate::processes::{Watch, WatchEvents};

/// Minimum interval between two wake-ups by processes.
const GATHER: Duration = Duration::from_millis(20);
/// How often all processes are checked, whatever was reported.
const ROUND: Duration = Duration::from_secs(30);
/// How often a new id is checked when polling.
const LOOKS: u8 = 3;

/// Reports new processes of this host, and signals: SIGHUP reads the rules again, SIGINT and
/// SIGTERM end. Signals are taken while it exists.
#[derive(Debug)]
pub struct ProcessWatch {
    source: Source,
    signals: Signals,
    /// When something was reported last.
    reported_at: Duration,
    /// When all processes are checked next.
    round: Duration,
}

#[derive(Debug)]
enum Source {
    Connector(Box<Connector>),
    Polling(Polling),
}

#[derive(Debug)]
struct Polling {
    every: Duration,
    next: Duration,
    /// Known processes, with the number of checks left.
    known: BTreeMap<i32, u8>,
}

impl ProcessWatch {
    /// Listens to the kernel, or polls at this interval if `polls` is set or the kernel does not
    /// permit it; the latter returns the reason.
    ///
    /// # Errors
    /// If signals cannot be taken.
    pub fn open(every: Duration, polls: bool) -> io::Result<(Self, Option<String>)> {
        let now = sys::monotonic();
        let polling = || {
            let mut polling = Polling {
                every,
                next: now + every,
                known: BTreeMap::new(),
            };
            polling.look(&list_numbers("/proc"), &mut Vec::new());
            Source::Polling(polling)
        };
        let (source, why) = match polls {
            true => (polling(), Some("as asked for".to_owned())),
            false => match Connector::open() {
                Ok(connector) => (Source::Connector(Box::new(connector)), None),
                Err(error) => (polling(), Some(reason(&error))),
            },
        };
        let signals = Signals::take(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
        let watch = Self {
            source,
            signals,
            reported_at: Duration::ZERO,
            round: now + ROUND,
        };
        Ok((watch, why))
    }

    fn take_signals(&self, heard: &mut WatchEvents) {
        while let Some(signal) = self.signals.next_pending() {
            if signal == libc::SIGHUP {
                heard.reload = true;
            } else {
                heard.stop = true;
            }
        }
    }

    /// Waits for a signal or an event, or until `due`; returns which came.
    fn wait(&self, due: Duration) -> (bool, bool) {
        let signals = self.signals.as_raw_fd();
        let left = |until: Duration| until.saturating_sub(sys::monotonic());
        let Source::Connector(connector) = &self.source else {
            let [is_signal] = sys::poll([signals], Some(left(due)));
            return (is_signal, false);
        };
        // More may follow at once: they are gathered without waking for the first. A signal does
        // not wait.
        let rest = left(self.reported_at + GATHER);
        if !rest.is_zero() {
            let [is_signal] = sys::poll([signals], Some(rest));
            return (is_signal, !is_signal);
        }
        let [is_signal, is_event] = sys::poll([signals, connector.descriptor()], Some(left(due)));
        (is_signal, is_event)
    }
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel reports no processes without CAP_NET_ADMIN".to_owned()
        }
        Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ECONNREFUSED) => {
            "the kernel has no process connector here".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Polling {
    /// Adds the processes that should be checked.
    fn look(&mut self, all: &[i32], started: &mut Vec<i32>) {
        let is_first = self.known.is_empty();
        let mut known = BTreeMap::new();
        for &process in all {
            let first = if is_first { 0 } else { LOOKS };
            let left = self.known.get(&process).copied().unwrap_or(first);
            if left > 0 {
                started.push(process);
            }
            known.insert(process, left.saturating_sub(1));
        }
        self.known = known;
    }
}

impl Watch for ProcessWatch {
    fn next(&mut self) -> io::Result<WatchEvents> {
        let mut heard = WatchEvents::default();
        loop {
            let due = match &self.source {
                Source::Connector(_) => self.round,
                Source::Polling(polling) => polling.next.min(self.round),
            };
            let (is_signal, is_event) = self.wait(due);
            if is_signal {
                self.take_signals(&mut heard);
            }
            let now = sys::monotonic();
            match &mut self.source {
                Source::Connector(connector) if is_event => {
                    // Any error here means that events were missed.
                    heard.look |= connector.take(&mut heard.started).is_err();
                    if !heard.started.is_empty() {
                        self.reported_at = now;
                    }
                }
                Source::Polling(polling) if now >= polling.next => {
                    polling.look(&list_numbers("/proc"), &mut heard.started);
                    polling.next = now + polling.every;
                }
                _ => {}
            }
            if now >= self.round {
                heard.look = true;
                self.round = now + ROUND;
            }
            if heard != WatchEvents::default() {
                return Ok(heard);
            }
        }
    }

    fn report_user_changes(&mut self, are_wanted: bool) -> io::Result<()> {
        match &self.source {
            Source::Connector(connector) => connector.filter(are_wanted),
            Source::Polling(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_checks_new_ids_a_few_times() {
        let mut polling = Polling {
            every: Duration::from_secs(1),
            next: Duration::ZERO,
            known: BTreeMap::new(),
        };
        let mut look = |all: &[i32]| {
            let mut started = Vec::new();
            polling.look(all, &mut started);
            started
        };
        // Processes present at the start are not reported.
        assert!(look(&[1, 5]).is_empty());
        assert_eq!(look(&[1, 5, 9]), [9]);
        assert_eq!(look(&[1, 9, 10]), [9, 10]);
        assert_eq!(look(&[1, 9, 10]), [9, 10]);
        assert_eq!(look(&[1, 9, 10]), [10]);
        assert!(look(&[1, 9, 10]).is_empty());
        // A reused id is a new process.
        assert_eq!(look(&[1, 5, 9]), [5]);
    }
}
