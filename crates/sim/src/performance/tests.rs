use super::super::{DescriptionError, SimulatedMachine};
use super::*;
use pinwise_machine::{CommandRunner, Host, Request, Simulation};
use pinwise_stats::describe::mean;
use pinwise_workload::{Command, Workload};
use proptest::prelude::*;

/// Two packages of two last-level caches of four cores of two CPUs: 0 and 1
/// are siblings, 0 to 7 share a cache, 0 to 15 a package.
const TREE: &str = "package:2 numa:1 l3:2(size=32MB) core:4 pu:2";
/// A machine without the untested effects.
const PLAIN: &str =
    "turbo_drop = 0.0\nsmt_partition = 0.0\nswitch_loss = 0.0\nloaded_factor = 1.0\n";

/// A description without noise.
fn describe(machine: &str, demand: &str) -> String {
    format!(
        "topology = \"{TREE}\"\n[performance]\n{PLAIN}{machine}\n[workload.default]\nbase_s = 12.0\n[workload.default.demand]\n{demand}\n"
    )
}

fn open(text: &str) -> SimulatedMachine {
    SimulatedMachine::from_text("m", text, 1).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn new_workload(line: &str, threads: usize) -> Workload {
    let mut workload = Workload::new(Command::from_line(line).unwrap());
    let threads = ("OMP_NUM_THREADS".to_owned(), threads.to_string());
    workload.environment.push(threads);
    workload
}

fn request<'a>(workload: &'a Workload, cpus: &'a CpuSet) -> Request<'a> {
    Request::new(workload, cpus)
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// The true time of this many threads on these CPUs.
fn true_time(text: &str, cpus: &str, threads: usize) -> f64 {
    let workload = new_workload("prog", threads);
    open(text)
        .true_cost(&request(&workload, &set(cpus)))
        .unwrap()
}

#[track_caller]
fn check_true_time(text: &str, cpus: &str, threads: usize, expected: f64) {
    let found = true_time(text, cpus, threads);
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found} for {expected}: {threads} on {cpus}: {text}"
    );
}

/// Amdahl 1967, exactly, if nothing else matters.
#[test]
fn a_serial_share_is_amdahls() {
    let text = describe("", "serial = 0.2");
    for (threads, cpus) in [
        (1, "0"),
        (2, "0,2"),
        (4, "0,2,4,6"),
        (8, "0,2,4,6,8,10,12,14"),
    ] {
        check_true_time(&text, cpus, threads, 12.0 * (0.2 + 0.8 / threads as f64));
    }
}

#[test]
fn siblings_share_issue_slots_and_waiting_is_free() {
    let computing = describe("", "issue_share = 1.0");
    check_true_time(&computing, "0,2", 2, 6.0);
    check_true_time(&computing, "0-1", 2, 12.0);
    let half = describe("", "issue_share = 0.6");
    check_true_time(&half, "0-1", 2, 6.0 * 1.2);
    let waiting = describe(
        "smt_partition = 0.1",
        "issue_share = 1.0\nmemory_share = 1.0",
    )
    .replace("smt_partition = 0.0\n", "");
    check_true_time(&waiting, "0,2", 2, 6.0);
    check_true_time(&waiting, "0-1", 2, 6.0);
    let divided =
        describe("smt_partition = 0.1", "issue_share = 0.4").replace("smt_partition = 0.0\n", "");
    check_true_time(&divided, "0-1", 2, 6.0 * 1.1);
}

#[test]
fn the_clock_falls_with_active_cores() {
    let text = describe("turbo_drop = 0.2", "").replace("turbo_drop = 0.0\n", "");
    check_true_time(&text, "0", 1, 12.0);
    check_true_time(&text, "0,2,4,6,8,10,12,14", 8, 12.0 / 8.0 / 0.8);
    // Four cores of eight in each package: three sevenths of the fall.
    let spread = 12.0 / 8.0 / (1.0 - 0.2 * 3.0 / 7.0);
    check_true_time(&text, "0,2,4,6,16,18,20,22", 8, spread);
}

