//! A record of every kind, in a file and (if it can be stored) in a store, is shown, exported,
//! compared and reported.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pinwise_record::{AnyRecord, Kind, Summary};
use serde_json::Value;

use crate::support::{decode_output, pinwise, root, unpack};

/// The files with records, sorted.
fn list_files() -> Vec<PathBuf> {
    let folder = root().join("tests/data/records");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    files
}

/// Unpacks the store into a temporary folder.
fn unpack_store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(&path, unpack("records/store.db.xz")).unwrap();
    (folder, path)
}

/// Standard output of a command that must succeed without a warning.
#[track_caller]
fn run_ok(store: &Path, arguments: &[&str]) -> String {
    let output = pinwise(store).args(arguments).output().unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    assert!(!err.contains("warning"), "{arguments:?}: {err}");
    out
}

/// Id and kind of each stored record.
fn list_records(store: &Path) -> Vec<(String, Kind)> {
    let list = run_ok(
        store,
        &["record", "history", "--limit", "1000", "--format", "json"],
    );
    let list: Value = serde_json::from_str(&list).unwrap();
    let records = list["records"].as_array().unwrap().iter();
    let read = |record: &Value| {
        let kind = Kind::from_schema(record["schema"].as_str().unwrap()).unwrap();
        (record["id"].as_str().unwrap().to_owned(), kind)
    };
    records.map(read).collect()
}

#[test]
fn every_kind_has_a_file() {
    let read = |path: &PathBuf| AnyRecord::read(&std::fs::read_to_string(path).unwrap());
    let kinds: HashSet<Kind> = list_files()
        .iter()
        .map(|path| read(path).unwrap().kind())
        .collect();
    let missing = Kind::ALL.into_iter().filter(|kind| !kinds.contains(kind));
    assert_eq!(missing.collect::<Vec<_>>(), []);
}

#[test]
fn files_of_every_kind_are_shown_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("none.db");
    for path in list_files() {
        let name = path.to_str().unwrap();
        let text = run_ok(&store, &["record", "show", name]);
        assert!(text.len() > 20 && text.ends_with('\n'), "{name}: {text}");
        let json = run_ok(&store, &["record", "show", name, "--format", "json"]);
        assert_eq!(
            json.trim_end(),
            std::fs::read_to_string(&path).unwrap().trim_end()
        );
        let page = run_ok(&store, &["record", "report", name, "-o", "-"]);
        assert!(page.contains("pinwise-data"), "{name}");
    }
}

#[test]
fn stored_records_are_shown_exported_and_reported() {
    let (folder, store) = unpack_store();
    let page = folder.path().join("page.html");
    let stored = list_records(&store);
    assert!(stored.len() > 20, "{}", stored.len());
    for (id, kind) in &stored {
        assert!(run_ok(&store, &["record", "show", id]).len() > 20, "{id}");
        let json = run_ok(&store, &["record", "show", id, "--format", "json"]);
        let record = AnyRecord::read(&json).unwrap();
        assert_eq!(record.kind(), *kind);
        assert_eq!(&record.entry().unwrap().id, id);
        let _ = std::fs::remove_file(&page);
        run_ok(
            &store,
            &["record", "report", id, "-o", page.to_str().unwrap()],
        );
        if matches!(
            kind,
            Kind::Comparison | Kind::Bench | Kind::Search | Kind::Trace
        ) {
            let rows = run_ok(&store, &["record", "show", id, "--format", "csv"]);
            // Traces without slices, and failed arms, have only the header.
            assert!(rows.contains("cpu"), "{id}: {rows}");
        }
        if matches!(kind, Kind::Comparison) {
            assert!(
                run_ok(&store, &["record", "show", id, "--format", "markdown"]).contains("| arm |")
            );
        }
    }
}

#[test]
fn stored_records_are_compared_with_others_of_the_same_subject() {
    let (_folder, store) = unpack_store();
    let stored = list_records(&store);
    let subject = |id: &str| {
        Summary::from_json(&run_ok(&store, &["record", "show", id, "--format", "json"])).subject
    };
    let mut compared = HashSet::new();
    for (id, kind) in &stored {
        let is_comparable = |other: &str, other_kind: &Kind| {
            let same_kind = other != id && other_kind == kind;
            same_kind && (*kind == Kind::Profile || subject(other) == subject(id))
        };
        let mut records = stored.iter();
        let Some((other, _)) = records.find(|(other, kind)| is_comparable(other, kind)) else {
            continue;
        };
        let output = pinwise(&store)
            .args(["record", "diff", id, other])
            .output()
            .unwrap();
        let (out, err) = decode_output(&output);
        if output.status.success() {
            assert!(out.len() > 20, "{id} {other}: {out}");
            compared.insert(*kind);
        } else {
            assert!(
                err.lines().count() == 1 && err.starts_with("error: "),
                "{err}"
            );
        }
    }
    for kind in [Kind::Comparison, Kind::Topology, Kind::Profile] {
        assert!(compared.contains(&kind), "{kind:?}");
    }
}

#[test]
fn records_that_are_newer_or_lack_fields_are_shown_in_part() {
    let (folder, store) = unpack_store();
    let trace = root().join("tests/data/records/trace.json");
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let check = |change: &dyn Fn(&mut Value), warned: &str| {
        let mut record = whole.clone();
        change(&mut record);
        let path = folder.path().join("changed.json");
        std::fs::write(&path, record.to_string()).unwrap();
        let output = pinwise(&store)
            .args(["record", "show"])
            .arg(&path)
            .output()
            .unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(
            err.contains("is only partly shown") && err.contains(warned),
            "{err}"
        );
        assert!(out.contains("CPU time"), "{out}");
    };
    check(
        &|record| record["schema"] = "pinwise.trace/2".into(),
        "newer",
    );
    check(
        &|record| {
            record.as_object_mut().unwrap().remove("findings");
            record.as_object_mut().unwrap().remove("totals_by_level");
            record.as_object_mut().unwrap().remove("tier");
        },
        "missing field",
    );
}
