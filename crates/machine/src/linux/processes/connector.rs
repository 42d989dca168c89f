//! Receives events from the kernel's process connector, which reports every exec.
//!
//! This is `NETLINK_CONNECTOR` with `CN_IDX_PROC` (`linux/cn_proc.h`). A classic BPF filter on the
//! socket drops forks, exits and threads in the kernel, so that only requested events wake this
//! process. Listening needs `CAP_NET_ADMIN` before Linux 6.6, and the initial namespaces of
//! processes, users and networks.

#![expect(unsafe_code, reason = "sockets of this family have no safe form")]

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use super::super::netlink::{self, Netlink};
use super::super::sys;

/// `CN_IDX_PROC`, `CN_VAL_PROC` and the multicast group, of `linux/connector.h`.
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// Event of `linux/cn_proc.h`: the answer to `LISTEN`.
const NONE: u32 = 0;
/// Event: a process has executed a program.
const EXEC: u32 = 2;
/// Event: a process has changed its user.
const USER: u32 = 4;
/// Offset of the event, after `nlmsghdr` (16 bytes) and `cn_msg` (20).
const EVENT_AT: usize = 36;
/// Offset of the event's process, after kind (4), CPU (4), time (8) and thread (4).
const PROCESS_AT: usize = EVENT_AT + 20;
/// Most datagrams that one system call receives.
const AT_ONCE: usize = 16;
/// Longest datagram.
const MAX_DATAGRAM_BYTES: usize = 128;
/// Longest wait for the kernel's answer, which is sent before `send` returns.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// Room for thousands of pending events, bytes of kernel memory.
const QUEUE_BYTES: libc::c_int = 4 << 20;

/// A socket that reports processes.
#[derive(Debug)]
pub(super) struct Connector {
    socket: Netlink,
    buffers: Box<[[u8; MAX_DATAGRAM_BYTES]; AT_ONCE]>,
}

impl Connector {
    /// Subscribes to events.
    ///
    /// # Errors
    /// If the kernel has no connector or does not permit it.
    pub(super) fn open() -> io::Result<Self> {
        let mut connector = Self {
            socket: Netlink::open(libc::NETLINK_CONNECTOR)?,
            buffers: Box::new([[0; MAX_DATAGRAM_BYTES]; AT_ONCE]),
        };
        connector.set_filter(false)?;
        connector.socket.enlarge_queue(QUEUE_BYTES);
        connector.socket.bind(PROCESSES)?;
        connector.subscribe()?;
        Ok(connector)
    }

    pub(super) fn descriptor(&self) -> libc::c_int {
        self.socket.descriptor()
    }

