//! Machines with made-up measurements, as probes would have found them: an SMT
//! desktop, a virtual machine that drifts, two sockets of 96 cores.
//!
//! Latencies come from the true topology with a few per cent of noise from a
//! fixed hash, so that every run and every host sees the same.

use pinwise_record::{
    Agreement, BandwidthRecord, CacheInclusion, ClockRecord, Contradiction, DriftPair, DriftRecord,
    DriftState, EffortRecord, HomeLatency, LadderPoint, LadderRecord, LevelName, LevelVerdict,
    LoadedLatencyRecord, Measured, MeasuredLevel, Median, Modes, PairRecord, PauseRecord,
    PlateauRecord, SchedulingRecord, TopologyRecord,
};
use pinwise_topology::{CpuSet, Identity, Level, Topology};

/// A machine as reported, and the record of it with what was measured.
pub(crate) struct Machine {
    pub(crate) topology: Topology,
    pub(crate) record: TopologyRecord,
}

impl Machine {
    fn new(topology: Topology, measured: Measured) -> Self {
        let mut record = TopologyRecord::new(&topology, &[]);
        record.contradictions = measured
            .verdicts
            .iter()
            .filter(|verdict| verdict.verdict == Agreement::Contradicted)
            .map(|verdict| Contradiction {
                level: verdict.level.clone(),
                claim: verdict.claim.clone(),
                measured: verdict.measured.clone(),
                confidence: verdict.confidence,
                advice: verdict.advice.clone(),
            })
            .collect();
        record.measured = Some(Box::new(measured));
        Self { topology, record }
    }
}

/// One-way latencies by the innermost unit that two CPUs share, ns.
struct Latencies {
    core: f64,
    llc: f64,
    package: f64,
    machine: f64,
}

/// 8 cores with two CPUs each, two last-level caches: all as reported, but for
/// one CPU whose PAUSE is odd.
pub(crate) fn desktop() -> Machine {
    let topology = named(
        "package:1 [numa(memory=64GB)] l3:2(size=32MB) l2:4(size=1MB) l1d:1(size=32KB) core:1 pu:2",
        "AMD Ryzen 9 (8 cores)",
        None,
    );
    let latencies = Latencies {
        core: 8.5,
        llc: 22.0,
        package: 84.0,
        machine: 84.0,
    };
    let mut measured = measured_of(&topology, &latencies, |_, _| true);
    measured.verdicts = vec![
        verdict(
            "smt",
            Agreement::Agrees,
            "8 cores have two CPUs each.",
            "8 pairs of CPUs slow each other down 1.6 to 1.8 times and exchange a line in 8.5 ns.",
            0.99,
            "",
        ),
        verdict(
            "llc",
            Agreement::Agrees,
            "CPUs 0-7 and 8-15 share an L3 cache each.",
            "Within CPUs 0-7 and 8-15 a line takes 22 ns, between them 84 ns.",
            0.98,
            "",
        ),
        verdict(
            "package",
            Agreement::CannotTell,
            "There is one package.",
            "One package has no border that latency could show.",
            0.0,
            "",
        ),
    ];
    measured.pause[5].modes = Some(Modes {
        low_ns: 14.9,
        high_ns: 41.2,
        low_share: 0.78,
    });
    figures(&mut measured);
    Machine::new(topology, measured)
}

