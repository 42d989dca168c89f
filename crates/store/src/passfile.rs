//! libpq's password file: lines of `host:port:database:user:password`
//! (<https://www.postgresql.org/docs/current/libpq-pgpass.html>).

/// The connection that needs a password.
#[derive(Debug, Clone, Copy)]
pub(super) struct Login<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The password of the first matching line.
pub(super) fn password(text: &str, wanted: Login<'_>) -> Option<String> {
    let port = wanted.port.to_string();
    let wanted = [wanted.host, &port, wanted.database, wanted.user];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut rest = line.trim_end_matches('\r');
            for value in wanted {
                let (field, after) = field(rest)?;
                if field != "*" && unescape(field) != value {
                    return None;
                }
                rest = after;
            }
            // libpq ignores what follows a further colon.
            let password = unescape(field(rest).map_or(rest, |(password, _)| password));
            (!password.is_empty()).then_some(password)
        })
}

/// The text up to an unescaped colon, and the text after it.
fn field(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            ':' if !is_escaped => return Some((&text[..at], &text[at + 1..])),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        plain.push(if c == '\\' {
            rest.next().unwrap_or('\\')
        } else {
            c
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, wanted: Option<&str>) {
        let found = password(
            text,
            Login {
                host: "db:1",
                port: 5432,
                database: "pin",
                user: "me",
            },
        );
        assert_eq!(found.as_deref(), wanted, "{text}");
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        check("db\\:1:5432:pin:me:a\\:b\\\\c", Some("a:b\\c"));
        check("*:*:*:*:any", Some("any"));
        check(
            "#*:*:*:*:no\nother:*:*:*:no\n*:5432:*:me:yes\n*:*:*:*:late",
            Some("yes"),
        );
        check("*:*:*:*:a:b\r\n", Some("a"));
        check("*:5433:*:*:no\n*:*:pint:*:no\n*:*:*:m\\e:yes", Some("yes"));
        check("\\*:*:*:*:no", None);
        check("*:*:*:*:", None);
        check("*:*:*:*", None);
        check("", None);
    }

    proptest! {
        #[test]
        fn any_file_is_read(text in "([*:a\\\\\\n#]|\\PC){0,40}") {
            check(&format!("x{text}").replace('\n', "\nx"), None);
            let wanted = Login { host: "*", port: 1, database: "*", user: "*" };
            let _ = password(&text, wanted);
        }

        #[test]
        fn every_password_can_be_written(word in "[^\\x00\\n\\r]{1,20}") {
            let escaped = word.replace('\\', "\\\\").replace(':', "\\:");
            check(&format!("*:*:*:*:{escaped}"), Some(&word));
        }
    }
}
