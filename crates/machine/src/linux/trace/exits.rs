//! Receives the kernel's reports of ended threads (`linux/taskstats.h`): their last figures, which
//! cannot be read from `/proc` in time.
//!
//! This needs `CAP_NET_ADMIN` and the initial namespaces of processes and networks; otherwise
//! nothing is reported. The kernel reports every thread of the machine, so reports that are not
//! asked for are dropped after a while.

#![expect(unsafe_code, reason = "sockets of this family have no safe form")]

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::super::sys;
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
    socket: OwnedFd,
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
            .send(&make_message(controller, GET_FAMILY, &name))
            .ok()?;
        let family = exits.wait_for_answer(parse_family)?;
        let cpus = format!("{}\0", threads::online_cpus());
        let register = make_attribute(REGISTER_CPUS, cpus.as_bytes());
        exits.send(&make_message(family, GET, &register)).ok()?;
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
            match self.receive() {
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

    fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer has the length passed.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Receives one message into the buffer; returns its length, `None` if there is none.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        // SAFETY: the buffer has the length passed.
        let received = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                MAX_MESSAGE_BYTES,
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(received) {
            Ok(length) => Ok(Some(length.min(MAX_MESSAGE_BYTES))),
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOBUFS) => Err(error),
                _ => Ok(None),
            },
        }
    }

    /// Waits for the first message that `parse` accepts.
    fn wait_for_answer<T>(&mut self, parse: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let end = sys::monotonic() + ANSWER_TIMEOUT;
        loop {
            let left = end.checked_sub(sys::monotonic())?;
            sys::poll([self.socket.as_raw_fd()], Some(left));
            if let Ok(Some(length)) = self.receive()
                && let Some(answer) = parse(&self.buffer[..length])
            {
                return Some(answer);
            }
        }
    }
}

fn open_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain integers, and an address for which zeros are valid; the new
    // descriptor is ours alone.
    unsafe {
        let fd = sys::check(libc::socket(libc::PF_NETLINK, kind, libc::NETLINK_GENERIC))?;
        let socket = OwnedFd::from_raw_fd(fd);
        let length = |bytes: usize| libc::socklen_t::try_from(bytes).unwrap_or(0);
        let queue = QUEUE_BYTES;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            let set = libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                option,
                (&raw const queue).cast(),
                length(size_of::<libc::c_int>()),
            );
            if set == 0 {
                break;
            }
        }
        let mut address: libc::sockaddr_nl = MaybeUninit::zeroed().assume_init();
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).unwrap_or(0);
        let bytes = length(size_of::<libc::sockaddr_nl>());
        sys::check(libc::bind(fd, (&raw const address).cast(), bytes))?;
        Ok(socket)
    }
}

/// Makes a message that requests an answer: `nlmsghdr`, `genlmsghdr`, an attribute.
fn make_message(family: u16, command: u8, attribute: &[u8]) -> Vec<u8> {
    let length = u32::try_from(20 + attribute.len()).unwrap_or(0);
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_ACK).unwrap_or(0);
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attribute);
    message
}

/// Makes an `nlattr`, padded to a multiple of four bytes.
fn make_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Parses attributes up to the first invalid one.
fn parse_attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & 0x3fff, value))
    })
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
