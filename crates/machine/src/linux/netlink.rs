//! Sockets of netlink, through which the kernel answers and reports.

#![expect(unsafe_code, reason = "sockets of this family have no safe form")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::sys;

/// Bytes of the header of a message, `struct nlmsghdr`.
pub(super) const HEADER_BYTES: usize = 16;

/// A socket that never blocks.
#[derive(Debug)]
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens a socket of a family, which receives nothing before it is bound.
    ///
    /// # Errors
    /// The system's, for example if the kernel lacks the family.
    pub(super) fn open(family: libc::c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain integers; the new descriptor is ours alone.
        let socket = unsafe {
            let fd = sys::check(libc::socket(libc::PF_NETLINK, kind, family))?;
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self(socket))
    }

    pub(super) fn descriptor(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }

    pub(super) fn set_option<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the kernel reads as many bytes as said, and what the value points to outlives the
        // call.
        sys::check(unsafe {
            libc::setsockopt(
                self.descriptor(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(value).cast(),
                length_of::<T>(),
            )
        })?;
        Ok(())
    }

    /// Enlarges the queue of pending messages, bytes of kernel memory, if permitted; the default
    /// works as well.
    pub(super) fn enlarge_queue(&self, bytes: libc::c_int) {
        if self.set_option(libc::SO_RCVBUFFORCE, &bytes).is_err() {
            let _ = self.set_option(libc::SO_RCVBUF, &bytes);
        }
    }

    /// Gives the socket an address, in these multicast groups (bits).
    ///
    /// # Errors
    /// The system's, for example if it does not permit the groups.
    pub(super) fn bind(&self, groups: u32) -> io::Result<()> {
        // SAFETY: the address is plain integers, for which zeros are valid.
        let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).unwrap_or(0);
        address.nl_groups = groups;
        // SAFETY: the address has the length passed and outlives the call.
        sys::check(unsafe {
            libc::bind(
                self.descriptor(),
                (&raw const address).cast(),
                length_of::<libc::sockaddr_nl>(),
            )
        })?;
        Ok(())
    }

    /// # Errors
    /// The system's.
    pub(super) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer has the length passed.
        let sent =
            unsafe { libc::send(self.descriptor(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Receives one datagram, cut to the buffer's length; returns its length, `None` if there is
    /// none.
    ///
    /// # Errors
    /// `ENOBUFS` if messages were lost.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the buffer has the length passed.
        let received = unsafe {
            libc::recv(
                self.descriptor(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(received) {
            Ok(length) => Ok(Some(length.min(buffer.len()))),
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOBUFS) => Err(error),
                _ => Ok(None),
            },
        }
    }
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

/// Makes a message: its header, then what follows it.
pub(super) fn make_message(kind: u16, flags: libc::c_int, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(0);
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(u16::try_from(flags).unwrap_or(0).to_ne_bytes());
    // The number of the message and of its sender, which the kernel fills in.
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Makes an `nlattr`, padded to a multiple of four bytes.
pub(super) fn make_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Parses attributes, kind and value, up to the first invalid one.
pub(super) fn parse_attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & 0x3fff, value))
    })
}
