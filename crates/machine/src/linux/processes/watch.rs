//! Waits for new processes and signals.
//!
//! A single exec is reported at once. Many of them are reported together some milliseconds later,
//! since waking up costs more than examining a process. If the connector is not permitted, `/proc`
//! is listed repeatedly. Then only new ids count, each three times, because a process may execute a
//! program some time after its fork.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::super::signals::Signals;
use super::super::sys;
use super::connector::Connector;
use super::list_numbers;
use crate::processes::{Watch, WatchEvents};

/// Shortest interval between two wake-ups by processes.
const GATHER: Duration = Duration::from_millis(20);
/// Interval at which all processes are checked, whatever was reported.
const ROUND: Duration = Duration::from_secs(30);
/// Number of times that polling reports a new id.
const CHECKS: u8 = 3;

/// Reports new processes of this host, and signals: SIGHUP to read the rules again, SIGINT and
/// SIGTERM to stop. Signals are handled while this exists.
#[derive(Debug)]
pub struct ProcessWatch {
    source: Source,
    signals: Signals,
    /// When something was reported last.
    reported_at: Duration,
    /// When all processes are checked next.
    round: Duration,
}

/// What ended a wait; neither if its time was over.
struct Woken {
    by_signal: bool,
    by_event: bool,
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
    /// Known processes, with the number of further reports.
    known: BTreeMap<i32, u8>,
}

impl ProcessWatch {
    /// Listens to the kernel. Polls at the interval `every` instead if `polls` is set or the kernel
    /// does not permit listening; also returns the reason then.
    ///
    /// # Errors
    /// If signals cannot be read from a descriptor.
    pub fn open(every: Duration, polls: bool) -> io::Result<(Self, Option<String>)> {
        let now = sys::monotonic();
        let polling = || {
            let mut polling = Polling {
                every,
                next: now + every,
                known: BTreeMap::new(),
            };
            polling.report_new(&list_numbers("/proc"), &mut Vec::new());
            Source::Polling(polling)
        };
        let (source, why) = match polls {
            true => (polling(), Some("as asked for".to_owned())),
            false => match Connector::open() {
                Ok(connector) => (Source::Connector(Box::new(connector)), None),
                Err(error) => (polling(), Some(explain_refusal(&error))),
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

    fn read_signals(&self, events: &mut WatchEvents) {
        while let Some(signal) = self.signals.next_pending() {
            if signal == libc::SIGHUP {
                events.reload = true;
            } else {
                events.stop = true;
            }
        }
    }

    /// Waits for a signal or an event, or until `due`.
    fn wait(&self, due: Duration) -> Woken {
        let signals = self.signals.as_raw_fd();
        let time_until = |until: Duration| until.saturating_sub(sys::monotonic());
        let Source::Connector(connector) = &self.source else {
            let [is_signal] = sys::poll([signals], Some(time_until(due)));
            return Woken {
                by_signal: is_signal,
                by_event: false,
            };
        };
        // Shortly after a report further events are gathered without waking for the first. A signal
        // still wakes.
        let pause = time_until(self.reported_at + GATHER);
        if !pause.is_zero() {
            let [is_signal] = sys::poll([signals], Some(pause));
            return Woken {
                by_signal: is_signal,
                by_event: !is_signal,
            };
        }
        let [is_signal, is_event] =
            sys::poll([signals, connector.descriptor()], Some(time_until(due)));
        Woken {
            by_signal: is_signal,
            by_event: is_event,
        }
    }
}

fn explain_refusal(error: &io::Error) -> String {
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
    /// Adds the processes that should be checked: new ones, and those that need further checks.
    fn report_new(&mut self, all: &[i32], started: &mut Vec<i32>) {
        let is_first = self.known.is_empty();
        let mut known = BTreeMap::new();
        for &process in all {
            let checks = if is_first { 0 } else { CHECKS };
            let remaining = self.known.get(&process).copied().unwrap_or(checks);
            if remaining > 0 {
                started.push(process);
            }
            known.insert(process, remaining.saturating_sub(1));
        }
        self.known = known;
    }
}

impl Watch for ProcessWatch {
    fn next(&mut self) -> io::Result<WatchEvents> {
        let mut events = WatchEvents::default();
        loop {
            let due = match &self.source {
                Source::Connector(_) => self.round,
                Source::Polling(polling) => polling.next.min(self.round),
            };
            let woken = self.wait(due);
            if woken.by_signal {
                self.read_signals(&mut events);
            }
            let now = sys::monotonic();
            match &mut self.source {
                Source::Connector(connector) if woken.by_event => {
                    // Any error here means that events were lost.
                    events.look |= connector.receive(&mut events.started).is_err();
                    if !events.started.is_empty() {
                        self.reported_at = now;
                    }
                }
                Source::Polling(polling) if now >= polling.next => {
                    polling.report_new(&list_numbers("/proc"), &mut events.started);
                    polling.next = now + polling.every;
                }
                _ => {}
            }
            if now >= self.round {
                events.look = true;
                self.round = now + ROUND;
            }
            if events != WatchEvents::default() {
                return Ok(events);
            }
        }
    }

    fn report_user_changes(&mut self, are_wanted: bool) -> io::Result<()> {
        match &self.source {
            Source::Connector(connector) => connector.set_filter(are_wanted),
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
        let mut report = |all: &[i32]| {
            let mut started = Vec::new();
            polling.report_new(all, &mut started);
            started
        };
        // Processes present at the start are not reported.
        assert!(report(&[1, 5]).is_empty());
        assert_eq!(report(&[1, 5, 9]), [9]);
        assert_eq!(report(&[1, 9, 10]), [9, 10]);
        assert_eq!(report(&[1, 9, 10]), [9, 10]);
        assert_eq!(report(&[1, 9, 10]), [10]);
        assert!(report(&[1, 9, 10]).is_empty());
        // A reused id is a new process.
        assert_eq!(report(&[1, 5, 9]), [5]);
    }
}
