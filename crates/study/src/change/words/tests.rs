//! Sentences on two records.

use super::*;
use crate::change::empty_figure;

fn figure(name: &str, a: Option<f64>, b: Option<f64>) -> FigureChange {
    FigureChange {
        a,
        b,
        ratio: a.zip(b).map(|(a, b)| b / a),
        ..empty_figure(name, "s")
    }
}

fn with_interval(
    figure: FigureChange,
    low: f64,
    high: f64,
    verdict: ChangeVerdict,
) -> FigureChange {
    FigureChange {
        low: Some(low),
        high: Some(high),
        verdict,
        ..figure
    }
}

fn example() -> Comparison {
    let text = include_str!("../../../../../tests/data/records/comparison.json");
    serde_json::from_str(text).unwrap()
}

#[test]
fn arms_of_one_side_are_counted() {
    let arm = |name: &str, a, b| FigureChange {
        over: Some("os-default".to_owned()),
        ..figure(name, a, b)
    };
    let alone = [
        arm("x", Some(1.0), None),
        arm("y", None, Some(1.0)),
        arm("z", None, Some(2.0)),
    ];
    let record = example();
    let conclusion = conclude_arms([&record, &record], &alone, false);
    assert_eq!(
        conclusion.sentence,
        "A and B have no arm in common: 1 only in A, 2 only in B."
    );
}

#[test]
fn a_changed_program_is_to_be_compared_in_one_experiment() {
    let lost = FigureChange {
        over: Some("os-default".to_owned()),
        shift: Some(ArmShift::AdvantageLost),
        ..figure("one-per-core", Some(0.8), Some(1.0))
    };
    let record = example();
    let conclude =
        |is_other| conclude_arms([&record, &record], std::slice::from_ref(&lost), is_other);
    let same = conclude(false);
    assert_eq!(same.sentence, "one-per-core no longer beats os-default.");
    assert_eq!(
        same.commands[0].line,
        "pinwise compare --machine sim:desktop.toml --max-runs 10 -- pigz -p 8 -k access.log"
    );
    let other = conclude(true);
    assert!(other.advice.contains("--command OLD --command NEW"));
    assert!(other.commands.is_empty());
}

#[test]
fn the_figure_that_changed_most_is_named() {
    let [x, y] = [
        figure("x", Some(0.5), Some(0.25)),
        figure("y", Some(1.0), Some(1.1)),
    ];
    let figures = [
        with_interval(y, 1.0, 1.2, ChangeVerdict::CannotTell),
        with_interval(x, 0.4, 0.6, ChangeVerdict::Lower),
    ];
    let sentence = |figures: &[FigureChange]| conclude_figures(figures).sentence;
    assert_eq!(
        sentence(&figures),
        "B differs from A in 1 of 2 figures: x −50.0 % (−60.0 to −40.0 %)."
    );
    assert_eq!(
        sentence(&figures[..1]),
        "No difference between A and B is shown; the largest: y +10.0 % (0 to +20.0 %)."
    );
    assert_eq!(
        sentence(&[figure("time lost", Some(1.0), Some(17.4))]),
        "No verdict: single records do not show what is chance. Largest difference: time lost ×17.4."
    );
    assert_eq!(
        sentence(&[figure("x", Some(1.0), Some(1.000_001))]),
        "B shows the same as A."
    );
}

#[test]
fn gates_are_not_compared_with_each_other() {
    let conclusion = conclude_gates(&[figure("parse", Some(0.6), Some(-0.2))]);
    assert_eq!(
        conclusion.sentence,
        "Each gate compares its own two builds: parse +0.6 %, then −0.2 %."
    );
    assert_eq!(
        conclusion.commands[0].line,
        "pinwise record history --trend parse"
    );
}