/// Two CPUs that a hypervisor moves about, as the research machine does.
pub(crate) fn drifting() -> Machine {
    let topology = named(
        "package:1 [numa(memory=16GB)] l3:1(size=32MB) l2:2(size=512KB) l1d:1(size=32KB) core:1 pu:1",
        "AMD EPYC",
        Some("kvm"),
    );
    let latencies = Latencies {
        core: 14.4,
        llc: 36.6,
        package: 117.0,
        machine: 117.0,
    };
    let mut measured = measured_of(&topology, &latencies, |_, _| true);
    measured.levels.clear();
    measured.llc_groups.clear();
    measured.cannot_tell = Some(
        "Two CPUs have one latency, and one figure has no gap: what it is compared with are known machines.".to_owned(),
    );
    measured.notes = vec!["9 of 300 batches were stolen by the hypervisor.".to_owned()];
    measured.verdicts = vec![
        verdict(
            "llc",
            Agreement::Contradicted,
            "CPUs 0-1 share an L3 cache of 32 MiB.",
            "In 46 % of 223 s a line took 117 ns between them, as between different last-level caches, and 36.6 ns in the rest.",
            0.97,
            "Do not use LLC placements on this virtual machine: the map changed 9 times in 223 s.",
        ),
        verdict(
            "smt",
            Agreement::Contradicted,
            "CPUs 0-1 are two cores.",
            "In one of 600 samples they were SMT siblings: 14.4 ns, and a spin loop took 1.72 times as long beside the other's.",
            0.71,
            "Do not count on two whole cores.",
        ),
        verdict(
            "cache",
            Agreement::CannotTell,
            "The L3 cache has 32 MiB.",
            "The ladder has its last knee at 11 MiB; other programs may take the rest.",
            0.4,
            "",
        ),
    ];
    measured.drift = Some(drift());
    measured.effort = EffortRecord {
        budget_s: 10.0,
        spent_s: 231.4,
        pairs_measured: 1,
        batches: 8_212,
        batches_switched: 311,
        batches_stolen: 9,
        parallel_pairs: 1,
        left_out: vec![
            "Core cycles of PAUSE were not measured: there are no hardware counters.".to_owned(),
        ],
        ..EffortRecord::default()
    };
    Machine::new(topology, measured)
}

/// Two sockets of 96 cores; four leaders of each last-level cache were
/// measured, the rest is inferred.
pub(crate) fn large() -> Machine {
    let topology = named(
        "package:2 [numa(memory=384GB)] l3:12(size=32MB) l2:8(size=1MB) l1d:1(size=32KB) core:1 pu:1",
        "AMD EPYC 9654 96-Core Processor",
        None,
    );
    let latencies = Latencies {
        core: 25.0,
        llc: 25.0,
        package: 97.0,
        machine: 205.0,
    };
    let is_leader = |cpu: usize| cpu.is_multiple_of(8);
    let is_measured = |a: usize, b: usize| {
        let is_near = a / 8 == b / 8 && a % 8 < 2;
        is_near || is_leader(a) && is_leader(b)
    };
    let mut measured = measured_of(&topology, &latencies, is_measured);
    measured.verdicts = vec![
        verdict(
            "llc",
            Agreement::Agrees,
            "24 groups of 8 CPUs share an L3 cache each.",
            "24 groups of 8 CPUs exchange a line in 25 ns, with others in 97 ns or more.",
            0.99,
            "",
        ),
        verdict(
            "package",
            Agreement::Agrees,
            "CPUs 0-95 and 96-191 are packages.",
            "Within CPUs 0-95 and 96-191 a line takes 97 ns, between them 205 ns.",
            0.99,
            "",
        ),
    ];
    measured.pause.truncate(2);
    measured.effort = EffortRecord {
        budget_s: 60.0,
        spent_s: 21.8,
        pairs_measured: 444,
        pairs_skipped: 17_892,
        pairs_verified: 64,
        pairs_disagreed: 0,
        parallel_pairs: 8,
        batches: 133_200,
        ..EffortRecord::default()
    };
    Machine::new(topology, measured)
}

fn named(description: &str, model: &str, hypervisor: Option<&str>) -> Topology {
    let mut topology = Topology::from_synthetic(description).unwrap();
    topology.identity = Identity {
        hostname: Some("example".to_owned()),
        cpu_model: Some(model.to_owned()),
        vendor: Some("AuthenticAMD".to_owned()),
        arch: Some("x86_64".to_owned()),
        kernel: Some("6.12.0".to_owned()),
        hypervisor: hypervisor.map(str::to_owned),
        family: Some(25),
        model: Some(1),
        stepping: Some(1),
        microcode: Some("0xa0011d1".to_owned()),
    };
    topology
}

/// A few per cent around 1, the same for the same pair everywhere.
fn noise(a: usize, b: usize) -> f64 {
    let seed = (a.min(b) * 8191 + a.max(b)) as u64;
    let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    0.96 + 0.08 * (hash as f64 / (1u64 << 24) as f64)
}

fn share(units: &[CpuSet], a: usize, b: usize) -> bool {
    units
        .iter()
        .any(|unit| unit.contains(a) && unit.contains(b))
}

