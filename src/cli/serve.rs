//! `serve`: the page on a local site, which shows records as they grow.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::json;

use super::args::{Global, ServeArgs};
use super::terminal::Terminal;
use super::{Exit, location};
use crate::machine::linux::random_bytes;
use crate::store::Location;
use crate::web::{Door, Secret, Site};

/// What opens an address in the user's browser.
const OPENER: &str = "xdg-open";

pub(super) fn serve(
    global: &Global,
    args: &ServeArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let store = location(global)?;
    if store == Location::Nowhere {
        bail!("--store none: there is nothing to serve");
    }
    let page = super::report::template()?.into_owned();
    let secret = new_secret()?;
    let ticket = args.open.then(new_secret).transpose()?;
    let shown = store.to_string();
    let spool = super::spool(&store, *terminal)?;
    let teller = *terminal;
    let site = Site {
        page,
        store,
        spool,
        secret: secret.clone(),
        ticket: ticket.clone(),
        differ: Box::new(|a, b| super::diff::of_stored(a, b).map_err(|e| format!("{e:#}"))),
        warn: Box::new(move |sentence| teller.warn(sentence)),
    };
    let listen = args.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let door = Door::open(site, listen, args.port)?;
    let base = format!("http://{}/", reachable(door.address()));
    warn_if_open(listen, terminal);
    print(
        &format!("{base}{}/", secret.word()),
        door.address(),
        terminal,
    )?;
    terminal.note(&format!("the records of {shown}; Ctrl-C ends it"));
    if let Some(ticket) = ticket {
        open(&format!("{base}open/{}", ticket.word()), *terminal);
    }
    door.serve()?;
    Ok(Exit::Done)
}

fn new_secret() -> anyhow::Result<Secret> {
    let bytes = random_bytes().context("the system has no random bytes for a secret")?;
    Ok(Secret::new(&bytes))
}

fn print(address: &str, socket: SocketAddr, terminal: &Terminal) -> anyhow::Result<()> {
    if terminal.is_json() {
        let host = socket.ip().to_string();
        return terminal
            .print_json(&json!({ "address": address, "host": host, "port": socket.port() }));
    }
    terminal.print(&format!("{address}\n"))
}

/// An address at which this machine's own browser finds the site.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

fn warn_if_open(listen: IpAddr, terminal: &Terminal) {
    if listen.is_loopback() {
        return;
    }
    let elsewhere = if listen.is_unspecified() {
        "; from elsewhere, put this machine's IP address into it"
    } else {
        ""
    };
    terminal.warn(&format!(
        "--listen {listen}: other machines can connect, nothing is encrypted, and whoever knows the address below reads all records{elsewhere}"
    ));
}

/// Starts a browser and goes on; whether one came up is told when it is known.
fn open(address: &str, terminal: Terminal) {
    #[expect(
        clippy::disallowed_methods,
        reason = "--open asks for a program of the desktop"
    )]
    let started = Command::new(OPENER)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the site and not the browser.
        .process_group(0)
        .spawn();
    let failed = move |why: &str| {
        terminal.warn(&format!(
            "no browser could be opened: {why} (open the address above in one)"
        ));
    };
    match started {
        Ok(mut child) => {
            std::thread::spawn(move || {
                if let Ok(status) = child.wait()
                    && !status.success()
                {
                    failed(&format!("{OPENER} ended with {status}"));
                }
            });
        }
        Err(error) => failed(&format!("{OPENER}: {error}")),
    }
}
