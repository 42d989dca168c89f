//! Finds the local peer of a TCP connection: internet sockets have no `SO_PEERCRED`, but the kernel
//! lists each with its owner.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The lists of this network namespace (`proc_net(5)`).
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// The user whose socket has the local address `peer` and the remote address `own`. `None` if no
/// process of this machine holds such a socket, for example because it was closed.
#[must_use]
pub fn owner_of_peer(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    LISTS.iter().find_map(|list| {
        #[expect(clippy::disallowed_methods, reason = "the Edge asks the kernel")]
        let file = File::open(list).ok()?;
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        find_owner(lines, peer, own)
    })
}

fn find_owner(
    lines: impl Iterator<Item = String>,
    peer: SocketAddr,
    own: SocketAddr,
) -> Option<u32> {
    let (peer, own) = (to_canonical(peer), to_canonical(own));
    let mut lines = lines;
    lines.find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_ours = parse_address(words.next()?)? == peer && parse_address(words.next()?)? == own;
        // State, queues, timer, retransmits; user, timeout, inode.
        let (user, inode) = (words.nth(4)?, words.nth(1)?);
        // A socket without a process has no inode, and root's user id.
        (is_ours && inode != "0").then(|| user.parse().ok())?
    })
}

/// Turns an IPv4 address of an IPv6 socket into an IPv4 address.
fn to_canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Parses an address such as `0100007F:1F90`: words of 32 bits, each a native number whose bytes
/// are in network order.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |from: usize| {
        let digits = ip.get(from..from + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.as_flattened().try_into().ok()?;
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(to_canonical(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sys;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";

    fn check(line: &str, peer: &str, own: &str) -> Option<u32> {
        let lines = [HEAD, line].map(str::to_owned).into_iter();
        find_owner(lines, peer.parse().unwrap(), own.parse().unwrap())
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn lines_of_the_kernel_are_read() {
        let four = "  14: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 26083 1 0000000000000000 20 4 30 10 -1";
        assert_eq!(check(four, "127.0.0.1:54321", "127.0.0.1:8080"), Some(1001));
        assert_eq!(
            check(four, "[::ffff:127.0.0.1]:54321", "127.0.0.1:8080"),
            Some(1001)
        );
        assert_eq!(check(four, "127.0.0.1:8080", "127.0.0.1:54321"), None);
        assert_eq!(check(four, "127.0.0.1:54322", "127.0.0.1:8080"), None);
        let mapped = "   1: 0000000000000000FFFF00000100007F:D431 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000    33        0 26083 1";
        assert_eq!(check(mapped, "127.0.0.1:54321", "127.0.0.1:8080"), Some(33));
        let six = "   1: 00000000000000000000000001000000:D431 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000     7        0 26083 1";
        assert_eq!(check(six, "[::1]:54321", "[::1]:8080"), Some(7));
        let abandoned = four.replace("26083", "0");
        assert_eq!(check(&abandoned, "127.0.0.1:54321", "127.0.0.1:8080"), None);
    }

    #[test]
    fn a_connection_of_this_process_is_this_users() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else {
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let own = server.local_addr().unwrap();
            assert_eq!(owner_of_peer(peer, own), Some(sys::effective_user()));
            drop(client);
            assert_eq!(owner_of_peer(peer, own), None, "closed");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,60}|( [0-9A-F]{0,33}:[0-9A-F]{0,5}){0,3}( [0-9]{1,12}){0,9}") {
            let _ = check(&line, "127.0.0.1:1", "127.0.0.1:2");
        }
    }
}
