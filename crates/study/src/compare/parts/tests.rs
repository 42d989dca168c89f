//! Differences show in the part in which the runs differ.

use pinwise_record::ThreadTime;

use super::*;

/// Runs whose thread was running, queued and blocked for these times.
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

/// Per cent that an arm takes of a baseline that ran for 2 s, was queued for 1 s and blocked for
/// 1 s: CPU time, and the parts of the rest.
fn ratios(arm: &[RunRecord]) -> [Option<f64>; 4] {
    let pairs = pair_runs(arm, &runs(2.0, Some(1.0), 1.0)).unwrap();
    let parts = split_by_parts(&pairs, 0.05);
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
    let same = Some(100.0);
    // 2 s more in a queue, then 2 s more blocked: 6 s instead of 4 s.
    let queued = ratios(&runs(2.0, Some(3.0), 1.0));
    assert_eq!(queued, [same, Some(150.0), Some(167.0), Some(90.0)]);
    let blocked = ratios(&runs(2.0, Some(1.0), 3.0));
    assert_eq!(blocked, [same, Some(150.0), same, Some(150.0)]);
    let unknown = ratios(&runs(2.0, None, 3.0));
    assert_eq!(unknown, [same, Some(150.0), None, None]);
}

#[test]
fn time_of_threads_is_split_into_running_queued_and_blocked() {
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
fn a_slower_program_with_the_same_cpu_time_waits_longer() {
    let text = include_str!("../../../../../tests/data/records/comparison.json");
    let mut record: Comparison = serde_json::from_str(text).unwrap();
    record.contrasts.truncate(1);
    record.metric.name = "wall".to_owned();
    let arm = record.contrasts[0].arm.clone();
    let mut describe = |verdict: ContrastVerdict, ratio: f64, high: f64, threads: f64| {
        for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
            (run.wall_s, run.user_s, run.sys_s) = (1.0, Some(threads / 2.0), Some(0.0));
            run.queued_s = Some(threads / 2.0);
        }
        let contrast = &mut record.contrasts[0];
        (contrast.verdict, contrast.ratio) = (verdict, ratio);
        contrast.cpu_time = Some(ComponentRecord::new(1.0, Some(0.999), Some(high)));
        describe_longer_wait(&record)
    };
    let said = describe(ContrastVerdict::Slower, 1.1, 1.002, 0.8);
    let end = "waits longer: CPU time ±0 % (−0.1 to +0.2 %).";
    assert_eq!(said, format!(" {arm} {end}"));
    let faster = describe(ContrastVerdict::Faster, 0.9, 1.002, 0.8);
    assert!(faster.ends_with(end) && !faster.contains(&arm), "{faster}");
    // CPU time may be half of it; of threads side by side it says nothing.
    assert_eq!(describe(ContrastVerdict::Slower, 1.1, 1.06, 0.8), "");
    assert_eq!(describe(ContrastVerdict::Slower, 1.1, 1.002, 1.9), "");
    assert_eq!(describe(ContrastVerdict::Undecided, 1.1, 1.002, 0.8), "");
    // Every fourth run takes twice the CPU time, which the typical run does not show.
    for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
        run.user_s = Some(0.4);
    }
    record.contrasts[0].verdict = ContrastVerdict::Slower;
    assert_eq!(find_other_mean(&record.contrasts[0], &record), None);
    assert_ne!(describe_longer_wait(&record), "");
    for run in &mut record
        .arms
        .iter_mut()
        .find(|one| one.name == arm)
        .unwrap()
        .runs
    {
        run.user_s = Some(if run.block % 4 == 0 { 0.8 } else { 0.4 });
    }
    let mean = find_other_mean(&record.contrasts[0], &record).unwrap();
    assert!((1.15..1.4).contains(&mean), "{mean}");
    assert_eq!(describe_longer_wait(&record), "");
}

#[test]
fn a_caveat_on_load_does_not_withhold_cpu_time_but_one_on_order_does() {
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
        Some(report_cpu_time(&contrast, &record)?.sentence)
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
