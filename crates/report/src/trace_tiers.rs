//! The tiers of tracing as text.

use super::style::{Palette, paragraph, visible};
use pinwise_record::TierRecord;
use pinwise_sched::Tier;

/// The tiers of a machine.
#[must_use]
pub fn render_tiers(records: &[TierRecord], palette: Palette) -> String {
    let best = records.iter().rposition(|tier| tier.available);
    let mut out = String::new();
    for (at, record) in records.iter().enumerate() {
        let words = record.tier.as_str().parse().map_or("", Tier::description);
        let mark = if Some(at) == best { " (taken)" } else { "" };
        let state = if record.available {
            palette.good("available")
        } else {
            palette.warn("unavailable")
        };
        let name = palette.strong(&visible(record.tier.as_str()));
        out += &format!("T{at} {name}: {state}{mark}\n");
        out += &format!("{}\n", paragraph("   ", "   ", &format!("{words}.")));
        if let Some(cost) = describe_overhead(record) {
            out += &format!("{}\n", paragraph("   ", "   ", &cost));
        }
        if let Some(reason) = &record.reason {
            let line = match &record.remedy {
                Some(remedy) => format!("{reason}; permit it with: {remedy}"),
                None => format!("{reason}; it cannot be permitted here"),
            };
            out += &format!("{}\n", paragraph("   ", "   ", &line));
        }
    }
    out
}

fn describe_overhead(record: &TierRecord) -> Option<String> {
    let cost = record.cost_ns_per_switch?;
    if record.cost_low_ns.is_some_and(|low| low <= 0.0) {
        return Some("No measurable overhead per context switch here.".to_owned());
    }
    let range = record
        .cost_low_ns
        .zip(record.cost_high_ns)
        .map_or_else(String::new, |(low, high)| {
            format!(" ({low:.0} to {high:.0})")
        });
    Some(format!(
        "Overhead here: {cost:.0} ns{range} per context switch."
    ))
}
