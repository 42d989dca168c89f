use super::*;
use crate::profile::tests::{record, spinning};
use pinwise_profile::examples::Scene;

/// Rectangles of calls: class, x, width, row from below, title.
fn drawn(drawing: &str) -> Vec<(String, f64, f64, f64, String)> {
    let document = roxmltree::Document::parse(drawing).unwrap();
    let frames = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("frame"));
    frames
        .map(|frame| {
            let child = |name: &str| frame.children().find(|c| c.has_tag_name(name)).unwrap();
            let rect = child("rect");
            let figure = |name: &str| rect.attribute(name).unwrap().parse().unwrap();
            (
                rect.attribute("class").unwrap().to_owned(),
                figure("x"),
                figure("width"),
                figure("y"),
                child("title").text().unwrap().to_owned(),
            )
        })
        .collect()
}

#[test]
fn widths_are_proportional_to_time() {
    let drawing = flame_graph(&record(spinning(760), 50.0));
    let frames = drawn(&drawing);
    let of = |title: &str| frames.iter().find(|f| f.4.starts_with(title)).unwrap();
    assert!((of("main (").2 - WIDTH).abs() < 0.2);
    assert!((of("waiting in a spin hint").2 - 0.76 * WIDTH).abs() < 0.2);
    assert!((of("work (").2 - 0.2 * WIDTH).abs() < 0.2);
    assert_eq!(of("waiting in a spin hint").0, "pause");
    assert_eq!(of("do_read").0, "kernel");
    // Called ones stand on their callers.
    let (main, work, read) = (of("main ("), of("work ("), of("do_read"));
    assert!((main.3 - work.3 - ROW).abs() < 0.2 && (work.3 - read.3 - ROW).abs() < 0.2);
    assert!(read.1 >= work.1 && read.1 + read.2 <= work.1 + work.2 + 0.2);
    let title = &of("do_read").4;
    assert!(
        title.contains("120 ms of 1.00 s (12.0 %), 120 samples"),
        "{title}"
    );
    assert!(title.contains("2.40 ms per request"), "{title}");
    assert!(!drawing.contains("<script") && !drawing.contains("href"));
}

#[test]
fn what_is_too_narrow_is_counted() {
    let scene = Scene::new("prog")
        .stack(&["main", "large"], 1_000_000)
        .stack(&["main", "small"], 3);
    let drawing = flame_graph(&record(scene, 1.0));
    assert!(drawing.contains("Not drawn: 1 call,"), "{drawing}");
    assert!(drawing.contains("3.00 ms in all"), "{drawing}");
}

#[test]
fn very_deep_stacks_are_cut() {
    let names: Vec<String> = (0..300).map(|depth| format!("f{depth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawing = flame_graph(&record(Scene::new("prog").stack(&names, 10), 1.0));
    assert_eq!(drawn(&drawing).len(), DEEPEST + 1);
    assert!(drawing.contains("Not drawn: 1 call,"), "{drawing}");
}

#[test]
fn colours_tell_what_changed_in_both_directions() {
    let before = record(
        Scene::new("prog")
            .stack(&["main", "same"], 5000)
            .stack(&["main", "gone"], 3000)
            .stack(&["main", "rare"], 60),
        1.0,
    );
    let after = record(
        Scene::new("prog")
            .stack(&["main", "same"], 5000)
            .stack(&["main", "came"], 4000)
            .stack(&["main", "rare"], 120),
        1.0,
    );
    let diff = ProfileDiff::between(&before, &after).unwrap();
    let frames = drawn(&flame_graph_diff(&diff));
    let of = |name: &str| {
        let all = frames.iter().filter(|f| f.4.starts_with(name));
        all.map(|f| f.0.as_str()).collect::<Vec<&str>>()
    };
    assert_eq!(of("same ("), ["flat", "flat"]);
    assert_eq!(of("came ("), ["up3"]);
    assert_eq!(of("gone ("), ["down3"]);
    assert_eq!(of("rare ("), ["up1", "up1"]);
    let gone = frames.iter().find(|f| f.4.starts_with("gone (")).unwrap();
    assert!((gone.2 - WIDTH * 3000.0 / 8060.0).abs() < 0.2);
    assert!(gone.4.contains("−3.00 s per request"), "{}", gone.4);
}
