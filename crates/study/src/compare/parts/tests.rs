//! What differs is found in the part that differs.

use pinwise_record::ThreadTime;

use super::*;

/// Runs of this much time: running, queued, and blocked.
fn runs(running_s: f64, queued_s: Option<f64>, blocked_s: f64) -> Vec<RunRecord> {
    let run = |block: usize| RunRecord {
        block,
        wall_s: running_s + queued_s.unwrap_or(1.0) + blocked_s,
        user_s: Some(running_s),
        sys_s: Some(0.0),
        queued_s,
        ..RunRecord::default()
    };
    (0..12).map(run).collect()
}

/// The ratios of an arm to a baseline that ran for 2 s, was queued for 1 s and blocked
/// for 1 s.
fn ratios(arm: &[RunRecord]) -> [Option<f64>; 4] {
    let pairs = pairs(arm, &runs(2.0, Some(1.0), 1.0)).unwrap();
    let parts = split(&pairs, 0.05);
    let ratio = |part: Option<ComponentRecord>| part.map(|part| (100.0 * part.ratio).round());
    [
        ratio(parts.cpu_time),
        ratio(parts.wall_per_cpu_time),
        ratio(parts.ready_per_cpu_time),
        ratio(parts.wall_per_ready_time),
    ]
}

#[test]
fn queueing_and_blocking_are_distinguished() {
    let whole = Some(100.0);
    let slower = |percent: f64| Some(percent);
    // 2 s more in a queue, and 2 s more blocked: 6 s instead of 4 s.
    let queued = ratios(&runs(2.0, Some(3.0), 1.0));
    assert_eq!(queued, [whole, slower(150.0), slower(167.0), slower(90.0)]);
    let blocked = ratios(&runs(2.0, Some(1.0), 3.0));
    assert_eq!(blocked, [whole, slower(150.0), whole, slower(150.0)]);
    let unknown = ratios(&runs(2.0, None, 3.0));
    assert_eq!(unknown, [whole, slower(150.0), None, None]);
}

#[test]
fn the_threads_of_an_arm_run_queue_and_block() {
    let time = ThreadTime::from_runs(&runs(2.0, Some(1.0), 1.0)).unwrap();
    assert_eq!((time.running, time.queued, time.blocked), (0.5, 0.25, 0.25));
    // With several threads the time when all were blocked is unknown: the lower bound is 0.
    let mut parallel = runs(2.0, Some(1.0), 1.0);
    parallel.iter_mut().for_each(|run| run.wall_s = 1.0);
    let time = ThreadTime::from_runs(&parallel).unwrap();
    assert_eq!((time.running, time.queued, time.blocked), (2.0, 1.0, 0.0));
    assert_eq!(ThreadTime::from_runs(&runs(2.0, None, 1.0)), None);
    assert_eq!(ThreadTime::from_runs(&[]), None);
}

#[test]
fn what_cpu_time_says_is_not_hidden_by_a_caveat_of_load() {
    let text = include_str!("../../../../../tests/data/records/comparison.json");
    let record: Comparison = serde_json::from_str(text).unwrap();
    let find = |depends_on_load: bool, depends_on_order: bool| {
        let mut contrast = record.contrasts[0].clone();
        contrast.verdict = ContrastVerdict::Undecided;
        contrast.depends_on_load = depends_on_load;
        contrast.depends_on_order = depends_on_order;
        (contrast.low, contrast.high) = (Some(0.99), Some(1.03));
        let part = |ratio, low, high| Some(ComponentRecord::new(ratio, Some(low), Some(high)));
        contrast.cpu_time = part(1.001, 0.998, 1.003);
        contrast.wall_per_cpu_time = part(1.02, 1.012, 1.03);
        contrast.baseline = contrast.arm.clone();
        Some(cpu_time_finding(&contrast, &record)?.sentence)
    };
    let said = find(true, false).unwrap();
    let start = "CPU time of one-per-core is the same: +0.1 % (";
    assert!(said.starts_with(start), "{said}");
    assert!(
        said.ends_with("; what depends on the load is waiting."),
        "{said}"
    );
    assert_eq!(find(false, true), None);
}
