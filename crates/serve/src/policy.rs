//! Which requests are answered, and what a browser may do with the answer.
//!
//! A page of another site can make the user's browser send requests to this one, and with DNS
//! rebinding even under the name of this site. Such requests are recognised by their host, and by
//! the origin that the browser reports.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};

/// Maximum length of a path with its query, bytes.
const MAX_PATH_BYTES: usize = 4096;

/// The path below which tickets are used.
pub(super) const TICKETS: &str = "/open/";

/// The policy of answers without one of their own: they may load and run nothing.
const DENY_ALL: &str = "default-src 'none'; frame-ancestors 'none'";

/// The address of this site, by which its own requests are recognised.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    pub(super) listen: IpAddr,
    pub(super) port: u16,
}

impl Policy {
    /// The status with which a request is refused, if it is.
    pub(super) fn find_refusal(self, request: &Parts) -> Option<StatusCode> {
        let path_bytes = request.uri.path_and_query().map_or(0, |p| p.as_str().len());
        if !matches!(request.method, Method::GET | Method::HEAD) {
            Some(StatusCode::METHOD_NOT_ALLOWED)
        } else if path_bytes > MAX_PATH_BYTES {
            Some(StatusCode::URI_TOO_LONG)
        } else if !self.names_this_site(request) {
            Some(StatusCode::MISDIRECTED_REQUEST)
        } else if !is_ticket(request) && !self.comes_from_this_site(&request.headers) {
            Some(StatusCode::FORBIDDEN)
        } else {
            None
        }
    }

    /// Is there exactly one `Host`, and is it, or the host of an absolute address, this site's?
    fn names_this_site(self, request: &Parts) -> bool {
        let mut hosts = request.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let in_address = request.uri.authority();
        self.is_own(host) && in_address.is_none_or(|name| self.is_own_host(name.as_str()))
    }

    fn is_own(self, host: &HeaderValue) -> bool {
        host.to_str().is_ok_and(|text| self.is_own_host(text))
    }

    /// Is this text, such as `127.0.0.1:8080`, an address of this site?
    pub(super) fn is_own_host(self, text: &str) -> bool {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (text, "80"),
        };
        let is_port = port == self.port.to_string();
        is_port && (name.eq_ignore_ascii_case("localhost") || self.is_own_address(name))
    }

    /// If the site listens on all addresses, any address counts: DNS rebinding needs a name.
    fn is_own_address(self, name: &str) -> bool {
        let inner = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let address = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => name.parse().ok().filter(IpAddr::is_ipv4),
        };
        let loopback = [
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        address.is_some_and(|address| {
            loopback.contains(&address) || address == self.listen || self.listen.is_unspecified()
        })
    }

    /// True unless a browser reports that another site makes the request.
    fn comes_from_this_site(self, headers: &HeaderMap) -> bool {
        let is_own_origin = |origin: &HeaderValue| {
            let text = origin.to_str().unwrap_or_default();
            text.strip_prefix("http://")
                .is_some_and(|host| self.is_own_host(host))
        };
        let is_own_fetch = |site: &HeaderValue| site == "same-origin" || site == "none";
        headers.get_all(header::ORIGIN).iter().all(is_own_origin)
            && headers.get_all("sec-fetch-site").iter().all(is_own_fetch)
    }
}

/// Does the request use a ticket? A browser takes it from a file, whose origin is not this site.
fn is_ticket(request: &Parts) -> bool {
    request.uri.path().starts_with(TICKETS)
}

