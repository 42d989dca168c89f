//! Sequences of keys and their effects.

use super::*;
use pinwise_record::TopThread;
use pinwise_report::top::Order;
use proptest::prelude::*;

fn record() -> TopRecord {
    let thread = |tid: i32, name: &str, cpu: f64| TopThread {
        thread: tid,
        name: Some(name.to_owned()),
        cpu_percent: Some(cpu),
        ..TopThread::default()
    };
    TopRecord {
        threads: vec![
            thread(11, "alpha", 10.0),
            thread(12, "beta", 90.0),
            thread(13, "gamma", 50.0),
        ],
        ..TopRecord::default()
    }
}

const LIMITS: ScrollLimits = ScrollLimits {
    page: 10,
    cpu_rows: 3,
};

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Presses characters, `\n` for Enter, `\u{1b}` for Esc, `\u{8}` for the key
/// that deletes; returns the last action.
fn press_all(view: &mut View, keys: &str) -> Action {
    let record = record();
    let mut last = Action::Nothing;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            '\t' => KeyCode::Tab,
            c => KeyCode::Char(c),
        };
        last = press(view, &record, key(code), LIMITS);
    }
    last
}

#[track_caller]
fn check(keys: &str, expected: &Action) -> View {
    let mut view = View {
        interval: Duration::from_secs(1),
        ..View::default()
    };
    assert_eq!(press_all(&mut view, keys), *expected, "{keys:?}");
    view
}

#[test]
fn q_and_ctrl_c_quit() {
    check("q", &Action::Quit);
    check("\u{1b}", &Action::Quit);
    let mut view = check("p", &Action::PreviewPin);
    let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(press(&mut view, &record(), stop, LIMITS), Action::Quit);
}

#[test]
fn keys_sort_pause_and_change_the_interval() {
    assert_eq!(check("s", &Action::Nothing).order, Order::Migrations);
    assert_eq!(check("<", &Action::Nothing).order, Order::Name);
    assert_eq!(check(">>>>>", &Action::Nothing).order, Order::Cpu);
    assert!(check(" ", &Action::Nothing).is_paused);
    assert!(!check("  ", &Action::Nothing).is_paused);
    let view = check("+", &Action::Nothing);
    assert_eq!(view.interval, Duration::from_secs(2));
    let view = check(&"-".repeat(40), &Action::Nothing);
    assert_eq!(view.interval, *INTERVALS.start());
}

/// A letter closes the help and does nothing else.
#[test]
fn help() {
    let view = check("?u", &Action::Nothing);
    assert!(!view.shows_help);
    assert!(check("?", &Action::Nothing).shows_help);
}

#[test]
fn typed_text_filters_threads() {
    assert_eq!(check("fam", &Action::Nothing).filter, "am");
    assert_eq!(check("/am\u{8}\n", &Action::Nothing).filter, "a");
    assert_eq!(check("/am\u{1b}", &Action::Nothing).filter, "");
    let view = check("/q", &Action::Nothing);
    assert_eq!(view.filter, "q");
    assert!(view.arrange_threads(&record()).is_empty());
}

#[test]
fn pins_apply_to_the_chosen_thread() {
    let pin = |thread: i32, text: &str| Action::Pin {
        thread,
        text: text.to_owned(),
    };
    // The busiest is the first.
    check("p0-3\n", &pin(12, "0-3"));
    check("jp1\n", &pin(13, "1"));
    check("jjjjkp1\n", &pin(13, "1"));
    check("p1\u{1b}", &Action::Nothing);
    check("p1", &Action::PreviewPin);
    // A new order does not change who was chosen.
    check("jsp1\n", &pin(13, "1"));
    let view = check("/zzz\np", &Action::Nothing);
    assert!(view.message.unwrap().contains("no thread"));
    check("u", &Action::Unpin);
    check("P", &Action::ToggleKeep);
}

#[test]
fn arrows_and_pages_move_the_selection() {
    let mut view = View::default();
    let record = record();
    let mut at = |code: KeyCode| {
        press(&mut view, &record, key(code), LIMITS);
        view.chosen
    };
    assert_eq!(at(KeyCode::End), Some(11));
    assert_eq!(at(KeyCode::Down), Some(11));
    assert_eq!(at(KeyCode::PageUp), Some(12));
    assert_eq!(at(KeyCode::PageDown), Some(11));
    assert_eq!(at(KeyCode::Home), Some(12));
    let view = check("\tjjjjjj", &Action::Nothing);
    assert_eq!((view.focus, view.cpu_top), (Focus::Cpus, 3));
    let view = check("\tjj\t", &Action::Nothing);
    assert_eq!((view.focus, view.cpu_top), (Focus::Threads, 0));
}

proptest! {
    #[test]
    fn any_sequence_of_keys_is_handled(keys in "[\\PC\n\u{1b}\u{8}\t]{0,40}", extra in 0u16..400) {
        let mut view = View::default();
        press_all(&mut view, &keys);
        let is_typing = view.prompt.is_some();
        press(&mut view, &TopRecord::default(), key(KeyCode::Char('p')), LIMITS);
        for _ in 0..extra {
            press_all(&mut view, "x");
        }
        if is_typing {
            prop_assert!(view.prompt.unwrap().text.chars().count() <= MAX_TYPED_CHARACTERS);
        }
    }
}
