//! Writes the record of a measurement.

use super::Measurements;
use super::contention::{self, Contentions};
use super::judge::{Case, judge_levels, list_contradictions};
use super::pairs::Pairs;
use pinwise_record::{Contradiction, EffortRecord, Measured, MeasuredLevel, PairRecord};
use pinwise_topology::{CpuSet, Topology};
use pinwise_wiring::{LevelKind, Wiring};

/// Beyond this many pairs, only those whose contention was measured are listed
/// beside the matrix: 1,024 CPUs have half a million pairs.
const MAX_PAIRS: usize = 4096;

/// All measurements as one value, with their contradictions to the report.
pub(super) fn assemble_record(
    topology: &Topology,
    found: Measurements,
    wiring: &Wiring,
    effort: EffortRecord,
) -> (Measured, Vec<Contradiction>) {
    let matrix = contention::to_matrix(&found.pairs, &found.contentions);
    let verdicts = judge_levels(&Case {
        topology,
        pairs: &found.pairs,
        contention: matrix.as_ref(),
        wiring,
        ladder: found.ladder.as_ref(),
        nodes: &found.nodes,
        drift: found.drift.as_ref(),
        changed: &found.changed,
        is_disturbed: effort.batches_switched + effort.batches_stolen > 0,
    });
    let contradictions = list_contradictions(&verdicts);
    let pairs = &found.pairs;
    let n = pairs.len();
    let figure = |a, b| Some(pairs.latency.at(a, b)).filter(|v| v.is_finite());
    let mut notes = wiring.notes.clone();
    notes.extend(found.notes.iter().chain(&found.changed).cloned());
    let has_found = wiring.is_flat || !wiring.levels.is_empty();
    if topology.identity.hypervisor.is_some() && found.drift.is_none() && has_found {
        notes.push(
            "In a virtual machine this may change at any time: check with --watch 3m.".to_owned(),
        );
    }
    let groups = |kind| wiring.level(kind).map_or(&[][..], |level| &level.groups);
    let lists = |kind| groups(kind).iter().map(CpuSet::to_string).collect();
    let measured = Measured {
        cpus: pairs.latency.cpus().to_vec(),
        latency_ns: (0..n)
            .map(|a| (0..n).map(|b| figure(a, b)).collect())
            .collect(),
        is_measured: (0..n)
            .map(|a| (0..n).map(|b| pairs.is_measured(a, b)).collect())
            .collect(),
        pairs: pair_records(pairs, &found.contentions),
        smt_pairs: groups(LevelKind::Smt).iter().flat_map(list_pairs).collect(),
        llc_groups: lists(LevelKind::Llc),
        packages: lists(LevelKind::Package),
        levels: level_records(wiring),
        flat: wiring.is_flat,
        cannot_tell: wiring.cannot_tell.clone(),
        notes,
        verdicts,
        effort: EffortRecord {
            pairs_measured: pairs.homes.len(),
            ..effort
        },
        pause: found.pause,
        ladder: found.ladder,
        bandwidth: found.bandwidth,
        loaded_latency: found.loaded,
        clock: found.clock,
        scheduling: found.scheduling,
        drift: found.drift,
        ..Measured::default()
    };
    (measured, contradictions)
}

fn list_pairs(group: &CpuSet) -> Vec<[usize; 2]> {
    let cpus: Vec<usize> = group.iter().collect();
    (0..cpus.len())
        .flat_map(|i| (i + 1..cpus.len()).map(move |j| (i, j)))
        .map(|(i, j)| [cpus[i], cpus[j]])
        .collect()
}

fn level_records(wiring: &Wiring) -> Vec<MeasuredLevel> {
    wiring
        .levels
        .iter()
        .map(|level| MeasuredLevel {
            kind: level.kind.into(),
            groups: level.groups.iter().map(CpuSet::to_string).collect(),
            inside_ns: level.inside_ns,
            outside_ns: level.outside_ns,
            confidence: level.confidence,
            evidence: level.evidence.clone(),
        })
        .collect()
}

fn pair_records(pairs: &Pairs, contentions: &Contentions) -> Vec<PairRecord> {
    let is_short = pairs.homes.len() <= MAX_PAIRS;
    let mut records = Vec::new();
    for (&(a, b), homes) in &pairs.homes {
        if !is_short && !contentions.contains_key(&(a, b)) {
            continue;
        }
        let ratios = contentions.get(&(a, b)).copied().unwrap_or_default();
        records.push(PairRecord {
            a: pairs.cpu(a),
            b: pairs.cpu(b),
            latency_ns: homes.clone(),
            contention_spin: ratios.spin,
            contention_integer: ratios.integer,
            contention_float: ratios.float,
        });
    }
    records
}
