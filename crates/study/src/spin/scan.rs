//! Loops of binaries compared with chips and a limit.

use pinwise_code::elf::Binary;
use pinwise_record::{
    CodeArch, GapOnChip, Header, MatchedAlgorithm, OuterLoop, ScanChip, ScannedBinary, ScannedLoop,
    SpinScan, UnknownGaps,
};
use pinwise_spin::algorithm::{Algorithm, Case, Setting};
use pinwise_spin::identify::Strength;
use pinwise_spin::scan::{Scan, Site, scan};
use pinwise_spin::table::find_algorithm;

/// What to look for in binaries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// CPUs that the program would count: if the code does not show how long a loop is blind, the
    /// known algorithm does.
    pub cpus: u64,
    /// A limit, if one was requested.
    pub limit: Option<Limit>,
}

/// The longest blind gap that passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The gap, ns.
    pub max_blind_gap_ns: f64,
    /// Do loops fail whose gap the code does not say?
    pub unknown_fails: bool,
}

/// Scans binaries, each with its path; one after the other, so that only one of them is in memory.
#[must_use]
pub fn assemble(
    binaries: impl Iterator<Item = (String, Binary)>,
    chips: Vec<ScanChip>,
    question: Question,
) -> SpinScan {
    let limit = question.limit;
    let mut files = Vec::new();
    let mut loops = Vec::new();
    for (index, (path, binary)) in binaries.enumerate() {
        let found = scan(&binary, &path);
        let arch = binary.arch.into();
        let sites = found.loops.iter();
        loops.extend(
            sites.map(|site| describe_loop(index, site, &own_chips(&arch, &chips), question)),
        );
        files.push(file(&path, &binary, &found));
    }
    let passed = limit.map(|_| loops.iter().all(|one| one.fails != Some(true)));
    SpinScan {
        header: Header::default(),
        binaries: files,
        skipped: Vec::new(),
        chips,
        cpus: question.cpus,
        max_blind_gap_ns: limit.map(|limit| limit.max_blind_gap_ns),
        unknown: if limit.is_some_and(|limit| limit.unknown_fails) {
            UnknownGaps::Fail
        } else {
            UnknownGaps::Pass
        },
        passed,
        loops,
    }
}

/// The chips that a binary runs on.
fn own_chips<'a>(arch: &CodeArch, chips: &'a [ScanChip]) -> Vec<&'a ScanChip> {
    chips.iter().filter(|chip| chip.arch == *arch).collect()
}

fn file(path: &str, binary: &Binary, found: &Scan) -> ScannedBinary {
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
    question: Question,
) -> ScannedLoop {
    let limit = question.limit;
    let has_deadline = site.inner.has_deadline;
    let known = known_algorithm(site).filter(|_| !has_deadline);
    // Chips differ in the cost of a PAUSE; many have no hints with a deadline.
    let quoted = if has_deadline { &[] } else { chips };
    let gaps: Vec<GapOnChip> = quoted
        .iter()
        .map(|chip| {
            let by_table = || gap_of(known?, question.cpus, chip.pause_ns);
            let hints = site.gap.or_else(by_table);
            let ns = hints.map(|hints| hints as f64 * chip.pause_ns);
            let is_above = |limit: Limit| ns.is_some_and(|ns| ns > limit.max_blind_gap_ns);
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

/// The known algorithm of a loop, if more than its shape identifies it.
fn known_algorithm(site: &Site) -> Option<&'static Algorithm> {
    let first = site.candidates.first()?;
    let is_sure = first.strength >= Strength::Likely;
    is_sure
        .then(|| find_algorithm(first.algorithm).ok())
        .flatten()
}

/// Maximum number of hints between two looks of an algorithm.
fn gap_of(row: &Algorithm, cpus: u64, hint_ns: f64) -> Option<u64> {
    let wait = row.compute_wait(&Setting { cpus, hint_ns }, Case::Longest)?;
    Some(wait.blind_gap_hints())
}

fn hexadecimal(address: u64) -> String {
    format!("{address:#x}")
}
