//! Records round-trip through JSON, and any text is read or refused.

use super::examples::{any_figure, any_figures, any_run};
use super::*;
use pinwise_topology::Topology;
// By name: `record` has an `any` of its own.
use proptest::prelude::{any, *};

/// Text with quotes, escapes and letters of all alphabets.
fn any_text() -> impl Strategy<Value = String> {
    "[ -~\\\\\"\n\u{1b}é中]{0,8}"
}

fn any_arm() -> impl Strategy<Value = Arm> {
    let runs = || prop::collection::vec(any_run(), 0..3);
    let texts = prop::collection::vec(any_text(), 0..4);
    let figures = prop::collection::vec(any::<f64>(), 6);
    (any_text(), texts, runs(), runs(), figures, any_figure()).prop_map(
        |(name, texts, runs, other_runs, figures, figure)| Arm {
            command: texts.clone(),
            workload: WorkloadRecord {
                input: texts.first().cloned(),
                environment: texts.iter().map(|t| (t.clone(), name.clone())).collect(),
                prepare: texts.get(1).cloned(),
                conclude: None,
                timeout_s: figure,
                recipe: texts.first().cloned(),
                verify: None,
                expect: texts.get(1).cloned(),
                program: texts.first().cloned(),
            },
            placement: PlacementRecord {
                name: name.clone(),
                kind: PlacementKind::Confined,
                memory: texts.get(2).cloned().map(Into::into),
                memory_nodes: vec![0; texts.len()],
                packages: 1,
                numa_nodes: 1,
                llcs: 0,
                cores: 1,
            },
            cpus: "0".to_owned(),
            setting: SettingRecord {
                limit: figure.map(|cpus| CpuLimitRecord {
                    cpus,
                    period_s: 0.1,
                }),
                is_exclusive: figure.is_none(),
                policy: texts.first().cloned(),
                ..SettingRecord::default()
            },
            same_as: texts.clone(),
            threads: ThreadTime::from_runs(&runs),
            estimate: figure.map(|value| Estimate {
                value,
                low: None,
                high: Some(figures[0]),
            }),
            spread: figure.map(|mean| Spread {
                sd: figures[1],
                iqr: figures[2],
                cv: figures[3],
                mean,
                min: figures[4],
                max: figures[5],
            }),
            eliminated: runs.is_empty(),
            standing: texts.concat(),
            invalid: texts.get(3).cloned(),
            timed_out: None,
            trace: figure.map(|value| ArmTrace {
                tier: name.clone().into(),
                elapsed_s: value,
                sentence: name.clone(),
                notes: texts.clone(),
                figures: any_figures(value),
            }),
            name,
            other_runs,
            runs,
        },
    )
}

fn any_comparison() -> impl Strategy<Value = Comparison> {
    let arms = prop::collection::vec(any_arm(), 0..3);
    let texts = prop::collection::vec(any_text(), 6);
    let figures = prop::collection::vec(any::<f64>(), 6);
    (arms, texts, figures, any_figure(), any::<u64>()).prop_map(
        |(arms, texts, figures, figure, seed)| {
            let [id, started, name, sentence, advice, tag] = <[String; 6]>::try_from(texts)
                .unwrap_or_else(|texts| unreachable!("six texts, not {texts:?}"));
            Comparison {
                study: ComparisonStudy::Compare,
                host: any_host(&name),
                seed,
                argv: vec![tag.clone()],
                again: Some(tag.clone()),
                metric: MetricRecord {
                    name,
                    unit: tag.clone(),
                    better: Direction::Other(tag.clone()),
                    label: "a label".to_owned(),
                    better_word: tag.clone(),
                    worse_word: id.clone(),
                },
                plan: PlanRecord {
                    alpha: figures[0],
                    min_effect: figures[1],
                    precision: figure,
                    budget_s: figure,
                    max_runs: arms.first().map(|arm| arm.runs.len()),
                    open_ended: false,
                    warmup_blocks: 1,
                    judge: "p90".to_owned(),
                    score: BlockScore::Rank,
                    screened_arms: arms.len(),
                },
                baseline: id.clone(),
                contrasts: arms.iter().map(|arm| contrast(arm, &figures)).collect(),
                best: figure.map(|_| id.clone()),
                verdict: VerdictRecord {
                    kind: VerdictKind::LeaveAlone,
                    sentence: sentence.clone(),
                    advice: advice.clone(),
                    headline: figure.map(|_| HeadlineRecord {
                        change: sentence.clone(),
                        interval: sentence.clone(),
                        of: advice.clone(),
                        confidence: String::new(),
                    }),
                    commands: vec![CommandRecord {
                        what: advice.clone(),
                        line: sentence.clone(),
                    }],
                    condition: String::new(),
                    guarantee: None,
                    not_recommended: figure.map(|_| NotRecommended::QuietOnly),
                    steadiness: Some(sentence.clone()),
                    beside: Some(sentence.clone()),
                },
                stopped: figure.map(|_| Stopped::Interrupted),
                ended: "interrupted".to_owned(),
                blocks: arms.len(),
                elapsed_s: figures[3],
                service: None,
                header: Header {
                    pinwise_version: "0.1.0".to_owned(),
                    findings: vec![
                        Finding::new("drift", Severity::Warning, sentence, advice)
                            .with_evidence("figure", figures[2])
                            .with_evidence(&tag, seed),
                    ],
                    ..Header::new(id, started, vec![tag])
                },
                arms,
            }
        },
    )
}

