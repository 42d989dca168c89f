//! Tags that change and records that go.

use super::*;
use crate::store::Filter;
use crate::store::sqlite::tests::{comparison, store};
use crate::study::compare;

fn filled() -> (tempfile::TempDir, Store) {
    let (folder, mut store) = store();
    let mut record = comparison("one", &mut compare::Unwatched);
    for id in ["one", "two"] {
        record.id = id.to_owned();
        store.keep(&record).unwrap();
    }
    (folder, store)
}

fn add(tag: &str) -> impl FnOnce(&[String]) -> Vec<String> {
    let tag = tag.to_owned();
    move |tags| tags.iter().cloned().chain([tag]).collect()
}

#[test]
fn tags_change_in_the_record_and_in_its_line() {
    let (_folder, mut store) = filled();
    let before = store.load("one").unwrap();
    let retagged = store.retag("one", add("x")).unwrap();
    assert_eq!(
        (retagged.before.len(), retagged.after),
        (0, vec!["x".to_owned()])
    );
    let after = store.load("one").unwrap();
    assert_eq!(after.comparison().unwrap().tags, ["x"]);
    assert_eq!(after.entry, before.entry);
    let of_x = Filter {
        tag: Some("x".to_owned()),
        ..Filter::default()
    };
    let found = store.find(&of_x).unwrap();
    assert_eq!(found.total, 1);
    assert_eq!(found.lines[0].outline.tags, ["x"]);
    store.retag("one", |_| Vec::new()).unwrap();
    assert_eq!(store.find(&of_x).unwrap().total, 0);
}

#[test]
fn what_a_living_process_writes_is_left_alone() {
    let (folder, mut store) = filled();
    let mut writer = Store::open(&folder.path().join("a/b/pinwise.db")).unwrap();
    let record = comparison("growing", &mut compare::Unwatched);
    writer.begin(&record).unwrap();
    let refused = store.retag("growing", add("x")).unwrap_err();
    assert!(
        matches!(refused, StoreError::BeingWritten { .. }),
        "{refused}"
    );
    let removed = store
        .remove(&["growing".to_owned(), "one".to_owned()])
        .unwrap();
    assert_eq!(removed.gone, ["one"]);
    assert_eq!(removed.being_written, ["growing"]);
    writer.finish(&record).unwrap();
    assert!(store.retag("growing", add("x")).is_ok());
    // A killed writer holds nothing.
    writer
        .begin(&comparison("killed", &mut compare::Unwatched))
        .unwrap();
    drop(writer);
    assert!(store.retag("killed", add("x")).is_ok());
}

#[test]
fn a_removed_record_leaves_nothing_and_its_space_comes_back() {
    let (_folder, mut store) = filled();
    let bytes = store.bytes_of("two").unwrap();
    assert_eq!(bytes, store.load("two").unwrap().body.len() as u64);
    store.retag("two", add("x")).unwrap();
    store.remove(&["two".to_owned()]).unwrap();
    let found = store.find(&Filter::default()).unwrap();
    assert_eq!(found.total, 1);
    assert!(found.tags.is_empty());
    for table in ["outline", "tag", "line"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: usize = store
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, usize::from(table != "tag"), "{table}");
    }
    assert!(store.give_back().unwrap() > 0);
    assert!(store.load("one").unwrap().comparison().is_ok());
}

#[test]
fn a_damaged_record_keeps_its_body() {
    let (_folder, mut store) = filled();
    store
        .connection
        .execute("UPDATE record SET body = '{\"a\":' WHERE id = 'one'", [])
        .unwrap();
    let refused = store.retag("one", add("x")).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
    assert_eq!(store.load("one").unwrap().body, "{\"a\":");
}
