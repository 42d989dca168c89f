//! Records as JSON: a parsed record survives writing and reading, and every output shows it without
//! control characters.

use crate::invariants::check_shown;
use pinwise_record::{AnyRecord, Comparison, ProfileDiff, ProfileRecord, SchemaName};
use pinwise_report::Palette;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Some(schema) = SchemaName::parse(text) {
        let printed = format!("{}/{}", schema.name, schema.version);
        assert_eq!(SchemaName::parse(&printed).as_ref(), Some(&schema));
    }
    match AnyRecord::read(text) {
        Ok(record) => check_any(&record),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Every output of a record of any kind.
fn check_any(record: &AnyRecord) {
    let json = record.to_json().expect("records are JSON");
    let again = AnyRecord::read(json.get()).expect("pinwise reads what it writes");
    assert_eq!(&again, record);
    check_shown(&pinwise_report::render_record(record, Palette::default()));
    if let Ok(Some(rows)) = pinwise_report::list_rows(record) {
        rows.csv().expect("any rows are CSV");
    }
    match record {
        AnyRecord::Comparison(record) => check_comparison(record),
        AnyRecord::Profile(record) => check_profile(record),
        _ => {}
    }
}

fn check_profile(record: &ProfileRecord) {
    check_shown(&pinwise_report::render_folded(record));
    if let Ok(diff) = ProfileDiff::between(record, record) {
        check_shown(&pinwise_report::render_profile_diff(&diff, 12, Palette::default()));
    }
}

fn check_comparison(record: &Comparison) {
    check_shown(&pinwise_report::render_markdown(record));
    assert!(pinwise_report::render_hyperfine(record)["results"].is_array());
    let (host, title) = (record.host_name(), record.title());
    let line = pinwise_report::Line {
        id: &record.id,
        host: &host,
        title: &title,
        verdict: &record.verdict.sentence,
        tags: &record.tags,
        more_like_it: None,
    };
    check_shown(&pinwise_report::render_history(&[line]));
}
