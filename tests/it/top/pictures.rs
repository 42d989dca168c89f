//! Pictures of fixed frames, and of any frame on any screen.

use pinwise_record::{Busiest, TopCpu, TopRecord, TopThread, UsedCpu};
use pinwise_report::Palette;
use pinwise_report::top::{
    Focus, Order, Prompt, PromptKind, Size, View, count_hidden_cpu_rows, draw, lay_out_screen,
    lay_out_still_frame, rows_to_text,
};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{desktop, server};

#[track_caller]
fn check_screen(name: &str, record: &TopRecord, view: &View, width: usize, height: usize) {
    let rows = lay_out_screen(record, view, Size { width, height });
    let picture = add_right_edge(&rows_to_text(&rows, Palette::default()), width);
    snapshot(name, &picture);
}

/// Marks the right edge of the screen, so that a snapshot shows trailing spaces and overlong rows.
fn add_right_edge(picture: &str, width: usize) -> String {
    let lines = picture.lines().map(|line| format!("{line:width$}|\n"));
    lines.collect()
}

#[track_caller]
fn snapshot(name: &str, picture: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("top-{name}"), picture));
}

#[test]
fn a_desktop_is_drawn_at_several_sizes() {
    let record = desktop();
    let view = View::default();
    check_screen("desktop-80x24", &record, &view, 80, 24);
    check_screen("desktop-200x16", &record, &view, 200, 16);
    check_screen("desktop-40x12", &record, &view, 40, 12);
    check_screen("desktop-20x5", &record, &view, 20, 5);
}

#[test]
fn a_server_with_256_cpus_is_drawn() {
    let record = server();
    let mut view = View {
        order: Order::Migrations,
        chosen: Some(10_400),
        ..View::default()
    };
    check_screen("server-80x24", &record, &view, 80, 24);
    check_screen("server-200x50", &record, &view, 200, 50);
    view.focus = Focus::Cpus;
    view.cpu_top = 20;
    check_screen("server-cpus-80x24", &record, &view, 80, 24);
    let size = Size {
        width: 80,
        height: 24,
    };
    assert!(count_hidden_cpu_rows(&record, &view, size) > 40);
}

#[test]
fn prompts_messages_and_help_are_drawn() {
    let record = desktop();
    let mut view = View {
        prompt: Some(Prompt {
            kind: PromptKind::Pin {
                thread: 4711,
                name: "stress-ng-cpu".to_owned(),
            },
            text: "one-core".to_owned(),
            preview: "CPUs 0-1; now 0-7. Enter pins it, Esc cancels".to_owned(),
        }),
        chosen: Some(4711),
        ..View::default()
    };
    check_screen("pinning", &record, &view, 80, 14);
    view.prompt = None;
    view.pins.count = 2;
    check_screen("pinned", &record, &view, 100, 12);
    view.message = Some("thread 4711 may use CPUs 0-1".to_owned());
    view.is_paused = true;
    check_screen("message", &record, &view, 80, 12);
    view.shows_help = true;
    check_screen("help", &record, &view, 80, 24);
}

#[test]
fn a_single_frame_is_printed() {
    let print = |record: &TopRecord, width: usize| {
        let rows = lay_out_still_frame(record, &View::default(), width, 20);
        rows_to_text(&rows, Palette::default())
    };
    snapshot("printed-desktop", &print(&desktop(), 80));
    snapshot("printed-server", &print(&server(), 120));
}

#[test]
fn colour_only_adds_to_the_picture() {
    let rows = lay_out_still_frame(&server(), &View::default(), 80, 20);
    let escapes = regex_lite::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    let colored = rows_to_text(&rows, Palette::new(true));
    assert!(escapes.is_match(&colored));
    assert_eq!(
        escapes.replace_all(&colored, ""),
        rows_to_text(&rows, Palette::default())
    );
}

