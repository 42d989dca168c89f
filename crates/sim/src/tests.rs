use super::*;
use pinwise_placement::Placement;
use pinwise_stats::describe::{quantile, sd};
use pinwise_workload::Workload;
use proptest::prelude::*;

fn open_machine(toml: &str, seed: u64) -> Result<SimulatedMachine, DescriptionError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, toml).unwrap();
    let series: String = (0..50)
        .map(|i| format!("{}\n", 0.05 + 0.001 * f64::from(i)))
        .collect();
    std::fs::write(folder.path().join("s.csv"), format!("wall\n{series}")).unwrap();
    SimulatedMachine::open(path.to_str().unwrap(), seed)
}

fn measure_times(machine: &mut SimulatedMachine, placement: &str, runs: usize) -> Vec<f64> {
    let (topology, _) = machine.topology().unwrap();
    let placement: Placement = placement.parse().unwrap();
    let realised = placement.realise(&topology).unwrap();
    let workload = Workload::new(Command::from_line("prog").unwrap());
    let request = Request::new(&workload, &realised.cpus);
    (0..runs)
        .map(|_| machine.run(&request).unwrap().wall.as_secs_f64())
        .collect()
}

#[test]
fn effects_follow_the_cpus_not_the_name() {
    let text =
        "topology = \"core:2 pu:1\"\n[workload.default]\nbase_s = 2.0\n[effects]\n\"cpu:0\" = 1.5";
    let mut machine = open_machine(text, 1).unwrap();
    assert_eq!(measure_times(&mut machine, "os-default", 1), [2.0]);
    assert_eq!(measure_times(&mut machine, "one-core", 1), [3.0]);
    assert_eq!(machine.now(), Duration::from_secs(5));
}

#[test]
fn the_same_seed_gives_the_same_runs() {
    let text = "topology = \"pu:1\"\n[noise]\nkind = \"lognormal\"\nsd = 0.1\nbursts = { every_s = 1.0, lasts_s = 0.5, factor = 2.0 }\nlevel_shifts = { dwell_s = 3.0, levels = [1.0, 1.2] }\nwander = { correlation = 0.9, sd = 0.05 }\nperiod = { runs = 4, factor = 1.1 }\ndrift = 0.5";
    let run = |seed| measure_times(&mut open_machine(text, seed).unwrap(), "cpu:0", 30);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn lognormal_noise_has_the_stated_spread() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 0.5\n[noise]\nkind = \"lognormal\"\nsd = 0.05";
    let logs: Vec<f64> = measure_times(&mut open_machine(text, 3).unwrap(), "cpu:0", 4000)
        .iter()
        .map(|t| t.ln())
        .collect();
    assert!((sd(&logs) - 0.05).abs() < 0.003);
    assert!((quantile(&logs, 0.5) - 0.5f64.ln()).abs() < 0.003);
}

#[test]
fn a_series_is_replayed_in_order_and_wraps() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 1.0\n[noise]\nseries = \"s.csv\"";
    let all = measure_times(&mut open_machine(text, 5).unwrap(), "cpu:0", 51);
    assert!((all[0] - all[50]).abs() < 1e-9);
    let falls = all.windows(2).filter(|w| w[1] < w[0]).count();
    assert_eq!(falls, 1);
    assert!((quantile(&all[..50], 0.5) - 1.0).abs() < 1e-9);
}

