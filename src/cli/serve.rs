//! `serve`: serves the page on a local site, which shows records as they grow.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::json;

use super::Exit;
use super::args::{Global, ServeArgs};
use super::opening::store_location;
use super::surroundings::{find_named_folder, find_temporary_folder};
use super::terminal::Terminal;
use pinwise_kernels::Scratch;
use pinwise_machine::linux::{effective_user, owner_of_peer, random_bytes};
use pinwise_serve::{Secret, Server, Site};
use pinwise_store::Location;

/// The program that opens a file in the user's browser.
const OPENER: &str = "xdg-open";

pub(super) fn serve(
    global: &Global,
    args: &ServeArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let store = store_location(global)?;
    if store == Location::Nowhere {
        bail!("--store none: nothing to serve");
    }
    let page = super::report::load_template()?.into_owned();
    let secret = new_secret()?;
    let ticket = args.open.then(new_secret).transpose()?;
    let shown = store.to_string();
    let is_missing = matches!(&store, Location::Sqlite(path) if !path.exists());
    let spool = super::opening::make_spool(&store, *terminal)?;
    let warning_terminal = *terminal;
    let site = Site {
        page,
        store,
        spool,
        secret: secret.clone(),
        ticket: ticket.clone(),
        differ: Box::new(|a, b| super::diff::diff_stored(a, b).map_err(|e| format!("{e:#}"))),
        chain: Box::new(super::history::trend_to_json),
        user: effective_user(),
        owner_of_peer: Box::new(owner_of_peer),
        warn: Arc::new(move |sentence| warning_terminal.warn(sentence)),
    };
    let listen = args.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let server = Server::open(site, listen, args.port)?;
    let base = format!("http://{}/", format_browser_address(server.address()));
    warn_if_open(listen, terminal);
    print_address(
        &format!("{base}{}/", secret.word()),
        server.address(),
        terminal,
    )?;
    let yet = if is_missing {
        ", which does not exist yet"
    } else {
        ""
    };
    terminal.note(&format!("the records of {shown}{yet}; Ctrl-C ends it"));
    let redirect = ticket.and_then(|ticket| {
        let address = format!("{base}open/{}", ticket.word());
        let redirect = Redirect::write(&address)
            .inspect_err(|error| warn_without_browser(*terminal, &format!("{error:#}")));
        redirect
            .ok()
            .inspect(|redirect| open_browser(&redirect.path, *terminal))
    });
    server.serve()?;
    drop(redirect);
    Ok(Exit::Done)
}

/// A file that redirects a browser to the site. The browser gets this file instead of the address
/// with its secret: every user can see its command line, but only this user can read the file.
struct Redirect {
    path: PathBuf,
    _folder: Scratch,
}

impl Redirect {
    fn write(address: &str) -> anyhow::Result<Self> {
        let parent = find_named_folder("XDG_RUNTIME_DIR").unwrap_or_else(find_temporary_folder);
        let folder = Scratch::create(&parent, "pinwise-serve-")
            .context("a folder for the browser's first page")?;
        let path = folder.path().join("open.html");
        let page = format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>pinwise</title>\n<meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<a href=\"{address}\">The records</a>\n"
        );
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(page.as_bytes()))
            .with_context(|| path.display().to_string())?;
        Ok(Self {
            path,
            _folder: folder,
        })
    }
}

fn new_secret() -> anyhow::Result<Secret> {
    let bytes = random_bytes().context("the system has no random bytes for a secret")?;
    Ok(Secret::new(&bytes))
}

fn print_address(address: &str, socket: SocketAddr, terminal: &Terminal) -> anyhow::Result<()> {
    if terminal.is_json() {
        let host = socket.ip().to_string();
        return terminal
            .print_json(&json!({ "address": address, "host": host, "port": socket.port() }));
    }
    terminal.print(&format!("{address}\n"))
}

/// The address at which a browser on this machine reaches the site.
fn format_browser_address(listening: SocketAddr) -> SocketAddr {
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
        "; from other machines, use this machine's IP address"
    } else {
        ""
    };
    terminal.warn(&format!(
        "--listen {listen}: other machines can connect, without encryption; whoever knows the address below can read all records{elsewhere}"
    ));
}

/// Starts a browser without waiting for it; a thread warns if that failed.
fn open_browser(page: &Path, terminal: Terminal) {
    #[expect(
        clippy::disallowed_methods,
        reason = "--open asks for a program of the desktop"
    )]
    let started = Command::new(OPENER)
        .arg(page)
        .env_remove("PINWISE_STORE")
        .env_remove("PGPASSWORD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the site and not the browser.
        .process_group(0)
        .spawn();
    match started {
        Ok(mut child) => {
            std::thread::spawn(move || {
                if let Ok(status) = child.wait()
                    && !status.success()
                {
                    warn_without_browser(terminal, &format!("{OPENER} ended with {status}"));
                }
            });
        }
        Err(error) => warn_without_browser(terminal, &format!("{OPENER}: {error}")),
    }
}

fn warn_without_browser(terminal: Terminal, why: &str) {
    terminal.warn(&format!(
        "no browser could be opened: {why} (open the address above in one)"
    ));
}
