//! The location of a store, as given by the user.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};

use super::StoreError;
use super::passfile::{self, Login};
use super::sslmode::Security;
use pinwise_topology::fnv1a;

/// Default time for a server to answer a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Default time for which sent bytes may stay unacknowledged.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// Default folder of the server's socket.
const SOCKET_FOLDER: &str = "/var/run/postgresql";
/// The default port of a server.
pub(super) const DEFAULT_PORT: u16 = 5432;

const HINT: &str = "write sqlite:PATH, postgres://USER@HOST/DATABASE, or none";

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Server),
    /// Nowhere: records are only printed.
    Nowhere,
}

/// A PostgreSQL database and its user.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    pub(super) config: Box<Config>,
    pub(super) security: Security,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.to_string()).finish()
    }
}

/// As a URL, without the password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        let mut socket = None;
        let mut hosts = Vec::new();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or(ports.first()).copied();
            let port = port.filter(|&port| port != DEFAULT_PORT);
            match host {
                Host::Tcp(name) => hosts.push(match port {
                    Some(port) => format!("{name}:{port}"),
                    None => name.clone(),
                }),
                Host::Unix(path) => socket = Some((path, port)),
            }
        }
        f.write_str(&hosts.join(","))?;
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())?;
        match socket {
            Some((path, Some(port))) => write!(f, "?host={}&port={port}", path.display()),
            Some((path, None)) => write!(f, "?host={}", path.display()),
            None => Ok(()),
        }
    }
}

impl Server {
    /// Parses the URL like libpq.
    fn parse(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or("write postgres://USER@HOST/DATABASE, or ?host=/FOLDER for a Unix socket")?;
        // Text between the first and the last @ may be part of a password.
        if rest.matches('@').count() > 1 {
            return Err("there is more than one @ (write those of a password as %40)".to_owned());
        }
        let (text, security) = Security::take_from_url(text)?;
        let (text, names, ports) = take_hosts(&text)?;
        let mut config: Config = text.parse().map_err(|error| explain_refusal(&error))?;
        for name in &names {
            config.host(if name.is_empty() { SOCKET_FOLDER } else { name });
        }
        for &port in &ports {
            config.port(port);
        }
        let (hosts, ports) = (config.get_hosts().len().max(1), config.get_ports().len());
        if ports > 1 && ports != hosts {
            return Err(format!(
                "it names {ports} ports for {hosts} hosts (write one for all, or one each)"
            ));
        }
        // The URL has milliseconds as for libpq, but the client library reads seconds.
        if let Some(given) = config.get_tcp_user_timeout() {
            let given = Duration::from_millis(given.as_secs());
            config.tcp_user_timeout(given);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host(SOCKET_FOLDER);
        }
        name_addresses(&mut config);
        let sockets = config.get_hosts().iter().filter(|host| is_socket(host));
        match sockets.count() {
            0 => {
                // With these settings the client library hands the connection to `postgres/secure`
                // before it sends anything.
                config.ssl_mode(SslMode::Require);
                config.ssl_negotiation(SslNegotiation::Direct);
            }
            count if count == config.get_hosts().len() && config.get_hostaddrs().is_empty() => {
                config.ssl_mode(SslMode::Disable);
                if config.get_target_session_attrs() != TargetSessionAttrs::Any {
                    return Err(
                        "target_session_attrs is for hosts, not for a socket (omit it)".to_owned(),
                    );
                }
            }
            _ => return Err("it names a socket and a host (write one of them)".to_owned()),
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_USER_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("pinwise");
        }
        Ok(Self {
            config: Box::new(config),
            security,
        })
    }

    /// Does all traffic to the server stay on this machine?
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.config)
    }

    /// Is it reached through Unix sockets?
    pub(super) fn is_socket(&self) -> bool {
        self.config.get_hosts().iter().all(is_socket)
    }

    /// Applies `sslmode` and `sslrootcert` from the environment (`PGSSLMODE`, `PGSSLROOTCERT`)
    /// unless the URL has them.
    ///
    /// # Errors
    /// [`StoreError::Location`] if they are unknown, or contradict the URL.
    pub fn offer_security(
        &mut self,
        mode: Option<&str>,
        authorities: Option<&str>,
    ) -> Result<(), StoreError> {
        let offered = self.security.offer(mode, authorities);
        offered.map_err(|reason| StoreError::Location {
            text: self.to_string(),
            reason,
        })
    }

    /// Sets the password unless the URL has one.
    pub fn offer_password(&mut self, password: &str) {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
    }

    /// Takes the password from libpq's password file (`.pgpass`), unless there is one. `user` is
    /// the default if the URL names none. If several hosts have different passwords, none is taken.
    pub fn look_up_password(&mut self, file: &str, user: &str) {
        let [host] = self.config.get_hosts() else {
            return;
        };
        let user = self.config.get_user().unwrap_or(user);
        let host = match host {
            Host::Tcp(name) => Cow::from(name),
            Host::Unix(folder) if folder == Path::new(SOCKET_FOLDER) => "localhost".into(),
            Host::Unix(folder) => folder.to_string_lossy(),
        };
        let login = Login {
            host: &host,
            port: self
                .config
                .get_ports()
                .first()
                .copied()
                .unwrap_or(DEFAULT_PORT),
            database: self.config.get_dbname().unwrap_or(user),
            user,
        };
        if let Some(password) = passfile::find_password(file, login) {
            self.offer_password(&password);
        }
    }

    /// A file name unique to this database, whatever its password.
    pub(super) fn file_name(&self) -> String {
        let shown = self.to_string();
        let readable = shown.trim_start_matches("postgres://");
        let readable = readable.chars().take(80).map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') => c,
            _ => '_',
        });
        let addresses = format!("{:?}", self.config.get_hostaddrs());
        let hash = fnv1a(format!("{shown}{addresses}").bytes());
        format!("{}-{hash:016x}", readable.collect::<String>())
    }
}

