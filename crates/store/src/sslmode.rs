//! How a connection to a server is protected, following libpq's `sslmode` and `sslrootcert`
//! (<https://www.postgresql.org/docs/current/libpq-ssl.html>). `allow`, which encrypts only if a
//! server insists, is refused; files are named here and read elsewhere.

use std::path::PathBuf;

/// The protection of a connection, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    /// Unencrypted.
    Disable,
    /// Encrypted if the server can; its identity is not checked.
    Prefer,
    /// Encrypted; its identity is not checked.
    Require,
    /// Encrypted to a server whose certificate an authority signed.
    VerifyCa,
    /// As [`Self::VerifyCa`], and the certificate names the requested host.
    VerifyFull,
}

impl SslMode {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(format!(
                    "sslmode={text} is not supported (write disable, prefer, require, verify-ca or verify-full)"
                ));
            }
        })
    }
}

/// The authorities whose signatures make a certificate trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authorities {
    /// Those that the system trusts.
    System,
    /// Those of a file.
    File(PathBuf),
}

/// The requested protection, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Security {
    mode: Option<SslMode>,
    authorities: Option<Authorities>,
}

impl Security {
    /// Takes the parameters of protection out of a URL; returns the remaining URL, too.
    pub(super) fn take_from_url(url: &str) -> Result<(String, Self), String> {
        let mut found = Self::default();
        let Some((before, parameters)) = url.split_once('?') else {
            return Ok((url.to_owned(), found));
        };
        let mut kept = Vec::new();
        for part in parameters.split('&') {
            // libpq has no `+` for a space.
            let plain = part.replace('+', "%2B");
            let pair = form_urlencoded::parse(plain.as_bytes()).next();
            match pair.as_ref().map(|(name, value)| (&**name, &**value)) {
                Some(("sslmode", value)) => found.mode = Some(SslMode::parse(value)?),
                Some(("sslrootcert", value)) => found.authorities = parse_authorities(value),
                Some(("sslnegotiation", "direct")) => {
                    return Err("sslnegotiation=direct is not supported (omit it)".to_owned());
                }
                _ => kept.push(part),
            }
        }
        found.check_consistency()?;
        let parameters = kept.join("&");
        let rest = match parameters.is_empty() {
            true => before.to_owned(),
            false => format!("{before}?{parameters}"),
        };
        Ok((rest, found))
    }

    /// Fills gaps from the environment.
    pub(super) fn offer(&mut self, mode: Option<&str>, roots: Option<&str>) -> Result<(), String> {
        if let (None, Some(mode)) = (self.mode, mode) {
            self.mode = Some(SslMode::parse(mode).map_err(|reason| format!("PG{reason}"))?);
        }
        if self.authorities.is_none() {
            self.authorities = roots.and_then(parse_authorities);
        }
        self.check_consistency()
    }

    /// Refuses the system's authorities without a check of the name: they sign certificates for
    /// anybody, so only the name tells a server from others.
    fn check_consistency(&self) -> Result<(), String> {
        let is_system = self.authorities == Some(Authorities::System);
        match self.mode {
            Some(mode) if is_system && mode < SslMode::VerifyFull => Err(
                "sslrootcert=system checks nothing without the name (write sslmode=verify-full)"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// The required protection. As in libpq, with the system's authorities the name is checked, and
    /// with other ones `require` checks the certificate.
    pub(super) fn mode(&self) -> SslMode {
        match (self.mode, &self.authorities) {
            (None, Some(Authorities::System)) => SslMode::VerifyFull,
            (None, _) => SslMode::Prefer,
            (Some(SslMode::Require), Some(_)) => SslMode::VerifyCa,
            (Some(mode), _) => mode,
        }
    }

    pub(super) fn authorities(&self) -> Option<&Authorities> {
        self.authorities.as_ref()
    }
}

fn parse_authorities(text: &str) -> Option<Authorities> {
    match text {
        "" => None,
        "system" => Some(Authorities::System),
        path => Some(Authorities::File(PathBuf::from(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of a URL, the mode and the authorities' file.
    fn parse_url(parameters: &str) -> Result<(String, SslMode, Option<Authorities>), String> {
        let (rest, security) = Security::take_from_url(&format!("postgres://db/pin{parameters}"))?;
        Ok((rest, security.mode(), security.authorities))
    }

    #[test]
    fn modes_are_those_of_libpq() {
        let file = |path: &str| Some(Authorities::File(PathBuf::from(path)));
        let check = |parameters: &str, rest: &str, mode, authorities| {
            let wanted = (format!("postgres://db/pin{rest}"), mode, authorities);
            assert_eq!(parse_url(parameters), Ok(wanted), "{parameters}");
        };
        check("", "", SslMode::Prefer, None);
        check("?sslmode=disable", "", SslMode::Disable, None);
        check(
            "?a=b&sslmode=prefer&c=d+e",
            "?a=b&c=d+e",
            SslMode::Prefer,
            None,
        );
        check("?%73slmode=require", "", SslMode::Require, None);
        check("?sslrootcert=/a%20b+c", "", SslMode::Prefer, file("/a b+c"));
        check(
            "?sslmode=require&sslrootcert=r",
            "",
            SslMode::VerifyCa,
            file("r"),
        );
        check(
            "?sslrootcert=system",
            "",
            SslMode::VerifyFull,
            Some(Authorities::System),
        );
        check(
            "?sslmode=verify-full&sslrootcert=",
            "",
            SslMode::VerifyFull,
            None,
        );
    }

    #[test]
    fn unsupported_modes_are_refused_with_a_hint() {
        for (parameters, hint) in [
            ("?sslmode=allow", "write disable, prefer"),
            ("?sslmode=", "write disable, prefer"),
            ("?sslmode=require&sslrootcert=system", "sslmode=verify-full"),
            ("?sslnegotiation=direct", "omit it"),
        ] {
            let error = parse_url(parameters).unwrap_err();
            assert!(error.contains(hint), "{parameters}: {error}");
        }
    }

    #[test]
    fn url_takes_precedence_over_the_environment() {
        let check = |parameters: &str, mode, roots, wanted: Result<SslMode, &str>| {
            let (_, mut security) =
                Security::take_from_url(&format!("postgres://db{parameters}")).unwrap();
            match (security.offer(mode, roots), wanted) {
                (Ok(()), Ok(wanted)) => assert_eq!(security.mode(), wanted, "{parameters}"),
                (Err(error), Err(hint)) => assert!(error.contains(hint), "{error}"),
                (offered, _) => panic!("{parameters}: {offered:?}"),
            }
        };
        check("", Some("verify-ca"), None, Ok(SslMode::VerifyCa));
        check(
            "?sslmode=disable",
            Some("nonsense"),
            None,
            Ok(SslMode::Disable),
        );
        check("?sslmode=require", None, Some("/r"), Ok(SslMode::VerifyCa));
        check("", None, Some("system"), Ok(SslMode::VerifyFull));
        check("", Some("allow"), None, Err("PGsslmode=allow"));
        check("?sslmode=prefer", None, Some("system"), Err("verify-full"));
    }
}