#[test]
fn bandwidth_saturates_and_another_package_has_its_own() {
    let text = describe("", "memory_share = 0.3\ngb_per_s = 8.0\nissue_share = 0.1");
    let cores = ["0", "0,2", "0,2,4,6", "0,2,4,6,8,10,12,14"];
    let times: Vec<f64> = cores
        .iter()
        .map(|cpus| true_time(&text, cpus, set(cpus).len()))
        .collect();
    assert!(times.windows(2).all(|pair| pair[1] < pair[0]), "{times:?}");
    // 96 GB are read; a node has 40 GB/s, and a single core is already slowed slightly, which
    // base_s includes.
    let rate = 12.0 * 8.0 / times[3];
    assert!((35.0..48.0).contains(&rate), "{rate}");
    let both = true_time(&text, "0,2,4,6,16,18,20,22", 8);
    assert!(both < 0.75 * times[3], "{both} {times:?}");
    let homed = text.replace("gb_per_s", "pages = \"first\"\ngb_per_s");
    let far = true_time(&homed, "0,2,4,6,16,18,20,22", 8);
    assert!(far > times[3] && far > 1.5 * both, "{far} {both}");
}

#[test]
fn interleaved_pages_use_all_nodes() {
    let text = describe("", "memory_share = 0.3\ngb_per_s = 8.0\npages = \"first\"");
    let machine = open(&text);
    let (workload, cpus) = (new_workload("prog", 8), set("0,2,4,6,16,18,20,22"));
    let bound = |policy| MemoryBinding {
        policy,
        nodes: vec![0, 1],
    };
    let cost = |memory: Option<&MemoryBinding>| {
        let request = Request {
            memory,
            ..request(&workload, &cpus)
        };
        machine.true_cost(&request).unwrap()
    };
    let interleaved = cost(Some(&bound(pinwise_placement::MemoryPolicy::Interleave)));
    assert!(interleaved < 0.8 * cost(None), "{interleaved}");
}

#[test]
fn caches_that_overflow_cost_more_together() {
    let text = describe(
        "",
        "cache_share = 0.5\nreuse_gb_per_s = 2.0\nprivate_bytes = 16777216\nissue_share = 0.1",
    );
    let (together, apart) = (
        true_time(&text, "0,2,4,6", 4),
        true_time(&text, "0,2,8,10", 4),
    );
    assert!(together > 1.1 * apart, "{together} {apart}");
    let small = text.replace("16777216", "65536");
    let ratio = true_time(&small, "0,2,4,6", 4) / true_time(&small, "0,2,8,10", 4);
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    // Siblings halve the core's own cache, too.
    let inner = text.replace("16777216", "786432");
    let (siblings, cores) = (true_time(&inner, "0-1", 2), true_time(&inner, "0,2", 2));
    assert!(siblings > 1.05 * cores, "{siblings} {cores}");
}

/// Half of both threads' work, and each message in both directions.
#[test]
fn exchanges_cost_by_distance() {
    for exchanges in [1e4, 1e5, 1e6] {
        let text = describe(
            "",
            &format!("exchanges_per_s = {exchanges:?}\nissue_share = 0.0"),
        );
        for (cpus, ns) in [
            ("0-1", 14.0),
            ("0,2", 36.0),
            ("0,8", 110.0),
            ("0,16", 200.0),
        ] {
            check_true_time(&text, cpus, 2, 6.0 * (1.0 + exchanges * 2.0 * ns * 1e-9));
        }
    }
    let barriers = describe("", "barriers_per_s = 1000.0");
    check_true_time(&barriers, "0,16", 2, 6.0 + 12.0 * 1000.0 * 2.0 * 200e-9);
    check_true_time(&barriers, "0", 1, 12.0);
}

#[test]
fn groups_talk_among_themselves() {
    let text = describe("", "exchanges_per_s = 1e6\ngroup = 2\nissue_share = 0.0");
    // Threads 0 and 1, 2 and 3 are next to each other.
    check_true_time(&text, "0,2,16,18", 4, 3.0 * (1.0 + 2.0 * 0.036));
    let all = text.replace("group = 2\n", "");
    let mean_ns = (36.0 + 200.0 + 200.0) / 3.0;
    check_true_time(&all, "0,2,16,18", 4, 3.0 * (1.0 + 2e-3 * mean_ns));
}

const KINDS: &str = "[[kind]]\nname = \"P\"\ncpus = \"0-15\"\nspeed = 2.0\n[[kind]]\nname = \"E\"\ncpus = \"16-31\"\nspeed = 1.0\n";

