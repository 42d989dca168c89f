//! The kernel grants each placement what its name says.

use pinwise_topology::DeviceKind;

use super::trial::{Trial, find_two_cpus, finish, list_allowed_cpus, list_runs};
use crate::support::split_words;

/// `Cpus_allowed_list` of a command that `pinwise run` placed.
#[track_caller]
fn run_for_granted_cpus(trial: &Trial, place: &str) -> String {
    let ended = trial.run(&["run", "--place", place, "--", "cat", "/proc/self/status"]);
    ended.check_success();
    assert_eq!(ended.err, "", "{place}");
    let mut lines = ended.out.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().to_owned()
}

#[test]
fn run_grants_the_requested_cpus() {
    let trial = Trial::new();
    for cpu in list_allowed_cpus() {
        let granted = run_for_granted_cpus(&trial, &format!("cpu:{cpu}"));
        assert_eq!(granted, cpu.to_string());
    }
    let cpu = list_allowed_cpus()[0];
    for memory in ["local", "bind", "interleave", "preferred"] {
        let place = format!("cpu:{cpu}/mem={memory}");
        assert_eq!(run_for_granted_cpus(&trial, &place), cpu.to_string());
    }
}

/// `numa_maps` shows the policy of the heap.
#[test]
fn run_sets_the_memory_policy() {
    if !std::path::Path::new("/proc/self/numa_maps").exists() {
        crate::support::report_skip("no /proc/self/numa_maps");
        return;
    }
    let trial = Trial::new();
    let cpu = list_allowed_cpus()[0];
    for (memory, shown) in [
        ("bind", "bind"),
        ("interleave", "interleave"),
        ("local", "local"),
        ("preferred", "prefer"),
        ("preferred:0", "prefer:0"),
        ("bind:0", "bind:0"),
        ("weighted", "weighted interleave"),
    ] {
        if memory == "weighted" && !has_weighted_policy(&trial, cpu) {
            continue;
        }
        let place = format!("cpu:{cpu}/mem={memory}");
        let command = ["--", "cat", "/proc/self/numa_maps"];
        let ended = trial.run(&[&["run", "--place", &place][..], &command].concat());
        ended.check_success();
        let heap = ended.out.lines().find(|line| line.contains(" heap "));
        assert!(heap.unwrap().contains(shown), "{place}: {heap:?}");
    }
}

/// Whether the kernel has the memory policy `weighted` (since 6.9). Checks that without it pinwise
/// refuses the policy before anything runs.
fn has_weighted_policy(trial: &Trial, cpu: usize) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    if (number(), number()) >= (Some(6), Some(9)) {
        return true;
    }
    let place = format!("cpu:{cpu}/mem=weighted");
    let why = ["the memory policy weighted", "Linux 6.9"];
    for command in ["run", "compare"] {
        let ended = trial.run(&[command, "--place", &place, "--", "true"]);
        ended.check_refused(&why);
    }
    false
}

#[test]
fn compare_records_what_was_granted() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let (first, second) = (first.to_string(), second.to_string());
    let both = format!("{first},{second}");
    let file = trial.path("record.json");
    let place = |cpus: &str| ["--place".to_owned(), format!("cpu:{cpus}")];
    let places = [place(&first), place(&second), place(&both)].concat();
    let mut arguments: Vec<&str> = vec!["compare", "--quiet", "--max-runs", "2"];
    arguments.extend(places.iter().map(String::as_str));
    arguments.extend(["--export-json", file.to_str().unwrap(), "--", "true"]);
    trial.run(&arguments).check_success();
    let text = std::fs::read_to_string(&file).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted = [&first, &second, &both].map(|cpus| {
        let set: pinwise_topology::CpuSet = cpus.parse().unwrap();
        set.to_string()
    });
    for (arm, cpus) in record["arms"].as_array().unwrap().iter().zip(wanted) {
        assert_eq!(arm["cpus"], cpus);
        for list in ["runs", "other_runs"] {
            for run in arm[list].as_array().unwrap() {
                assert_eq!(run["granted_cpus"], cpus, "{}", arm["name"]);
            }
        }
        assert!(arm["runs"].as_array().unwrap().len() >= 2);
    }
}