fn any_host(name: &str) -> HostRecord {
    let topology = Topology::from_synthetic("core:2 pu:2").unwrap();
    let record = TopologyRecord::new(&topology, &[]);
    HostRecord {
        machine_spec: name.to_owned(),
        simulated: name.is_empty(),
        machine: record.machine,
        counts: record.counts,
        allowed: record.allowed,
        shape_hash: record.shape_hash,
    }
}

fn contrast(arm: &Arm, figures: &[f64]) -> ContrastRecord {
    ContrastRecord {
        arm: arm.name.clone(),
        baseline: arm.cpus.clone(),
        ratio: figures[0],
        low: Some(figures[1]),
        high: None,
        confidence: figures[2],
        p_adjusted: figures[3],
        verdict: ContrastVerdict::Other(arm.cpus.clone()),
        effect: EffectRecord::default(),
        beside: Some(arm.name.clone()),
        dropped_after: None,
        sentence: arm.name.clone(),
        more_time_s: Some(figures[4]),
        cpu_time: None,
        wall_per_cpu_time: None,
        ready_per_cpu_time: None,
        wall_per_ready_time: None,
        totals: Some(TotalsRecord {
            mean_ratio: figures[4],
            p90_ratio: figures[5],
            mean: arm.name.clone(),
            p90: String::new(),
        }),
        limit: Some(LimitRecord {
            limit: figures[0],
            outcome: GateOutcome::Passed,
            sentence: arm.name.clone(),
        }),
        others: vec![JudgedRecord {
            judge: "mean".to_owned(),
            ratio: figures[0],
            low: None,
            high: Some(figures[1]),
            effect: EffectRecord::default(),
        }],
        depends_on_load: true,
        depends_on_tail: false,
        depends_on_order: true,
        depends_on_time: false,
        by_load: Some(SplitRecord {
            first: figures[2],
            second: figures[3],
        }),
        load_levels: Some(LoadLevelsRecord {
            light: load_level(arm, figures),
            medium: None,
            heavy: load_level(arm, figures),
        }),
        by_order: None,
        by_time: None,
        spread_ratio: Some(figures[0]),
        spread_low: Some(figures[1]),
        spread_high: None,
        spread_p_adjusted: Some(figures[2]),
    }
}

fn load_level(arm: &Arm, figures: &[f64]) -> LoadLevelRecord {
    LoadLevelRecord {
        foreign_cpus: figures[4],
        ratio: figures[5],
        change: arm.name.clone(),
    }
}

#[test]
fn foreign_and_newer_records_are_refused() {
    let error = |text: &str| read::<Doctor>(text).unwrap_err().to_string();
    for (text, part) in [
        ("{", "damaged"),
        ("{}", "unknown schema ''"),
        (r#"{"schema":"pinwise.comparison/1"}"#, "not a"),
        (r#"{"schema":"pinwise.doctor/2"}"#, "newer"),
        (r#"{"schema":"pinwise.doctor/1"}"#, "damaged"),
        (&"[".repeat(100_000), "damaged"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}

proptest! {
    #[test]
    fn comparisons_round_trip(record in any_comparison()) {
        let text = serde_json::to_string(&record).unwrap();
        let again: Comparison = read(&text).unwrap();
        prop_assert_eq!(again, record);
    }

    #[test]
    fn records_without_traces_are_read(record in any_comparison()) {
        let mut value = serde_json::to_value(&record).unwrap();
        value["verdict"].as_object_mut().unwrap().remove("beside");
        for arm in value["arms"].as_array_mut().unwrap() {
            arm.as_object_mut().unwrap().remove("trace");
        }
        let again: Comparison = read(&value.to_string()).unwrap();
        prop_assert!(again.arms.iter().all(|arm| arm.trace.is_none()));
        prop_assert_eq!(again.verdict.beside, None);
    }

    #[test]
    fn stored_runs_are_adopted_without_loss(record in any_comparison(), runs in prop::collection::vec((0usize..4, any_run()), 0..6)) {
        let count = |record: &Comparison| -> usize {
            let runs = record.arms.iter().map(|arm| arm.runs.len() + arm.other_runs.len());
            runs.sum()
        };
        let known = runs.iter().filter(|(arm, _)| *arm < record.arms.len()).count();
        let mut adopted = record.clone();
        adopted.adopt_runs(runs);
        prop_assert_eq!(count(&adopted), count(&record) + known);
        let _ = (adopted.title(), adopted.host_name());
    }

    #[test]
    fn topologies_round_trip(packages in 1usize..3, cores in 1usize..5, warning in any_text()) {
        let description = format!("package:{packages} [numa(memory=1GB)] l3:1(size=1MB) core:{cores} pu:2");
        let topology = Topology::from_synthetic(&description).unwrap();
        let record = TopologyRecord::new(&topology, &[warning]);
        let text = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(read::<TopologyRecord>(&text).unwrap(), record);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(\\{\"schema\":\"pinwise\\.(comparison|topology|doctor)/[0-9]{1,11}\")?\\PC{0,40}\\}?") {
        let _ = read::<Comparison>(&text);
        let _ = read::<TopologyRecord>(&text);
        let _ = read::<Doctor>(&text);
        if let Some(schema) = SchemaName::parse(&text) {
            let printed = format!("{}/{}", schema.name, schema.version);
            prop_assert_eq!(SchemaName::parse(&printed), Some(schema));
        }
    }
}