#[test]
fn impossible_figures_are_refused_with_their_key() {
    let error = |text: &str| open_machine(text, 1).unwrap_err().to_string();
    for (text, part) in [
        (
            "topology = \"pu:1\"\n[workload.x]\nbase_s = 0.0",
            "workload.x.base_s",
        ),
        (
            "topology = \"pu:1\"\n[noise]\ndrift = nan",
            "noise.drift: must be a finite number",
        ),
        (
            "topology = \"pu:1\"\n[noise]\nwander = { correlation = 0.5, sd = inf }",
            "sd from 0 to 10",
        ),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn overflowing_times_stop_at_the_longest_run() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 1e300\ncpu_share = 1e300";
    let mut machine = open_machine(text, 1).unwrap();
    assert_eq!(measure_times(&mut machine, "cpu:0", 2), [LONGEST_RUN_S; 2]);
    assert_eq!(machine.now(), Duration::from_secs(2_000_000_000));
}

#[test]
fn bursts_of_a_nanosecond_do_not_take_forever() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 1e6\n[noise]\nbursts = { every_s = 1e-9, lasts_s = 1e-9, factor = 2.0 }\nlevel_shifts = { dwell_s = 1e-300, levels = [1.0, 2.0] }";
    let times = measure_times(&mut open_machine(text, 1).unwrap(), "cpu:0", 3);
    assert!(times.iter().all(|&time| time >= 1e6), "{times:?}");
}

