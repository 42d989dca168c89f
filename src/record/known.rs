//! Any record, before it is known which one it is.

use serde::Deserialize;
use serde_json::Value;

use super::{
    BENCH_SCHEMA, COMPARISON_SCHEMA, DIFF_SCHEMA, DOCTOR_SCHEMA, FLEET_DIFF_SCHEMA,
    FLEET_NODE_SCHEMA, FLEET_REPORT_SCHEMA, FLEET_SCHEMA, KERNEL_SCHEMA, PLACEMENTS_SCHEMA,
    PREDICTION_SCHEMA, PROFILE_DIFF_SCHEMA, PROFILE_SCHEMA, REPLAY_SCHEMA, REPRODUCTION_SCHEMA,
    RecordError, SEARCH_SCHEMA, SPIN_ADVICE_SCHEMA, SPIN_ATTACH_SCHEMA, SPIN_PAUSE_SCHEMA,
    SPIN_PREDICT_SCHEMA, SPIN_REPLAY_SCHEMA, SPIN_SCAN_SCHEMA, SchemaName, TOP_SCHEMA,
    TOPOLOGY_DIFF_SCHEMA, TOPOLOGY_SCHEMA, TRACE_SCHEMA,
};

/// All schemas of this version.
pub const SCHEMAS: [&str; 26] = [
    COMPARISON_SCHEMA,
    BENCH_SCHEMA,
    TOPOLOGY_SCHEMA,
    TOPOLOGY_DIFF_SCHEMA,
    DIFF_SCHEMA,
    TRACE_SCHEMA,
    SEARCH_SCHEMA,
    PREDICTION_SCHEMA,
    PROFILE_SCHEMA,
    PROFILE_DIFF_SCHEMA,
    SPIN_PAUSE_SCHEMA,
    SPIN_PREDICT_SCHEMA,
    SPIN_REPLAY_SCHEMA,
    SPIN_ATTACH_SCHEMA,
    SPIN_ADVICE_SCHEMA,
    SPIN_SCAN_SCHEMA,
    REPRODUCTION_SCHEMA,
    REPLAY_SCHEMA,
    PLACEMENTS_SCHEMA,
    DOCTOR_SCHEMA,
    KERNEL_SCHEMA,
    TOP_SCHEMA,
    FLEET_SCHEMA,
    FLEET_NODE_SCHEMA,
    FLEET_REPORT_SCHEMA,
    FLEET_DIFF_SCHEMA,
];

/// The one field that tells what a record is.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    schema: Value,
}

/// A text that shall be a record of whatever schema, as JSON.
///
/// # Errors
/// [`RecordError`] where it is damaged, of no known schema, or newer.
pub fn any(text: &str) -> Result<Value, RecordError> {
    let value: Value = serde_json::from_str(text)?;
    check_schema(value["schema"].as_str().unwrap_or_default())?;
    Ok(value)
}

/// The same without making anything of it: a trace has millions of values.
///
/// # Errors
/// As [`any`].
pub fn check(text: &str) -> Result<(), RecordError> {
    let head: Head = serde_json::from_str(text)?;
    check_schema(head.schema.as_str().unwrap_or_default())
}

fn check_schema(found: &str) -> Result<(), RecordError> {
    let schema = SchemaName::parse(found);
    let known = SCHEMAS
        .into_iter()
        .find(|known| SchemaName::parse(known).map(|k| k.name) == schema.as_ref().map(|s| s.name));
    let found = found.to_owned();
    let (Some(known), Some(schema)) = (known, schema) else {
        return Err(RecordError::Unknown { found });
    };
    match SchemaName::parse(known) {
        Some(newest) if schema.version > newest.version => Err(RecordError::Newer { found, known }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_known_newer_unknown_or_damaged() {
        let good = "{\"schema\":\"pinwise.trace/1\",\"slices\":[[1,2]]}";
        assert!(any(good).is_ok() && check(good).is_ok());
        let check = |text: &str, words: &str| {
            for error in [any(text).unwrap_err(), check(text).unwrap_err()] {
                assert!(error.to_string().contains(words), "{error}");
            }
        };
        check("{\"schema\":\"pinwise.trace/2\"}", "newer");
        check(
            "{\"schema\":\"pinwise.tree/1\"}",
            "no record that this pinwise knows",
        );
        check("{}", "no record that this pinwise knows");
        check("{\"schema\":\"pinwise.tra", "damaged");
    }
}
