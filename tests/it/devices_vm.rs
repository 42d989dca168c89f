//! Devices of a machine with two NUMA nodes, each with network cards and a disk: their nodes, what
//! runs near them, and the CPUs that take their interrupts. On an emulated machine with a real
//! kernel, whose cards have several queues.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{has_program, report_skip, run_for_json};
use crate::vm::{self, find_case};

/// Faults that end `apply`. Its first change is that of a mask; those of nine interrupts, two
/// receiving and four sending queues follow.
const FAULTS: [&str; 10] = [
    "before-write:kill:4",
    "after-write:kill:11",
    "after-change:panic:12",
    "after-interrupt:kill:2",
    "after-interrupt:term:10",
    "after-interrupt:full:11",
    "after-interrupt:bereft:14",
    "running:kill",
    "after-value:kill:3",
    "between-restores:panic:9",
];

/// CPUs of the card's interrupts and queues before anything is moved.
const BEFORE: &str = "0-3 0-1 0-1 2-3 2-3 4-5 4-5 6-7 6-7 \
    rx-0:80 rx-1:80 rx-2:00 rx-3:00 tx-0:03 tx-1:0c tx-2:30 tx-3:c0";

/// CPUs of interrupts and queues in a case, in the form of [`BEFORE`].
fn parse_cpus(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(|line| line.replace(' ', ":"));
    words.collect::<Vec<_>>().join(" ")
}

/// CPUs of interrupts and queues in each run of a comparison, sorted.
fn list_cpus_of_runs(text: &str) -> Vec<String> {
    let runs = text.split(";\n").skip(1);
    let mut runs: Vec<String> = runs.map(parse_cpus).collect();
    runs.sort();
    runs
}

/// Node and near CPUs of network cards and disks, by address.
fn list_places(record: &Value) -> BTreeMap<String, String> {
    let devices = record["devices"].as_array().unwrap().iter();
    // The controller of q35 itself is of another class.
    let devices = devices.filter(|device| ["0200", "0108"].contains(&as_text(&device["class"])));
    let place = |device: &Value| {
        let place = format!("{} {}", device["numa_node"], as_text(&device["cpus"]));
        (as_text(&device["address"]).to_owned(), place)
    };
    devices.map(place).collect()
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// Checks that devices are at the nodes that the kernel and hwloc report, and that placements near
/// them and far from them are right.
fn check_places(out: &str, has_hwloc: bool) {
    let lines = find_case(out, "kernel").lines();
    let kernel: BTreeMap<String, String> = lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(address, place)| (address.to_owned(), place.to_owned()))
        .collect();
    let nodes = kernel.values().filter(|place| *place == "0 0-3").count();
    assert_eq!((kernel.len(), nodes), (6, 3), "{kernel:?}");
    let own = serde_json::from_str(find_case(out, "topology")).unwrap();
    assert_eq!(list_places(&own), kernel);
    if has_hwloc {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), find_case(out, "hwloc")).unwrap();
        let path = file.path().to_str().unwrap();
        let hwloc = run_for_json(&["topology", "--from", path, "--format", "json"]);
        assert_eq!(list_places(&hwloc), kernel);
    }
    for (place, cpus) in [
        ("near:disk", "0-3"),
        ("far:disk", "4-7"),
        ("near:pci:0000:81:00.0", "4-7"),
        ("far:card", "4-7"),
    ] {
        let line = find_case(out, &format!("place {place}"));
        assert_eq!(line, format!("Cpus_allowed_list:\t{cpus}\n"), "{place}");
    }
    let shown = find_case(out, "text");
    let queues = "packets processed on CPU 7 (RPS), queues to send on for CPUs 0-7 (XPS)";
    assert!(shown.contains(queues), "{shown}");
}

