//! Any record can be shown: with ragged matrices, CPUs that do not exist, figures that are not
//! numbers, and strings that look like markup.

use pinwise_record::{
    Agreement, BandwidthRecord, ClockRecord, Contradiction, DriftPair, DriftRecord, DriftState,
    EffortRecord, HomeLatency, LadderPoint, LadderRecord, LevelVerdict, LoadedLatencyRecord,
    Measured, MeasuredLevel, Median, Modes, PairRecord, PauseRecord, PlateauRecord,
    SchedulingRecord, TopologyDiff, TopologyRecord,
};
use pinwise_report::Palette;
use pinwise_topology::Topology;
use proptest::prelude::*;
use roxmltree::{Document, ParsingOptions};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9,-]{0,12}",
        Just("smt".to_owned()),
        Just("llc".to_owned()),
        Just("<b>\u{1b}[31m\n\"".to_owned()),
    ]
}

fn any_figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.1..500.0,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY)
    ]
}

fn any_median() -> impl Strategy<Value = Median> {
    let ends = (
        prop::option::of(any_figure()),
        prop::option::of(any_figure()),
    );
    (any_figure(), ends, 0..9usize).prop_map(|(value, (low, high), batches)| Median {
        value,
        low,
        high,
        batches,
        switched: batches,
        stolen: 0,
    })
}

fn any_level() -> impl Strategy<Value = MeasuredLevel> {
    let groups = prop::collection::vec(any_text(), 0..4);
    let figures = (any_figure(), prop::option::of(any_figure()), any_figure());
    (any_text(), groups, figures, any_text()).prop_map(|(kind, groups, figures, evidence)| {
        MeasuredLevel {
            kind: kind.into(),
            groups,
            inside_ns: figures.0,
            outside_ns: figures.1,
            confidence: figures.2,
            evidence,
        }
    })
}

fn any_verdict() -> impl Strategy<Value = LevelVerdict> {
    let verdict = prop_oneof![
        Just(Agreement::Agrees),
        Just(Agreement::Contradicted),
        Just(Agreement::CannotTell),
    ];
    (any_text(), verdict, any_text(), any_figure(), any_text()).prop_map(
        |(level, verdict, claim, confidence, advice)| LevelVerdict {
            level: level.into(),
            verdict,
            alone: None,
            measured: claim.clone(),
            claim,
            confidence,
            advice,
        },
    )
}

fn any_drift() -> impl Strategy<Value = DriftRecord> {
    let state = (any_text(), any_figure(), any_figure(), any_figure());
    let states = prop::collection::vec(state, 0..3);
    let samples = prop::collection::vec((any_figure(), any_figure(), 0..40usize), 0..130);
    let figures = prop::collection::vec(any_figure(), 3);
    (states, samples, figures, any_text(), 0..3usize).prop_map(
        |(states, samples, figures, sentence, changes)| DriftRecord {
            watched_s: figures[0],
            pairs: vec![DriftPair {
                a: 0,
                b: usize::MAX,
                states: states
                    .into_iter()
                    .map(|(kind, latency_ns, share, median_dwell_s)| DriftState {
                        kind: kind.into(),
                        latency_ns,
                        contention: Some(share),
                        share,
                        visits: 1,
                        median_dwell_s,
                    })
                    .collect(),
                samples: samples
                    .into_iter()
                    .map(|(time, latency, state)| (time, latency, None, state))
                    .collect(),
            }],
            changes,
            median_dwell_s: Some(figures[1]),
            longest_dwell_s: figures[2],
            valid_s: None,
            sentence,
        },
    )
}

fn build_pauses(cpu: usize, medians: &[Median], figures: &[f64]) -> Vec<PauseRecord> {
    let with_two_costs = PauseRecord {
        cpu,
        pause_ns: medians[2],
        pause_cycles: Some(medians[3]),
        modes: Some(Modes {
            low_ns: figures[0],
            high_ns: figures[1],
            low_share: figures[2],
        }),
    };
    let plain = PauseRecord {
        cpu: 3,
        pause_ns: medians[3],
        ..PauseRecord::default()
    };
    vec![with_two_costs, plain]
}

fn build_plateau(latency_ns: f64) -> PlateauRecord {
    PlateauRecord {
        level: Some(1),
        latency_ns,
        effective_bytes: Some(u64::MAX),
        reported_bytes: None,
    }
}

