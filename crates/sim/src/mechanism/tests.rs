use super::*;
use crate::description::Description;
use proptest::prelude::*;
use rand::SeedableRng;

fn parse_description(text: &str) -> Description {
    Description::from_text("test", text, None).unwrap()
}

/// Mean time of many runs of the workload `w`.
fn mean_s(text: &str, cpus: &str, environment: &[(String, String)]) -> f64 {
    let description = parse_description(text);
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let cpus = CpuSet::parse_list(cpus).unwrap();
    let runs = 200;
    let total: f64 = (0..runs)
        .map(|_| {
            let played = play(
                &description.topology,
                description.scheduler.as_ref().unwrap(),
                description.workload("w"),
                &cpus,
                environment,
                &mut chance,
                &mut NoWitness,
            );
            played.wall_s
        })
        .sum();
    total / f64::from(runs)
}

#[track_caller]
fn check_mean_time(text: &str, cpus: &str, expected: f64) {
    let found = mean_s(text, cpus, &[]);
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found} for {expected}: {text} on {cpus}"
    );
}

const TWO_BY_TWO: &str = "topology = \"core:2 pu:2\"\n";

#[test]
fn siblings_share_throughput_and_cores_do_not() {
    let text = format!(
        "{TWO_BY_TWO}[scheduler]\npolicy = \"core-first\"\nsmt_throughput = 1.2\n[workload.w]\nbase_s = 12\nthreads = 2"
    );
    check_mean_time(&text, "0", 12.0);
    check_mean_time(&text, "0-1", 10.0);
    check_mean_time(&text, "0,2", 6.0);
    check_mean_time(&text, "0-3", 6.0);
}

#[test]
fn a_scheduler_blind_to_cores_shares_a_core_in_one_case_of_three() {
    // Threads stay: a third of the runs take 10 s, the others 6 s.
    let text = format!(
        "{TWO_BY_TWO}[scheduler]\npolicy = \"random-idle\"\nsmt_throughput = 1.2\n[workload.w]\nbase_s = 12\nthreads = 2"
    );
    let found = mean_s(&text, "0-3", &[]);
    assert!((found - 7.33).abs() < 0.4, "{found}");
    // Placed again all the time: 12 / (2/3 · 2 + 1/3 · 1.2).
    check_mean_time(
        &text.replace("smt_throughput", "slice_s = 0.01\nsmt_throughput"),
        "0-3",
        12.0 / (4.0 / 3.0 + 0.4),
    );
}

/// Threads that compute for b and wait for w on c CPUs are a closed queueing
/// network, whose throughput is known (the machine-repairman's).
#[test]
fn waiting_threads_are_a_closed_network() {
    for (threads, cpus) in [(2, "0"), (3, "0"), (3, "0,2"), (4, "0,2")] {
        let text = format!(
            "{TWO_BY_TWO}[scheduler]\npolicy = \"core-first\"\n[workload.w]\nbase_s = 40\nthreads = {threads}\nburst_s = 0.01\nwait_s = 0.02"
        );
        let servers = if cpus == "0" { 1 } else { 2 };
        check_mean_time(&text, cpus, 40.0 / throughput(threads, servers, 0.5));
    }
}

fn throughput(threads: i32, servers: i32, ratio: f64) -> f64 {
    let mut weights = vec![1.0];
    for k in 1..=threads {
        let rate = f64::from(threads - k + 1) * ratio / f64::from(k.min(servers));
        weights.push(weights[weights.len() - 1] * rate);
    }
    let total: f64 = weights.iter().sum();
    (1..=threads)
        .zip(&weights[1..])
        .map(|(k, w)| f64::from(k.min(servers)) * w / total)
        .sum()
}

#[test]
fn a_preference_attracts_threads_and_is_not_a_limit() {
    let text = "topology = \"core:4 pu:2(indexes=0,4,1,5,2,6,3,7)\"\n[scheduler]\npolicy = \"random-idle\"\nslice_s = 0.01\nideal_share = 0.5\nsmt_throughput = 1.2\n[workload.w]\nbase_s = 10\nthreads = 4";
    let preferring = |cpus: &str| {
        mean_s(
            text,
            "0-7",
            &[("SIM_IDEAL_CPUS".to_owned(), cpus.to_owned())],
        )
    };
    let (siblings, any, cores) = (
        preferring("0,4,1,5"),
        mean_s(text, "0-7", &[]),
        preferring("4-7"),
    );
    assert!(siblings > 1.05 * any, "{siblings} {any}");
    assert!(
        (cores / any - 1.0).abs() < 0.03,
        "without a preference ideal CPUs are assigned in turn: {cores} {any}"
    );
    let limited = mean_s(text, "0,1,4,5", &[]);
    assert!(limited > siblings, "{limited} {siblings}");
}

