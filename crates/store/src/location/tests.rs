//! Arguments of `--store`, valid and invalid.

use super::*;
use proptest::prelude::*;

#[test]
fn urls_are_read_and_shown_without_passwords() {
    let check = |text: &str, shown: &str| {
        let location = Location::parse(text).unwrap();
        assert!(matches!(location, Location::Postgres(_)), "{text}");
        assert_eq!(location.to_string(), shown);
        assert!(!format!("{location:?}").contains("secret"), "{location:?}");
    };
    check("postgres://me:secret@db/pin", "postgres://me@db/pin");
    check("postgresql://db:5433/pin", "postgres://db:5433/pin");
    check(
        "postgres://me@/pin?host=/run/x&port=5433&password=secret",
        "postgres://me@/pin?host=/run/x&port=5433",
    );
    check(
        "postgres:///pin",
        "postgres:///pin?host=/var/run/postgresql",
    );
    // Parameters replace the authority's hosts and ports, as in libpq.
    check(
        "postgres://localhost/pin?host=/run/x",
        "postgres:///pin?host=/run/x",
    );
    check(
        "postgres://me:secret@db:5433/pin?host=%2Frun%2Fx",
        "postgres://me@/pin?host=/run/x&port=5433",
    );
    check(
        "postgres://[::1]:1,db/pin?port=5433",
        "postgres://::1:5433,db:5433/pin",
    );
    check(
        "postgres://x/pin?host=a,b&port=,5433&sslmode=disable",
        "postgres://a,b:5433/pin",
    );
    check(
        "postgres://%2Frun%2Fx:5433/pin?host=",
        "postgres:///pin?host=/var/run/postgresql&port=5433",
    );
    check(
        "postgres://db/pin?sslmode=verify-full&connect_timeout=2&sslrootcert=/r",
        "postgres://db/pin",
    );
}

#[test]
fn a_password_file_gives_what_the_url_lacks() {
    let check = |url: &str, file: &str, wanted: Option<&str>| {
        let Location::Postgres(mut server) = Location::parse(url).unwrap() else {
            panic!("{url}");
        };
        server.look_up_password(file, "me");
        let found = server.config.get_password().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), wanted, "{url} {file}");
    };
    check("postgres://db/pin", "db:5432:pin:me:x", Some("x"));
    check("postgres://you@db:5433", "db:5433:you:you:x", Some("x"));
    check("postgres://you:own@db/pin", "*:*:*:*:x", Some("own"));
    check("postgres:///pin", "localhost:5432:pin:me:x", Some("x"));
    check("postgres:///pin?host=/run", "/run:*:*:*:x", Some("x"));
    check("postgres://db,other/pin", "*:*:*:*:x", None);
}

#[test]
fn local_and_remote_servers_are_told_apart() {
    let check = |text: &str, wanted: bool| match Location::parse(text).unwrap() {
        Location::Postgres(server) => assert_eq!(server.is_local(), wanted, "{text}"),
        other => panic!("{other:?}"),
    };
    check("postgres:///pin", true);
    check("postgres://localhost,127.0.0.2,[::1]/pin", true);
    check("postgres://localhost.example/pin", false);
    check("postgres://localhost,db/pin", false);
    check("postgres://0.0.0.0/pin", false);
    check("postgres://localhost/pin?hostaddr=192.0.2.1", false);
    check("postgres://db/pin?hostaddr=127.0.0.1", true);
    check("postgres:///pin?hostaddr=192.0.2.1", false);
    for mixed in [
        "db,%2Frun/pin",
        "db/pin?host=localhost,/run",
        "/pin?host=/run&hostaddr=::1",
    ] {
        let error = Location::parse(&format!("postgres://{mixed}")).unwrap_err();
        assert!(error.to_string().contains("a socket and a host"), "{error}");
    }
}

#[test]
fn a_single_word_is_not_a_path() {
    let error = Location::parse("nnone").unwrap_err().to_string();
    assert!(error.contains("sqlite:nnone"), "{error}");
    for path in ["sqlite:nnone", "./nnone", "records.db"] {
        let location = Location::parse(path).unwrap();
        assert!(matches!(location, Location::Sqlite(_)), "{path}");
    }
}