#[test]
fn work_dealt_beforehand_waits_for_the_slowest() {
    let text = format!("{}{KINDS}", describe("", ""));
    check_true_time(&text, "0,2,4,6", 4, 3.0);
    check_true_time(&text, "16,18,20,22", 4, 6.0);
    check_true_time(&text, "0,2,16,18", 4, 12.0 / 3.0);
    let fixed = text.replace("demand]\n", "demand]\nsplit = \"static\"\n");
    check_true_time(&fixed, "0,2,16,18", 4, 6.0);
    let uneven = fixed.replace("split", "imbalance = 0.25\nsplit");
    check_true_time(&uneven, "0,2,4,6", 4, 3.0 * 1.25);
    check_true_time(&uneven, "0", 1, 12.0);
}

#[test]
fn more_threads_than_cpus_take_turns() {
    let text = describe("", "");
    check_true_time(&text, "0", 4, 12.0);
    check_true_time(&text, "0,2", 4, 6.0);
    let losing = text.replace("switch_loss = 0.0", "switch_loss = 0.1");
    check_true_time(&losing, "0,2", 4, 6.6);
    // One of two has two threads: with static work distribution all wait for these.
    let fixed = text.replace("demand]\n", "demand]\nsplit = \"static\"\n");
    check_true_time(&fixed, "0,2", 3, 8.0);
}

#[test]
fn policies_place_threads_as_they_say() {
    let policy = |name: &str| describe(&format!("policy = \"{name}\""), "issue_share = 1.0");
    check_true_time(&policy("core-first"), "0-3", 2, 6.0);
    check_true_time(&policy("pinned"), "0-3", 2, 12.0);
    check_true_time(&policy("pinned"), "0-7,16", 2, 12.0);
    check_true_time(&policy("llc-first"), "0-31", 4, 3.0);
    check_true_time(&policy("llc-first"), "0-31", 8, 3.0);
    check_true_time(&policy("core-first"), "0-31", 8, 1.5);
    // Siblings in one case of three.
    let found = true_time(&policy("random-idle"), "0-3", 2);
    assert!((found - 8.0).abs() < 1.2, "{found}");
    let machine = open(&policy("random-idle"));
    let (workload, cpus) = (new_workload("prog", 2), set("0-3"));
    let truth = machine.true_cost(&request(&workload, &cpus)).unwrap();
    assert!((truth - found).abs() < 1e-12);
}

#[test]
fn moved_threads_refill_caches() {
    let text = describe(
        "policy = \"random-idle\"\nrebalance_s = 0.01",
        "private_bytes = 33554432\nissue_share = 0.1",
    );
    let still = text.replace("rebalance_s = 0.01", "");
    let (moving, staying) = (true_time(&text, "0-31", 8), true_time(&still, "0-31", 8));
    assert!(moving > 1.05 * staying, "{moving} {staying}");
    let calm = text.replace("private_bytes", "migration = 0.0\nprivate_bytes");
    let calm = true_time(&calm, "0-31", 8);
    assert!((calm / staying - 1.0).abs() < 1e-9, "{calm} {staying}");
    // With a thread for each CPU nothing moves.
    let full = true_time(&text, "0,2,4,6", 4);
    assert!((full - true_time(&still, "0,2,4,6", 4)).abs() < 1e-12);
    let (workload, cpus) = (new_workload("prog", 8), set("0-31"));
    let mut machine = open(&text);
    let run = machine.run(&request(&workload, &cpus)).unwrap();
    assert!(run.counts.migrations.unwrap() > 100, "{run:?}");
    let four = set("0,2,4,6,8,10,12,14");
    let run = machine.run(&request(&workload, &four)).unwrap();
    assert_eq!(run.counts.migrations, Some(0));
}

#[test]
fn the_number_of_threads_is_the_runs_own() {
    let text = describe("", "").replace("base_s", "threads = 2\nbase_s");
    let mut machine = open(&text);
    let cpus = set("0,2,4,6");
    let mut threads = |line: &str, variable: Option<&str>| {
        let mut workload = Workload::new(Command::from_line(line).unwrap());
        let variable = variable.map(|value| ("OMP_NUM_THREADS".to_owned(), value.to_owned()));
        workload.environment.extend(variable);
        machine.run(&request(&workload, &cpus)).unwrap().threads
    };
    assert_eq!(threads("prog", None), Some(2));
    assert_eq!(threads("prog", Some("3")), Some(3));
    assert_eq!(threads("prog", Some("4,2")), Some(4));
    assert_eq!(threads("prog", Some("many")), Some(2));
    assert_eq!(threads("prog", Some("0")), Some(2));
    assert_eq!(threads("prog --threads 4", Some("3")), Some(4));
    assert_eq!(threads("prog --threads=1", None), Some(1));
    assert_eq!(threads("prog --threadsafe 4", None), Some(2));
    assert_eq!(
        threads("pinwise bench kernel pi --threads 3", Some("4")),
        Some(3)
    );
}

