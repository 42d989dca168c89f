//! Receives the kernel's reports of ended threads (`linux/taskstats.h`): their last figures, which
//! cannot be read from `/proc` in time.
//!
//! This needs `CAP_NET_ADMIN` and the initial namespaces of processes and networks; otherwise
//! nothing is reported. The kernel reports every thread of the machine, so reports that are not
//! asked for are dropped after a while.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::super::netlink::{Netlink, make_attribute, parse_attributes};
use super::super::{netlink, sys};
use super::threads;
use pinwise_sched::Tid;

/// Longest wait for an answer. The kernel queues answers before `send` returns, so it is hardly
/// ever needed.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// Room for pending messages, bytes of kernel memory.
const QUEUE_BYTES: libc::c_int = 16 << 20;
/// Longest message: two statistics of 500 bytes.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
/// Reports are kept in two generations of this length: each for one to two times as long.
const GENERATION: Duration = Duration::from_secs(2);
/// Most reports of a generation.
const MAX_ENTRIES: usize = 1 << 16;

/// `CTRL_CMD_GETFAMILY` and its attributes, of `linux/genetlink.h`.
const GET_FAMILY: u8 = 3;
const FAMILY_NAME: u16 = 2;
const FAMILY_ID: u16 = 1;
/// `TASKSTATS_CMD_GET` and attributes, of `linux/taskstats.h`.
const GET: u8 = 1;
const REGISTER_CPUS: u16 = 3;
const THREAD_ID: u16 = 1;
const STATISTICS: u16 = 3;
const ID_AND_STATISTICS: u16 = 4;
/// Offsets of figures in `struct taskstats`; fields are only ever appended.
const DELAY_AT: usize = 24;
const RUN_AT: usize = 72;
const LIFE_AT: usize = 144;
const VOLUNTARY_AT: usize = 272;
const INVOLUNTARY_AT: usize = 280;

/// A thread's figures over its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastFigures {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    /// Time from its start to this report.
    pub(super) life_ns: Option<u64>,
    pub(super) voluntary: Option<u64>,
    pub(super) involuntary: Option<u64>,
}

/// Reports of recently ended threads.
#[derive(Debug)]
pub(super) struct Exits {
    socket: Netlink,
    buffer: Box<[u8; MAX_MESSAGE_BYTES]>,
    young: HashMap<Tid, LastFigures>,
    old: HashMap<Tid, LastFigures>,
    aged: Duration,
}

impl Exits {
    /// Subscribes; `None` if the kernel does not permit it or lacks such statistics.
    pub(super) fn open() -> Option<Self> {
        let mut exits = Self {
            socket: open_socket().ok()?,
            buffer: Box::new([0; MAX_MESSAGE_BYTES]),
            young: HashMap::new(),
            old: HashMap::new(),
            aged: sys::monotonic(),
        };
        let controller = u16::try_from(libc::GENL_ID_CTRL).ok()?;
        let name = make_attribute(FAMILY_NAME, b"TASKSTATS\0");
        exits
            .socket
            .send(&make_message(controller, GET_FAMILY, &name))
            .ok()?;
        let family = exits.wait_for_answer(parse_family)?;
        let cpus = format!("{}\0", threads::online_cpus());
        let register = make_attribute(REGISTER_CPUS, cpus.as_bytes());
        exits
            .socket
            .send(&make_message(family, GET, &register))
            .ok()?;
        (exits.wait_for_answer(parse_error)? == 0).then_some(exits)
    }

    /// Reads new reports.
    pub(super) fn drain(&mut self) {
        let now = sys::monotonic();
        if now.saturating_sub(self.aged) >= GENERATION || self.young.len() >= MAX_ENTRIES {
            self.old = std::mem::take(&mut self.young);
            self.aged = now;
        }
        loop {
            match self.socket.receive(&mut self.buffer[..]) {
                Ok(Some(length)) => {
                    let last = parse_last_figures(&self.buffer[..length]);
                    self.young.extend(last);
                }
                Ok(None) => return,
                // Reports were lost, so that a known report may be of an earlier thread with the
                // same id.
                Err(_) => {
                    self.young.clear();
                    self.old.clear();
                }
            }
        }
    }

    /// Takes the last figures of an ended thread.
    pub(super) fn take(&mut self, thread: Tid) -> Option<LastFigures> {
        let old = self.old.remove(&thread);
        self.young.remove(&thread).or(old)
    }