#[test]
fn memory_policies_are_compared() {
    let trial = Trial::new();
    let cpu = list_allowed_cpus()[0];
    let places = ["local", "bind", "interleave", "preferred"];
    let places = places.map(|m| format!("cpu:{cpu}/mem={m}"));
    let [a, b, c, d] = places.each_ref();
    let words = ["--place", a, "--place", b, "--place", c, "--place", d];
    let record = trial.compare_for_record(&[&words[..], &["--", "true"]].concat());
    let named: Vec<&str> = record["arms"].as_array().unwrap()[1..5]
        .iter()
        .map(|arm| arm["placement"]["memory"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["local", "bind", "interleave", "preferred"]);
}

#[test]
fn a_process_confined_to_one_cpu_uses_only_that() {
    let Some([cpu, _]) = find_two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let run_confined = |line: &str| {
        let mut command = trial.pinwise_on_cpu(cpu, &split_words(line));
        finish(command.spawn().unwrap()).parse_json()
    };
    let topology = run_confined("topology --format json");
    assert_eq!(topology["allowed"], cpu.to_string());

    let record = run_confined(
        "compare --quiet --placebo --place os-default --max-runs 1 --format json -- true",
    );
    let runs = list_runs(&record);
    assert!(runs.len() >= 2);
    for run in runs {
        assert_eq!(run["granted_cpus"], cpu.to_string());
    }
}

/// A type of device that is on the PCI bus of this host.
fn find_device_type() -> Option<&'static str> {
    let record = crate::support::run_for_json(&["topology", "--format", "json"]);
    let devices = record["devices"].as_array().unwrap();
    let mut kinds = ["storage", "network"].into_iter();
    let found = kinds.find(|kind| devices.iter().any(|device| device["type"] == *kind));
    if found.is_none() {
        crate::support::report_skip("no disk and no network card on a PCI bus");
    }
    found
}

#[test]
fn ranks_share_out_the_cores_near_a_device() {
    let Some(kind) = find_device_type() else {
        return;
    };
    let machine = pinwise_machine::linux::discover().unwrap().0;
    let kinds = [
        ("storage", DeviceKind::Storage),
        ("network", DeviceKind::Network),
    ];
    let device_kind = kinds.iter().find(|(name, _)| *name == kind).unwrap().1;
    let expected = pinwise_placement::place_per_device(&machine, device_kind, None, 2).unwrap();
    let trial = Trial::new();
    let line = "echo $PINWISE_RANK $LOCAL_WORLD_SIZE $PINWISE_DEVICE > rank-$PINWISE_RANK; \
                grep Cpus_allowed_list /proc/self/status > cpus-$PINWISE_RANK";
    let command = ["--", "sh", "-c", line];
    trial
        .run(&[&["run", "--per", kind, "--ranks", "2"][..], &command].concat())
        .check_success();
    for (number, rank) in expected.iter().enumerate() {
        let device = machine.devices[rank.device].name();
        let printed = trial.run_shell(&format!("cat rank-{number}"));
        assert_eq!(printed.trim(), format!("{number} 2 {device}"));
        let cpus = trial.run_shell(&format!("cat cpus-{number}"));
        let cpus = cpus.split(':').nth(1).unwrap().trim().to_owned();
        assert_eq!(cpus, rank.cpus.to_string(), "rank {number}");
    }
}

#[test]
fn ranks_end_together() {
    let Some(kind) = find_device_type() else {
        return;
    };
    let trial = Trial::new();
    // The first sleeps until the second, which waits for it, has failed.
    let line = "if [ $PINWISE_RANK = 1 ]; then until [ -e begun ]; do sleep 0.01; done; exit 7; \
                fi; touch begun; exec sleep 1000";
    let ended = trial.run(&["run", "--per", kind, "--ranks", "2", "--", "sh", "-c", line]);
    assert_eq!(ended.status.code(), Some(7), "{}", ended.err);
    trial.check_no_process_left();
}
