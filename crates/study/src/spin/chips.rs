//! Finds a machine's processors in the table of known chips, and compares their PAUSE with the
//! published one.
//!
//! A measurement is never corrected by the table.

use pinwise_record::{ChipRecord, CpuPauseRecord};
use pinwise_spin::chips::{Chip, chips, count_cheaper_chips, find_chips};
use pinwise_stats::describe::median;
use pinwise_topology::{CpuSet, Identity, Topology};

/// Measured cycles agree with published ones if they differ by at most this share.
const MAX_DEVIATION: f64 = 0.1;

/// Compares the CPUs with known chips, a record per chip. The kinds of core of a hybrid processor
/// have the same family and model, so each CPU is matched to the one with the nearest cycles.
pub(super) fn compare_with_known(topology: &Topology, cpus: &[CpuPauseRecord]) -> Vec<ChipRecord> {
    let identity = &topology.identity;
    let candidates = find_candidates(identity);
    let mut groups: Vec<(Option<&Chip>, Vec<&CpuPauseRecord>)> = Vec::new();
    for cpu in cpus {
        let chip = find_nearest(&candidates, cpu.pause_cycles);
        match groups.iter_mut().find(|(known, _)| *known == chip) {
            Some((_, group)) => group.push(cpu),
            None => groups.push((chip, vec![cpu])),
        }
    }
    let records = groups.into_iter().map(|(chip, group)| {
        let cycles: Vec<f64> = group.iter().filter_map(|cpu| cpu.pause_cycles).collect();
        let measured = median(&cycles);
        let cpus: CpuSet = group.iter().map(|cpu| cpu.cpu).collect();
        compare_with_chip(chip, &cpus, measured, identity)
    });
    records.collect()
}

pub(super) fn find_candidates(identity: &Identity) -> Vec<&'static Chip> {
    match (&identity.vendor, identity.family, identity.model) {
        (Some(vendor), Some(family), Some(model)) => {
            find_chips(vendor, family, model, identity.stepping)
        }
        _ => Vec::new(),
    }
}

fn find_nearest(candidates: &[&'static Chip], cycles: Option<f64>) -> Option<&'static Chip> {
    let distance = |chip: &Chip| cycles.map_or(0.0, |cycles| deviation(chip, cycles).abs());
    let by_distance = |a: &&&Chip, b: &&&Chip| distance(a).total_cmp(&distance(b));
    candidates.iter().min_by(by_distance).copied()
}

/// How far cycles are outside the published range, as a share of the nearer end; 0 within.
fn deviation(chip: &Chip, cycles: f64) -> f64 {
    let (low, high) = chip.pause_cycles;
    if cycles < low {
        cycles / low - 1.0
    } else if cycles > high {
        cycles / high - 1.0
    } else {
        0.0
    }
}

fn compare_with_chip(
    chip: Option<&Chip>,
    cpus: &CpuSet,
    measured: Option<f64>,
    identity: &Identity,
) -> ChipRecord {
    let measured_deviation = chip
        .zip(measured)
        .map(|(chip, cycles)| deviation(chip, cycles));
    let agrees = measured_deviation.map(|share| share.abs() <= MAX_DEVIATION);
    let name = chip.map_or_else(|| describe_model(identity), |chip| chip.name.to_owned());
    let is_guest = identity.hypervisor.is_some();
    let sentence = describe_comparison(chip, &name, measured, measured_deviation, is_guest);
    ChipRecord {
        chip: chip.map(|chip| chip.id.to_owned()),
        name,
        cpus: cpus.to_string(),
        published_low: chip.map(|chip| chip.pause_cycles.0),
        published_high: chip.map(|chip| chip.pause_cycles.1),
        measured_cycles: measured,
        agrees,
        cheaper_chips: measured.map(count_cheaper_chips),
        known_chips: chips().count(),
        source: chip.map(|chip| chip.source.to_owned()),
        sentence,
    }
}

/// Family, model and stepping, for processors without a name in the table.
fn describe_model(identity: &Identity) -> String {
    match (identity.family, identity.model, identity.stepping) {
        (Some(family), Some(model), Some(stepping)) => {
            format!("family {family}, model {model}, stepping {stepping}")
        }
        (Some(family), Some(model), None) => format!("family {family}, model {model}"),
        _ => "a processor that does not report its family".to_owned(),
    }
}

fn describe_comparison(
    chip: Option<&Chip>,
    name: &str,
    measured: Option<f64>,
    deviation: Option<f64>,
    is_guest: bool,
) -> String {
    let caveat = if is_guest {
        " In a virtual machine the model may be wrong."
    } else {
        ""
    };
    let Some(chip) = chip else {
        return format!("Not among the known chips ({name}): trust the measurement.");
    };
    let (low, high) = chip.pause_cycles;
    let published = match [low, high].map(|cycles| format!("{cycles:.0}")) {
        [low, high] if low == high => format!("{low} cycles"),
        [low, high] => format!("{low} to {high} cycles"),
    };
    let verdict = match (measured, deviation) {
        (Some(cycles), Some(share)) if share.abs() <= MAX_DEVIATION => {
            format!("{cycles:.1} measured here agree")
        }
        (Some(cycles), Some(share)) => format!(
            "{cycles:.1} measured here are {:.0} % {}: trust the local measurement",
            100.0 * share.abs(),
            if share < 0.0 { "less" } else { "more" }
        ),
        _ => "cycles could not be measured here".to_owned(),
    };
    format!("{name}: {published} published; {verdict}.{caveat}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_cpus(identity: Identity, cycles: &[f64]) -> Vec<ChipRecord> {
        let mut topology = Topology::from_synthetic("core:2 pu:1").unwrap();
        topology.identity = identity;
        let cpus: Vec<CpuPauseRecord> = cycles
            .iter()
            .enumerate()
            .map(|(cpu, &cycles)| CpuPauseRecord {
                cpu,
                pause_cycles: Some(cycles),
                ..CpuPauseRecord::default()
            })
            .collect();
        compare_with_known(&topology, &cpus)
    }

    fn intel(model: u32, stepping: u32) -> Identity {
        Identity {
            vendor: Some("GenuineIntel".to_owned()),
            family: Some(6),
            model: Some(model),
            stepping: Some(stepping),
            ..Identity::default()
        }
    }

    #[test]
    fn kinds_of_core_are_told_apart_by_their_cycles() {
        let found = compare_cpus(intel(0x97, 2), &[160.0, 63.0]);
        let ids: Vec<Option<&str>> = found.iter().map(|row| row.chip.as_deref()).collect();
        assert_eq!(ids, [Some("alder-lake-p"), Some("gracemont")]);
        assert_eq!(found[1].cpus, "1");
        assert!(found.iter().all(|row| row.agrees == Some(true)));
    }

    #[test]
    fn a_deviation_from_a_chip_and_an_unknown_chip_are_reported() {
        let found = compare_cpus(intel(0x55, 7), &[140.0, 140.0]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].chip.as_deref(), Some("cascade-lake-sp"));
        assert_eq!(found[0].agrees, Some(false));
        assert!(
            found[0].sentence.contains("246 % more"),
            "{}",
            found[0].sentence
        );
        let unknown = compare_cpus(intel(0xfe, 1), &[70.0]);
        assert_eq!(unknown[0].chip, None);
        assert!(unknown[0].sentence.contains("family 6, model 254"));
    }
}
