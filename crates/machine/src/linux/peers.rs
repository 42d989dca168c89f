//! Finds the peers of sockets in the kernel's lists: the user at the other end of a local connection
//! (internet sockets have no `SO_PEERCRED`), and what a blocked thread's socket is connected to.

mod local;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::capture::list_names;
use local::LocalSocket;

/// The lists of a process's network namespace (`proc_net(5)`).
const TCP: [&str; 2] = ["tcp", "tcp6"];
const UDP: [&str; 2] = ["udp", "udp6"];
/// The state of a socket that accepts connections.
const LISTENS: &str = "0A";
/// Limits how often the lists of a process are read: a busy server's are long, and it opens
/// sockets all the time.
const MAX_READS: u32 = 20;
/// Limits the descriptors of a process that are looked at.
const MAX_DESCRIPTORS: usize = 4096;
/// Limits the sets of descriptors of a process that are kept apart.
const MAX_SETS: usize = 64;
/// Servers of a process that are named together.
const MAX_SERVERS: usize = 2;
/// Parts of the names of sockets that bring requests and events, as those of clients do: buses and
/// displays.
const BRING_EVENTS: [&str; 4] = ["/dbus", "/bus", "/.X11-unix", "/wayland-"];
/// The sockets that take the output of a service, which nobody waits for.
const JOURNAL: &str = "/run/systemd/journal/";

/// A line of such a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
    user: u32,
    /// 0 without a process.
    inode: u64,
}

/// The user whose socket has the local address `peer` and the remote address `own`. `None` if no
/// process of this machine holds such a socket, for example because it was closed.
#[must_use]
pub fn owner_of_peer(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let process = i32::try_from(std::process::id()).ok()?;
    find_owner(read_lists(process, &TCP), peer, own)
}

/// The sockets that have a peer, or wait for one.
fn list_sockets(process: i32) -> impl Iterator<Item = Socket> {
    let all = read_lists(process, &TCP).chain(read_lists(process, &UDP));
    all.filter(|socket| socket.listens || socket.remote.port() != 0)
}

fn read_lists(process: i32, lists: &'static [&str]) -> impl Iterator<Item = Socket> {
    let lines = lists.iter().filter_map(move |list| {
        #[expect(clippy::disallowed_methods, reason = "the Edge asks the kernel")]
        let file = File::open(format!("/proc/{process}/net/{list}")).ok()?;
        Some(BufReader::new(file).lines().map_while(Result::ok))
    });
    lines.flatten().filter_map(|line| parse_socket(&line))
}

fn find_owner(
    sockets: impl Iterator<Item = Socket>,
    peer: SocketAddr,
    own: SocketAddr,
) -> Option<u32> {
    let (peer, own) = (to_canonical(peer), to_canonical(own));
    let mut held = sockets.filter(|socket| socket.inode != 0);
    held.find(|socket| socket.local == peer && socket.remote == own)
        .map(|socket| socket.user)
}

fn parse_socket(line: &str) -> Option<Socket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (parse_address(words.next()?)?, parse_address(words.next()?)?);
    let listens = words.next()? == LISTENS;
    // Queues, timer, retransmits; then user, timeout, inode.
    let user = words.nth(3)?.parse().ok()?;
    let inode = words.nth(1)?.parse().ok()?;
    Some(Socket {
        local,
        remote,
        listens,
        user,
        inode,
    })
}

/// The inode in a socket's link in `/proc/PID/fd`.
pub(super) fn parse_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// What the sockets of processes are connected to.
#[derive(Debug, Default)]
pub(super) struct SocketPeers {
    processes: BTreeMap<i32, KnownSockets>,
}

#[derive(Debug, Default)]
struct KnownSockets {
    reads: u32,
    /// By inode.
    peers: BTreeMap<u64, Box<str>>,
    /// By what tells sets of descriptors from each other.
    sets: BTreeMap<u64, KnownSet>,
}

/// Descriptors whose events a thread waits for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// Inodes of sockets.
    pub(super) sockets: BTreeSet<u64>,
    /// Is a pipe among them?
    pub(super) has_pipe: bool,
}

/// What is known of a set of descriptors.
#[derive(Debug, Default)]
pub(super) struct KnownSet {
    /// How often a thread waited for their events.
    waits: u32,
    /// What the sockets are connected to: `127.0.0.1:9911` or `/run/server`, of a server `clients
    /// of port 8080`, or both. `None` without such sockets.
    pub(super) peers: Option<Box<str>>,
    /// Is a pipe watched?
    pub(super) has_pipe: bool,
}

impl SocketPeers {
    /// What a process's socket with this inode is connected to: the address or path of a server,
    /// `clients of port 8080`, or the port of a socket that listens.
    pub(super) fn describe(&mut self, process: i32, inode: u64) -> Option<Box<str>> {
        let known = self.processes.entry(process).or_default();
        if !known.peers.contains_key(&inode) && known.reads < MAX_READS {
            known.reads += 1;
            let sockets: Vec<Socket> = list_sockets(process).collect();
            known.peers.extend(describe_sockets(&sockets));
            if !known.peers.contains_key(&inode) {
                known.peers.extend(describe_local_sockets(&local::list()));
            }
        }
        known.peers.get(&inode).cloned()
    }

