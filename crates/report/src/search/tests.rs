use super::*;
use pinwise_record::examples::build_search as example_search;
use pinwise_record::{Finding, Severity, no_verdict_yet};

/// Checks that lines fit the width, except for those that are meant to be copied.
#[track_caller]
fn check_width(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with("→ Run: ")) {
        assert!(line.chars().count() <= crate::WIDTH, "too wide: {line}");
        assert!(line.trim_end() == line, "{line}|");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[track_caller]
fn check_snapshot(name: &str, record: &SearchRecord) {
    let text = render_search(record, Palette::new(false));
    check_width(&text);
    insta::assert_snapshot!(name, text);
}

#[test]
fn a_search_that_found_the_best() {
    check_snapshot("found", &example_search(65, false));
}

#[test]
fn only_lists_of_cpus_enter_commands() {
    let mut record = example_search(65, false);
    for arm in &mut record.arms {
        arm.cpus = "0;touch x".to_owned();
    }
    record.conclude();
    let text = render_search(&record, Palette::new(false));
    assert!(
        text.contains("→ Run: pinwise run --place ") && !text.contains("touch x"),
        "{text}"
    );
}

#[test]
fn a_search_on_a_simulated_machine() {
    let mut record = example_search(12, true);
    record.best = Some(record.arms[2].name.clone());
    record.true_regret = Some(0.004);
    check_snapshot("simulated", &record);
}

/// The best of a rate is the highest: its values and its change say the same.
#[test]
fn values_and_changes_of_a_rate_go_the_same_way() {
    let mut record = example_search(5, false);
    let metric = "regex:(.*) higher".parse().unwrap();
    record.metric = pinwise_record::MetricRecord::new(&metric, "");
    record.conclude();
    let text = render_search(&record, Palette::new(false));
    let cells = |name: &str| {
        let line = text.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let (best, default): (Vec<String>, Vec<String>) = (cells("  * "), cells("    os-default"));
    let expected = |cells: &[String]| cells[cells.len() - 4].parse::<f64>().unwrap();
    assert!(expected(&best) > expected(&default), "{text}");
    assert!(best.contains(&"+32.9".to_owned()), "{text}");
    let (low, high) = best[best.len() - 3].split_once('–').unwrap();
    assert!(
        low.parse::<f64>().unwrap() < high.parse().unwrap(),
        "{text}"
    );
}

#[test]
fn a_search_that_decided_nothing() {
    let mut record = example_search(5, false);
    record.best = None;
    record.confirmation = None;
    record.least = None;
    record.verdict.kind = SearchAnswer::Undecided;
    record.verdict.sentence =
        "Undecided: 23 runs left a probability of 31 % of a better arm.".to_owned();
    record.verdict.advice = "About 40 more runs would decide it: --max-runs 63.".to_owned();
    record.stopped = Some(Stopped::Runs);
    for feature in &mut record.model.as_mut().unwrap().features {
        feature.sd = 1.0;
    }
    record.conclude();
    record.arms[4].invalid = Some("exit status 3\nno memory".to_owned());
    record.findings = vec![Finding::new(
        "foreign-load",
        Severity::Warning,
        "Other programs used 3 CPUs.".to_owned(),
        "Repeat it on a quiet machine.".to_owned(),
    )];
    check_snapshot("undecided", &record);
}

#[test]
fn a_search_that_was_cut_off() {
    let mut record = example_search(5, false);
    record.stopped = None;
    record.verdict.sentence = no_verdict_yet("search");
    record.verdict.advice.clear();
    record.verdict.commands.clear();
    check_snapshot("cut-off", &record);
    record.predictions.clear();
    record.runs.clear();
    record.model = None;
    record.confirmation = None;
    record.least = None;
    check_width(&render_search(&record, Palette::new(false)));
}

#[test]
fn hostile_strings_are_made_visible() {
    let hostile = "a\u{1b}[31m\nb\r".repeat(30);
    let mut record = example_search(4, true);
    record.command = vec![hostile.clone(); 3];
    record.host.machine_spec.clone_from(&hostile);
    record.host.machine.hostname = Some(hostile.clone());
    for arm in &mut record.arms {
        arm.name.push_str(&hostile);
        arm.cpus.clone_from(&hostile);
        arm.invalid = Some(hostile.clone());
    }
    for arm in &mut record.predictions {
        arm.arm.push_str(&hostile);
    }
    record.verdict.sentence.clone_from(&hostile);
    record.verdict.advice.clone_from(&hostile);
    record.verdict.condition.clone_from(&hostile);
    record.metric.unit.clone_from(&hostile);
    record.model.as_mut().unwrap().features[0]
        .meaning
        .clone_from(&hostile);
    record.least.as_mut().unwrap().sentence.clone_from(&hostile);
    record.truth.as_mut().unwrap().best.clone_from(&hostile);
    let text = render_search(&record, Palette::new(false));
    assert!(!text.contains(['\u{1b}', '\r']), "{text}");
}

#[test]
fn every_run_is_a_line_of_csv() {
    let record = example_search(5, false);
    let text = list_search_rows(&record).csv().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + record.runs.len());
    assert!(
        lines[0].starts_with("arm,threads_set,cpus,step,phase,block,"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("os-default,128,0-255,warmup,"),
        "{}",
        lines[1]
    );
    let fields = |line: &str| line.matches(',').count();
    // Shapes contain commas and are quoted, so fields are counted in a line without one.
    assert_eq!(fields(lines[1]), fields(lines[0]), "{}", lines[1]);
    let mut damaged = record;
    damaged.runs[0].arm = 99;
    assert!(
        list_search_rows(&damaged)
            .csv()
            .unwrap()
            .contains("\n,,,warmup,")
    );
}