#[test]
fn kernels_run_here_too() {
    let machine = open(&describe("", ""));
    let workload = Workload::new(
        Command::from_line("pinwise bench kernel pi --threads 4 --work 200 --format json").unwrap(),
    );
    let truth = machine
        .true_cost(&request(&workload, &set("0,2,4,6")))
        .unwrap();
    assert!((truth - 0.5).abs() < 1e-9, "{truth}");
}

#[test]
fn the_truth_is_the_mean_of_noisy_runs() {
    let demand = "issue_share = 1.0\nexchanges_per_s = 1e6\nunexplained_sd = 0.1";
    let text =
        describe("policy = \"random-idle\"\nrebalance_s = 1.0", demand) + "[noise]\nsd = 0.05\n";
    let mut machine = open(&text);
    for (cpus, threads) in [("0-31", 8), ("0-7", 3), ("0-3", 4)] {
        let (workload, cpus) = (new_workload("prog", threads), set(cpus));
        let request = request(&workload, &cpus);
        let truth = machine.true_cost(&request).unwrap();
        let times: Vec<f64> = (0..1000)
            .map(|_| machine.run(&request).unwrap().wall.as_secs_f64())
            .collect();
        // The mean of log-normal noise is exp(sd²/2).
        let found = mean(&times) / (0.05f64 * 0.05 / 2.0).exp();
        assert!((found / truth - 1.0).abs() < 0.03, "{found} {truth}");
    }
}

#[test]
fn asking_for_the_truth_changes_nothing() {
    let text = describe("policy = \"random-idle\"", "issue_share = 1.0") + "[noise]\nsd = 0.05\n";
    let (workload, cpus) = (new_workload("prog", 5), set("0-31"));
    let request = request(&workload, &cpus);
    let (mut asked, mut unasked) = (open(&text), open(&text));
    for _ in 0..5 {
        let first = asked.true_cost(&request);
        assert_eq!(first, asked.true_cost(&request));
        let (a, b) = (asked.run(&request).unwrap(), unasked.run(&request).unwrap());
        assert_eq!(a, b);
        assert_eq!(asked.now(), unasked.now());
    }
    let other = SimulatedMachine::from_text("m", &text, 2).unwrap();
    assert_eq!(other.true_cost(&request), asked.true_cost(&request));
}

#[test]
fn the_unexplained_part_belongs_to_a_placement() {
    let text = describe("", "unexplained_sd = 0.1\nissue_share = 0.0");
    // Equal placements on other CPUs are equal.
    assert!((true_time(&text, "0,2", 2) - true_time(&text, "17,21", 2)).abs() < 1e-12);
    let costs: Vec<f64> = ["0,2", "0,8", "0,16", "0-1"]
        .iter()
        .map(|cpus| (true_time(&text, cpus, 2) / 6.0).ln())
        .collect();
    for (at, cost) in costs.iter().enumerate() {
        assert!(cost.abs() < 0.5 && !costs[..at].contains(cost), "{costs:?}");
    }
    let other = text.replace("unexplained_sd", "unexplained_seed = 7\nunexplained_sd");
    assert!((true_time(&other, "0,2", 2) - true_time(&text, "0,2", 2)).abs() > 1e-6);
}

#[test]
fn wrong_figures_are_refused_with_their_key() {
    for (machine, demand, part) in [
        ("llc_ns = 0.0", "", "performance.llc_ns"),
        ("policy = \"fair\"", "", "unknown variant"),
        ("cache_sharpness = 0", "", "performance.cache_sharpness"),
        ("llc_bytes = 0", "", "performance.llc_bytes"),
        ("", "serial = 1.5", "workload.default.demand.serial"),
        ("", "group = 0", "workload.default.demand.group"),
        (
            "",
            "memory_share = 0.7\ncache_share = 0.7",
            "demand.cache_share: must be at most 1",
        ),
        ("", "gb_per_s = nan", "workload.default.demand.gb_per_s"),
        ("", "bandwith = 1", "unknown field `bandwith`"),
    ] {
        let error = refuse(&describe(machine, demand));
        assert!(error.contains(part), "{error}");
    }
    let lost = "topology = \"pu:2\"\n[workload.x]\nbase_s = 1.0\n[workload.x.demand]\nserial = 0.1";
    assert!(refuse(lost).contains("workload.x.demand: needs a section [performance]"));
}

