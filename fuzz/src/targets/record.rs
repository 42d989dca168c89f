//! Records as JSON: what is read can be written, read again as the same, and
//! shown by every face without control characters.

#![no_main]

use invariants::{check_shown, through_json};
use libfuzzer_sys::fuzz_target;
use pinwise::record::{
    COMPARISON_SCHEMA, Comparison, DOCTOR_SCHEMA, Doctor, PROFILE_SCHEMA, ProfileDiff,
    ProfileRecord, SchemaName, TOPOLOGY_SCHEMA, TopologyRecord, read,
};
use pinwise::report::{self, Palette};

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    if let Some(schema) = SchemaName::parse(text) {
        let printed = format!("{}/{}", schema.name, schema.version);
        assert_eq!(SchemaName::parse(&printed).as_ref(), Some(&schema));
    }
    match read::<Comparison>(text, COMPARISON_SCHEMA) {
        Ok(record) => {
            assert_eq!(through_json(&record, COMPARISON_SCHEMA), record);
            check_faces(&record);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(record) = read::<TopologyRecord>(text, TOPOLOGY_SCHEMA) {
        assert_eq!(through_json(&record, TOPOLOGY_SCHEMA), record);
    }
    if let Ok(record) = read::<Doctor>(text, DOCTOR_SCHEMA) {
        assert_eq!(through_json(&record, DOCTOR_SCHEMA), record);
        check_shown(&report::doctor(&record, Palette::default()));
    }
    if let Ok(record) = read::<ProfileRecord>(text, PROFILE_SCHEMA) {
        check_profile(&record);
    }
});

fn check_profile(record: &ProfileRecord) {
    let shown = report::ProfileShown::default();
    check_shown(&report::profile(record, &shown, Palette::default()));
    check_shown(&report::folded(record));
    check_shown(&report::flame_graph(record));
    if let Ok(diff) = ProfileDiff::between(record, record) {
        check_shown(&report::profile_diff(&diff, 12, Palette::default()));
        check_shown(&report::flame_graph_diff(&diff));
    }
}

fn check_faces(record: &Comparison) {
    check_shown(&report::comparison(record, Palette::default()));
    check_shown(&report::markdown(record));
    let rows = report::csv(record).expect("any record is CSV");
    let runs: usize = record.arms.iter().map(|arm| arm.runs.len()).sum();
    assert!(rows.lines().count() > runs);
    assert!(report::hyperfine(record)["results"].is_array());
    let (host, title) = (record.host_name(), record.title());
    let line = report::Line {
        id: &record.id,
        host: &host,
        title: &title,
        verdict: &record.verdict.sentence,
        tags: &record.tags,
    };
    check_shown(&report::history(&[line]));
}
