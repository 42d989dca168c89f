//! Parses addresses of pages.

use std::fmt;
use std::str::FromStr;

/// The address of a page: `http://HOST[:PORT]/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
    path: String,
}

/// Why an address is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {reason}")]
pub struct BadUrl {
    text: String,
    reason: &'static str,
}

impl Url {
    /// Host and port to connect to.
    pub(super) fn address(&self) -> (&str, u16) {
        let name = self
            .host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'));
        (name.unwrap_or(&self.host), self.port)
    }

    /// The value of the `Host` header.
    pub(super) fn host(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The requested path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for Url {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let bad = |reason| BadUrl {
            text: text.to_owned(),
            reason,
        };
        let form = "an address looks like http://127.0.0.1:9090/metrics";
        if text.starts_with("https://") {
            return Err(bad(
                "only http:// is supported; use --metric-command with curl",
            ));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| bad(form))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let is_path_character =
            |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '#');
        if !path.chars().all(is_path_character) {
            return Err(bad("percent-encode its special characters, such as %20"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().ok().filter(|&port| port > 0))
            }
            _ => (authority, Some(80)),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
        let is_host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(inside) => !inside.is_empty() && inside.chars().all(is_address),
            None => !host.is_empty() && host.chars().all(is_name),
        };
        let port = port.filter(|_| is_host).ok_or_else(|| bad(form))?;
        Ok(Self {
            host: host.to_owned(),
            port,
            path: match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            },
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http://{}:{}{}", self.host, self.port, self.path)
    }
}
