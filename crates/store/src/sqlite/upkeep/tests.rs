//! Tags and removals, where only the file shows the result.

use super::*;
use crate::tests::{comparison, store};
use crate::{Filter, Store};
use pinwise_study::compare;

/// The store's raw file.
fn file(folder: &tempfile::TempDir) -> Connection {
    Connection::open(folder.path().join("a/b/pinwise.db")).unwrap()
}

fn open_filled() -> (tempfile::TempDir, Store) {
    let (folder, mut store) = store();
    let mut record = comparison("one", &mut compare::NoObserver);
    for id in ["one", "two"] {
        record.id = id.to_owned();
        store.keep(&record).unwrap();
    }
    (folder, store)
}

fn add_tag(tag: &str) -> impl FnOnce(&[String]) -> Vec<String> {
    let tag = tag.to_owned();
    move |tags| tags.iter().cloned().chain([tag]).collect()
}

#[test]
fn a_removed_record_leaves_nothing_and_frees_its_space() {
    let (folder, mut store) = open_filled();
    let bytes = store.bytes_of("two").unwrap();
    assert_eq!(bytes, store.load("two").unwrap().body.len() as u64);
    store.retag("two", add_tag("x")).unwrap();
    store.remove(&["two".to_owned()]).unwrap();
    let found = store.find(&Filter::default()).unwrap();
    assert_eq!(found.total, 1);
    assert!(found.tags.is_empty());
    for table in ["outline", "tag", "line"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: usize = file(&folder).query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, usize::from(table != "tag"), "{table}");
    }
    assert!(store.reclaim_space().unwrap() > 0);
    assert!(store.load("one").unwrap().comparison().is_ok());
}

#[test]
fn a_damaged_record_keeps_its_body() {
    let (folder, mut store) = open_filled();
    file(&folder)
        .execute("UPDATE record SET body = '{\"a\":' WHERE id = 'one'", [])
        .unwrap();
    let refused = store.retag("one", add_tag("x")).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
    assert_eq!(store.load("one").unwrap().body, "{\"a\":");
}