/// The content security policy of the page, which also forbids frames.
pub(super) fn page_policy(page: &str) -> HeaderValue {
    let own = page
        .split_once(r#"<meta http-equiv="Content-Security-Policy" content=""#)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(policy, _)| format!("{policy}; frame-ancestors 'none'"));
    own.and_then(|policy| HeaderValue::from_str(&policy).ok())
        .unwrap_or(HeaderValue::from_static(DENY_ALL))
}

/// Adds the protective headers of every answer; the page's own policy is kept.
pub(super) fn add_protective_headers(headers: &mut HeaderMap) {
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(DENY_ALL));
    let always = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use proptest::prelude::*;

    const OWN: Policy = Policy {
        listen: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        port: 8080,
    };

    fn request_status(policy: Policy, method: &str, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        policy
            .find_refusal(&parts)
            .map_or(200, |status| status.as_u16())
    }

    #[test]
    fn only_own_hosts_are_answered() {
        let host = |host: &str| request_status(OWN, "GET", "/", &[("host", host)]);
        for own in [
            "127.0.0.1:8080",
            "localhost:8080",
            "LocalHost:8080",
            "[::1]:8080",
        ] {
            assert_eq!(host(own), 200, "{own}");
        }
        for other in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "localhost",
            "evil.example:8080",
            "127.0.0.2:8080",
            "127.0.0.1.evil.example:8080",
            "[::1]",
            "::1:8080",
            "[127.0.0.1]:8080",
            "",
            "localhost:8080:8080",
            "127.0.0.1:08080",
            "[fe80::1]:8080",
            "a@127.0.0.1:8080",
        ] {
            assert_eq!(host(other), 421, "{other}");
        }
        assert_eq!(request_status(OWN, "GET", "/", &[]), 421);
        let twice = [("host", "127.0.0.1:8080"), ("host", "127.0.0.1:8080")];
        assert_eq!(request_status(OWN, "GET", "/", &twice), 421);
        assert_eq!(
            request_status(OWN, "GET", "http://evil.example/", &twice[..1]),
            421
        );
        assert_eq!(
            request_status(OWN, "GET", "http://localhost:8080/", &twice[..1]),
            200
        );
    }

    #[test]
    fn listened_addresses_are_own_hosts() {
        let host = |listen: &str, port, host: &str| {
            let listen = listen.parse().unwrap();
            request_status(Policy { listen, port }, "GET", "/", &[("host", host)])
        };
        assert_eq!(host("10.1.2.3", 80, "10.1.2.3"), 200);
        assert_eq!(host("10.1.2.3", 8080, "10.1.2.3:8080"), 200);
        assert_eq!(host("10.1.2.3", 8080, "10.1.2.4:8080"), 421);
        assert_eq!(host("0.0.0.0", 8080, "10.1.2.4:8080"), 200);
        assert_eq!(host("::", 8080, "[fe80::1]:8080"), 200);
        assert_eq!(host("0.0.0.0", 8080, "evil.example:8080"), 421);
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let with = |name, value| {
            request_status(
                OWN,
                "GET",
                "/",
                &[("host", "127.0.0.1:8080"), (name, value)],
            )
        };
        assert_eq!(with("origin", "http://127.0.0.1:8080"), 200);
        for other in [
            "null",
            "http://evil.example",
            "https://127.0.0.1:8080",
            "http://127.0.0.1:8081",
        ] {
            assert_eq!(with("origin", other), 403, "{other}");
        }
        assert_eq!(with("sec-fetch-site", "none"), 200);
        assert_eq!(with("sec-fetch-site", "same-origin"), 200);
        assert_eq!(with("sec-fetch-site", "same-site"), 403);
        assert_eq!(with("sec-fetch-site", "cross-site"), 403);
    }

    #[test]
    fn other_methods_and_long_paths_are_refused() {
        let own = [("host", "127.0.0.1:8080")];
        for method in [
            "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH", "TRACE", "ODD",
        ] {
            assert_eq!(request_status(OWN, method, "/", &own), 405, "{method}");
        }
        assert_eq!(request_status(OWN, "HEAD", "/", &own), 200);
        let path = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        assert_eq!(request_status(OWN, "GET", &path, &own), 414);
    }

    #[test]
    fn the_page_keeps_its_policy_and_gets_no_frame() {
        let page = "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-x='\">";
        let policy = page_policy(page);
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'sha256-x='; frame-ancestors 'none'"
        );
        assert_eq!(page_policy("<html>"), DENY_ALL);
        assert_eq!(page_policy(&page.replace("sha256", "\n")), DENY_ALL);
    }

    proptest! {
        #[test]
        fn no_other_name_is_an_own_host(name in "[a-z0-9.:@\\[\\]-]{0,30}") {
            let is_loopback = name.strip_suffix(":8080").is_some_and(|n| {
                n == "localhost" || n == "127.0.0.1" || n.starts_with('[')
            });
            prop_assert!(is_loopback || !OWN.is_own_host(&name), "{}", name);
        }
    }
}
