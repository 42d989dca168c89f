//! Compares the spin loops of binaries with chips and a limit.

use pinwise_code::elf::Binary;
use pinwise_record::{
    Answer, CodeArch, GapOnChip, Header, MatchedAlgorithm, OuterLoop, ScanChip, ScannedBinary,
    ScannedLoop, SpinScan, UnknownGaps,
};
use pinwise_spin::algorithm::{Algorithm, Case, Setting};
use pinwise_spin::chips::Chip;
use pinwise_spin::identify::Strength;
use pinwise_spin::scan::{Scan, Site, scan};
use pinwise_spin::table::find_algorithm;
use pinwise_topology::Identity;

use super::chips::find_candidates;

/// How to judge the loops of binaries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanOptions {
    /// Number of CPUs that the program would see. It matters if a loop's blind gap does not follow
    /// from its code but from the known algorithm.
    pub cpus: u64,
    /// A limit, if one was requested.
    pub limit: Option<GapLimit>,
    /// The id of the chip that this machine is by its model.
    pub assumed_as: Option<&'static str>,
}

/// The longest blind gap that passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapLimit {
    /// The gap, ns.
    pub max_blind_gap_ns: f64,
    /// Does a loop with an unknown gap fail?
    pub unknown_fails: bool,
}

/// Scans binaries, each with its path; one after the other, so that only one of them is in memory.
#[must_use]
pub fn scan_binaries(
    binaries: impl Iterator<Item = (String, Binary)>,
    chips: Vec<ScanChip>,
    options: ScanOptions,
) -> SpinScan {
    let limit = options.limit;
    let mut files = Vec::new();
    let mut loops = Vec::new();
    for (index, (path, binary)) in binaries.enumerate() {
        let found = scan(&binary, &path);
        let arch = binary.arch.into();
        let sites = found.loops.iter();
        loops.extend(
            sites.map(|site| describe_loop(index, site, &select_chips(&arch, &chips), options)),
        );
        files.push(describe_file(&path, &binary, &found));
    }
    let passed = limit.map(|_| loops.iter().all(|one| one.fails != Some(true)));
    let mut record = SpinScan {
        header: Header::default(),
        binaries: files,
        skipped: Vec::new(),
        chips,
        cpus: options.cpus,
        max_blind_gap_ns: limit.map(|limit| limit.max_blind_gap_ns),
        unknown: if limit.is_some_and(|limit| limit.unknown_fails) {
            UnknownGaps::Fail
        } else {
            UnknownGaps::Pass
        },
        passed,
        loops,
        assumed_as: options.assumed_as.map(str::to_owned),
        answer: Answer::default(),
    };
    record.conclude();
    record
}

/// This machine in the table of known chips, by its model; of several kinds of core, that with the
/// longest PAUSE. `None` if the table does not have it.
#[must_use]
pub fn look_up_this_chip(identity: &Identity) -> Option<&'static Chip> {
    let kinds = find_candidates(identity).into_iter();
    kinds.max_by(|a, b| a.pause_ns().total_cmp(&b.pause_ns()))
}

/// A chip of the table.
#[must_use]
pub fn describe_chip(chip: &Chip) -> ScanChip {
    ScanChip {
        id: chip.id.to_owned(),
        // The table has only chips with PAUSE.
        arch: CodeArch::X86_64,
        pause_ns: chip.pause_ns(),
        source: format!(
            "{} cycles at {} GHz ({})",
            chip.pause_cycles.0, chip.ghz, chip.source
        ),
    }
}

/// The chips with a binary's architecture.
fn select_chips<'a>(arch: &CodeArch, chips: &'a [ScanChip]) -> Vec<&'a ScanChip> {
    chips.iter().filter(|chip| chip.arch == *arch).collect()
}

