//! Measured machines as text.

use pinwise_report::Palette;

use super::fixture::{self, Machine};

fn render(machine: &Machine) -> String {
    pinwise_report::render_topology(&machine.topology, &machine.record, Palette::default())
}

#[track_caller]
fn check_form(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= pinwise_report::WIDTH,
            "too wide: {line}"
        );
        assert_eq!(line, line.trim_end(), "ends with spaces: {line}|");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn measured_machines_are_shown() {
    for (name, machine) in [
        ("desktop", fixture::desktop()),
        ("drifting", fixture::drifting()),
        ("large", fixture::large()),
    ] {
        let text = render(&machine);
        super::check_text(name, &text);
        check_form(&text);
    }
}

#[test]
fn colour_only_adds_to_the_text() {
    let machine = fixture::desktop();
    let colored =
        pinwise_report::render_topology(&machine.topology, &machine.record, Palette::new(true));
    let escapes = regex_lite::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    assert!(escapes.is_match(&colored));
    assert_eq!(escapes.replace_all(&colored, ""), render(&machine));
}