    /// Waits for the first message that `parse` accepts.
    fn wait_for_answer<T>(&mut self, parse: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let end = sys::monotonic() + ANSWER_TIMEOUT;
        loop {
            let left = end.checked_sub(sys::monotonic())?;
            sys::poll([self.socket.descriptor()], Some(left));
            if let Ok(Some(length)) = self.socket.receive(&mut self.buffer[..])
                && let Some(answer) = parse(&self.buffer[..length])
            {
                return Some(answer);
            }
        }
    }
}

fn open_socket() -> io::Result<Netlink> {
    let socket = Netlink::open(libc::NETLINK_GENERIC)?;
    socket.enlarge_queue(QUEUE_BYTES);
    socket.bind(0)?;
    Ok(socket)
}

/// Makes a message that requests an answer: the headers, an attribute.
fn make_message(family: u16, command: u8, attribute: &[u8]) -> Vec<u8> {
    let body = [&[command, 1, 0, 0], attribute].concat();
    netlink::make_message(family, libc::NLM_F_REQUEST | libc::NLM_F_ACK, &body)
}

/// Parses the controller's answer: the number of taskstats' family.
fn parse_family(message: &[u8]) -> Option<u16> {
    let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
    if i32::from(kind) != libc::GENL_ID_CTRL {
        return None;
    }
    let (_, id) = parse_attributes(message.get(20..)?).find(|(kind, _)| *kind == FAMILY_ID)?;
    Some(u16::from_ne_bytes(*id.first_chunk()?))
}

/// Parses the acknowledgement of the registration: its error, 0 for none. That of the earlier
/// request to the controller is skipped.
fn parse_error(message: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
    if i32::from(kind) != libc::NLMSG_ERROR {
        return None;
    }
    let answered_type = u16::from_ne_bytes(*message.get(24..)?.first_chunk()?);
    let error = i32::from_ne_bytes(*message.get(16..)?.first_chunk()?);
    (i32::from(answered_type) != libc::GENL_ID_CTRL).then_some(error)
}

/// Parses a report: the thread and its figures.
fn parse_last_figures(message: &[u8]) -> Option<(Tid, LastFigures)> {
    let body = message.get(20..)?;
    let (_, report) = parse_attributes(body).find(|(kind, _)| *kind == ID_AND_STATISTICS)?;
    let find = |wanted| {
        parse_attributes(report).find_map(|(kind, value)| (kind == wanted).then_some(value))
    };
    let thread = Tid::from_ne_bytes(*find(THREAD_ID)?.first_chunk()?);
    let statistics = find(STATISTICS)?;
    let number = |at: usize| Some(u64::from_ne_bytes(*statistics.get(at..)?.first_chunk()?));
    Some((
        thread,
        LastFigures {
            run_ns: number(RUN_AT)?,
            wait_ns: number(DELAY_AT)?,
            life_ns: number(LIFE_AT).map(|us| us.saturating_mul(1_000)),
            voluntary: number(VOLUNTARY_AT),
            involuntary: number(INVOLUNTARY_AT),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exit_message(thread: Tid, statistics: &[u8]) -> Vec<u8> {
        let inner = [
            make_attribute(THREAD_ID, &thread.to_ne_bytes()),
            make_attribute(STATISTICS, statistics),
        ];
        make_message(23, 2, &make_attribute(ID_AND_STATISTICS, &inner.concat()))
    }

    #[test]
    fn figures_have_the_kernels_offsets() {
        let mut statistics = [0u8; 328];
        for (at, value) in [(24, 5u64), (72, 7), (144, 3), (272, 11), (280, 13)] {
            statistics[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let figures = LastFigures {
            run_ns: 7,
            wait_ns: 5,
            life_ns: Some(3_000),
            voluntary: Some(11),
            involuntary: Some(13),
        };
        assert_eq!(
            parse_last_figures(&exit_message(9, &statistics)),
            Some((9, figures))
        );
        let short = parse_last_figures(&exit_message(9, &statistics[..100]))
            .unwrap()
            .1;
        assert_eq!((short.run_ns, short.voluntary), (7, None));
        assert_eq!(
            parse_last_figures(&exit_message(9, &statistics[..40])),
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = (parse_last_figures(&bytes), parse_family(&bytes), parse_error(&bytes));
        }
    }
}
