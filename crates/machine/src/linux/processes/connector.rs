//! The kernel's process connector: it reports every exec.
//!
//! `NETLINK_CONNECTOR` with `CN_IDX_PROC` (`linux/cn_proc.h`). Only requested events reach this
//! process: a classic BPF filter on the socket drops forks, exits and threads in the kernel, so
//! that they wake nobody. Listening needs `CAP_NET_ADMIN` before Linux 6.6 and the initial
//! namespaces of processes, users and networks.

#![expect(
    unsafe_code,
    reason = "sockets of this family and nice values have no safe form"
)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::super::sys;

/// `CN_IDX_PROC` and `CN_VAL_PROC` of `linux/connector.h`; the first is the
/// multicast group, too.
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// Events of `linux/cn_proc.h`: the answer to `LISTEN`, exec, a change of user.
const NONE: u32 = 0;
const EXEC: u32 = 2;
const USER: u32 = 4;
/// Bytes before the event: `nlmsghdr` (16) and `cn_msg` (20).
const EVENT: usize = 36;
/// Bytes before the event's process: kind (4), CPU (4), time (8), thread (4).
const PROCESS: usize = EVENT + 20;
/// Datagrams taken with one system call, and their longest.
const AT_ONCE: usize = 16;
const MAX_DATAGRAM_BYTES: usize = 128;
/// Longest wait for the kernel's answer, which is sent before `send` returns.
const ANSWER: Duration = Duration::from_millis(200);
/// Room for pending events, bytes of kernel memory: thousands of them.
const QUEUE: libc::c_int = 4 << 20;

/// A socket that reports processes.
#[derive(Debug)]
pub(super) struct Connector {
    socket: OwnedFd,
    buffers: Box<[[u8; MAX_DATAGRAM_BYTES]; AT_ONCE]>,
}