fn median(value: f64) -> Median {
    Median {
        value,
        low: Some(value * 0.98),
        high: Some(value * 1.02),
        batches: 300,
        switched: 4,
        stolen: 0,
    }
}

fn verdict(
    level: &str,
    verdict: Agreement,
    claim: &str,
    measured: &str,
    confidence: f64,
    advice: &str,
) -> LevelVerdict {
    LevelVerdict {
        level: level.to_owned().into(),
        verdict,
        alone: None,
        claim: claim.to_owned(),
        measured: measured.to_owned(),
        confidence,
        advice: advice.to_owned(),
    }
}

fn measured_of(
    topology: &Topology,
    latencies: &Latencies,
    is_measured: impl Fn(usize, usize) -> bool,
) -> Measured {
    let cpus: Vec<usize> = topology.online.iter().collect();
    let of_pair = |a: usize, b: usize| {
        let typical = if share(&topology.cores, a, b) {
            latencies.core
        } else if share(&topology.llcs, a, b) {
            latencies.llc
        } else if share(&topology.packages, a, b) {
            latencies.package
        } else {
            latencies.machine
        };
        (a != b).then(|| (typical * noise(a, b) * 10.0).round() / 10.0)
    };
    let rows = |a: &usize| cpus.iter().map(|&b| of_pair(*a, b)).collect();
    let known = |a: usize, b: usize| a != b && (is_measured(a, b) || is_measured(b, a));
    let mut pairs = Vec::new();
    for (&a, &b) in cpus.iter().flat_map(|a| cpus.iter().map(move |b| (a, b))) {
        if a < b && known(a, b) {
            pairs.push(pair(
                a,
                b,
                of_pair(a, b).unwrap(),
                share(&topology.cores, a, b),
            ));
        }
    }
    Measured {
        latency_ns: cpus.iter().map(rows).collect(),
        is_measured: cpus
            .iter()
            .map(|&a| cpus.iter().map(|&b| known(a, b)).collect())
            .collect(),
        pairs,
        smt_pairs: topology.cores.iter().filter_map(siblings).collect(),
        llc_groups: lists(&topology.llcs),
        packages: lists(&topology.packages),
        levels: levels(topology, latencies),
        pause: cpus.iter().map(|&cpu| pause(cpu)).collect(),
        effort: EffortRecord {
            budget_s: 10.0,
            spent_s: 1.42,
            pairs_measured: cpus.len() * (cpus.len() - 1) / 2,
            batches: 36_000,
            batches_switched: 480,
            parallel_pairs: 1,
            ..EffortRecord::default()
        },
        cpus,
        ..Measured::default()
    }
}

fn pair(a: usize, b: usize, latency_ns: f64, are_siblings: bool) -> PairRecord {
    PairRecord {
        a,
        b,
        latency_ns: vec![HomeLatency {
            home_node: None,
            median: median(latency_ns),
        }],
        contention_spin: Some(median(if are_siblings { 1.72 } else { 1.02 })),
        contention_integer: None,
        contention_float: None,
    }
}

fn siblings(core: &CpuSet) -> Option<[usize; 2]> {
    let cpus: Vec<usize> = core.iter().collect();
    <[usize; 2]>::try_from(cpus).ok()
}

fn lists(units: &[CpuSet]) -> Vec<String> {
    units.iter().map(ToString::to_string).collect()
}

fn levels(topology: &Topology, latencies: &Latencies) -> Vec<MeasuredLevel> {
    let wanted = [
        (LevelName::Smt, Level::Core, latencies.core, latencies.llc),
        (LevelName::Llc, Level::Llc, latencies.llc, latencies.package),
        (
            LevelName::Package,
            Level::Package,
            latencies.package,
            latencies.machine,
        ),
    ];
    wanted
        .into_iter()
        .filter_map(|(kind, level, inside_ns, outside_ns)| {
            let units = topology.units(level);
            let divides = units.len() > 1 && units.iter().any(|unit| unit.len() > 1);
            divides.then(|| MeasuredLevel {
                kind,
                groups: lists(&units),
                inside_ns,
                outside_ns: Some(outside_ns),
                confidence: 0.99,
                evidence: format!(
                    "The slowest pair within is {:.1} times faster than the fastest one outside.",
                    0.96 / 1.04 * outside_ns / inside_ns
                ),
            })
        })
        .collect()
}