#[test]
fn a_moved_thread_fills_the_caches_it_left() {
    let text = "topology = \"l2:2(size=4MB) core:2 pu:1\"\n[scheduler]\npolicy = \"random-idle\"\nslice_s = 0.01\nmemory_gb_per_s = 4.194304\n[workload.w]\nbase_s = 10\nworking_set_bytes = 4194304";
    // Half of the slices begin under the other cache and take 1 ms more.
    check_mean_time(text, "0-3", 10.0 / (1.0 - 0.5 * 0.1));
    check_mean_time(text, "0-1", 10.0);
    check_mean_time(text, "3", 10.0);
}

/// Two caches of two cores of two CPUs: 0 to 3 and 4 to 7.
#[test]
fn one_cache_is_filled_before_the_next() {
    let text = |threads: u32, policy: &str| {
        format!(
            "topology = \"l3:2 core:2 pu:2\"\n[scheduler]\npolicy = \"{policy}\"\nsmt_throughput = 1.2\n[workload.w]\nbase_s = 12\nthreads = {threads}"
        )
    };
    // Two threads have a core each; the third and fourth are placed on siblings although cores of
    // the other cache are idle; a fifth gets that cache.
    check_mean_time(&text(2, "llc-first"), "0-7", 6.0);
    check_mean_time(&text(4, "llc-first"), "0-7", 5.0);
    check_mean_time(&text(5, "llc-first"), "0-7", 12.0 / 3.4);
    check_mean_time(&text(4, "core-first"), "0-7", 3.0);
    // Within a cache, cores come first; a mask with CPUs of both caches still fills the first.
    check_mean_time(&text(2, "llc-first"), "0,2,4", 6.0);
    // The first thread gets CPU 4 in one case of three, and then there is no other CPU for the
    // second.
    let found = mean_s(&text(2, "llc-first"), "0-1,4", &[]);
    let expected = (2.0 * 10.0 + 6.0) / 3.0;
    assert!((found - expected).abs() < 0.4, "{found} {expected}");
}

#[test]
fn kernels_are_known_by_their_command_line() {
    let line = |text: &str| parse_kernel(&shell_words::split(text).unwrap());
    let found =
        line("/usr/bin/pinwise bench kernel fft --threads 4 --work 50 --format json").unwrap();
    assert_eq!(
        (found.name.as_str(), found.threads, found.units),
        ("fft", 4, 50)
    );
    assert_eq!(line("pinwise bench kernel pi").unwrap().units, 100);
    assert!(line("pinwise compare x").is_none() && line("xz kernel y").is_none());
    let printed: serde_json::Value = serde_json::from_str(&found.print_json(2.0)).unwrap();
    assert_eq!(printed["seconds"], 2.0);
    assert_eq!(printed["rate"], 25.0);
}

#[test]
fn wrong_figures_are_refused_with_their_key() {
    for (extra, key) in [
        ("[scheduler]\npolicy = \"fair\"", "unknown variant"),
        (
            "[scheduler]\npolicy = \"pinned\"\nideal_share = 2",
            "scheduler.ideal_share",
        ),
        ("[workload.w]\nbase_s = 1\nwait_s = 1", "workload.w.wait_s"),
        (
            "[workload.w]\nbase_s = 1\nthreads = 0",
            "workload.w.threads",
        ),
    ] {
        let text = format!("topology = \"pu:2\"\n{extra}");
        let error = Description::from_text("x.toml", &text, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(key) && error.contains("x.toml"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_work_is_done_and_never_faster_than_the_cores_allow(
        threads in 1u32..9, cores in 1usize..4, smt in 1usize..3, policy in 0usize..3,
        burst in proptest::option::of(0.01f64..1.0), wait in 0.01f64..1.0, slice in proptest::option::of(0.01f64..1.0),
        seed in any::<u64>(),
    ) {
        let policy = ["random-idle", "core-first", "pinned"][policy];
        let mut text = format!("topology = \"core:{cores} pu:{smt}\"\n[scheduler]\npolicy = \"{policy}\"\nsmt_throughput = 1.3\n");
        if let Some(slice) = slice { text += &format!("slice_s = {slice}\n"); }
        text += &format!("[workload.w]\nbase_s = 5\nthreads = {threads}\n");
        if let Some(burst) = burst { text += &format!("burst_s = {burst}\nwait_s = {wait}\n"); }
        let description = parse_description(&text);
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let played = play(&description.topology, description.scheduler.as_ref().unwrap(), description.workload("w"), &description.topology.allowed, &[], &mut chance, &mut NoWitness);
        let most = 1.3 * cores as f64;
        prop_assert!(played.wall_s >= 5.0 / most - 1e-6, "{played:?}");
        prop_assert!(played.wall_s.is_finite() && played.busy_s >= 5.0 - 1e-6);
    }
}
