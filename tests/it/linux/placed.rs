//! Placements reach the kernel.

use pinwise_topology::DeviceKind;

use super::trial::{Trial, allowed_cpus, finish, runs_of, two_cpus};
use crate::support::words;

/// `Cpus_allowed_list` of a command that `pinwise run` placed.
#[track_caller]
fn granted_cpus(trial: &Trial, place: &str) -> String {
    let ended = trial.run(&["run", "--place", place, "--", "cat", "/proc/self/status"]);
    ended.succeeded();
    assert_eq!(ended.err, "", "{place}");
    let mut lines = ended.out.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().to_owned()
}

#[test]
fn run_grants_the_requested_cpus() {
    let trial = Trial::new();
    for cpu in allowed_cpus() {
        assert_eq!(granted_cpus(&trial, &format!("cpu:{cpu}")), cpu.to_string());
    }
    let cpu = allowed_cpus()[0];
    for memory in ["local", "bind", "interleave", "preferred"] {
        let place = format!("cpu:{cpu}/mem={memory}");
        assert_eq!(granted_cpus(&trial, &place), cpu.to_string());
    }
}

/// The policy of the heap's range in `numa_maps` shows what was set.
#[test]
fn run_sets_the_memory_policy() {
    if !std::path::Path::new("/proc/self/numa_maps").exists() {
        crate::support::skipped("no /proc/self/numa_maps");
        return;
    }
    let trial = Trial::new();
    let cpu = allowed_cpus()[0];
    for (memory, shown) in [
        ("bind", "bind"),
        ("interleave", "interleave"),
        ("local", "local"),
        ("preferred", "prefer"),
        ("preferred:0", "prefer:0"),
        ("bind:0", "bind:0"),
        ("weighted", "weighted interleave"),
    ] {
        if memory == "weighted" && !knows_weights(&trial, cpu) {
            continue;
        }
        let place = format!("cpu:{cpu}/mem={memory}");
        let ended = trial.run(&[
            "run",
            "--place",
            &place,
            "--",
            "cat",
            "/proc/self/numa_maps",
        ]);
        ended.succeeded();
        let heap = ended
            .out
            .lines()
            .find(|line| line.contains(" heap "))
            .unwrap();
        assert!(heap.contains(shown), "{place}: {heap}");
    }
}

/// Kernels before 6.9 do not, which is then said before anything runs.
fn knows_weights(trial: &Trial, cpu: usize) -> bool {
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
        ended.is_refused(&why);
    }
    false
}

#[test]
fn compare_records_what_was_granted() {
    let Some([first, second]) = two_cpus() else {
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
    trial.run(&arguments).succeeded();
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
    let cpu = allowed_cpus()[0];
    let places = ["local", "bind", "interleave", "preferred"];
    let places = places.map(|m| format!("cpu:{cpu}/mem={m}"));
    let [a, b, c, d] = places.each_ref();
    let words = ["--place", a, "--place", b, "--place", c, "--place", d];
    let record = trial.record(&[&words[..], &["--", "true"]].concat());
    let named: Vec<&str> = record["arms"].as_array().unwrap()[1..5]
        .iter()
        .map(|arm| arm["placement"]["memory"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["local", "bind", "interleave", "preferred"]);
}

/// A parent that was confined hands its confinement down: it is the machine.
#[test]
fn a_confined_parent_is_the_whole_machine() {
    let Some([inside, _]) = two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let on = |arguments: &[&str]| finish(trial.pinwise_on(inside, arguments).spawn().unwrap());
    let topology = on(&["topology", "--format", "json"]);
    topology.succeeded();
    let topology: serde_json::Value = serde_json::from_str(&topology.out).unwrap();
    assert_eq!(topology["allowed"], inside.to_string());

    let compared = on(&words(
        "compare --quiet --placebo --place os-default --max-runs 1 --format json -- true",
    ));
    compared.succeeded();
    let record: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
    let runs = runs_of(&record);
    assert!(runs.len() >= 2);
    for run in runs {
        assert_eq!(run["granted_cpus"], inside.to_string());
    }
}

/// A type of which there is a device on the PCI bus.
fn any_type() -> Option<&'static str> {
    let record = crate::support::json(&["topology", "--format", "json"]);
    let devices = record["devices"].as_array().unwrap();
    let mut kinds = ["storage", "network"].into_iter();
    let found = kinds.find(|kind| devices.iter().any(|device| device["type"] == *kind));
    if found.is_none() {
        crate::support::skipped("no disk and no network card on a PCI bus");
    }
    found
}

#[test]
fn ranks_share_out_the_cores_near_a_device() {
    let Some(kind) = any_type() else { return };
    let machine = pinwise_machine::linux::discover().unwrap().0;
    let kinds = [
        ("storage", DeviceKind::Storage),
        ("network", DeviceKind::Network),
    ];
    let of = kinds.iter().find(|(name, _)| *name == kind).unwrap().1;
    let expected = pinwise_placement::place_per_device(&machine, of, None, 2).unwrap();
    let trial = Trial::new();
    let line = "echo $PINWISE_RANK $LOCAL_WORLD_SIZE $PINWISE_DEVICE > rank-$PINWISE_RANK; \
                grep Cpus_allowed_list /proc/self/status > cpus-$PINWISE_RANK";
    let command = ["--", "sh", "-c", line];
    trial
        .run(&[&["run", "--per", kind, "--ranks", "2"][..], &command].concat())
        .succeeded();
    for (number, rank) in expected.iter().enumerate() {
        let device = machine.devices[rank.device].name();
        let printed = trial.shell(&format!("cat rank-{number}"));
        assert_eq!(printed.trim(), format!("{number} 2 {device}"));
        let cpus = trial.shell(&format!("cat cpus-{number}"));
        let cpus = cpus.split(':').nth(1).unwrap().trim().to_owned();
        assert_eq!(cpus, rank.cpus.to_string(), "rank {number}");
    }
}

#[test]
fn ranks_end_together() {
    let Some(kind) = any_type() else { return };
    let trial = Trial::new();
    // The first sleeps until the second, which waits for it, has failed.
    let line = "if [ $PINWISE_RANK = 1 ]; then until [ -e begun ]; do sleep 0.01; done; exit 7; \
                fi; touch begun; exec sleep 1000";
    let ended = trial.run(&["run", "--per", kind, "--ranks", "2", "--", "sh", "-c", line]);
    assert_eq!(ended.status.code(), Some(7), "{}", ended.err);
    trial.leaves_no_process();
}
