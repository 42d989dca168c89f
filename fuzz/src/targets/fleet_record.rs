//! A fleet's own files as JSON: a parsed file survives writing and reading, and is shown without
//! control characters.

use crate::invariants::{check_shown, round_trip_json};
use pinwise_fleet::state::fleet_status;
use pinwise_record::{FleetRecord, read};
use pinwise_report::Palette;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(fleet) = read::<FleetRecord>(text) else { return };
    assert_eq!(round_trip_json(&fleet), fleet);
    check_shown(&pinwise_report::render_fleet_plan(&fleet, Palette::default()));
    let status = fleet_status(&fleet, &[], None, "2026-01-01T00:00:00Z");
    check_shown(&pinwise_report::render_fleet_status(&status, Palette::default()));
}
