//! Simulated machines do what their description says.

use super::*;
use crate::placement::Placement;
use crate::stats::describe::{quantile, sd};
use crate::workload::Workload;

fn machine(toml: &str, seed: u64) -> Result<SimulatedMachine, DescriptionError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, toml).unwrap();
    let series: String = (0..50)
        .map(|i| format!("{}\n", 0.05 + 0.001 * f64::from(i)))
        .collect();
    std::fs::write(folder.path().join("s.csv"), format!("wall\n{series}")).unwrap();
    SimulatedMachine::open(path.to_str().unwrap(), seed)
}

fn times(machine: &mut SimulatedMachine, placement: &str, runs: usize) -> Vec<f64> {
    let (topology, _) = machine.topology().unwrap();
    let placement: Placement = placement.parse().unwrap();
    let realised = placement.realise(&topology).unwrap();
    let workload = Workload::new(Command::from_line("prog").unwrap());
    let request = Request {
        workload: &workload,
        cpus: &realised.cpus,
        memory: None,
        output: Output::Discard,
        environment_padding: 0,
        count_threads_closely: false,
    };
    (0..runs)
        .map(|_| machine.run(&request).unwrap().wall.as_secs_f64())
        .collect()
}

#[test]
fn effects_follow_the_cpus_not_the_name() {
    let text =
        "topology = \"core:2 pu:1\"\n[workload.default]\nbase_s = 2.0\n[effects]\n\"cpu:0\" = 1.5";
    let mut machine = machine(text, 1).unwrap();
    assert_eq!(times(&mut machine, "os-default", 1), [2.0]);
    assert_eq!(times(&mut machine, "one-core", 1), [3.0]);
    assert_eq!(machine.now(), Duration::from_secs(5));
}

#[test]
fn the_same_seed_gives_the_same_runs() {
    let text = "topology = \"pu:1\"\n[noise]\nkind = \"lognormal\"\nsd = 0.1\nbursts = { every_s = 1.0, lasts_s = 0.5, factor = 2.0 }\nlevel_shifts = { dwell_s = 3.0, levels = [1.0, 1.2] }\nwander = { correlation = 0.9, sd = 0.05 }\nperiod = { runs = 4, factor = 1.1 }\ndrift = 0.5";
    let run = |seed| times(&mut machine(text, seed).unwrap(), "cpu:0", 30);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn lognormal_noise_has_the_stated_spread() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 0.5\n[noise]\nkind = \"lognormal\"\nsd = 0.05";
    let logs: Vec<f64> = times(&mut machine(text, 3).unwrap(), "cpu:0", 4000)
        .iter()
        .map(|t| t.ln())
        .collect();
    assert!((sd(&logs) - 0.05).abs() < 0.003);
    assert!((quantile(&logs, 0.5) - 0.5f64.ln()).abs() < 0.003);
}

#[test]
fn a_series_is_replayed_in_order_and_wraps() {
    let text = "topology = \"pu:1\"\n[workload.default]\nbase_s = 1.0\n[noise]\nseries = \"s.csv\"";
    let all = times(&mut machine(text, 5).unwrap(), "cpu:0", 51);
    assert!((all[0] - all[50]).abs() < 1e-9);
    let falls = all.windows(2).filter(|w| w[1] < w[0]).count();
    assert_eq!(falls, 1);
    assert!((quantile(&all[..50], 0.5) - 1.0).abs() < 1e-9);
}

#[test]
fn bad_descriptions_name_file_and_place() {
    let error = |text: &str| machine(text, 1).unwrap_err().to_string();
    for (text, part) in [
        ("topology = 3", "m.toml:1:"),
        (
            "topology = \"pu:1\"\n[effekts]\na = 1",
            "m.toml:2: unknown field",
        ),
        ("topology = \"kore:1\"", "topology: 'kore' is not a level"),
        (
            "topology = \"pu:1\"\n[effects]\n\"cpu:5\" = 1.0",
            "effects.\"cpu:5\": cpu:5: there is no CPU 5",
        ),
        (
            "topology = \"pu:1\"\n[effects]\n\"cpu:0\" = -1.0",
            "must be above 0",
        ),
        (
            "topology = \"pu:1\"\n[noise]\nkind = \"pink\"",
            "'pink' is not known",
        ),
        (
            "topology = \"pu:1\"\n[noise]\nseries = \"none.csv\"",
            "none.csv: No such file",
        ),
        (
            "topology = \"pu:1\"\n[workload.x]\nbase_s = 0.0",
            "workload.x.base_s",
        ),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
    let missing = SimulatedMachine::open("/nowhere.toml", 1)
        .unwrap_err()
        .to_string();
    assert!(missing.starts_with("/nowhere.toml: No such file"));
}

#[test]
fn damaged_series_name_the_line() {
    let error = |text: &str| series::parse(text.as_bytes(), None).unwrap_err();
    assert_eq!(error("x\n1\n").1, "there is no column 'wall'");
    assert_eq!(error("wall\n1\nx\n").0, 3);
    assert_eq!(error("wall\n1\n-2\n").0, 3);
    assert!(error("wall\n1\n").1.contains("too few"));
}
