use super::*;
use pinwise_profile::examples::Scene;
use pinwise_profile::{Bounds, Profile};
use pinwise_record::{
    AmountRecord, Answer, Header, HostRecord, ProfileDiff, ProfileFigures, ProfilePause,
    ProfileRun, SampleEvent, WorkRecord,
};
use pinwise_topology::Topology;
use proptest::prelude::*;

/// A record of a scene's samples, as of a command that ran once.
pub(crate) fn make_record(scene: Scene, units: f64) -> ProfileRecord {
    let samples = [scene.samples];
    let profile = Profile::from_samples(&samples, &Bounds::default());
    let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
    let run = ProfileRun {
        wall_s: 1.0,
        samples: samples[0].total(),
        cpu_s: profile.total.cpu_s(),
        units,
        used_cpu_s: Some(profile.total.cpu_s()),
        waits_s: Some(profile.waits.cpu_s()),
        accesses_s: profile.accesses.map(pinwise_profile::Amount::cpu_s),
        unread_s: Some(profile.unread.cpu_s()),
        exit: Some(0),
    };
    ProfileRecord {
        header: Header {
            notes: vec!["A note.".to_owned()],
            ..Header::new(
                "20260101-000000-00000001",
                "2026-01-01T00:00:00Z",
                Vec::new(),
            )
        },
        host: HostRecord::new("local".to_owned(), false, &topology),
        source: TraceSource::Command {
            command: vec!["./prog".to_owned(), "--fast".to_owned()],
            placement: "os-default".to_owned(),
            cpus: "0-1".to_owned(),
        },
        event: SampleEvent::CpuClock,
        hz: 1000,
        wall_s: 1.0,
        own_cpu_s: 0.01,
        lost: 0,
        work: WorkRecord {
            unit: "request".to_owned(),
            count: units,
            metric: None,
        },
        pause: Some(ProfilePause {
            cpu: 0,
            ns: 24.3,
            low_ns: None,
            high_ns: None,
        }),
        machine: None,
        runs: vec![run],
        figures: ProfileFigures::new(&profile, units),
        answer: Answer {
            sentence: "Most of it waits.".to_owned(),
            advice: "See what spins: pinwise spin attach -- ./prog".to_owned(),
        },
        exit: Some(0),
    }
}

pub(crate) fn spinning_scene(samples: u64) -> Scene {
    Scene::new("/home/me/prog")
        .waiting(&["main", "spin_until_free"], samples)
        .stack(&["main", "work", "k:do_read"], 120)
        .stack(
            &[
                "main",
                "work",
                "std::collections::hash::map::Map<K, V>::insert",
            ],
            80,
        )
        .stack(&["main", "0x31a4"], 40)
}

fn render_by_default(record: &ProfileRecord) -> String {
    render_profile(record, &ProfileShown::default(), Palette::default())
}

#[test]
fn a_profile_as_text() {
    let text = render_by_default(&make_record(spinning_scene(760), 50.0));
    insta::assert_snapshot!(text);
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= crate::WIDTH)
    );
}

#[test]
fn parts_that_were_not_requested_are_not_shown() {
    let shown = ProfileShown {
        functions: 1,
        instructions: 0,
        threads: 0,
    };
    let text = render_profile(
        &make_record(spinning_scene(760), 50.0),
        &shown,
        Palette::default(),
    );
    assert!(
        !text.contains("pause") && !text.contains("Thread"),
        "{text}"
    );
    assert!(text.contains("and 5 more: 240 ms, 240 samples"), "{text}");
}

#[test]
fn a_difference_as_text() {
    let mut before = make_record(spinning_scene(760), 50.0);
    before.work.unit = "request".to_owned();
    let mut after = make_record(spinning_scene(2690).stack(&["main", "fresh"], 90), 100.0);
    after.pause.as_mut().unwrap().ns = 43.0;
    let diff = ProfileDiff::between(&before, &after).unwrap();
    let text = super::super::render_profile_diff(&diff, 4, Palette::default());
    insta::assert_snapshot!(text);
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= crate::WIDTH)
    );
}

#[test]
fn fewer_and_shorter_pauses_are_distinguished() {
    let mut before = make_record(spinning_scene(2690), 50.0);
    before.pause.as_mut().unwrap().ns = 43.0;
    let after = make_record(spinning_scene(760), 100.0);
    let line = |from: &ProfileRecord, to: &ProfileRecord| {
        let diff = ProfileDiff::between(from, to).unwrap();
        let text = super::super::render_profile_diff(&diff, 4, Palette::default());
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    };
    let less = line(&before, &after);
    assert!(less.contains("by fewer PAUSEs and −"), "{less}");
    assert!(less.contains("by shorter ones"), "{less}");
    let more = line(&after, &before);
    assert!(more.contains("by more PAUSEs and +"), "{more}");
    assert!(more.contains("by longer ones"), "{more}");
}

