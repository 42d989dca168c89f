//! Interrupts of this host are moved for an arm's runs, and only for these.

use pinwise_machine::linux::{discover, read_interrupts};
use pinwise_topology::CpuSet;

use super::trial::{Ended, Trial, two_cpus};
use crate::support::{skipped, wait_until};

/// A device's name, and an interrupt of it, if all of them can be moved.
fn movable() -> Option<(String, u32)> {
    let (mut topology, _) = discover().unwrap();
    read_interrupts(&mut topology);
    let mut devices = topology.devices.iter();
    let device = devices.find(|device| device.interrupts.iter().all(|i| !i.is_managed))?;
    let interrupt = device.interrupts.first()?;
    Some((device.name().to_owned(), interrupt.number))
}

fn cpus_of(file: &str) -> CpuSet {
    CpuSet::parse_list(std::fs::read_to_string(file).unwrap().trim()).unwrap()
}

#[test]
fn interrupts_are_moved_for_the_runs_of_their_arm() {
    let Some([first, second]) = two_cpus() else {
        return;
    };
    let Some((device, number)) = movable() else {
        return skipped("no device here has an interrupt that can be moved");
    };
    let file = format!("/proc/irq/{number}/smp_affinity_list");
    if let Err(error) = std::fs::OpenOptions::new().append(true).open(&file) {
        return skipped(&format!("{file}: {error}"));
    }
    let before = cpus_of(&file);
    let trial = Trial::new();
    let settings = [first, second].map(|cpu| format!("{device}={cpu}"));
    let effective = format!("/proc/irq/{number}/effective_affinity_list");
    let taking = std::fs::read_to_string(&effective).unwrap_or_default();
    let line = format!("cat {file} >> seen; cat {effective} >> taking");
    let ended = when_host_is_free(
        &trial,
        &[
            "compare",
            "--irq",
            &settings[0],
            "--irq",
            &settings[1],
            "--max-runs",
            "2",
            "--warmup",
            "0",
            "--shell=sh",
            "sh",
            &line,
        ],
    );
    ended.succeeded();
    assert!(
        ended.err.contains("--irq moves this host's interrupts"),
        "{}",
        ended.err
    );
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let mut seen: Vec<CpuSet> = seen
        .lines()
        .map(|l| CpuSet::parse_list(l).unwrap())
        .collect();
    let mut expected = [
        before.clone(),
        CpuSet::single(first),
        CpuSet::single(second),
    ];
    expected.sort_by_key(ToString::to_string);
    seen.sort_by_key(ToString::to_string);
    let each: Vec<CpuSet> = seen.iter().step_by(2).cloned().collect();
    assert_eq!((seen.len(), each.as_slice()), (6, &expected[..]));
    assert_eq!(cpus_of(&file), before);
    // The mask does not say which CPU of it takes the interrupt: that one comes back,
    // too, for every run of the arm that moves nothing.
    let seen = std::fs::read_to_string(trial.path("taking")).unwrap_or_default();
    let as_before = seen.lines().filter(|line| *line == taking.trim()).count();
    assert!(as_before >= 2 + 2, "{taking} {seen}");
    let after = std::fs::read_to_string(&effective).unwrap_or_default();
    assert_eq!(after, taking);
    // All CPUs are the program's: none is left to be away from it.
    let away = format!("{device}=away");
    let ended = when_host_is_free(&trial, &["compare", "--irq", &away, "--", "true"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.err.contains("may use every CPU"), "{}", ended.err);
    assert_eq!(cpus_of(&file), before);
}

/// Runs pinwise once no other changes this host: another test may.
fn when_host_is_free(trial: &Trial, arguments: &[&str]) -> Ended {
    let mut last = None;
    wait_until("the host's lock", || {
        let ended = trial.run(arguments);
        let is_free = !ended.err.contains("another pinwise is changing this host");
        last = Some(ended);
        is_free
    });
    last.unwrap()
}
