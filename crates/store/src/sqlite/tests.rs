//! Properties that only the file shows.

use std::path::Path;

use super::*;
use crate::Store;

#[test]
fn damaged_stores_and_those_of_other_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    std::fs::write(
        &path,
        "this is not a database, but long enough to look like a file of one",
    )
    .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");

    let path = folder.path().join("other.db");
    for version in [-1, 2, 99] {
        let store = Connection::open(&path).unwrap();
        store.pragma_update(None, "user_version", version).unwrap();
        let before = std::fs::read(&path).unwrap();
        for open in [Sqlite::open, Sqlite::open_to_read, Sqlite::open_to_change] {
            let error = open(&path).unwrap_err();
            assert!(
                matches!(error, StoreError::OtherVersion { found, .. } if found == version),
                "{error}"
            );
            assert!(error.to_string().contains("--store"), "{error}");
        }
        assert!(std::fs::read(&path).unwrap() == before);
    }

    let error = Store::open(Path::new("/proc/none/x.db")).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}