fn describe_file(path: &str, binary: &Binary, found: &Scan) -> ScannedBinary {
    let sizes = binary.sections.iter().map(|code| code.bytes.len() as u64);
    ScannedBinary {
        path: path.to_owned(),
        arch: binary.arch.into(),
        build_id: binary.build_id.clone(),
        code_bytes: sizes.sum(),
        hints: found.hints,
        hint_functions: found.hint_functions,
        hints_outside_loops: found.hints_outside_loops,
    }
}

fn describe_loop(
    binary: usize,
    site: &Site,
    chips: &[&ScanChip],
    options: ScanOptions,
) -> ScannedLoop {
    let limit = options.limit;
    let has_deadline = site.inner.has_deadline;
    let known = known_algorithm(site).filter(|_| !has_deadline);
    // Chips differ in the cost of a PAUSE; many have no hints with a deadline.
    let quoted = if has_deadline { &[] } else { chips };
    let gaps: Vec<GapOnChip> = quoted
        .iter()
        .map(|chip| {
            let by_table = || find_longest_gap(known?, options.cpus, chip.pause_ns);
            let hints = site.gap.or_else(by_table);
            let ns = hints.map(|hints| hints as f64 * chip.pause_ns);
            let is_above = |limit: GapLimit| ns.is_some_and(|ns| ns > limit.max_blind_gap_ns);
            GapOnChip {
                chip: chip.id.clone(),
                ns,
                exceeds: limit.is_some_and(is_above),
            }
        })
        .collect();
    let is_unknown = gaps.iter().all(|gap| gap.ns.is_none());
    let fails = limit
        .map(|limit| gaps.iter().any(|gap| gap.exceeds) || (limit.unknown_fails && is_unknown));
    let gap_from = match (site.gap, is_unknown) {
        _ if has_deadline => Some("deadline".to_owned()),
        (Some(_), _) => Some("code".to_owned()),
        (None, false) => known.map(|row| row.id.to_owned()),
        (None, true) => None,
    };
    ScannedLoop {
        binary,
        address: hexadecimal(site.inner.start),
        function: site.function.as_ref().map(|(name, _)| name.clone()),
        offset: site.function.as_ref().map(|(_, offset)| *offset),
        kind: site.inner.kind.into(),
        hints_per_turn: site.inner.hints,
        looks_per_turn: site.inner.looks,
        outer: site.outer.as_ref().map(|outer| OuterLoop {
            address: hexadecimal(outer.start),
            kind: outer.kind.into(),
            looks_per_turn: outer.looks,
        }),
        gap_hints: site.gap,
        gap_from,
        gaps,
        algorithms: site
            .candidates
            .iter()
            .map(|one| MatchedAlgorithm {
                id: one.algorithm.to_owned(),
                strength: one.strength.into(),
                reason: one.reason.clone(),
            })
            .collect(),
        fails,
    }
}

/// The known algorithm of a loop, unless only its shape suggests it.
fn known_algorithm(site: &Site) -> Option<&'static Algorithm> {
    let first = site.candidates.first()?;
    let is_sure = first.strength >= Strength::Likely;
    is_sure
        .then(|| find_algorithm(first.algorithm).ok())
        .flatten()
}

/// Most hints between two checks of the awaited value in a known algorithm.
fn find_longest_gap(row: &Algorithm, cpus: u64, hint_ns: f64) -> Option<u64> {
    let wait = row.compute_wait(&Setting { cpus, hint_ns }, Case::Longest)?;
    Some(wait.blind_gap_hints())
}

fn hexadecimal(address: u64) -> String {
    format!("{address:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_found_in_the_table_of_chips() {
        let mut identity = Identity {
            vendor: Some("GenuineIntel".to_owned()),
            family: Some(6),
            model: Some(0x55),
            stepping: Some(4),
            ..Identity::default()
        };
        assert_eq!(look_up_this_chip(&identity).unwrap().id, "skylake-sp");
        identity.model = Some(0xfe);
        assert_eq!(look_up_this_chip(&identity), None);
    }
}