#[test]
fn refusals_show_a_remedy_and_no_password() {
    let check = |text: &str, words: &[&str]| {
        let error = Location::parse(text).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    check(
        "postgres://me:secret@db/pin?sslmode=allow",
        &["me:***@db/pin", "sslmode=allow", "prefer"],
    );
    check("postgres:me:secret@db", &["USER@HOST"]);
    check("postgres://a,b,c/pin?port=1,2", &["2 ports for 3 hosts"]);
    check("postgres://a/pin?port=x", &["'x' is not a port"]);
    check(
        "postgres://me:secret/@db:x/pin",
        &["--store 'postgres://me:***@db"],
    );
    check("postgres://db/pin?passWord=secret&x=1", &["***&x=1"]);
    check(
        "mysql://me:secret@db/pin",
        &["postgres://USER", "sqlite:PATH"],
    );
}

#[test]
fn parameters_that_are_not_understood_are_named() {
    for (url, word) in [
        (
            "db/pin?target_session_attrs=primary",
            "`target_session_attrs`",
        ),
        (
            "db/pin?target_session_attrs=prefer-standby",
            "`target_session_attrs`",
        ),
        ("db/pin?gssencmode=disable", "`gssencmode`"),
        ("db/pin?keepalives_count=3", "`keepalives_count`"),
        ("db/pin?service=x", "`service`"),
    ] {
        let error = Location::parse(&format!("postgres://{url}")).unwrap_err();
        let error = error.to_string();
        let is_named = error.contains(word) && error.contains("docs/records.md");
        assert!(is_named, "{error}");
    }
    let socket = "postgres:///pin?target_session_attrs=read-write";
    let error = Location::parse(socket).unwrap_err().to_string();
    assert!(
        error.contains("target_session_attrs is for hosts"),
        "{error}"
    );
    for attributes in ["any", "read-write", "read-only"] {
        let url = format!("postgres://a,b/pin?target_session_attrs={attributes}");
        assert!(Location::parse(&url).is_ok(), "{url}");
    }
}

#[test]
fn times_have_the_units_of_libpq() {
    let url = "postgres://db/pin?connect_timeout=2&tcp_user_timeout=1500";
    let Location::Postgres(server) = Location::parse(url).unwrap() else {
        panic!("{url}");
    };
    let times = (
        server.config.get_connect_timeout(),
        server.config.get_tcp_user_timeout(),
    );
    let wanted = [2000, 1500].map(Duration::from_millis);
    assert_eq!(times, (Some(&wanted[0]), Some(&wanted[1])));
}

#[test]
fn a_spool_belongs_to_a_database_and_not_to_a_password() {
    let name = |text: &str| match Location::parse(text).unwrap() {
        Location::Postgres(server) => server.file_name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        name("postgres://me:a@db/pin"),
        name("postgresql://me:b@db:5432/pin")
    );
    assert_ne!(name("postgres://me@db/pin"), name("postgres://me@db/other"));
    assert_ne!(name("postgres://me@d_b/pin"), name("postgres://me@d/b_pin"));
    assert!(!name("postgres://a%2fb@/x?host=/run").contains('/'));
}

proptest! {
    #[test]
    fn any_location_is_read_or_refused(text in "(none|sqlite:|postgres:|postgres://|postgres://u:pw@)?\\PC{0,20}") {
        match Location::parse(&text) {
            Ok(Location::Sqlite(path)) => prop_assert!(text.ends_with(path.to_str().unwrap())),
            Ok(Location::Nowhere) => prop_assert_eq!(text, "none"),
            Ok(Location::Postgres(server)) => {
                prop_assert!(text.starts_with("postgres://"));
                prop_assert!(!server.file_name().contains('/'));
            }
            Err(error) => prop_assert!(error.to_string().starts_with("--store '")),
        }
    }

    #[test]
    fn no_password_is_shown(password in "[a-z0-9/:?&@#%=]{0,12}", tail in "[a-z/?&=:]{0,12}") {
        // Letters that occur nowhere else.
        let password = format!("QQ{password}QQ");
        let text = format!("postgres://me:{password}@host/db{tail}");
        let shown = match Location::parse(&text) {
            Ok(location) => format!("{location} {location:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains("QQ"), "{}", shown);
    }
}
