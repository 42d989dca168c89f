use super::*;
use pinwise_record::examples::search as made;

/// Well-formed, without anything that is no number; where words stand.
#[track_caller]
fn drawn(record: &SearchRecord) -> String {
    let svg = search_picture(record);
    let document = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let (wide, high) = (size("width"), size("height"));
    for text in document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
    {
        let number = |name: &str| text.attribute(name).unwrap().parse::<f64>().unwrap();
        let length = crate::svg::canvas::width(text.text().unwrap_or(""), number("font-size"));
        let left = match text.attribute("text-anchor") {
            Some("end") => number("x") - length,
            Some(_) => number("x") - length / 2.0,
            None => number("x"),
        };
        let words = text.text().unwrap_or("");
        assert!(
            left >= 0.0 && left + length <= wide,
            "cut off at a side: {words}"
        );
        assert!((0.0..=high).contains(&number("y")), "cut off: {words}");
    }
    svg
}

fn count(svg: &str, class: &str) -> usize {
    svg.matches(&format!("class=\"{class}\"")).count()
}

#[test]
fn every_arm_has_its_mark() {
    for arms in [1, 5, 65, 400] {
        for is_simulated in [false, true] {
            let record = made(arms, is_simulated);
            let svg = drawn(&record);
            let titles = record.predictions.iter().filter(|arm| {
                let name = escape(&arm.arm).into_owned();
                svg.contains(&format!("<title>{name}: expected"))
            });
            assert_eq!(titles.count(), arms);
            assert_eq!(count(&svg, "default"), 1);
            assert_eq!(count(&svg, "best"), usize::from(arms > 1));
            assert_eq!(count(&svg, "regret") > 0, is_simulated);
        }
    }
}

#[test]
fn what_is_not_there_is_said() {
    let mut record = made(5, false);
    record.predictions.clear();
    record.progress.clear();
    let svg = drawn(&record);
    assert!(svg.contains("No run counts yet.") && svg.contains("No block is over yet."));
}

#[test]
fn figures_without_sense_draw_a_picture_all_the_same() {
    for bad in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -1.0,
        1e300,
        1e-300,
    ] {
        let mut record = made(6, true);
        let arm = &mut record.predictions[2];
        (arm.low, arm.high, arm.truth) = (bad, bad, Some(bad));
        record.predictions[3].predicted = bad;
        record.predictions[4].measured.as_mut().unwrap().value = bad;
        record.progress[1].predicted = bad;
        record.progress[2].high = bad;
        record.progress[3].true_regret = Some(bad);
        record.progress[4].probability_of_better = bad;
        drawn(&record);
    }
}

#[test]
fn hostile_strings_stay_text() {
    let mut record = made(3, true);
    let hostile = "</text><script>\u{1b}&\"'".repeat(20);
    record.command = vec![hostile.clone()];
    record.verdict.sentence.clone_from(&hostile);
    record.predictions[1].arm.clone_from(&hostile);
    record.progress[1].leader.clone_from(&hostile);
    record.metric.name.clone_from(&hostile);
    assert!(!drawn(&record).contains("<script"));
}