    /// What a process that waits for events may wait for, by the descriptors that it watches, or by
    /// all its sockets if those are not known. `key` tells sets of descriptors from each other.
    pub(super) fn look_up_set(
        &mut self,
        process: i32,
        key: u64,
        list_watched: impl FnOnce() -> Option<Watched>,
    ) -> &KnownSet {
        let known = self.processes.entry(process).or_default();
        let is_known = known.sets.len() < MAX_SETS || known.sets.contains_key(&key);
        let set = known
            .sets
            .entry(if is_known { key } else { 0 })
            .or_default();
        set.waits += 1;
        // Connections come and go, but the lists of a busy server are long.
        if set.waits.is_power_of_two() {
            let watched = list_watched().unwrap_or_else(|| Watched {
                sockets: list_inodes(process),
                has_pipe: false,
            });
            set.has_pipe = watched.has_pipe;
            set.peers = describe_process(process, &watched.sockets);
        }
        set
    }
}

fn describe_process(process: i32, own: &BTreeSet<u64>) -> Option<Box<str>> {
    if own.is_empty() {
        return None;
    }
    let sockets: Vec<Socket> = list_sockets(process).collect();
    let internet = sockets.iter().map(|socket| socket.inode).collect();
    let local = match own.is_subset(&internet) {
        true => BTreeMap::new(),
        false => local::list(),
    };
    describe_together(&sockets, &local, own)
}

/// The sockets among the descriptors of a process.
fn list_inodes(process: i32) -> BTreeSet<u64> {
    let folder = format!("/proc/{process}/fd");
    let names = list_names(Path::new(&folder));
    let links = names.iter().take(MAX_DESCRIPTORS).filter_map(|name| {
        let link = std::fs::read_link(format!("{folder}/{name}")).ok()?;
        parse_inode(link.to_str()?)
    });
    links.collect()
}

fn describe_together(
    sockets: &[Socket],
    local: &BTreeMap<u64, LocalSocket>,
    own: &BTreeSet<u64>,
) -> Option<Box<str>> {
    let ports = list_served_ports(sockets);
    let mut served: Option<u16> = None;
    let mut servers: BTreeMap<Server<'_>, usize> = BTreeMap::new();
    for socket in sockets.iter().filter(|socket| own.contains(&socket.inode)) {
        let port = socket.local.port();
        if socket.listens || ports.contains(&port) {
            served = Some(served.map_or(port, |first| first.min(port)));
        } else {
            *servers.entry(Server::Address(socket.remote)).or_default() += 1;
        }
    }
    let mut served_locally = None;
    for inode in own {
        match find_local_peer(local, *inode) {
            Some(LocalPeer::Server(name)) => {
                *servers.entry(Server::Local(name)).or_default() += 1;
            }
            Some(LocalPeer::Listens(name) | LocalPeer::Clients(name)) => {
                served_locally.get_or_insert(name);
            }
            None => {}
        }
    }
    let mut servers: Vec<(Server<'_>, usize)> = servers.into_iter().collect();
    servers.sort_by_key(|(server, connections)| (std::cmp::Reverse(*connections), *server));
    let servers = servers.iter().take(MAX_SERVERS);
    let mut named: Vec<String> = servers.map(|(server, _)| server.to_string()).collect();
    match (served, served_locally) {
        (Some(port), _) => named.push(format!("clients of port {port}")),
        (None, Some(name)) => named.push(format!("clients of {name}")),
        (None, None) => {}
    }
    (!named.is_empty()).then(|| named.join(" or ").into())
}

/// What a client is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Server<'a> {
    Address(SocketAddr),
    Local(&'a str),
}

impl std::fmt::Display for Server<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Local(name) => f.write_str(name),
        }
    }
}

