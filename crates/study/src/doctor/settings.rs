//! Checks of how the machine is set up: frequency, clock, memory, SMT,
//! permissions.

use serde_json::json;

use super::CheckOutcome::{self, Found, InOrder, Unavailable};
use super::{Examined, note, warning};

pub(super) fn battery(examined: &Examined) -> CheckOutcome {
    match examined.facts.on_battery {
        None => Unavailable("battery", "no power supply is reported"),
        Some(false) => InOrder("battery"),
        Some(true) => Found(warning(
            "battery",
            7,
            "The machine runs on battery and saves power.",
            "Plug it in.",
        )),
    }
}

pub(super) fn governor(examined: &Examined) -> CheckOutcome {
    let governors = &examined.facts.governors;
    if governors.is_empty() {
        return Unavailable(
            "frequency governor",
            "no cpufreq; usual in virtual machines",
        );
    }
    if governors.iter().all(|g| g == "performance") {
        return InOrder("governor");
    }
    Found(
        warning(
            "governor",
            6,
            format!(
                "The frequency governor is {}: clocks follow the load, late and unevenly.",
                governors.join(", ")
            ),
            "For the measurement: cpupower frequency-set -g performance",
        )
        .with("governors", json!(governors)),
    )
}

pub(super) fn clock(examined: &Examined) -> CheckOutcome {
    const GOOD: [&str; 4] = [
        "tsc",
        "kvm-clock",
        "arch_sys_counter",
        "hyperv_clocksource_tsc_page",
    ];
    match &examined.facts.clock_source {
        None => Unavailable("clock", "the clock source is not reported"),
        Some(name) if GOOD.contains(&name.as_str()) => InOrder("clock"),
        Some(name) => Found(
            warning(
                "clock",
                5,
                format!("Times are read from {name}, which is slow or coarse."),
                "See dmesg for why the TSC was given up.",
            )
            .with("clock_source", name.as_str()),
        ),
    }
}

pub(super) fn swap(examined: &Examined) -> CheckOutcome {
    match examined.facts.swap_used_bytes {
        None => Unavailable("swap", "/proc/meminfo cannot be read"),
        Some(0) => InOrder("swap"),
        Some(used) => Found(
            warning(
                "swap",
                4,
                format!(
                    "{} MiB are swapped out: some runs may wait for the disk.",
                    used / (1 << 20)
                ),
                "Free memory, then swapoff -a && swapon -a",
            )
            .with("swap_used_bytes", used),
        ),
    }
}

pub(super) fn smt(examined: &Examined) -> CheckOutcome {
    if !examined.topology.has_smt() {
        return InOrder("smt");
    }
    let control = examined.facts.smt_control.as_deref().unwrap_or("on");
    Found(
        note(
            "smt",
            4,
            "Two or more CPUs share a core (SMT): a neighbour on the sibling slows a thread by up to half.",
            "Nothing to do; compare one-per-core to learn what it is worth.",
        )
        .with("smt_control", control),
    )
}

pub(super) fn turbo(examined: &Examined) -> CheckOutcome {
    match examined.facts.turbo {
        None => Unavailable("turbo", "not reported; usual in virtual machines"),
        Some(false) => InOrder("turbo"),
        Some(true) => Found(note(
            "turbo",
            4,
            "Turbo is on: clocks depend on how many cores are busy and how warm they are.",
            "It is part of what a placement does; leave it as it will be in use.",
        )),
    }
}

pub(super) fn cpuset(examined: &Examined) -> CheckOutcome {
    let (allowed, online) = (&examined.topology.allowed, &examined.topology.online);
    if online.is_subset(allowed) {
        return InOrder("allowed_cpus");
    }
    let by: Vec<&str> = examined
        .topology
        .restrictions
        .iter()
        .filter(|r| !online.is_subset(&r.leaves))
        .map(|r| r.by.as_str())
        .collect();
    Found(
        note(
            "allowed_cpus",
            3,
            format!(
                "Only CPUs {allowed} of {online} may be used: {}.",
                by.join(", ")
            ),
            "",
        )
        .with("allowed", allowed.to_string()),
    )
}

pub(super) fn numa_balancing(examined: &Examined) -> CheckOutcome {
    let nodes = examined.topology.numa_nodes.len();
    match examined.facts.numa_balancing {
        None => Unavailable("numa_balancing", "not reported"),
        Some(true) if nodes > 1 => Found(note(
            "numa_balancing",
            4,
            "Automatic NUMA balancing moves pages during a run.",
            "For the measurement: sysctl kernel.numa_balancing=0",
        )),
        Some(_) => InOrder("numa_balancing"),
    }
}

pub(super) fn huge_pages(examined: &Examined) -> CheckOutcome {
    match examined.facts.huge_pages.as_deref() {
        None => Unavailable("huge_pages", "not reported"),
        Some("always") => Found(note(
            "huge_pages",
            2,
            "Transparent huge pages are always on: whether a run gets them depends on how fragmented memory is.",
            "If runs differ in two clear levels, try: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        Some(_) => InOrder("huge_pages"),
    }
}

pub(super) fn aslr(examined: &Examined) -> CheckOutcome {
    match examined.facts.aslr {
        None => Unavailable("aslr", "not reported"),
        Some(2) => InOrder("aslr"),
        Some(level) => Found(
            note(
                "aslr",
                3,
                "Address-space randomisation is reduced: all runs share one arbitrary memory layout.",
                "Leave it on: sysctl kernel.randomize_va_space=2",
            )
            .with("level", level),
        ),
    }
}

pub(super) fn isolated(examined: &Examined) -> CheckOutcome {
    let isolated = &examined.facts.isolated;
    if isolated.is_empty() {
        return InOrder("isolated");
    }
    Found(
        note(
            "isolated",
            3,
            format!("CPUs {isolated} are isolated: the scheduler does not balance load over them."),
            "Under os-default a program stays off them; on them its threads stay where they start.",
        )
        .with("isolated", isolated.to_string()),
    )
}

pub(super) fn perf(examined: &Examined) -> CheckOutcome {
    let facts = &examined.facts;
    match facts.perf_paranoid {
        None => Unavailable("perf", "this kernel has none"),
        Some(level) if level <= 1 || facts.is_root => InOrder("perf"),
        Some(level) => Found(
            note(
                "perf",
                1,
                "Performance counters of the kernel are not permitted: migrations are not counted.",
                "As root: sysctl kernel.perf_event_paranoid=1",
            )
            .with("perf_event_paranoid", level),
        ),
    }
}