#[test]
fn what_cannot_be_subtracted_is_refused() {
    let before = make_record(spinning_scene(10), 1.0);
    let refused = |change: &dyn Fn(&mut ProfileRecord)| {
        let mut after = make_record(spinning_scene(10), 1.0);
        change(&mut after);
        ProfileDiff::between(&before, &after)
            .unwrap_err()
            .to_string()
    };
    let words = refused(&|after| after.work.unit = "run".to_owned());
    assert!(
        words.contains("per request") && words.contains("per run"),
        "{words}"
    );
    let words = refused(&|after| after.work.count = 0.0);
    assert!(words.contains("no units of work"), "{words}");
    let words = refused(&|after| after.event = SampleEvent::Proc);
    assert!(words.contains("/proc"), "{words}");
    let words = refused(&|after| {
        after.figures.kernel = Some(AmountRecord::default());
        after.runs[0].used_cpu_s = Some(1.0);
    });
    assert!(
        words.contains("its samples stand for 250 ms of 1.00 s of CPU time"),
        "{words}"
    );
    let words = refused(&|after| after.figures.calls.nodes[0].function = 999);
    assert!(words.contains("damaged"), "{words}");
}

#[test]
fn time_that_was_not_sampled_is_shown() {
    let mut record = make_record(spinning_scene(10), 1.0);
    assert!(render_by_default(&record).contains("\n250 ms of CPU time"));
    record.figures.kernel = Some(AmountRecord::default());
    record.runs[0].used_cpu_s = Some(1.34);
    let text = render_by_default(&record);
    assert!(text.contains("\n250 ms of 1.34 s of CPU time"), "{text}");
}

#[test]
fn folded_stacks_add_up_to_all_samples() {
    let text = render_folded(&make_record(spinning_scene(760), 1.0));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.contains(&"main;spin_until_free;[pause] 760"),
        "{text}"
    );
    assert!(lines.contains(&"main;work;do_read 120"), "{text}");
    let samples = lines.iter().map(|line| line.rsplit(' ').next().unwrap());
    let sum: u64 = samples.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 1000);
}

#[test]
fn a_record_survives_json() {
    let record = make_record(spinning_scene(760), 3.0);
    let text = serde_json::to_string(&record).unwrap();
    let back: ProfileRecord = pinwise_record::read(&text).unwrap();
    assert_eq!(back, record);
    let profile = back.figures.to_profile().unwrap();
    assert_eq!(profile.total.samples, 1000);
    assert_eq!(profile.tree.total().samples, 1000);
    assert_eq!(profile.waits.samples, 760);
}

proptest! {
    #[test]
    fn any_figures_are_shown(
        samples in any::<u64>(), cpu_s in any::<f64>(), count in any::<u64>(), units in any::<f64>(),
    ) {
        let mut record = make_record(spinning_scene(760), 1.0);
        let amount = AmountRecord {
            samples,
            cpu_s: if cpu_s.is_finite() { cpu_s } else { 0.0 },
            cpu_s_per_unit: None,
        };
        let figures = &mut record.figures;
        figures.functions[0].own = amount;
        figures.functions[1].waits = amount;
        figures.functions_left_out.own = amount;
        figures.functions_left_out.count = count;
        figures.threads_left_out.count = count;
        figures.instructions[0].lines[0].own = amount;
        figures.calls.nodes[1].samples = samples;
        figures.calls.nodes[1].cpu_s = amount.cpu_s;
        figures.waits = amount;
        record.work.count = units;
        prop_assert!(!render_by_default(&record).is_empty() && !render_folded(&record).is_empty());
        if let Ok(diff) = ProfileDiff::between(&record, &record) {
            prop_assert!(!super::super::render_profile_diff(&diff, 9, Palette::default()).is_empty());
        }
    }

    #[test]
    fn any_name_is_shown_without_control_characters(
        name in "\\PC{0,40}|[\\x00-\\x20;<&\u{1b}]{1,9}", samples in 1u64..9,
    ) {
        let scene = Scene::new("/bin/\u{1b}[31mprog").stack(&["main", &name], samples);
        let mut record = make_record(scene, 1.0);
        record.figures.threads[0].name.clone_from(&name);
        record.answer.sentence.clone_from(&name);
        record.work.unit.clone_from(&name);
        record.figures.instructions[0].source = Some(name.clone());
        let diff = ProfileDiff::between(&record, &record).unwrap();
        let texts = [
            render_by_default(&record),
            render_folded(&record),
            super::super::render_profile_diff(&diff, 9, Palette::default()),
        ];
        for text in texts {
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
    }
}

#[test]
fn a_long_function_name_is_kept_before_its_file() {
    let name = |name: &str, width| {
        let library = Some("/usr/lib/libpython3.11.so.1.0");
        format_function_name(name, library, &FunctionKind::User, "/usr/bin/app", width)
    };
    assert_eq!(name("list_index", 28), "list_index [libpython3.11…]");
    assert_eq!(name("PyObject_RichCompare", 28), "PyObject_RichCompare");
    assert_eq!(name("PyObject_Rich", 28), "PyObject_Rich [libpython3.…]");
}
