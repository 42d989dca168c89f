//! Interrupts of this host are moved for the runs of an arm, and for no others.

use pinwise_machine::linux::{discover, read_interrupts};
use pinwise_topology::CpuSet;

use super::trial::{Ended, Trial, find_two_cpus};
use crate::support::{report_skip, split_words, wait_until};

/// The name of a device whose interrupts can all be moved, and the number of one of these.
fn find_movable_interrupt() -> Option<(String, u32)> {
    let (mut topology, _) = discover().unwrap();
    read_interrupts(&mut topology);
    let mut devices = topology.devices.iter();
    let device = devices.find(|device| device.interrupts.iter().all(|i| !i.is_managed))?;
    let interrupt = device.interrupts.first()?;
    Some((device.name().to_owned(), interrupt.number))
}

fn read_cpus(file: &str) -> CpuSet {
    CpuSet::parse_list(std::fs::read_to_string(file).unwrap().trim()).unwrap()
}

#[test]
fn interrupts_are_moved_for_the_runs_of_their_arm() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    let Some((device, number)) = find_movable_interrupt() else {
        return report_skip("no device here has an interrupt that can be moved");
    };
    let file = format!("/proc/irq/{number}/smp_affinity_list");
    if let Err(error) = std::fs::OpenOptions::new().append(true).open(&file) {
        return report_skip(&format!("{file}: {error}"));
    }
    let before = read_cpus(&file);
    let trial = Trial::new();
    let settings = [first, second].map(|cpu| format!("{device}={cpu}"));
    let effective = format!("/proc/irq/{number}/effective_affinity_list");
    let taking = std::fs::read_to_string(&effective).unwrap_or_default();
    let line = format!("cat {file} >> seen; cat {effective} >> taking");
    let options = split_words("compare --max-runs 2 --warmup 0 --shell=sh");
    let arms = ["--irq", &settings[0], "--irq", &settings[1], "sh", &line];
    let ended = run_when_host_is_free(&trial, &[&options[..], &arms].concat());
    ended.check_success();
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
    assert_eq!(read_cpus(&file), before);
    // The mask does not say which of its CPUs takes the interrupt. That one is restored, too,
    // for every run of the arm that moves nothing.
    let seen = std::fs::read_to_string(trial.path("taking")).unwrap_or_default();
    let as_before = seen.lines().filter(|line| *line == taking.trim()).count();
    assert!(as_before >= 2 + 2, "{taking} {seen}");
    let after = std::fs::read_to_string(&effective).unwrap_or_default();
    assert_eq!(after, taking);
    // The program may use all CPUs: no other is left to take the interrupt.
    let away = format!("{device}=away");
    let ended = run_when_host_is_free(&trial, &["compare", "--irq", &away, "--", "true"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.err.contains("may use every CPU"), "{}", ended.err);
    assert_eq!(read_cpus(&file), before);
}

/// Runs pinwise again until no other changes this host: another test may.
fn run_when_host_is_free(trial: &Trial, arguments: &[&str]) -> Ended {
    let mut last = None;
    wait_until("the host's lock", || {
        let ended = trial.run(arguments);
        let is_free = !ended.err.contains("another pinwise is changing this host");
        last = Some(ended);
        is_free
    });
    last.unwrap()
}