fn any_figures() -> impl Strategy<Value = Measured> {
    let medians = prop::collection::vec(any_median(), 8);
    let texts = prop::collection::vec(any_text(), 6);
    let figures = prop::collection::vec(any_figure(), 6);
    let cpu = prop_oneof![0..6usize, any::<usize>()];
    (medians, texts, figures, cpu).prop_map(|(medians, texts, figures, cpu)| Measured {
        pairs: vec![PairRecord {
            a: cpu,
            b: 1,
            latency_ns: vec![
                HomeLatency {
                    home_node: None,
                    median: medians[0]
                };
                2
            ],
            contention_spin: Some(medians[1]),
            contention_integer: None,
            contention_float: None,
        }],
        pause: build_pauses(cpu, &medians, &figures),
        ladder: Some(LadderRecord {
            cpu,
            points: medians
                .iter()
                .map(|&latency_ns| LadderPoint {
                    bytes: cpu,
                    latency_ns,
                })
                .collect(),
            plateaus: vec![build_plateau(figures[3])],
            hint: texts.first().cloned().map(Into::into),
        }),
        bandwidth: vec![BandwidthRecord {
            stream: texts[1].clone().into(),
            cpus: texts[2].clone(),
            node: Some(cpu),
            gb_per_s: medians[4],
        }],
        loaded_latency: vec![LoadedLatencyRecord {
            cpu,
            loaders: texts[3].clone(),
            background_gb_per_s: figures[4],
            latency_ns: medians[5],
        }],
        clock: Some(ClockRecord {
            tick_ghz: Some(figures[5]),
            core_ghz: None,
            step_ns: Some(0.0),
        }),
        scheduling: Some(SchedulingRecord {
            context_switch_ns: Some(medians[6]),
            futex_wake_ns: Some(medians[7]),
        }),
        notes: texts[4..].to_vec(),
        cannot_tell: texts.last().cloned(),
        effort: EffortRecord {
            budget_s: figures[0],
            spent_s: figures[1],
            pairs_skipped: cpu,
            left_out: texts,
            ..EffortRecord::default()
        },
        ..Measured::default()
    })
}

fn any_measured() -> impl Strategy<Value = Measured> {
    let cpus = prop::collection::vec(prop_oneof![0..9usize, any::<usize>()], 0..40);
    let entry = prop::option::of(any_figure());
    let rows = prop::collection::vec(prop::collection::vec(entry, 0..42), 0..42);
    let flags = prop::collection::vec(prop::collection::vec(any::<bool>(), 0..42), 0..42);
    let levels = prop::collection::vec(any_level(), 0..4);
    let verdicts = prop::collection::vec(any_verdict(), 0..4);
    let drift = prop::option::of(any_drift());
    (any_figures(), cpus, rows, flags, levels, verdicts, drift).prop_map(
        |(figures, cpus, latency_ns, is_measured, levels, verdicts, drift)| Measured {
            cpus,
            latency_ns,
            is_measured,
            levels,
            verdicts,
            drift,
            ..figures
        },
    )
}

fn any_record() -> impl Strategy<Value = (Topology, TopologyRecord)> {
    let description = prop_oneof![
        Just("pu:1"),
        Just("core:2 pu:2"),
        Just("package:2 [numa(memory=1GB)] l3:2(size=1MB) core:2 pu:2"),
    ];
    (description, any_measured(), any_text(), any_text()).prop_map(
        |(description, measured, name, level)| {
            let mut topology = Topology::from_synthetic(description).unwrap();
            topology.identity.hostname = Some(name.clone());
            topology.identity.cpu_model = Some(name.clone());
            let mut record = TopologyRecord::new(&topology, &[name]);
            record.contradictions = vec![Contradiction {
                level: level.into(),
                claim: record.warnings[0].clone(),
                measured: String::new(),
                confidence: f64::NAN,
                advice: record.warnings[0].clone(),
            }];
            record.measured = Some(Box::new(measured));
            (topology, record)
        },
    )
}

fn check_markup(text: &str) -> Result<(), TestCaseError> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let parsed = Document::parse_with_options(text, options);
    prop_assert!(parsed.is_ok(), "{:?}: {text}", parsed.err());
    // Coordinates and latencies are all finite numbers.
    prop_assert!(!text.contains("\"NaN") && !text.contains("\"inf"), "{text}");
    Ok(())
}

fn check_text(text: &str) -> Result<(), TestCaseError> {
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    prop_assert_eq!(bad, None, "{:?}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_record_is_shown((topology, record) in any_record()) {
        check_text(&pinwise_report::render_topology(&topology, &record, Palette::default()))?;
        let xml = pinwise_report::render_topology_xml(&topology, &record);
        check_markup(&xml)?;
        let (read, _) = Topology::from_hwloc_xml(&xml).unwrap();
        prop_assert_eq!(read.shape_hash(), topology.shape_hash());
        prop_assert_eq!(read.counts(), topology.counts());
    }

    #[test]
    fn no_record_differs_from_itself((_, record) in any_record()) {
        let diff = TopologyDiff::compare(["a", "a"], &record, &record);
        prop_assert!(diff.same, "{:?}", diff.differences);
    }

    #[test]
    fn any_two_records_are_compared((_, a) in any_record(), (_, b) in any_record()) {
        let (there, back) = (TopologyDiff::compare(["a", "b"], &a, &b), TopologyDiff::compare(["b", "a"], &b, &a));
        prop_assert_eq!(there.differences.len(), back.differences.len());
        prop_assert_eq!(there.same, there.differences.is_empty());
        check_text(&pinwise_report::render_topology_diff(&there, Palette::default()))?;
        let text = serde_json::to_string(&there).unwrap();
        let again: TopologyDiff = pinwise_record::read(&text).unwrap();
        prop_assert_eq!(again.differences.len(), there.differences.len());
    }
}