fn pause(cpu: usize) -> PauseRecord {
    let pause_ns = (15.1 * noise(cpu, cpu) * 10.0).round() / 10.0;
    PauseRecord {
        cpu,
        pause_ns: median(pause_ns),
        pause_cycles: Some(median((pause_ns * 43.0).round() / 10.0)),
        modes: None,
    }
}

/// Caches, memory, clocks and scheduler of a desktop.
fn figures(measured: &mut Measured) {
    let latency_of = |kib: usize| match kib {
        ..=32 => 0.9,
        33..=1024 => 3.1,
        1025..=28_000 => 11.4,
        _ => 82.0,
    };
    let sizes = (2..=18).map(|power| 1usize << power);
    measured.ladder = Some(LadderRecord {
        cpu: 0,
        points: sizes
            .map(|kib| LadderPoint {
                bytes: kib * 1024,
                latency_ns: median(latency_of(kib)),
            })
            .collect(),
        plateaus: [
            (Some(1), 0.9, Some(32 << 10), Some(32 << 10)),
            (Some(2), 3.1, Some(1 << 20), Some(1 << 20)),
            (Some(3), 11.4, Some(26 << 20), Some(32 << 20)),
            (None, 82.0, None, None),
        ]
        .map(
            |(level, latency_ns, effective_bytes, reported_bytes)| PlateauRecord {
                level,
                latency_ns,
                effective_bytes,
                reported_bytes,
            },
        )
        .to_vec(),
        hint: Some(CacheInclusion::Exclusive),
    });
    for (cpus, factor) in [("0", 1.0), ("0-7", 1.4), ("0-15", 1.8)] {
        for (stream, gb_per_s) in [
            ("read", 38.2),
            ("write", 21.7),
            ("copy", 27.9),
            ("triad", 29.3),
        ] {
            measured.bandwidth.push(BandwidthRecord {
                stream: stream.to_owned().into(),
                cpus: cpus.to_owned(),
                node: None,
                gb_per_s: median(gb_per_s * factor),
            });
        }
    }
    for (loaders, background, latency_ns) in
        [("", 0.0, 82.0), ("1-7", 31.0, 97.5), ("1-15", 52.1, 164.0)]
    {
        measured.loaded_latency.push(LoadedLatencyRecord {
            cpu: 0,
            loaders: loaders.to_owned(),
            background_gb_per_s: background,
            latency_ns: median(latency_ns),
        });
    }
    measured.clock = Some(ClockRecord {
        tick_ghz: Some(3.393),
        core_ghz: Some(4.31),
        step_ns: Some(10.0),
    });
    measured.scheduling = Some(SchedulingRecord {
        context_switch_ns: Some(median(1_290.0)),
        futex_wake_ns: Some(median(41_300.0)),
    });
}

fn drift() -> DriftRecord {
    let state =
        |kind: &str, latency_ns: f64, contention, share, visits, median_dwell_s| DriftState {
            kind: kind.to_owned().into(),
            latency_ns,
            contention: Some(contention),
            share,
            visits,
            median_dwell_s,
        };
    // Samples of 0.37 s; a state is kept for a while.
    let sequence = [
        (0, 31),
        (1, 84),
        (0, 120),
        (1, 40),
        (0, 52),
        (2, 1),
        (0, 70),
        (1, 152),
        (0, 50),
    ];
    let mut samples = Vec::new();
    for (index, length) in sequence {
        let latency_ns = [36.6, 117.0, 14.4][index];
        let contention = [1.03, 1.02, 1.72][index];
        for _ in 0..length {
            let time = samples.len() as f64 * 0.37;
            samples.push((time, latency_ns, Some(contention), index));
        }
    }
    DriftRecord {
        watched_s: 223.0,
        pairs: vec![DriftPair {
            a: 0,
            b: 1,
            states: vec![
                state("llc", 36.6, 1.03, 0.54, 5, 12.7),
                state("package", 117.0, 1.02, 0.46, 3, 31.1),
                state("smt", 14.4, 1.72, 0.002, 1, 0.37),
            ],
            samples,
        }],
        changes: 9,
        median_dwell_s: Some(12.7),
        longest_dwell_s: 85.0,
        valid_s: Some(12.7),
        sentence: "The wiring changed 9 times in 223 s: what was measured is true for about 13 s."
            .to_owned(),
    }
}
