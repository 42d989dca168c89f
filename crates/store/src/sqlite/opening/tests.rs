//! Who may read a store, and what reading leaves behind.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::Store;
use crate::tests::comparison;
use pinwise_study::compare::NoObserver;

fn read_mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn list_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

/// A store with one record that no process has open.
fn fill_store(path: &Path) {
    let mut store = Store::open(path).unwrap();
    store.keep(&comparison("one", &mut NoObserver)).unwrap();
}

#[test]
fn new_files_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/x.db");
    let mut store = Store::open(&path).unwrap();
    store.begin(&comparison("one", &mut NoObserver)).unwrap();
    for made in ["a", "a/b"] {
        assert_eq!(read_mode(&folder.path().join(made)), 0o700, "{made}");
    }
    let inside = list_names(&folder.path().join("a/b"));
    for needed in ["x.db", "x.db-wal", "x.db.one.runs"] {
        assert!(inside.iter().any(|name| name == needed), "{inside:?}");
    }
    for name in inside {
        assert_eq!(
            read_mode(&folder.path().join("a/b").join(&name)),
            0o600,
            "{name}"
        );
    }
}

#[test]
fn a_shared_file_stays_shared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fill_store(&path);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.begin(&comparison("two", &mut NoObserver)).unwrap();
    assert_eq!(read_mode(&path), 0o644);
    assert_eq!(read_mode(&folder.path().join("x.db.two.runs")), 0o644);
}

#[test]
fn a_missing_store_is_empty_and_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/x.db");
    for open in [Sqlite::open_to_read, Sqlite::open_to_change] {
        let store = open(&path).unwrap();
        assert_eq!(store.list(9).unwrap().len(), 0);
        assert_eq!(list_names(folder.path()), [""; 0]);
        let before = store.file().unwrap();
        assert_eq!(store.file().unwrap(), before);
        fill_store(&path);
        assert_ne!(store.file().unwrap(), before);
        std::fs::remove_dir_all(folder.path().join("a")).unwrap();
    }
}

#[test]
fn reading_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fill_store(&path);
    let before = std::fs::read(&path).unwrap();
    let store = Sqlite::open_to_read(&path).unwrap();
    assert_eq!(store.list(9).unwrap().len(), 1);
    let error = store.connection.execute("DELETE FROM record", []);
    assert!(error.unwrap_err().to_string().contains("readonly"));
    drop(store);
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(list_names(folder.path()), ["x.db"]);
}

#[test]
fn a_read_only_file_is_read_and_checked_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("50 % of #1?.db");
    fill_store(&path);
    let store = Sqlite::connect(&path, Access::Immutable).unwrap();
    assert_eq!(store.list(9).unwrap().len(), 1);
    assert_eq!(list_names(folder.path()).len(), 1);
    let before = store.file().unwrap();
    let mut writer = Store::open(&path).unwrap();
    writer.keep(&comparison("two", &mut NoObserver)).unwrap();
    assert_ne!(store.file().unwrap(), before);
}

#[test]
fn no_schema_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fill_store(&path);
    let opened = [
        Sqlite::open(&path),
        Sqlite::open_to_read(&path),
        Sqlite::connect(&path, Access::Immutable),
    ];
    for store in opened {
        let connection = store.unwrap().connection;
        let trusts: bool = connection
            .pragma_query_value(None, "trusted_schema", |row| row.get(0))
            .unwrap();
        assert!(!trusts);
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bookmarks.sqlite");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE bookmark (name TEXT)")
        .unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    for open in [Sqlite::open, Sqlite::open_to_read, Sqlite::open_to_change] {
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
    }
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn errors_show_no_statement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fill_store(&path);
    let breaker = Connection::open(&path).unwrap();
    breaker
        .execute_batch("DROP TABLE tag; DROP TABLE line")
        .unwrap();
    let store = Sqlite::open_to_read(&path).unwrap();
    let errors = [
        store.load("last").unwrap_err(),
        store.find(&crate::Filter::default()).unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        assert!(message.contains("no such table: line"), "{message}");
        assert!(
            !message.contains("SELECT") && message.lines().count() == 1,
            "{message}"
        );
    }
}

#[test]
fn concurrent_creators_of_a_store_all_open_it() {
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let together = std::sync::Barrier::new(4);
        let write = |id: &str| {
            together.wait();
            let mut store = Store::open(&path)?;
            store.keep(&comparison(id, &mut NoObserver))
        };
        let all = std::thread::scope(|scope| {
            let writers = ["a", "b", "c", "d"].map(|id| scope.spawn(|| write(id)));
            writers.map(|writer| writer.join().unwrap())
        });
        assert!(all.iter().all(Result::is_ok), "round {round}: {all:?}");
        assert_eq!(Store::open(&path).unwrap().list(10).unwrap().len(), 4);
    }
}