/// Checks that interrupts are on the CPUs of each arm, with the receiving queues; the sending ones
/// change only if that is requested.
fn check_moves(out: &str) {
    let local = "0 2 1 3 0 2 1 3 0 rx-0:0f rx-1:0f rx-2:00 rx-3:00";
    let (unchanged, moved) = (
        "tx-0:03 tx-1:0c tx-2:30 tx-3:c0",
        "tx-0:01 tx-1:04 tx-2:02 tx-3:08",
    );
    let far = "4 6 5 7 4 6 5 7 4 rx-0:f0 rx-1:f0 rx-2:00 rx-3:00";
    let two = "4 5 4 5 4 5 4 5 4 rx-0:30 rx-1:30 rx-2:00 rx-3:00 tx-0:10 tx-1:20 tx-2:10 tx-3:20";
    let local_as_is = format!("{local} {unchanged}");
    let of_command = list_cpus_of_runs(find_case(out, "seen by command"));
    assert_eq!(of_command, [&local_as_is, BEFORE, two]);
    // The figure of the service is read once before anything is moved.
    let of_service = list_cpus_of_runs(find_case(out, "seen by service"));
    assert_eq!(of_service, [BEFORE, BEFORE, &format!("{far} {unchanged}")]);
    for (name, expected) in [
        ("applied", &format!("{local} {moved}")),
        ("unguarded", &format!("{local} {moved}")),
        ("dry run", &format!("{local} {moved}")),
        ("alone", &format!("{far} {unchanged}")),
    ] {
        assert_eq!(parse_cpus(find_case(out, name)), *expected, "{name}");
    }
    let has = |name: &str, words: &str| {
        let text = find_case(out, name);
        assert!(text.contains(words), "{name}: {words}: {text}");
    };
    has("applied", "# Cpus_allowed_list:\t4-7\n");
    has("applied", "RPS of eth");
    has("applied", "far:eth");
    // The program itself stays if only interrupts are moved.
    has("alone", "# Cpus_allowed_list:\t0-3\n");
    has("ended", "0 threads placed");
    has("unguarded", "tx-3: CPUs 6-7 (would be restored)");
    has("dry run", "rx-0: CPUs 7 (restored)");
    has(
        "ended",
        "interrupts and queues with their old CPUs restored: 11\n",
    );
    has("ended", "# status 0\n");
}

/// Checks that `apply --format json` has every interrupt and queue that moved.
fn check_record(out: &str) {
    let record: Value = serde_json::from_str(find_case(out, "record")).unwrap();
    let moved = record["interrupts"].as_array().unwrap();
    let to_cpu_0 = moved
        .iter()
        .filter(|one| one["asked_cpus"] == "0" && one["returned"] == true);
    assert_eq!((moved.len(), to_cpu_0.count()), (11, 11), "{record}");
    let queue = moved.iter().find(|one| one["irq"].is_null()).unwrap();
    assert!(as_text(&queue["queue"]).ends_with(" rx-0"), "{queue}");
    assert_eq!(queue["before_cpus"], "7", "{queue}");
}

/// Checks that everything is as before, however pinwise ended.
fn check_ends(out: &str) {
    let others = [
        "before",
        "after command",
        "after service",
        "restored",
        "ended",
        "all refused",
    ];
    let cases = [&others[..], &FAULTS].concat();
    vm::check_restored(&cases, |name| parse_cpus(find_case(out, name)) == BEFORE);
    for fault in FAULTS {
        let text = find_case(out, fault);
        let status = match fault.split(':').nth(1) {
            Some("kill" | "bereft") => 137,
            Some("term") => 143,
            Some("panic") => 101,
            _ => 2,
        };
        assert!(
            text.contains(&format!("# status {status}\n")),
            "{fault}: {text}"
        );
    }
}

/// Checks that one line says what cannot be moved, and why.
fn check_refused(out: &str) {
    let refused = find_case(out, "refused");
    let managed = "the kernel manages the interrupts of nvme";
    let tuned = "irqbalance moves interrupts every few seconds; stop it meanwhile";
    let expected = [
        managed,
        managed,
        "is given twice",
        "the program may use every CPU",
        "is not DEVICE=PLACE",
        tuned,
        tuned,
    ];
    let lines: Vec<&str> = refused.lines().collect();
    assert_eq!(lines.len(), 2 * expected.len(), "{refused}");
    for (pair, words) in lines.chunks(2).zip(expected) {
        assert!(pair[0].starts_with("error: --irq"), "{refused}");
        assert!(pair[0].contains(words), "{words}: {refused}");
        assert_eq!(pair[1], "status 2", "{refused}");
    }
}

#[test]
fn devices_are_found_and_their_interrupts_move() {
    let has_hwloc = has_program("lstopo-no-graphics");
    let mut options = vec!["--devices", "--mem", "512"];
    if has_hwloc {
        options.extend(["--with", "lstopo-no-graphics"]);
    } else {
        report_skip("not compared with hwloc: lstopo-no-graphics is missing (hwloc-nox)");
    }
    let guest = include_str!("../env/vm/devices.sh");
    let script = format!("FAULTS='{}'\n{guest}", FAULTS.join(" "));
    let Some(out) = vm::run_with(&options, &script) else {
        return;
    };
    check_places(&out, has_hwloc);
    check_moves(&out);
    check_record(&out);
    check_ends(&out);
    check_refused(&out);
}
