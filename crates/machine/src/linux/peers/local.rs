//! The Unix-domain sockets of this network namespace, with their peers, by `sock_diag(7)`:
//! `/proc/net/unix` does not say which socket is connected to which.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::netlink::{HEADER_BYTES, Netlink, make_message, parse_attributes};
use super::super::sys;

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_PEER` of `linux/unix_diag.h`, and their attributes.
const SHOW_NAME_AND_PEER: u32 = 1 | 4;
const NAME: u16 = 0;
const PEER: u16 = 2;
/// The state of a socket that accepts connections (`TCP_LISTEN`).
const LISTENS: u8 = 10;
/// Bytes of `struct unix_diag_msg`, and where in it the state and the inode are.
const SOCKET_BYTES: usize = 16;
const STATE_AT: usize = 2;
const INODE_AT: usize = 4;
/// The kernel sends no longer datagrams of such a list.
const MAX_DATAGRAM_BYTES: usize = 32 * 1024;
/// Longest wait for the list, which the kernel makes while it is read.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Limits the sockets that are kept.
const MAX_SOCKETS: usize = 1 << 16;

/// A Unix-domain socket.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LocalSocket {
    /// Its path, or an abstract name after `@`; a client has none.
    pub(super) name: Option<Box<str>>,
    /// The inode of the socket that it is connected to.
    pub(super) peer: Option<u64>,
    pub(super) listens: bool,
}

/// All sockets by inode; none if the kernel does not tell.
pub(super) fn list() -> BTreeMap<u64, LocalSocket> {
    let mut sockets = BTreeMap::new();
    let _ = request(&mut sockets);
    sockets
}

fn request(sockets: &mut BTreeMap<u64, LocalSocket>) -> Option<()> {
    let socket = Netlink::open(libc::NETLINK_SOCK_DIAG).ok()?;
    socket.bind(0).ok()?;
    socket.send(&make_request()).ok()?;
    let end = sys::monotonic() + TIMEOUT;
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    while sockets.len() < MAX_SOCKETS {
        let Some(length) = socket.receive(&mut buffer).ok()? else {
            let left = end.checked_sub(sys::monotonic())?;
            sys::poll([socket.descriptor()], Some(left));
            continue;
        };
        if take_messages(&buffer[..length], sockets).is_none() {
            break;
        }
    }
    Some(())
}

/// `struct unix_diag_req`: family, states, names and peers.
fn make_request() -> Vec<u8> {
    let family = u8::try_from(libc::AF_UNIX).unwrap_or(0);
    let mut body = vec![family, 0, 0, 0];
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(0u32.to_ne_bytes());
    body.extend(SHOW_NAME_AND_PEER.to_ne_bytes());
    body.extend([0xff; 8]);
    make_message(BY_FAMILY, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, &body)
}

/// Adds the sockets of a datagram; `None` at the end of the list, or an error.
fn take_messages(mut bytes: &[u8], sockets: &mut BTreeMap<u64, LocalSocket>) -> Option<()> {
    while !bytes.is_empty() {
        let length = usize::try_from(read_u32(bytes, 0)?).ok()?;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let body = bytes.get(HEADER_BYTES..length)?;
        if kind != BY_FAMILY {
            return None;
        }
        let (inode, socket) = parse_socket(body)?;
        sockets.insert(inode, socket);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(())
}

fn parse_socket(body: &[u8]) -> Option<(u64, LocalSocket)> {
    let mut socket = LocalSocket {
        listens: *body.get(STATE_AT)? == LISTENS,
        ..LocalSocket::default()
    };
    for (kind, value) in parse_attributes(body.get(SOCKET_BYTES..)?) {
        match kind {
            NAME => socket.name = parse_name(value),
            PEER => {
                socket.peer = read_u32(value, 0)
                    .map(u64::from)
                    .filter(|inode| *inode != 0)
            }
            _ => {}
        }
    }
    Some((u64::from(read_u32(body, INODE_AT)?), socket))
}

/// A path, or an abstract name, which begins with a zero and is written with `@` as `ss` does.
fn parse_name(value: &[u8]) -> Option<Box<str>> {
    let text = match value.split_first()? {
        (0, name) => format!("@{}", String::from_utf8_lossy(name)),
        _ => String::from_utf8_lossy(value).into_owned(),
    };
    let text = text.trim_end_matches('\0');
    (text.len() > 1).then(|| text.into())
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::super::parse_inode;
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode_of(socket: &impl AsRawFd) -> u64 {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        parse_inode(std::fs::read_link(link).unwrap().to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_client_is_connected_to_a_socket_with_the_servers_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let sockets = list();
        let [client, server, listener] =
            [inode_of(&client), inode_of(&server), inode_of(&listener)];
        assert_eq!(sockets[&client].peer, Some(server));
        assert_eq!(sockets[&client].name, None);
        assert_eq!(sockets[&server].name.as_deref(), path.to_str());
        assert!(sockets[&listener].listens && !sockets[&server].listens);
    }

    #[test]
    fn names_are_paths_or_abstract() {
        assert_eq!(parse_name(b"/run/x\0").as_deref(), Some("/run/x"));
        assert_eq!(parse_name(b"\0bus").as_deref(), Some("@bus"));
        assert_eq!(parse_name(b"\0"), None);
        assert_eq!(parse_name(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = take_messages(&bytes, &mut BTreeMap::new());
            let _ = parse_socket(&bytes);
        }
    }
}
