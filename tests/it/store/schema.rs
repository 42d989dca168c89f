//! The tables of a database: created once, never damaged.

use pinwise_store::{Location, StoreError};

use super::server::{Server, create_database, execute, select_column};
use super::{Place, simulate_comparison};

#[test]
fn concurrent_first_opens_create_the_tables_once() {
    let Some(url) = create_database() else { return };
    let place = Place::database(url.clone());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| place.open().list(1).unwrap());
        }
    });
    assert_eq!(
        select_column(&url, "SELECT schema FROM pinwise.version"),
        ["1"]
    );
}

#[test]
fn another_schema_is_refused_and_not_changed() {
    let Some(url) = create_database() else { return };
    let place = Place::database(url.clone());
    place.open().keep(&simulate_comparison("one")).unwrap();
    execute(&url, "UPDATE pinwise.version SET schema = 99");
    let error = place.try_open().unwrap_err();
    assert!(
        matches!(error, StoreError::OtherVersion { found: 99, .. }),
        "{error}"
    );
    assert_eq!(
        select_column(&url, "SELECT schema FROM pinwise.version"),
        ["99"]
    );
    assert_eq!(
        select_column(&url, "SELECT id FROM pinwise.record"),
        ["one"]
    );
}

#[test]
fn if_one_table_cannot_be_created_none_is() {
    let Some(url) = create_database() else { return };
    // A table of the user that has the name of one of the store.
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
    assert_eq!(select_column(&url, tables), ["tag"]);
    execute(&url, "DROP TABLE pinwise.tag");
    place.open().keep(&simulate_comparison("one")).unwrap();
}

#[test]
fn a_database_that_cannot_hold_records_is_refused() {
    let Some(url) = create_database() else { return };
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
    let Some(server) = Server::start_own() else {
        return;
    };
    let url = server.create_database();
    execute(&url, "CREATE USER guest; CREATE USER reader PASSWORD 'x'");
    let as_user = |user: &str| url.replace("postgres@", &format!("{user}@"));
    let open_error = |url: String| Place::database(url).try_open().unwrap_err().to_string();
    let error = open_error(as_user("guest"));
    assert!(error.contains("refuses: permission denied"), "{error}");
    assert!(error.contains("too few rights"), "{error}");
    assert!(error.contains("postgres://guest@/test_"), "{error}");
    let error = open_error(as_user("nobody-here"));
    assert!(
        error.contains("role \"nobody-here\" does not exist"),
        "{error}"
    );
    let error = open_error(url.replace("/test_", "/absent_"));
    assert!(error.contains("does not exist"), "{error}");
}

#[test]
fn an_unreachable_server_is_reported_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let urls = [
        format!("postgres://me:secret@/db?host={}", folder.path().display()),
        format!("postgres://me:secret@127.0.0.1:{}/db", find_free_port()),
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

/// A port on which no program listens.
fn find_free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
