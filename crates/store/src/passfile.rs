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
pub(super) fn find_password(text: &str, login: Login<'_>) -> Option<String> {
    let port = login.port.to_string();
    let login = [login.host, &port, login.database, login.user];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut rest = line.trim_end_matches('\r');
            for value in login {
                let (field, after) = split_field(rest)?;
                if field != "*" && unescape(field) != value {
                    return None;
                }
                rest = after;
            }
            // libpq ignores what follows a further colon.
            let password = unescape(split_field(rest).map_or(rest, |(password, _)| password));
            (!password.is_empty()).then_some(password)
        })
}

/// Splits a text at its first unescaped colon.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (position, c) in text.char_indices() {
        match c {
            ':' if !is_escaped => return Some((&text[..position], &text[position + 1..])),
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

    fn check_password(text: &str, wanted: Option<&str>) {
        let found = find_password(
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
    fn first_matching_line_has_the_password() {
        check_password("db\\:1:5432:pin:me:a\\:b\\\\c", Some("a:b\\c"));
        check_password("*:*:*:*:any", Some("any"));
        check_password(
            "#*:*:*:*:no\nother:*:*:*:no\n*:5432:*:me:yes\n*:*:*:*:late",
            Some("yes"),
        );
        check_password("*:*:*:*:a:b\r\n", Some("a"));
        check_password("*:5433:*:*:no\n*:*:pint:*:no\n*:*:*:m\\e:yes", Some("yes"));
        check_password("\\*:*:*:*:no", None);
        check_password("*:*:*:*:", None);
        check_password("*:*:*:*", None);
        check_password("", None);
    }

    proptest! {
        #[test]
        fn any_file_is_parsed(text in "([*:a\\\\\\n#]|\\PC){0,40}") {
            check_password(&format!("x{text}").replace('\n', "\nx"), None);
            let wanted = Login { host: "*", port: 1, database: "*", user: "*" };
            let _ = find_password(&text, wanted);
        }

        #[test]
        fn every_password_can_be_written(word in "[^\\x00\\n\\r]{1,20}") {
            let escaped = word.replace('\\', "\\\\").replace(':', "\\:");
            check_password(&format!("*:*:*:*:{escaped}"), Some(&word));
        }
    }
}