    /// Lets only requested events through: execs, and changes of user if `with_users`.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn set_filter(&self, with_users: bool) -> io::Result<()> {
        let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
            code: u16::try_from(code).unwrap_or(0),
            jt,
            jf,
            k,
        };
        // The filter sees numbers in network byte order.
        let jump_if = |event: u32, jt: u8, jf: u8| {
            op(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                jt,
                jf,
                event.to_be(),
            )
        };
        let user = if with_users { USER } else { EXEC };
        let at = u32::try_from(EVENT_AT).unwrap_or(0);
        let mut program = [
            op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at),
            jump_if(NONE, 3, 0),
            jump_if(EXEC, 2, 0),
            jump_if(user, 1, 0),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        ];
        let program = libc::sock_fprog {
            len: libc::c_ushort::try_from(program.len()).unwrap_or(0),
            filter: program.as_mut_ptr(),
        };
        self.socket.set_option(libc::SO_ATTACH_FILTER, &program)
    }

    /// Requests events and waits for the answer, which does not come if this process is in
    /// namespaces of its own.
    fn subscribe(&mut self) -> io::Result<()> {
        self.socket.send(&make_subscription())?;
        let end = sys::monotonic() + ANSWER_TIMEOUT;
        loop {
            let remaining = end.saturating_sub(sys::monotonic());
            if remaining.is_zero() {
                return Err(io::Error::other(
                    "the kernel does not answer (is this a container?)",
                ));
            }
            sys::poll([self.descriptor()], Some(remaining));
            let mut answer = None;
            self.receive_batch(|event| {
                if read_word(event, EVENT_AT) == Some(NONE) {
                    answer = read_word(event, EVENT_AT + 16);
                }
            })?;
            match answer {
                None => {}
                Some(0) => return Ok(()),
                Some(error) => {
                    let number = i32::try_from(error).unwrap_or(libc::EPERM);
                    return Err(io::Error::from_raw_os_error(number));
                }
            }
        }
    }

    /// Receives all pending events and adds their processes, each once.
    ///
    /// # Errors
    /// `ENOBUFS` if events were lost.
    pub(super) fn receive(&mut self, processes: &mut Vec<i32>) -> io::Result<()> {
        loop {
            let count = self.receive_batch(|event| {
                let process = read_word(event, PROCESS_AT).and_then(|id| i32::try_from(id).ok());
                let is_answer = read_word(event, EVENT_AT) == Some(NONE);
                if let Some(process) = process.filter(|id| !is_answer && !processes.contains(id)) {
                    processes.push(process);
                }
            })?;
            if count < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Receives up to [`AT_ONCE`] datagrams with one call; returns how many came. Those that are
    /// not from the kernel are skipped.
    fn receive_batch(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<usize> {
        // SAFETY: both structures are plain integers and pointers, for which
        // zeros are valid.
        let (mut messages, mut senders): ([libc::mmsghdr; AT_ONCE], [libc::sockaddr_nl; AT_ONCE]) = unsafe {
            (
                MaybeUninit::zeroed().assume_init(),
                MaybeUninit::zeroed().assume_init(),
            )
        };
        let mut pieces = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: MAX_DATAGRAM_BYTES,
        }; AT_ONCE];
        for (index, message) in messages.iter_mut().enumerate() {
            pieces[index].iov_base = self.buffers[index].as_mut_ptr().cast();
            message.msg_hdr.msg_iov = &raw mut pieces[index];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = (&raw mut senders[index]).cast();
            message.msg_hdr.msg_namelen =
                libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).unwrap_or(0);
        }
        // The socket never blocks; flags have one type in glibc and another in musl, so none is
        // given. SAFETY: the number of messages is the one passed; each points to a buffer and an address
        // of the length given, which outlive the call.
        let received = unsafe {
            libc::recvmmsg(
                self.descriptor(),
                messages.as_mut_ptr(),
                libc::c_uint::try_from(AT_ONCE).unwrap_or(0),
                0,
                std::ptr::null_mut(),
            )
        };
        let count = match usize::try_from(received) {
            Ok(count) => count,
            Err(_) => {
                let error = io::Error::last_os_error();
                let is_none = error.kind() == io::ErrorKind::WouldBlock
                    || error.kind() == io::ErrorKind::Interrupted;
                return if is_none { Ok(0) } else { Err(error) };
            }
        };
        for index in 0..count.min(AT_ONCE) {
            let length = usize::try_from(messages[index].msg_len).unwrap_or(0);
            if senders[index].nl_pid == 0 {
                each(&self.buffers[index][..length.min(MAX_DATAGRAM_BYTES)]);
            }
        }
        Ok(count)
    }
}

/// Makes the message that requests events: `nlmsghdr`, `cn_msg`, the operation.
fn make_subscription() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(PROCESSES.to_ne_bytes());
    body.extend(PROCESSES.to_ne_bytes());
    body.extend([0; 8]);
    body.extend(4u16.to_ne_bytes());
    body.extend([0; 2]);
    body.extend(LISTEN.to_ne_bytes());
    netlink::make_message(u16::try_from(libc::NLMSG_DONE).unwrap_or(0), 0, &body)
}

fn read_word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subscription_has_the_length_in_its_header() {
        let message = make_subscription();
        assert_eq!(read_word(&message, 0), Some(40));
        assert_eq!(
            (message.len(), read_word(&message, EVENT_AT)),
            (40, Some(LISTEN))
        );
        assert_eq!(read_word(&message, 37), None);
    }
}
