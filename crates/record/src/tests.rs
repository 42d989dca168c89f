//! Records round-trip through JSON, and any text is read or refused.

use super::examples::{any_figures, any_run};
use super::*;
use pinwise_topology::Topology;
// By name: `record` has an `any` of its own.
use proptest::prelude::{any, *};
use serde_json::Value;

/// Text with quotes, escapes and letters of all alphabets.
fn any_text() -> impl Strategy<Value = String> {
    "[ -~\\\\\"\n\u{1b}é中]{0,8}"
}

/// Texts that are of a closed set.
const CLOSED: [&str; 6] = ["schema", "study", "kind", "phase", "severity", "stopped"];

/// Replaces each other text, and each figure with decimals.
fn replace_all(value: &mut Value, texts: &[String], figures: &[f64], next: &mut usize) {
    *next += 1;
    match value {
        Value::String(text) => text.clone_from(&texts[*next % texts.len()]),
        Value::Number(number) if number.is_f64() => *value = figures[*next % figures.len()].into(),
        Value::Array(list) => {
            for item in list {
                replace_all(item, texts, figures, next);
            }
        }
        Value::Object(fields) => {
            let is_open = |(name, _): &(&String, &mut Value)| !CLOSED.contains(&name.as_str());
            for (_, item) in fields.iter_mut().filter(is_open) {
                replace_all(item, texts, figures, next);
            }
        }
        _ => {}
    }
}

const COMPARISONS: [&str; 5] = [
    include_str!("../../../tests/data/records/comparison.json"),
    include_str!("../../../tests/data/records/comparison-failed.json"),
    include_str!("../../../tests/data/records/comparison-higher.json"),
    include_str!("../../../tests/data/records/comparison-shell.json"),
    include_str!("../../../tests/data/records/comparison-undecided.json"),
];

/// A stored comparison with any texts and figures, its first arm with a trace.
fn any_comparison() -> impl Strategy<Value = Comparison> {
    let texts = prop::collection::vec(any_text(), 7);
    let figures = prop::collection::vec(any::<f64>(), 11);
    (0..COMPARISONS.len(), texts, figures).prop_map(|(which, texts, figures)| {
        let mut record: Value = serde_json::from_str(COMPARISONS[which]).unwrap();
        replace_all(&mut record, &texts, &figures, &mut 0);
        let mut record: Comparison = read(&record.to_string()).unwrap();
        record.arms[0].trace = Some(ArmTrace {
            tier: texts[0].clone().into(),
            elapsed_s: figures[0],
            sentence: texts[1].clone(),
            notes: texts.clone(),
            figures: any_figures(figures[1]),
        });
        record
    })
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
}

#[test]
fn lists_tell_comparisons_of_other_figures_apart() {
    let read = |text: &str| -> Comparison { serde_json::from_str(text).unwrap() };
    let wall = read(include_str!("../../../tests/data/records/comparison.json"));
    assert_eq!(wall.entry().title, wall.title());
    let own = read(include_str!(
        "../../../tests/data/records/comparison-higher.json"
    ));
    let title = own.entry().title;
    assert!(title.ends_with(&own.metric.label) && title.len() > own.metric.label.len());
    assert_ne!(title, own.title());
}

#[test]
fn a_missed_precision_is_part_of_the_ending() {
    let text = include_str!("../../../tests/data/records/comparison-undecided.json");
    let mut record: Comparison = serde_json::from_str(text).unwrap();
    record.stopped = Some(Stopped::Budget);
    record.plan.precision = None;
    assert_eq!(record.ending(), "time budget used up");
    record.plan.precision = Some(0.02);
    let missed = "time budget used up before the precision of 2.0 % was reached";
    // Four times as wide takes sixteen times as long.
    record.elapsed_s = 30.0;
    record.verdict.kind = VerdictKind::Best;
    for contrast in &mut record.contrasts {
        let half_width = 4.0 * 0.02_f64.ln_1p();
        (contrast.low, contrast.high) = (Some((-half_width).exp()), Some(half_width.exp()));
    }
    assert_eq!(
        record.ending(),
        format!("{missed} (it takes about 8 min in all)")
    );
    record.contrasts[0].high = None;
    assert_eq!(record.ending(), missed);
}

#[test]
fn a_withheld_verdict_has_its_reason_in_the_row() {
    let text = include_str!("../../../tests/data/records/comparison-undecided.json");
    let base: Comparison = serde_json::from_str(text).unwrap();
    let standing = |change: fn(&mut Comparison)| {
        let mut record = base.clone();
        record.contrasts[0].verdict = ContrastVerdict::Undecided;
        change(&mut record);
        record.conclude();
        let name = &record.contrasts[0].arm;
        let arm = record.arms.iter().find(|arm| arm.name == *name);
        arm.unwrap().standing.clone()
    };
    assert_eq!(standing(|_| ()), "undecided");
    let time = standing(|record| record.contrasts[0].depends_on_time = true);
    assert_eq!(time, "withheld: time");
    let tail = standing(|record| record.contrasts[0].depends_on_tail = true);
    assert_eq!(tail, "withheld: tail");
    let order = standing(|record| {
        record.contrasts[0].depends_on_time = true;
        record.contrasts[0].depends_on_order = true;
    });
    assert_eq!(order, "withheld: order", "the headline names this one, too");
    // Load that changes the size alone withholds nothing.
    let load = |second: f64| {
        let mut record = base.clone();
        record.contrasts[0].verdict = ContrastVerdict::Undecided;
        record.contrasts[0].depends_on_load = true;
        record.contrasts[0].by_load = Some(SplitRecord { first: 0.9, second });
        record.conclude();
        let name = &record.contrasts[0].arm;
        let arm = record.arms.iter().find(|arm| arm.name == *name);
        arm.unwrap().standing.clone()
    };
    assert_eq!(load(1.1), "withheld: load");
    assert_eq!(load(0.95), "undecided");
    // Without an interval there is nothing to withhold.
    let open = standing(|record| {
        record.contrasts[0].depends_on_time = true;
        record.contrasts[0].low = None;
    });
    assert_eq!(open, "undecided");
}