/// What a Unix-domain socket is connected to, by name.
enum LocalPeer<'a> {
    Server(&'a str),
    Clients(&'a str),
    Listens(&'a str),
}

/// `None` without a name: of a pair of sockets, for example.
fn find_local_peer(local: &BTreeMap<u64, LocalSocket>, inode: u64) -> Option<LocalPeer<'_>> {
    let socket = local.get(&inode)?;
    if let Some(name) = socket.name.as_deref() {
        return Some(match socket.listens {
            true => LocalPeer::Listens(name),
            false => LocalPeer::Clients(name),
        });
    }
    let name = local.get(&socket.peer?)?.name.as_deref()?;
    match BRING_EVENTS.iter().any(|part| name.contains(part)) {
        true => Some(LocalPeer::Clients(name)),
        false => (!name.starts_with(JOURNAL)).then_some(LocalPeer::Server(name)),
    }
}

fn describe_local_sockets(
    local: &BTreeMap<u64, LocalSocket>,
) -> impl Iterator<Item = (u64, Box<str>)> {
    local.keys().filter_map(|inode| {
        let peer = match find_local_peer(local, *inode)? {
            LocalPeer::Server(name) => name.into(),
            LocalPeer::Clients(name) => format!("clients of {name}").into(),
            LocalPeer::Listens(name) => format!("{name} (new connections)").into(),
        };
        Some((*inode, peer))
    })
}

/// The ports at which clients connect: their sockets have the same local port.
fn list_served_ports(sockets: &[Socket]) -> BTreeSet<u16> {
    let listening = sockets.iter().filter(|socket| socket.listens);
    listening.map(|socket| socket.local.port()).collect()
}

fn describe_sockets(sockets: &[Socket]) -> BTreeMap<u64, Box<str>> {
    let ports = list_served_ports(sockets);
    let describe = |socket: &Socket| {
        let port = socket.local.port();
        let peer = match (socket.listens, ports.contains(&port)) {
            (true, _) => format!("port {port} (new connections)"),
            (false, true) => format!("clients of port {port}"),
            (false, false) => socket.remote.to_string(),
        };
        (socket.inode, peer.into())
    };
    sockets.iter().map(describe).collect()
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
    use std::os::fd::AsRawFd;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";

    fn check(line: &str, peer: &str, own: &str) -> Option<u32> {
        let sockets = [HEAD, line].into_iter().filter_map(parse_socket);
        find_owner(sockets, peer.parse().unwrap(), own.parse().unwrap())
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

    #[test]
    fn sockets_name_their_servers_and_servers_their_ports() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let (server, _) = listener.accept().unwrap();
        let process = i32::try_from(std::process::id()).unwrap();
        let mut peers = SocketPeers::default();
        let mut describe = |socket: &dyn AsRawFd| {
            let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
            let link = std::fs::read_link(link).unwrap();
            let inode = parse_inode(link.to_str().unwrap()).unwrap();
            peers.describe(process, inode).unwrap().to_string()
        };
        let port = at.port();
        assert_eq!(describe(&client), at.to_string());
        assert_eq!(describe(&server), format!("clients of port {port}"));
        assert_eq!(
            describe(&listener),
            format!("port {port} (new connections)")
        );
    }

    #[test]
    fn all_sockets_of_a_process_tell_what_it_waits_for() {
        let socket = |inode: u64, local: &str, remote: &str| Socket {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            listens: remote.ends_with(":0"),
            user: 0,
            inode,
        };
        let sockets = [
            socket(1, "0.0.0.0:80", "0.0.0.0:0"),
            socket(2, "10.0.0.1:80", "10.0.0.9:5000"),
            socket(3, "10.0.0.1:4001", "10.0.0.2:5432"),
            socket(4, "10.0.0.1:4002", "10.0.0.3:9911"),
            socket(5, "10.0.0.1:4003", "10.0.0.3:9911"),
            socket(6, "10.0.0.1:4004", "10.0.0.4:1"),
        ];
        let local = |name: Option<&str>, peer: u64, listens: bool| LocalSocket {
            name: name.map(Into::into),
            peer: Some(peer).filter(|peer| *peer != 0),
            listens,
        };
        let locals = BTreeMap::from([
            (10, local(Some("/run/own"), 0, true)),
            (11, local(None, 12, false)),
            (12, local(Some("/run/postgresql/.s.PGSQL.5432"), 11, false)),
            (13, local(None, 14, false)),
            (14, local(None, 13, false)),
            (15, local(None, 16, false)),
            (16, local(Some("/run/dbus/system_bus_socket"), 15, false)),
            (17, local(None, 18, false)),
            (18, local(Some("/run/systemd/journal/stdout"), 17, false)),
        ]);
        let describe = |own: &[u64]| {
            let own = own.iter().copied().collect();
            let text = describe_together(&sockets, &locals, &own);
            text.unwrap_or_default().to_string()
        };
        assert_eq!(describe(&[1, 2]), "clients of port 80");
        assert_eq!(describe(&[3]), "10.0.0.2:5432");
        let proxy = "10.0.0.3:9911 or 10.0.0.2:5432 or clients of port 80";
        assert_eq!(describe(&[2, 3, 4, 5]), proxy);
        assert_eq!(describe(&[10]), "clients of /run/own");
        assert_eq!(describe(&[7, 11, 13, 17]), "/run/postgresql/.s.PGSQL.5432");
        assert_eq!(describe(&[15]), "clients of /run/dbus/system_bus_socket");
        assert_eq!(describe(&[7, 13, 17]), "");
    }

    #[test]
    fn sockets_of_a_living_process_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let _client = TcpStream::connect(at).unwrap();
        let process = i32::try_from(std::process::id()).unwrap();
        assert!(list_inodes(process).len() >= 2);
        // Other tests of this process have sockets, too.
        let mut peers = SocketPeers::default();
        assert!(peers.look_up_set(process, 0, || None).peers.is_some());
        let none = || Some(Watched::default());
        assert_eq!(peers.look_up_set(process, 1, none).peers, None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,60}|( [0-9A-F]{0,33}:[0-9A-F]{0,5}){0,3}( [0-9]{1,12}){0,9}") {
            let _ = check(&line, "127.0.0.1:1", "127.0.0.1:2");
        }
    }
}