#[test]
fn packed_series_are_unpacked_up_to_a_bound() {
    let packed = include_bytes!("../../../tests/data/series/light_cpu.csv.xz").as_slice();
    let length = series::unpack_xz(packed, 1 << 20).unwrap().len();
    assert!(length > packed.len());
    let error = series::unpack_xz(packed, length as u64 - 1).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn damaged_series_name_the_line() {
    let error = |text: &str| series::parse_series(text.as_bytes(), None).unwrap_err();
    assert_eq!(error("x\n1\n").1, "no column 'wall'");
    assert_eq!(error("wall\n1\nx\n").0, 3);
    assert_eq!(error("wall\n1\n-2\n").0, 3);
    assert!(error("wall\n1\n").1.contains("too few"));
}

const UNEVEN: &str =
    "topology = \"package:1 l3:2 core:4 pu:2\"\nallowed = \"0-5,8-11\"\noffline = \"15\"\n";
const TWO_KINDS: &str =
    "[[kind]]\nname = \"P\"\ncpus = \"0-7\"\nspeed = 1.0\n[[kind]]\ncpus = \"8-15\"\nspeed = 0.6\n";

#[test]
fn offline_and_disallowed_cpus_and_kinds_are_as_described() {
    let mut machine = open_machine(&format!("{UNEVEN}{TWO_KINDS}"), 1).unwrap();
    let (topology, warnings) = machine.topology().unwrap();
    assert!(warnings.is_empty());
    assert_eq!(topology.cpus.len(), 16);
    assert_eq!(topology.online.to_string(), "0-14");
    assert_eq!(topology.allowed.to_string(), "0-5,8-11");
    assert_eq!(topology.restrictions[0].by, "cpuset of the description");
    assert_eq!(topology.counts().cores, 5);
    let kinds: Vec<String> = topology
        .kinds
        .iter()
        .map(|kind| format!("{} {}", kind.name, kind.cpus))
        .collect();
    assert_eq!(kinds, ["E 8-14", "P 0-7"]);
    assert_eq!(measure_times(&mut machine, "p-cores", 1), [0.1]);
}

#[test]
fn contradictions_of_cpus_are_refused_with_their_key() {
    for (extra, part) in [
        (
            "allowed = \"0-4\"",
            "allowed: no such CPU: 4; the topology has CPUs 0-3",
        ),
        ("allowed = \"\"", "allowed: names no CPU"),
        ("allowed = \"x\"", "allowed: 'x' is not a CPU number"),
        (
            "offline = \"2\"\nallowed = \"1-2\"",
            "allowed: CPUs 2 are offline",
        ),
        (
            "[[kind]]\ncpus = \"0-3\"\nspeed = 1.0",
            "kind: a single kind has no effect",
        ),
        (
            "[[kind]]\ncpus = \"0-1\"\nspeed = 1.0\n[[kind]]\ncpus = \"2-3\"\nspeed = 1.0",
            "kind[1].speed: another kind is as fast",
        ),
        (
            "[[kind]]\nname = \"P\"\ncpus = \"0-1\"\nspeed = 1.0\n[[kind]]\ncpus = \"2-3\"\nspeed = 2.0",
            "kind[0].name: by its speed this kind is E",
        ),
        (
            "[[kind]]\ncpus = \"0-1\"\nspeed = 1.0\n[[kind]]\ncpus = \"2\"\nspeed = 2.0",
            "kind: CPUs 3 are in no kind",
        ),
        (
            "[[kind]]\ncpus = \"0-1\"\nspeed = 0.0\n[[kind]]\ncpus = \"2-3\"\nspeed = 2.0",
            "kind[0].speed: 0 must be from 0.01 to 100",
        ),
        (
            "offline = \"2-3\"\n[[kind]]\ncpus = \"0-1\"\nspeed = 1.0\n[[kind]]\ncpus = \"2-3\"\nspeed = 2.0",
            "kind[1].cpus: all its CPUs are offline",
        ),
    ] {
        let text = format!("topology = \"core:4 pu:1\"\n{extra}");
        let error = open_machine(&text, 1).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let wired = format!("{UNEVEN}[wiring]\ntopology = \"package:1 l3:4 core:2 pu:2\"\n");
    open_machine(&wired, 1).unwrap();
}

#[test]
fn a_program_fails_under_some_placements() {
    let text = "topology = \"l3:2 core:2 pu:1\"\n[workload.default]\nbase_s = 1.0\nfails = [\"one-llc\", \"cpu:3\"]\n";
    let end = |text: &str, list: &str| {
        let mut machine = open_machine(text, 1).unwrap();
        let (workload, cpus) = (
            Workload::new(Command::from_line("prog").unwrap()),
            CpuSet::parse_list(list).unwrap(),
        );
        let request = Request::new(&workload, &cpus);
        let truth = machine.true_cost(&request);
        (machine.run(&request).unwrap().end, truth)
    };
    assert_eq!(end(text, "0-1"), (End::Status(1), None));
    assert_eq!(end(text, "3"), (End::Status(1), None));
    assert_eq!(end(text, "0-3"), (End::Status(0), Some(1.0)));
    let other = format!("{text}exit = 7\n");
    assert_eq!(end(&other, "0-1"), (End::Status(7), None));
    assert_eq!(end(&other, "2-3"), (End::Status(0), Some(1.0)));
    let often = format!("{other}fail_probability = 0.5\n");
    assert_eq!(end(&often, "2-3").1, Some(1.0));
    let always = "topology = \"pu:1\"\n[workload.default]\nbase_s = 1.0\nexit = 3\n";
    assert_eq!(end(always, "0"), (End::Status(3), None));
    let wrong = text.replace("cpu:3", "cpu:9");
    let error = open_machine(&wrong, 1).unwrap_err().to_string();
    assert!(error.contains("workload.default.fails: cpu:9"), "{error}");
}

#[test]
fn the_true_cost_is_without_noise_with_and_without_a_scheduler() {
    let cost = |text: &str, list: &str| {
        let machine = open_machine(text, 1).unwrap();
        let workload = Workload::new(Command::from_line("prog").unwrap());
        let cpus = CpuSet::parse_list(list).unwrap();
        let request = Request::new(&workload, &cpus);
        let truth = machine.true_cost(&request);
        assert_eq!(truth, machine.true_cost(&request));
        truth.unwrap()
    };
    let plain = "topology = \"core:2 pu:1\"\n[workload.default]\nbase_s = 2.0\n[effects]\n\"cpu:0\" = 1.5\n[noise]\nsd = 0.5";
    assert!((cost(plain, "0-1") - 2.0).abs() < 1e-12);
    assert!((cost(plain, "0") - 3.0).abs() < 1e-12);
    let scheduled = "topology = \"core:2 pu:2\"\n[scheduler]\npolicy = \"core-first\"\nsmt_throughput = 1.2\n[workload.default]\nbase_s = 12\nthreads = 2\n[noise]\nsd = 0.5";
    for (cpus, expected) in [("0", 12.0), ("0-1", 10.0), ("0-3", 6.0)] {
        let found = cost(scheduled, cpus);
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

/// Numbers that TOML can write and that noise must handle or refuse.
fn any_number() -> impl Strategy<Value = String> {
    let odd = ["0.0", "-1.0", "inf", "nan", "1e300", "1e-300", "1e9"];
    prop_oneof![
        (0.001f64..10.0).prop_map(|number| format!("{number:?}")),
        prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn any_numbers_make_a_machine_or_are_refused(numbers in prop::collection::vec(any_number(), 11), runs in 0u64..3) {
        let [base, share, effect, sd, drift, every, lasts, factor, dwell, level, wander] = &numbers[..] else {
            unreachable!("eleven numbers");
        };
        let text = format!("topology = \"pu:2\"\n[workload.default]\nbase_s = {base}\ncpu_share = {share}\n[effects]\n\"cpu:0\" = {effect}\n[noise]\nsd = {sd}\ndrift = {drift}\nbursts = {{ every_s = {every}, lasts_s = {lasts}, factor = {factor} }}\nlevel_shifts = {{ dwell_s = {dwell}, levels = [{level}] }}\nwander = {{ correlation = 0.5, sd = {wander} }}\nperiod = {{ runs = {runs}, factor = {factor} }}\n");
        if let Ok(mut machine) = open_machine(&text, 1) {
            let before = machine.now();
            let times = measure_times(&mut machine, "cpu:0", 3);
            prop_assert!(times.iter().all(|time| (0.0..=LONGEST_RUN_S).contains(time)));
            prop_assert!(machine.now() >= before);
        }
    }

    #[test]
    fn a_machine_matches_its_description(cores in 1usize..5, base in 0.001f64..100.0, effect in 0.1f64..10.0, threads in 1u32..9) {
        let text = format!("topology = \"core:{cores} pu:2\"\n[workload.prog]\nbase_s = {base}\nthreads = {threads}\n[effects]\n\"cpu:1\" = {effect}");
        let mut machine = open_machine(&text, 1).unwrap();
        prop_assert_eq!(machine.topology().unwrap().0.counts().cpus, 2 * cores);
        prop_assert_eq!(machine.description.workload("prog").threads, threads);
        for (placement, wanted) in [("cpu:0", base), ("cpu:1", base * effect)] {
            let time = measure_times(&mut machine, placement, 1)[0];
            prop_assert!((time - wanted).abs() <= 1e-9, "{} is not {}", time, wanted);
        }
    }

    #[test]
    fn a_series_replays_the_recorded_runs(rows in prop::collection::vec((1e-6f64..1e6, 0.0f64..1.0, 0u32..2), 40)) {
        let lines: Vec<String> = rows.iter().map(|(wall, share, arm)| format!("{arm},{wall},{}", wall * share)).collect();
        let text = format!("arm, wall, user\n{}\n", lines.join("\n"));
        let all = series::parse_series(text.as_bytes(), None).unwrap();
        let walls: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let median = quantile(&walls, 0.5);
        prop_assert_eq!(all.runs.len(), rows.len());
        for (run, (wall, share, _)) in all.runs.iter().zip(&rows) {
            prop_assert!((run.factor * median / wall - 1.0).abs() < 1e-9);
            prop_assert!((run.user_share.unwrap() - share).abs() < 1e-9);
            prop_assert!(run.sys_share.is_none());
        }
        let of_arm = rows.iter().filter(|row| row.2 == 1).count();
        if let Ok(one) = series::parse_series(text.as_bytes(), Some(1)) {
            prop_assert_eq!(one.runs.len(), of_arm);
        }
    }
}
