//! The descriptors whose events a blocked thread waits for, by the call that it is in.

use std::path::Path;

use super::super::capture::read_file;
use super::super::peers::{Watched, parse_inode};
use super::super::sys;
use super::threads::ExistingThread;

/// Limits the descriptors that are looked at.
const MAX_DESCRIPTORS: usize = 1024;
/// Bytes of a `struct pollfd`: the descriptor, then the events asked for and returned.
const POLLED_BYTES: usize = 8;

/// A call that waits for the events of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchCall {
    /// Those in the epoll instance with this descriptor.
    Epoll(u64),
    /// Those in the array of `poll` at this address, with this length.
    Poll(u64, u64),
}

impl WatchCall {
    /// The call in a thread's file `syscall`; `None` if it does not say which descriptors.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let number: i64 = fields.next()?.parse().ok()?;
        let mut numbers =
            fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok());
        let (first, second) = (numbers.next()??, numbers.next()??);
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => Some(Self::Epoll(first)),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Self::Epoll(first)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => Some(Self::Poll(first, second)),
            libc::SYS_ppoll => Some(Self::Poll(first, second)),
            _ => None,
        }
    }

    /// Tells one set of descriptors of a process from another.
    pub(super) const fn key(self) -> u64 {
        match self {
            Self::Epoll(first) | Self::Poll(first, _) => first,
        }
    }

    /// What it watches; `None` if that cannot be read.
    pub(super) fn list_watched(self, found: ExistingThread) -> Option<Watched> {
        let descriptors = match self {
            Self::Epoll(descriptor) => list_epoll(found, descriptor)?,
            Self::Poll(address, many) => list_polled(found, address, many)?,
        };
        let mut watched = Watched::default();
        for descriptor in descriptors.into_iter().take(MAX_DESCRIPTORS) {
            let Some(target) = read_descriptor_target(found, descriptor) else {
                continue;
            };
            watched.has_pipe |= target.starts_with("pipe:");
            watched.sockets.extend(parse_inode(&target));
        }
        Some(watched)
    }
}

pub(super) fn read_descriptor_target(found: ExistingThread, descriptor: u64) -> Option<String> {
    let link = format!("/proc/{}/fd/{descriptor}", found.process);
    let target = std::fs::read_link(Path::new(&link)).ok()?;
    Some(target.to_string_lossy().into_owned())
}

/// The descriptors in an epoll instance, by `/proc/PID/fdinfo`: lines such as
/// `tfd:       12 events: 2019 data: …`.
fn list_epoll(found: ExistingThread, descriptor: u64) -> Option<Vec<u64>> {
    let path = format!("/proc/{}/fdinfo/{descriptor}", found.process);
    let bytes = read_file(Path::new(&path))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let numbers = lines.filter_map(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    Some(numbers.collect())
}

/// The descriptors in an array of `poll`, which lies in the process's memory.
fn list_polled(found: ExistingThread, address: u64, many: u64) -> Option<Vec<u64>> {
    let many = usize::try_from(many).ok()?.min(MAX_DESCRIPTORS);
    let mut array = vec![0; many * POLLED_BYTES];
    if many == 0 {
        return Some(Vec::new());
    }
    let length = sys::read_memory(found.process, address, &mut array)?;
    let (all, _) = array[..length].as_chunks::<POLLED_BYTES>();
    let number = |entry: &[u8; POLLED_BYTES]| {
        let [a, b, c, d, ..] = *entry;
        i32::from_ne_bytes([a, b, c, d])
    };
    let numbers = all.iter().map(number);
    // Entries below 0 are left out, as the kernel does.
    Some(
        numbers
            .filter_map(|number| u64::try_from(number).ok())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;

    fn own() -> ExistingThread {
        let process = i32::try_from(std::process::id()).unwrap();
        ExistingThread {
            process,
            tid: process,
        }
    }

    fn inode_of(socket: &impl AsRawFd) -> u64 {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        parse_inode(std::fs::read_link(link).unwrap().to_str().unwrap()).unwrap()
    }

    #[test]
    fn the_array_of_poll_is_read_from_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let ask = |fd: i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let array = [ask(listener.as_raw_fd()), ask(-1), ask(reader.as_raw_fd())];
        let text = format!(
            "{} {:p} 0x3 0x0 0x0 0x0 0x0 0x1 0x1",
            libc::SYS_ppoll,
            array.as_ptr()
        );
        let watched = WatchCall::parse(&text)
            .unwrap()
            .list_watched(own())
            .unwrap();
        assert_eq!(watched.sockets, BTreeSet::from([inode_of(&listener)]));
        assert!(watched.has_pipe);
    }

    #[test]
    #[expect(unsafe_code, reason = "epoll has no safe form")]
    fn what_an_epoll_instance_has_is_known_and_no_more() {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _second = UdpSocket::bind("127.0.0.1:0").unwrap();
        // SAFETY: plain calls on descriptors that live until the end of the test.
        let epoll = unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let mut event = libc::epoll_event {
                events: u32::try_from(libc::EPOLLIN).unwrap(),
                u64: 0,
            };
            libc::epoll_ctl(
                epoll,
                libc::EPOLL_CTL_ADD,
                first.as_raw_fd(),
                &raw mut event,
            );
            std::os::fd::OwnedFd::from_raw_fd(epoll)
        };
        let text = format!(
            "{} {:#x} 0x0 0x0 0x0 0x0 0x0 0x1 0x1",
            libc::SYS_epoll_pwait,
            epoll.as_raw_fd()
        );
        let watched = WatchCall::parse(&text)
            .unwrap()
            .list_watched(own())
            .unwrap();
        assert_eq!(watched.sockets, BTreeSet::from([inode_of(&first)]));
        assert!(!watched.has_pipe);
        assert_eq!(WatchCall::parse("23 0x0 0x0 0x0"), None);
    }
}
