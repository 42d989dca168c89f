//! The tables of a database: created once, never damaged.

use pinwise_store::{Location, StoreError};

use super::server::{Server, database, execute, select};
use super::{Place, comparison};

#[test]
fn of_many_that_come_at_once_one_makes_the_tables() {
    let Some(url) = database() else { return };
    let place = Place::database(url.clone());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| place.open().list(1).unwrap());
        }
    });
    assert_eq!(select(&url, "SELECT schema FROM pinwise.version"), ["1"]);
}

#[test]
fn another_schema_is_refused_and_left_as_it_is() {
    let Some(url) = database() else { return };
    let place = Place::database(url.clone());
    place.open().keep(&comparison("one")).unwrap();
    execute(&url, "UPDATE pinwise.version SET schema = 99");
    let error = place.try_open().unwrap_err();
    assert!(
        matches!(error, StoreError::OtherVersion { found: 99, .. }),
        "{error}"
    );
    assert_eq!(select(&url, "SELECT schema FROM pinwise.version"), ["99"]);
    assert_eq!(select(&url, "SELECT id FROM pinwise.record"), ["one"]);
}

#[test]
fn tables_that_cannot_all_be_made_leave_nothing() {
    let Some(url) = database() else { return };
    // An object of the user's with the name of a table.
    execute(
        &url,
        "CREATE SCHEMA pinwise; CREATE TABLE pinwise.tag (mine int)",
    );
    let place = Place::database(url.clone());
    let error = place.try_open().unwrap_err().to_string();
    assert!(
        error.contains("refuses") && error.contains("\"tag\" already exists"),
        "{error}"
    );
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'pinwise'";
    assert_eq!(select(&url, tables), ["tag"]);
    execute(&url, "DROP TABLE pinwise.tag");
    place.open().keep(&comparison("one")).unwrap();
}

#[test]
fn a_database_that_cannot_hold_records_is_refused() {
    let Some(url) = database() else { return };
    let (base, rest) = url.split_once("/test_").unwrap();
    let (name, host) = rest.split_once('?').unwrap();
    let other = format!("{base}/latin_{name}?{host}");
    execute(
        &url,
        &format!("CREATE DATABASE latin_{name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"),
    );
    let error = Place::database(other).try_open().unwrap_err().to_string();
    assert!(
        error.contains("LATIN1") && error.contains("createdb --encoding UTF8"),
        "{error}"
    );
}

#[test]
fn a_user_without_rights_is_refused() {
    let Some(server) = Server::own() else { return };
    let url = server.database();
    execute(&url, "CREATE USER guest; CREATE USER reader PASSWORD 'x'");
    let as_user = |user: &str| url.replace("postgres@", &format!("{user}@"));
    let refused = |url: String| Place::database(url).try_open().unwrap_err().to_string();
    let error = refused(as_user("guest"));
    assert!(error.contains("refuses: permission denied"), "{error}");
    assert!(error.contains("too few rights"), "{error}");
    assert!(error.contains("postgres://guest@/test_"), "{error}");
    let error = refused(as_user("nobody-here"));
    assert!(
        error.contains("role \"nobody-here\" does not exist"),
        "{error}"
    );
    let error = refused(url.replace("/test_", "/absent_"));
    assert!(error.contains("does not exist"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_reported_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let urls = [
        format!("postgres://me:secret@/db?host={}", folder.path().display()),
        // A port that nothing listens on: it was free and is released.
        format!("postgres://me:secret@127.0.0.1:{}/db", free_port()),
    ];
    for url in urls {
        let error = Place::database(url).try_open().unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        let message = format!("{error} {error:?}");
        assert!(
            !message.contains("secret") && message.contains("me@"),
            "{message}"
        );
    }
    let shown = format!("{:?}", Location::parse("postgres://me:secret@h/db"));
    assert!(!shown.contains("secret"), "{shown}");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