/// Takes `host=` and `port=` out of the parameters of a URL. In libpq they are lists that replace
/// the hosts before the path; the client library would add them to those, and take a list for one
/// name. Returns the remaining URL, the hosts and the ports.
fn take_hosts(url: &str) -> Result<(String, Vec<String>, Vec<u16>), String> {
    let (before, parameters) = url.split_once('?').unwrap_or((url, ""));
    let names_hosts = |part: &&str| part.starts_with("host=") || part.starts_with("port=");
    let (host_parts, kept): (Vec<&str>, Vec<&str>) = parameters.split('&').partition(names_hosts);
    if host_parts.is_empty() {
        return Ok((url.to_owned(), Vec::new(), Vec::new()));
    }
    let (scheme, rest) = before.split_once("://").unwrap_or(("", before));
    let (authority, database) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let (mut names, mut ports): (Vec<_>, Vec<_>) = hosts.split(',').map(split_port).unzip();
    for (name, value) in form_urlencoded::parse(host_parts.join("&").replace('+', "%2B").as_bytes())
    {
        let values = value.split(',').map(str::to_owned).collect();
        match &*name {
            "host" => names = values,
            _ => ports = values,
        }
    }
    let parse_port = |port: &String| match port.as_str() {
        "" => Ok(DEFAULT_PORT),
        port => port.parse().map_err(|_| format!("'{port}' is not a port")),
    };
    let ports = ports.iter().map(parse_port).collect::<Result<_, _>>()?;
    if names.iter().all(String::is_empty) {
        names.clear();
    }
    let text = format!("{scheme}://{user}{database}?{}", kept.join("&"));
    Ok((text.trim_end_matches('?').to_owned(), names, ports))
}

/// Splits a host from its port, which may be empty.
fn split_port(text: &str) -> (String, String) {
    let end = text.rfind(']').unwrap_or(0);
    let (name, port) = text.split_at(text[end..].find(':').map_or(text.len(), |at| end + at));
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let name = form_urlencoded::parse(name.as_bytes()).map(|(name, _)| name.into_owned());
    (name.collect(), port.trim_start_matches(':').to_owned())
}

fn is_socket(host: &Host) -> bool {
    matches!(host, Host::Unix(_))
}

/// Why a URL is refused; the client library names the parameter.
fn explain_refusal(error: &tokio_postgres::Error) -> String {
    format!(
        "{} (docs/records.md lists what is understood)",
        innermost_reason(error)
    )
}

/// Uses an address without a name as its own name.
fn name_addresses(config: &mut Config) {
    if config.get_hosts().is_empty() {
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
}

/// Are all sockets and addresses local? A name other than `localhost` may lead anywhere.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses
            .iter()
            .all(|address| address.to_canonical().is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|a| a.to_canonical().is_loopback())
        }
    })
}

/// The innermost message of an error: the outer ones are less precise.
pub(super) fn innermost_reason(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

impl Location {
    /// Parses `sqlite:PATH`, a plain path, `postgres://…`, or `none`.
    ///
    /// # Errors
    /// [`StoreError::Location`] for anything else; it shows no password.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let invalid = |reason: &str| StoreError::Location {
            text: hide_password(text),
            reason: reason.to_owned(),
        };
        if text == "none" {
            return Ok(Self::Nowhere);
        }
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            let server = Server::parse(text).map_err(|reason| invalid(&reason))?;
            return Ok(Self::Postgres(server));
        }
        let has_other_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
            scheme != "sqlite" && scheme.chars().all(|c| c.is_ascii_alphanumeric())
        });
        if has_other_scheme {
            return Err(invalid(HINT));
        }
        let after_scheme = text.strip_prefix("sqlite:");
        let path = after_scheme.unwrap_or(text);
        if path.is_empty() {
            return Err(invalid(HINT));
        }
        // A bare word may be a mistyped `none`, or a URL without its scheme.
        if after_scheme.is_none() && !path.contains(['/', '.']) {
            return Err(invalid(&format!("a file of that name is sqlite:{path}")));
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }
}

/// For display, without a password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(server) => server.fmt(f),
            Self::Nowhere => f.write_str("none"),
        }
    }
}

/// The displayable part of a possibly malformed URL: nothing between the user's name and the last
/// `@`, and no value of a password.
fn hide_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once(':') else {
        return text.to_owned();
    };
    let rest = match rest.rsplit_once('@') {
        Some((before, after)) => {
            let from = before.len() - before.trim_start_matches('/').len();
            match before[from..].split_once(':') {
                Some((user, _)) => format!("{}{user}:***@{after}", &before[..from]),
                None => rest.to_owned(),
            }
        }
        None => rest.to_owned(),
    };
    let mut shown = format!("{scheme}:");
    for (index, part) in rest.split(['?', '&']).enumerate() {
        if index > 0 {
            shown.push(if index == 1 { '?' } else { '&' });
        }
        match part.split_once('=') {
            Some((name, _)) if name.to_lowercase().contains("password") => {
                shown.push_str(&format!("{name}=***"));
            }
            _ => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests;
