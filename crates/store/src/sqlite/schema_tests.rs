//! Stores of older versions.

use std::path::Path;

use super::*;
use crate::tests::comparison;
use crate::{Filter, Store};
use pinwise_record::StoredRecord;
use pinwise_study::compare;

/// A store as the first version left it: a comparison, and a damaged body.
fn old_store(path: &Path) {
    let mut record = comparison("whole", &mut compare::Unwatched);
    record.tags = vec!["kept".to_owned()];
    let entry = record.entry();
    let old = Connection::open(path).unwrap();
    old.pragma_update(None, "journal_mode", "WAL").unwrap();
    old.execute_batch(RECORDS).unwrap();
    let rows: [(&str, &[u8]); 3] = [
        ("whole", &serde_json::to_vec(&record).unwrap()),
        ("damaged", b"{\"schema\":\"pinwise.comp"),
        ("no text", b"\xff\xfe{"),
    ];
    for (id, body) in rows {
        old.execute(
            "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, CAST(?7 AS TEXT))",
            (
                id,
                &entry.schema,
                &entry.time,
                &entry.host,
                &entry.title,
                &entry.verdict,
                body,
            ),
        )
        .unwrap();
    }
    old.pragma_update(None, "user_version", 1).unwrap();
}

fn version(path: &Path) -> i64 {
    let store = Connection::open(path).unwrap();
    store
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn an_old_store_gets_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    old_store(&path);
    let store = Store::open(&path).unwrap();
    let found = store.find(&Filter::default()).unwrap();
    let ids: Vec<&str> = found
        .lines
        .iter()
        .map(|line| line.entry.id.as_str())
        .collect();
    assert_eq!(ids, ["no text", "damaged", "whole"]);
    assert_eq!(found.lines[0].summary, Summary::default());
    assert_eq!(found.lines[1].summary, Summary::default());
    assert_eq!(found.lines[2].summary.figures.len(), 2);
    assert_eq!(found.tags, ["kept"]);
    assert!(store.load("whole").unwrap().comparison().is_ok());
    assert_eq!(version(&path), 2);
}

#[test]
fn a_migration_that_is_cut_off_leaves_the_old_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    old_store(&path);
    let mut connection = Connection::open(&path).unwrap();
    let cut = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    cut.execute_batch(LINES).unwrap();
    summarise_all(&cut).unwrap();
    cut.pragma_update(None, "user_version", 2).unwrap();
    // The process ends here: what it had not committed stays in the log.
    drop(cut);
    drop(connection);
    assert_eq!(version(&path), 1);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.find(&Filter::default()).unwrap().total, 3);
}

#[test]
fn of_several_that_migrate_at_once_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    old_store(&path);
    let totals: Vec<usize> = std::thread::scope(|scope| {
        let open = || {
            Store::open(&path)
                .unwrap()
                .find(&Filter::default())
                .unwrap()
                .total
        };
        let openers: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        openers
            .into_iter()
            .map(|opener| opener.join().unwrap())
            .collect()
    });
    assert_eq!(totals, [3; 4]);
}
