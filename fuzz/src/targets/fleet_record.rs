//! A fleet's own files as JSON: what is read is written, read again as the same,
//! and shown without control characters.

#![no_main]

use invariants::{check_shown, through_json};
use libfuzzer_sys::fuzz_target;
use pinwise::fleet::state::status;
use pinwise::record::{FLEET_SCHEMA, FleetRecord, read};
use pinwise::report::{self, Palette};

fuzz_target!(|text: &str| {
    let Ok(fleet) = read::<FleetRecord>(text, FLEET_SCHEMA) else {
        return;
    };
    assert_eq!(through_json(&fleet, FLEET_SCHEMA), fleet);
    check_shown(&report::fleet_plan(&fleet, Palette::default()));
    let status = status(&fleet, &[], None, "2026-01-01T00:00:00Z");
    check_shown(&report::fleet_status(&status, Palette::default()));
});
