//! What the history would say of a record that lies in a file.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    BENCH_SCHEMA, Bench, COMPARISON_SCHEMA, Comparison, Entry, FLEET_NODE_SCHEMA,
    FLEET_REPORT_SCHEMA, FLEET_SCHEMA, FleetNode, FleetRecord, FleetReport, Keepsake,
    PROFILE_SCHEMA, ProfileRecord, REPRODUCTION_SCHEMA, Reproduction, SEARCH_SCHEMA,
    SPIN_ATTACH_SCHEMA, SPIN_PAUSE_SCHEMA, SPIN_REPLAY_SCHEMA, SearchRecord, SpinAttachRecord,
    SpinPauseRecord, SpinReplayRecord, TOPOLOGY_SCHEMA, TRACE_SCHEMA, TopologyRecord, TraceRecord,
};

/// The line of the history of a record that could be stored; `None` of others,
/// and of those that lack what their kind has.
#[must_use]
pub fn entry_of(record: &Value) -> Option<Entry> {
    match record["schema"].as_str()? {
        COMPARISON_SCHEMA => kept::<Comparison>(record),
        BENCH_SCHEMA => kept::<Bench>(record),
        TOPOLOGY_SCHEMA => kept::<TopologyRecord>(record),
        TRACE_SCHEMA => kept::<TraceRecord>(record),
        SEARCH_SCHEMA => kept::<SearchRecord>(record),
        PROFILE_SCHEMA => kept::<ProfileRecord>(record),
        SPIN_PAUSE_SCHEMA => kept::<SpinPauseRecord>(record),
        SPIN_REPLAY_SCHEMA => kept::<SpinReplayRecord>(record),
        SPIN_ATTACH_SCHEMA => kept::<SpinAttachRecord>(record),
        REPRODUCTION_SCHEMA => kept::<Reproduction>(record),
        FLEET_SCHEMA => kept::<FleetRecord>(record),
        FLEET_NODE_SCHEMA => kept::<FleetNode>(record),
        FLEET_REPORT_SCHEMA => kept::<FleetReport>(record),
        _ => None,
    }
}

fn kept<R: Keepsake + DeserializeOwned>(record: &Value) -> Option<Entry> {
    serde_json::from_value::<R>(record.clone())
        .ok()
        .map(|record| record.entry())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_says_where_it_is() {
        let topology = crate::topology::Topology::from_synthetic("core:2 pu:2").unwrap();
        let mut record = TopologyRecord::new(&topology, &[]);
        record.machine.hostname = Some("node7".to_owned());
        let entry = entry_of(&serde_json::to_value(&record).unwrap()).unwrap();
        assert_eq!(entry.host, "node7");
        assert_eq!(entry.schema, TOPOLOGY_SCHEMA);
    }

    #[test]
    fn what_lacks_fields_has_no_line() {
        let check = |record: Value| assert_eq!(entry_of(&record), None, "{record}");
        check(json!({ "schema": COMPARISON_SCHEMA }));
        check(json!({ "schema": "pinwise.trace/1", "id": "1" }));
        check(json!({ "schema": 3 }));
        check(json!([]));
    }
}
