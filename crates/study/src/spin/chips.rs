//! A machine's chips in the table of known ones, and whether its PAUSE is as published.
//!
//! It never corrects a measurement by the table.

use pinwise_record::{ChipRecord, CpuPauseRecord};
use pinwise_spin::chips::{Chip, chips, count_cheaper_chips, find_chips};
use pinwise_stats::describe::median;
use pinwise_topology::{CpuSet, Identity, Topology};

/// Published and measured cycles agree within this share.
const AGREEMENT: f64 = 0.1;

/// How the CPUs compare, a row per chip. The core kinds of a hybrid share one signature: each CPU
/// is matched to the nearest cycles.
pub(super) fn standing(topology: &Topology, cpus: &[CpuPauseRecord]) -> Vec<ChipRecord> {
    let identity = &topology.identity;
    let candidates = candidates(identity);
    let mut groups: Vec<(Option<&Chip>, Vec<&CpuPauseRecord>)> = Vec::new();
    for cpu in cpus {
        let chip = nearest(&candidates, cpu.pause_cycles);
        match groups.iter_mut().find(|(known, _)| *known == chip) {
            Some((_, group)) => group.push(cpu),
            None => groups.push((chip, vec![cpu])),
        }
    }
    let records = groups.into_iter().map(|(chip, group)| {
        let cycles: Vec<f64> = group.iter().filter_map(|cpu| cpu.pause_cycles).collect();
        let measured = median(&cycles);
        let cpus: CpuSet = group.iter().map(|cpu| cpu.cpu).collect();
        record(chip, &cpus, measured, identity)
    });
    records.collect()
}

fn candidates(identity: &Identity) -> Vec<&'static Chip> {
    match (&identity.vendor, identity.family, identity.model) {
        (Some(vendor), Some(family), Some(model)) => {
            find_chips(vendor, family, model, identity.stepping)
        }
        _ => Vec::new(),
    }
}

fn nearest(candidates: &[&'static Chip], cycles: Option<f64>) -> Option<&'static Chip> {
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

fn record(
    chip: Option<&Chip>,
    cpus: &CpuSet,
    measured: Option<f64>,
    identity: &Identity,
) -> ChipRecord {
    let away = chip
        .zip(measured)
        .map(|(chip, cycles)| deviation(chip, cycles));
    let agrees = away.map(|away| away.abs() <= AGREEMENT);
    let name = chip.map_or_else(|| unknown(identity), |chip| chip.name.to_owned());
    let sentence = sentence(chip, &name, measured, away, identity.hypervisor.is_some());
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

/// The system's name of the processor.
fn unknown(identity: &Identity) -> String {
    match (identity.family, identity.model, identity.stepping) {
        (Some(family), Some(model), Some(stepping)) => {
            format!("family {family}, model {model}, stepping {stepping}")
        }
        (Some(family), Some(model), None) => format!("family {family}, model {model}"),
        _ => "a processor that does not report its family".to_owned(),
    }
}

fn sentence(
    chip: Option<&Chip>,
    name: &str,
    measured: Option<f64>,
    away: Option<f64>,
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
    let published = if high - low < 0.05 * low {
        format!("{low:.0} cycles")
    } else {
        format!("{low:.0} to {high:.0} cycles")
    };
    let verdict = match (measured, away) {
        (Some(cycles), Some(away)) if away.abs() <= AGREEMENT => {
            format!("{cycles:.1} measured here agree")
        }
        (Some(cycles), Some(away)) => format!(
            "{cycles:.1} measured here are {:.0} % {}: trust the local measurement",
            100.0 * away.abs(),
            if away < 0.0 { "less" } else { "more" }
        ),
        _ => "cycles could not be measured here".to_owned(),
    };
    format!("{name}: {published} published; {verdict}.{caveat}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing_of(identity: Identity, cycles: &[f64]) -> Vec<ChipRecord> {
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
        standing(&topology, &cpus)
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
    fn kinds_of_core_are_known_by_their_cycles() {
        let found = standing_of(intel(0x97, 2), &[160.0, 63.0]);
        let ids: Vec<Option<&str>> = found.iter().map(|row| row.chip.as_deref()).collect();
        assert_eq!(ids, [Some("alder-lake-p"), Some("gracemont")]);
        assert_eq!(found[1].cpus, "1");
        assert!(found.iter().all(|row| row.agrees == Some(true)));
    }

    #[test]
    fn a_departure_from_a_chip_is_reported() {
        let found = standing_of(intel(0x55, 7), &[140.0, 140.0]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].chip.as_deref(), Some("cascade-lake-sp"));
        assert_eq!(found[0].agrees, Some(false));
        assert!(
            found[0].sentence.contains("246 % more"),
            "{}",
            found[0].sentence
        );
        let unknown = standing_of(intel(0xfe, 1), &[70.0]);
        assert_eq!(unknown[0].chip, None);
        assert!(unknown[0].sentence.contains("family 6, model 254"));
    }
}