impl Connector {
    /// Subscribes.
    ///
    /// # Errors
    /// If the kernel has no connector or does not permit it.
    pub(super) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain integers; the new descriptor is ours alone.
        let socket = unsafe {
            let fd = sys::check(libc::socket(
                libc::PF_NETLINK,
                kind,
                libc::NETLINK_CONNECTOR,
            ))?;
            OwnedFd::from_raw_fd(fd)
        };
        let mut connector = Self {
            socket,
            buffers: Box::new([[0; MAX_DATAGRAM_BYTES]; AT_ONCE]),
        };
        connector.filter(false)?;
        connector.enlarge();
        connector.bind()?;
        connector.listen()?;
        Ok(connector)
    }

    pub(super) fn descriptor(&self) -> libc::c_int {
        self.socket.as_raw_fd()
    }

    /// Lets only requested events through.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn filter(&self, with_users: bool) -> io::Result<()> {
        let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
            code: u16::try_from(code).unwrap_or(0),
            jt,
            jf,
            k,
        };
        // The filter sees numbers in network byte order.
        let is = |event: u32, jt: u8, jf: u8| {
            op(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                jt,
                jf,
                event.to_be(),
            )
        };
        let user = if with_users { USER } else { EXEC };
        let at = u32::try_from(EVENT).unwrap_or(0);
        let mut program = [
            op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at),
            is(NONE, 3, 0),
            is(EXEC, 2, 0),
            is(user, 1, 0),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        ];
        let program = libc::sock_fprog {
            len: libc::c_ushort::try_from(program.len()).unwrap_or(0),
            filter: program.as_mut_ptr(),
        };
        self.set(libc::SO_ATTACH_FILTER, &program)
    }

    /// Lengthens the queue if permitted; the default works as well.
    fn enlarge(&self) {
        if self.set(libc::SO_RCVBUFFORCE, &QUEUE).is_err() {
            let _ = self.set(libc::SO_RCVBUF, &QUEUE);
        }
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the kernel reads as many bytes as said, and what the value
        // points to outlives the call.
        sys::check(unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(value).cast(),
                libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0),
            )
        })?;
        Ok(())
    }

    fn bind(&self) -> io::Result<()> {
        // SAFETY: the address is plain integers, for which zeros are valid.
        let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).unwrap_or(0);
        address.nl_groups = PROCESSES;
        // SAFETY: the address has the length passed and outlives the call.
        sys::check(unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).unwrap_or(0),
            )
        })?;
        Ok(())
    }

    /// Asks for events and waits for the answer, which does not come if this process is in its own
    /// namespaces.
    fn listen(&mut self) -> io::Result<()> {
        let message = subscription();
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
        let end = sys::monotonic() + ANSWER;
        loop {
            let left = end.saturating_sub(sys::monotonic());
            if left.is_zero() {
                return Err(io::Error::other(
                    "the kernel does not answer (is this a container?)",
                ));
            }
            sys::poll([self.descriptor()], Some(left));
            let mut answer = None;
            self.take_batch(|event| {
                if word(event, EVENT) == Some(NONE) {
                    answer = word(event, EVENT + 16);
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

    /// Takes all pending events: adds the processes, each once.
    ///
    /// # Errors
    /// `ENOBUFS` if events were lost.
    pub(super) fn take(&mut self, processes: &mut Vec<i32>) -> io::Result<()> {
        loop {
            let taken = self.take_batch(|event| {
                let process = word(event, PROCESS).and_then(|id| i32::try_from(id).ok());
                let is_answer = word(event, EVENT) == Some(NONE);
                if let Some(process) = process.filter(|id| !is_answer && !processes.contains(id)) {
                    processes.push(process);
                }
            })?;
            if taken < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Takes up to [`AT_ONCE`] datagrams with one call; returns how many came. Those not from the
    /// kernel are skipped.
    fn take_batch(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<usize> {
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
        let taken = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                libc::c_uint::try_from(AT_ONCE).unwrap_or(0),
                0,
                std::ptr::null_mut(),
            )
        };
        let taken = match usize::try_from(taken) {
            Ok(taken) => taken,
            Err(_) => {
                let error = io::Error::last_os_error();
                let is_none = error.kind() == io::ErrorKind::WouldBlock
                    || error.kind() == io::ErrorKind::Interrupted;
                return if is_none { Ok(0) } else { Err(error) };
            }
        };
        for index in 0..taken.min(AT_ONCE) {
            let length = usize::try_from(messages[index].msg_len).unwrap_or(0);
            if senders[index].nl_pid == 0 {
                each(&self.buffers[index][..length.min(MAX_DATAGRAM_BYTES)]);
            }
        }
        Ok(taken)
    }
}

/// The message that asks for events: `nlmsghdr`, `cn_msg`, the operation.
fn subscription() -> Vec<u8> {
    let length = u32::try_from(EVENT + 4).unwrap_or(0);
    let done = u16::try_from(libc::NLMSG_DONE).unwrap_or(0);
    let mut message = Vec::with_capacity(EVENT + 4);
    message.extend(length.to_ne_bytes());
    message.extend(done.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(PROCESSES.to_ne_bytes());
    message.extend(PROCESSES.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(4u16.to_ne_bytes());
    message.extend([0; 2]);
    message.extend(LISTEN.to_ne_bytes());
    message
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// A thread's nice value; `None` if it ended.
pub(super) fn nice_of(thread: i32) -> Option<i32> {
    let id = libc::id_t::try_from(thread).ok().filter(|&id| id > 0)?;
    // The raw call returns 20 minus the value, so that it is not an error number.
    // SAFETY: plain integers.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, id) };
    i32::try_from(raw)
        .ok()
        .filter(|&raw| raw > 0)
        .map(|raw| 20 - raw)
}

/// Sets a thread's nice value.
pub(super) fn set_nice_of(thread: i32, nice: i32) -> io::Result<()> {
    let id = libc::id_t::try_from(thread).ok().filter(|&id| id > 0);
    let id = id.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: plain integers; 0, this thread itself, is excluded above.
    let result = unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, id, nice) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The number of this user, wherever the system keeps its users.
#[must_use]
pub fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    let mut buffer = vec![0 as libc::c_char; 64 * 1024];
    // SAFETY: all pointers are valid for the call, the buffer has the length passed; the entry is read
    // only if the call says that it found one.
    unsafe {
        let result = libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        );
        (result == 0 && !found.is_null()).then(|| (*found).pw_uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_numbers() {
        assert_eq!(user_id("root"), Some(0));
        assert_eq!(user_id("no such user"), None);
        assert_eq!(user_id("a\0b"), None);
    }

    #[test]
    fn the_subscription_has_the_length_in_its_header() {
        let message = subscription();
        assert_eq!(word(&message, 0), Some(40));
        assert_eq!((message.len(), word(&message, EVENT)), (40, Some(LISTEN)));
        assert_eq!(word(&message, 37), None);
    }
}
