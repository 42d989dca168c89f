//! What `topology --measure` found on this machine since it booted: wirings of
//! virtual machines change with a reboot or a migration.

use super::args::Global;
use super::opening::open_store_to_read;
use pinwise_machine::linux::boot_id;
use pinwise_record::{Agreement, Finding, Kind, LevelName, Severity, TopologyRecord};
use pinwise_store::{Filter, Store, StoreError};
use pinwise_topology::Topology;

/// The most maps that are read: more than an hour of measuring at one every few minutes.
const MAX_MAPS: usize = 20;

/// The newest map of this machine, if it was measured in this boot. A store that cannot be read is
/// reported later, when the experiment is to be stored.
pub(super) fn load_newest_map(
    global: &Global,
    topology: &Topology,
    spec: &str,
) -> Option<TopologyRecord> {
    let host = find_host_name(topology, spec);
    let store = open_store_to_read(global).ok()??;
    let map = store
        .find_newest_on_host(Kind::Topology.schema(), host)
        .ok()??
        .decode::<TopologyRecord>()
        .ok()?;
    is_of_this_boot(&map, topology, spec).then_some(map)
}

/// The maps of this boot, newest first.
pub(super) fn load_maps_of_this_boot(
    store: &Store,
    topology: &Topology,
    spec: &str,
) -> Result<Vec<TopologyRecord>, StoreError> {
    let filter = Filter {
        host: Some(find_host_name(topology, spec).to_owned()),
        schema: Some(Kind::Topology.schema().to_owned()),
        limit: Some(MAX_MAPS),
        ..Filter::default()
    };
    let mut maps = Vec::new();
    store.visit_bodies(&filter, |_, body| {
        // A map that another version wrote is not used.
        let read = pinwise_record::read::<TopologyRecord>(body);
        maps.extend(read.ok().filter(|map| is_of_this_boot(map, topology, spec)));
    })?;
    Ok(maps)
}

/// How the wiring moved while this map was measured; `None` if it did not.
pub(super) fn describe_moving(known: &TopologyRecord) -> Option<&str> {
    let mut verdicts = known.measured.as_ref()?.verdicts.iter();
    let moving = verdicts.find(|verdict| {
        verdict.level == LevelName::Placement && verdict.verdict == Agreement::Contradicted
    })?;
    Some(&moving.measured)
}

/// That the wiring moves, by a map of this boot: what a placement gains may change with it.
pub(super) fn find_moving(known: &TopologyRecord) -> Option<Finding> {
    let sentence = format!(
        "The wiring moves in this boot, and with it what cores and caches gain. {}",
        describe_moving(known)?
    );
    let advice = "Compare again later: a gain that stays does not depend on it.";
    Some(Finding::new(
        "wiring_moves",
        Severity::Warning,
        sentence,
        advice,
    ))
}

fn find_host_name<'a>(topology: &'a Topology, spec: &'a str) -> &'a str {
    match spec {
        "local" => topology.identity.hostname.as_deref().unwrap_or("unknown"),
        simulated => simulated,
    }
}

/// Was the map measured on these CPUs in this boot? A simulated machine never reboots.
fn is_of_this_boot(map: &TopologyRecord, topology: &Topology, spec: &str) -> bool {
    let Some(measured) = &map.measured else {
        return false;
    };
    let survey = &measured.survey;
    let is_this_boot = || survey.boot_id.is_some() && survey.boot_id == boot_id();
    survey.machine_spec == spec
        && (spec != "local" || is_this_boot())
        && map.shape_hash == format!("{:016x}", topology.shape_hash())
        && map.allowed == topology.allowed.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wiring_that_moves_is_named_beside_placements() {
        let text = include_str!("../../tests/data/records/topology-measured.json");
        let mut map: TopologyRecord = serde_json::from_str(text).unwrap();
        assert_eq!(find_moving(&map), None);
        let verdict = &mut map.measured.as_mut().unwrap().verdicts[0];
        (verdict.level, verdict.verdict) = (LevelName::Placement, Agreement::Contradicted);
        verdict.measured = "It changed 5 times in 75 s.".to_owned();
        let sentence = find_moving(&map).unwrap().sentence;
        assert!(sentence.ends_with("gain. It changed 5 times in 75 s."));
    }
}