/// Names may hold control characters, escape sequences, and characters of no width and of two
/// columns.
#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let names = [
        "\u{1b}[2J\u{1b}]0;x\u{7}",
        "a\u{301}\u{202e}b\nc",
        "漢字漢字漢",
        "👩\u{200d}👩\u{200d}👧",
        "x\u{0}\t\r",
    ];
    let mut record = desktop();
    for (thread, name) in record.threads.iter_mut().zip(names) {
        thread.name = Some(name.to_owned());
    }
    for (cpu, name) in record.cpus.iter_mut().zip(names) {
        cpu.busiest = Some(Busiest {
            thread: 1,
            name: Some(name.to_owned()),
            percent: 50.0,
        });
    }
    record.host = names[0].to_owned();
    check_screen("hostile", &record, &View::default(), 80, 20);
    let view = View {
        ascii: true,
        ..View::default()
    };
    let size = Size {
        width: 80,
        height: 20,
    };
    let picture = rows_to_text(&lay_out_screen(&record, &view, size), Palette::default());
    assert!(picture.is_ascii(), "{picture}");
    assert!(!picture.chars().any(|c| c.is_control() && c != '\n'));
}

fn any_name() -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop_oneof![
        "\\PC{0,15}",
        "[\u{0}-\u{20}\u{300}-\u{310}漢👩\u{200d}]{0,8}"
    ])
}

fn any_cpu() -> impl Strategy<Value = TopCpu> {
    let unit = || prop::option::of(0usize..9);
    let share = prop::option::of(-10.0f64..200.0);
    (any::<u32>(), unit(), unit(), unit(), share, any_name()).prop_map(
        |(cpu, core, llc, package, busy_percent, name)| TopCpu {
            cpu: cpu % 5000,
            core,
            llc,
            package,
            busy_percent,
            busiest: Some(Busiest {
                thread: 1,
                name,
                percent: 50.0,
            }),
            ..TopCpu::default()
        },
    )
}

fn any_thread() -> impl Strategy<Value = TopThread> {
    let figure = || prop::option::of(prop_oneof![4 => 0.0f64..1e6, 1 => any::<f64>()]);
    (
        any::<i32>(),
        any_name(),
        figure(),
        figure(),
        figure(),
        any_name(),
    )
        .prop_map(
            |(thread, name, cpu_percent, wait_percent, migrations_per_s, allowed)| TopThread {
                thread,
                name,
                cpu_percent,
                wait_percent,
                migrations_per_s,
                used: vec![UsedCpu {
                    cpu: thread.unsigned_abs() % 40,
                    percent: 50.0,
                }],
                allowed,
                ..TopThread::default()
            },
        )
}

proptest! {
    /// No row is wider than the screen, there are not too many, and drawing does not panic.
    #[test]
    fn any_frame_fits_any_screen(
        cpus in prop::collection::vec(any_cpu(), 0..40),
        threads in prop::collection::vec(any_thread(), 0..30),
        host in "\\PC{0,30}",
        width in 0usize..220,
        height in 0usize..70,
        order in prop::sample::select(Order::ALL.to_vec()),
        is_focused: bool,
        cpu_top in 0usize..60,
        filter in "[a-z漢]{0,2}",
        shows_help in prop::bool::weighted(0.1),
        message in prop::option::of("\\PC{0,99}"),
        colored: bool,
    ) {
        let record = TopRecord { cpus, threads, host, interval_s: 1.0, ..TopRecord::default() };
        let focus = if is_focused { Focus::Cpus } else { Focus::Threads };
        let view = View { order, focus, cpu_top, filter, shows_help, message, ..View::default() };
        let rows = lay_out_screen(&record, &view, Size { width, height });
        prop_assert!(rows.len() <= height);
        let fits = |line: &str, width: usize| textwrap::core::display_width(line) <= width;
        for line in rows_to_text(&rows, Palette::default()).lines() {
            prop_assert!(fits(line, width), "{width}: {line}");
            prop_assert!(!line.chars().any(char::is_control));
        }
        let width_16 = u16::try_from(width).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width_16, u16::try_from(height).unwrap()));
        draw(&rows, colored, &mut buffer);
        let width = width.max(40);
        for line in rows_to_text(&lay_out_still_frame(&record, &view, width, 5), Palette::default()).lines() {
            prop_assert!(fits(line, width), "{line}");
        }
    }
}