fn refuse(text: &str) -> String {
    let refused: Result<_, DescriptionError> = SimulatedMachine::from_text("m.toml", text, 1);
    refused.unwrap_err().to_string()
}

/// Valid numbers of TOML, including odd ones.
fn any_number() -> impl Strategy<Value = String> {
    let odd = [
        "0.0", "1.0", "1e-6", "1e6", "1e9", "1e300", "0.9", "nan", "inf",
    ];
    prop_oneof![
        (0.0f64..1.0).prop_map(|number| format!("{number:?}")),
        (0.0f64..6.0).prop_map(|exponent| format!("{:?}", 10f64.powf(exponent))),
        prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

const MACHINE_KEYS: [&str; 15] = [
    "rebalance_s",
    "smt_partition",
    "turbo_drop",
    "switch_loss",
    "l2_load_ns",
    "llc_load_ns",
    "core_gb_per_s",
    "node_gb_per_s",
    "link_gb_per_s",
    "cache_gb_per_s",
    "memory_ns",
    "remote_memory_ns",
    "loaded_factor",
    "llc_ns",
    "remote_ns",
];
const DEMAND_KEYS: [&str; 11] = [
    "serial",
    "issue_share",
    "memory_share",
    "cache_share",
    "gb_per_s",
    "reuse_gb_per_s",
    "exchanges_per_s",
    "barriers_per_s",
    "imbalance",
    "migration",
    "unexplained_sd",
];

fn any_keys(known: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::btree_map(prop::sample::select(known), any_number(), 0..6).prop_map(|keys| {
        keys.iter()
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect()
    })
}

proptest! {
    #[test]
    fn any_figures_make_a_time_or_are_refused(
        machine in any_keys(&MACHINE_KEYS), demand in any_keys(&DEMAND_KEYS), base in any_number(),
        policy in prop::sample::select(vec!["random-idle", "core-first", "llc-first", "pinned"]),
        split in prop::sample::select(vec!["static", "dynamic"]),
        bytes in 0u64..1 << 40, group in 1u32..40, sharpness in 1..17,
        threads in 1usize..80, cpus in prop::collection::btree_set(0usize..32, 1..32),
    ) {
        let text = format!("topology = \"{TREE}\"\n[performance]\npolicy = \"{policy}\"\ncache_sharpness = {sharpness}\n{machine}[workload.default]\nbase_s = {base}\n[workload.default.demand]\nsplit = \"{split}\"\nprivate_bytes = {bytes}\nshared_bytes = {bytes}\ngroup = {group}\n{demand}");
        if let Ok(mut machine) = SimulatedMachine::from_text("m", &text, 1) {
            let (workload, cpus) = (new_workload("prog", threads), cpus.into_iter().collect());
            let request = request(&workload, &cpus);
            let truth = machine.true_cost(&request).unwrap();
            prop_assert!(truth.is_finite() && truth > 0.0, "{truth}");
            machine.run(&request).unwrap();
            prop_assert!(machine.now().as_secs_f64() >= 0.0);
        }
    }

    /// CPU numbers mean nothing: only the position in the tree matters.
    #[test]
    fn renumbering_changes_nothing(
        order in Just((0usize..32).collect::<Vec<_>>()).prop_shuffle(), seed in 0u64..20,
        used in prop::collection::btree_set(0usize..32, 1..32), threads in 1usize..40,
    ) {
        use crate::world::{World, describe_on};
        let numbers: Vec<String> = order.iter().map(usize::to_string).collect();
        let renumbered = format!("{TREE}(indexes={})", numbers.join(","));
        let text = describe_on(World::Misfits, seed, TREE, 8);
        let other = text.replace(TREE, &renumbered);
        let workload = new_workload("prog", threads);
        let cost = |text: &str, cpus: &CpuSet| open(text).true_cost(&request(&workload, cpus)).unwrap();
        let here = used.iter().copied().collect();
        let there = used.iter().map(|&at| order[at]).collect();
        let (a, b) = (cost(&text, &here), cost(&other, &there));
        prop_assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    }
}
