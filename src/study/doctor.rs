//! What on a machine would spoil a measurement, ranked, each with evidence
//! and a fix.
//!
//! Checks are pure functions of facts, so that they are tested on hosts nobody
//! owns. Nothing is changed: turbo, SMT and frequency are part of what a
//! placement does, and only the user decides to take them away. The order of
//! weights follows what each cost in measured comparisons: other users of the
//! CPUs first, then the invisible neighbours of a virtual machine, then order
//! effects and frequency.

use std::time::Duration;

use serde_json::json;

use crate::machine::Usage;
use crate::machine::linux::HostFacts;
use crate::record::{DOCTOR_SCHEMA, Doctor, Finding, Severity};
use crate::topology::Topology;

/// A CPU busier than this with others' work disturbs.
const BUSY_CPU: f64 = 0.05;
/// More stolen time than this disturbs.
const STEAL: f64 = 0.01;
/// More time than this in which tasks waited for a CPU disturbs.
const PRESSURE: f64 = 0.05;

/// What the checks look at.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// Settings and state.
    pub facts: HostFacts,
    /// The machine.
    pub topology: Topology,
    /// CPU time at the start and the end of a short wait.
    pub usage: Option<(Usage, Usage)>,
}

/// What a check found.
enum Outcome {
    Found(Finding),
    InOrder(&'static str),
    Unavailable(&'static str, &'static str),
}

use Outcome::{Found, InOrder, Unavailable};

const CHECKS: [fn(&Examined) -> Outcome; 20] = [
    load,
    steal,
    virtual_machine,
    quota,
    tuners,
    battery,
    governor,
    thermal,
    sched_ext,
    clock,
    swap,
    pressure,
    smt,
    turbo,
    cpuset,
    numa_balancing,
    huge_pages,
    aslr,
    isolated,
    perf,
];

/// Makes all checks.
#[must_use]
pub fn diagnose(examined: &Examined) -> Doctor {
    let mut record = Doctor {
        schema: DOCTOR_SCHEMA.to_owned(),
        findings: Vec::new(),
        passed: Vec::new(),
        unavailable: std::collections::BTreeMap::new(),
    };
    for check in CHECKS {
        match check(examined) {
            Found(finding) => record.findings.push(finding),
            InOrder(name) => record.passed.push(name.to_owned()),
            Unavailable(name, reason) => {
                record
                    .unavailable
                    .insert(name.to_owned(), reason.to_owned());
            }
        }
    }
    record
        .findings
        .sort_by_key(|f| std::cmp::Reverse((f.severity, f.weight)));
    record
}

fn warning(
    check: &'static str,
    weight: u8,
    sentence: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding::new(check, Severity::Warning, sentence, advice).weighing(weight)
}

fn note(
    check: &'static str,
    weight: u8,
    sentence: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding::new(check, Severity::Note, sentence, advice).weighing(weight)
}

/// Busy share per CPU over the wait.
fn busy_shares(before: &Usage, after: &Usage) -> Vec<(usize, f64)> {
    let interval = after.at.saturating_sub(before.at).as_secs_f64();
    let at_start = |cpu: usize| {
        let found = before.busy.iter().find(|(other, _)| *other == cpu);
        found.map_or(Duration::ZERO, |(_, time)| *time)
    };
    after
        .busy
        .iter()
        .map(|&(cpu, time)| {
            let busy = time.saturating_sub(at_start(cpu)).as_secs_f64();
            (cpu, busy / interval.max(1e-9))
        })
        .collect()
}

fn load(examined: &Examined) -> Outcome {
    let Some((before, after)) = &examined.usage else {
        return Unavailable("load", "/proc/stat cannot be read");
    };
    let shares = busy_shares(before, after);
    let mut busy: Vec<(usize, f64)> = shares.into_iter().filter(|s| s.1 > BUSY_CPU).collect();
    if busy.is_empty() {
        return InOrder("load");
    }
    busy.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total: f64 = busy.iter().map(|(_, share)| share).sum();
    let listed: Vec<String> = busy
        .iter()
        .take(8)
        .map(|(cpu, share)| format!("CPU {cpu} {:.0} %", 100.0 * share))
        .collect();
    Found(
        warning(
            "load",
            10,
            format!(
                "Other programs keep {total:.1} CPUs busy right now ({}): a placement on those CPUs would be judged by today's neighbours.",
                listed.join(", ")
            ),
            "Find them with `top`, end or move them; comparisons stay valid meanwhile, only wider.",
        )
        .with("busy_cpus", json!(busy.into_iter().map(|(c, s)| (c.to_string(), s)).collect::<std::collections::BTreeMap<_, _>>()))
        .with("load_average_1min", json!(examined.facts.load_average)),
    )
}

fn steal(examined: &Examined) -> Outcome {
    let Some((before, after)) = &examined.usage else {
        return Unavailable("steal", "/proc/stat cannot be read");
    };
    let interval = after.at.saturating_sub(before.at).as_secs_f64().max(1e-9);
    let share = after.steal.saturating_sub(before.steal).as_secs_f64() / interval;
    if share <= STEAL {
        return InOrder("steal");
    }
    Found(
        warning(
            "steal",
            8,
            format!(
                "The hypervisor gives {:.1} % of a CPU to other virtual machines.",
                100.0 * share
            ),
            "Use a dedicated host or instance type, or expect wide intervals.",
        )
        .with("steal_share", share),
    )
}

fn virtual_machine(examined: &Examined) -> Outcome {
    let Some(hypervisor) = &examined.topology.identity.hypervisor else {
        return InOrder("virtual machine");
    };
    Found(
        warning(
            "virtual_machine",
            7,
            format!("This is a virtual machine ({hypervisor}): its CPUs may float over the host's, and the reported topology may be untrue."),
            "Trust randomised comparisons more than the reported shape; what holds today may not hold after a migration.",
        )
        .with("hypervisor", hypervisor.as_str()),
    )
}

fn quota(examined: &Examined) -> Outcome {
    let Some(quota) = &examined.topology.quota else {
        return InOrder("CPU quota");
    };
    Found(
        warning(
            "quota",
            9,
            format!("A cgroup limits this process to {:.2} CPUs of {}; beyond it every thread is stopped for the rest of the period.", quota.cpus, examined.topology.allowed.len()),
            format!("Raise the limit in {}, or start no more threads than it allows.", quota.source),
        )
        .with("quota_cpus", quota.cpus),
    )
}

fn tuners(examined: &Examined) -> Outcome {
    let tuners = &examined.facts.tuners;
    if tuners.is_empty() {
        return InOrder("tuning daemons");
    }
    Found(
        warning(
            "tuners",
            6,
            format!(
                "{} is running and moves interrupts, memory or threads by itself.",
                tuners.join(", ")
            ),
            format!(
                "Stop it for the measurement: systemctl stop {}",
                tuners.join(" ")
            ),
        )
        .with("daemons", json!(tuners)),
    )
}

fn battery(examined: &Examined) -> Outcome {
    match examined.facts.on_battery {
        None => Unavailable("power supply", "no power supply is reported"),
        Some(false) => InOrder("power supply"),
        Some(true) => Found(warning(
            "battery",
            7,
            "The machine runs on battery and saves power.",
            "Plug it in.",
        )),
    }
}

fn governor(examined: &Examined) -> Outcome {
    let governors = &examined.facts.governors;
    if governors.is_empty() {
        return Unavailable(
            "frequency governor",
            "cpufreq is not there; usual in virtual machines",
        );
    }
    if governors.iter().all(|g| g == "performance") {
        return InOrder("frequency governor");
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

fn thermal(examined: &Examined) -> Outcome {
    match examined.facts.thermal_throttles {
        None => Unavailable("thermal throttling", "no counter is reported"),
        Some(0) => InOrder("thermal throttling"),
        Some(events) => Found(
            warning(
                "thermal",
                5,
                format!("Cores were throttled for heat {events} times since boot."),
                "Improve cooling, or pause between runs with --prepare 'sleep 2'.",
            )
            .with("events_since_boot", events),
        ),
    }
}

fn sched_ext(examined: &Examined) -> Outcome {
    let Some(name) = &examined.facts.sched_ext else {
        return InOrder("scheduler");
    };
    Found(
        warning(
            "sched_ext",
            6,
            format!("The scheduler is a BPF program ({name}): os-default means its policy, not the kernel's."),
            "Compare under the scheduler that will be used.",
        )
        .with("scheduler", name.as_str()),
    )
}

fn clock(examined: &Examined) -> Outcome {
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

fn swap(examined: &Examined) -> Outcome {
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

fn pressure(examined: &Examined) -> Outcome {
    match examined.facts.cpu_pressure {
        None => Unavailable("CPU pressure", "PSI is off in this kernel"),
        Some(share) if share <= PRESSURE => InOrder("CPU pressure"),
        Some(share) => Found(
            warning(
                "cpu_pressure",
                8,
                format!(
                    "Over the last minute some task waited for a CPU {:.0} % of the time.",
                    100.0 * share
                ),
                "Wait until other work is done.",
            )
            .with("some_avg60", share),
        ),
    }
}

fn smt(examined: &Examined) -> Outcome {
    if !examined.topology.has_smt() {
        return InOrder("SMT");
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

fn turbo(examined: &Examined) -> Outcome {
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

fn cpuset(examined: &Examined) -> Outcome {
    let (allowed, online) = (&examined.topology.allowed, &examined.topology.online);
    if online.is_subset(allowed) {
        return InOrder("allowed CPUs");
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

fn numa_balancing(examined: &Examined) -> Outcome {
    let nodes = examined.topology.numa_nodes.len();
    match examined.facts.numa_balancing {
        None => Unavailable("NUMA balancing", "not reported"),
        Some(true) if nodes > 1 => Found(note(
            "numa_balancing",
            4,
            "Automatic NUMA balancing moves pages during a run.",
            "For the measurement: sysctl kernel.numa_balancing=0",
        )),
        Some(_) => InOrder("NUMA balancing"),
    }
}

fn huge_pages(examined: &Examined) -> Outcome {
    match examined.facts.huge_pages.as_deref() {
        None => Unavailable("huge pages", "not reported"),
        Some("always") => Found(note(
            "huge_pages",
            2,
            "Transparent huge pages are always on: whether a run gets them depends on how fragmented memory is.",
            "If runs differ in two clear levels, try: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        Some(_) => InOrder("huge pages"),
    }
}

fn aslr(examined: &Examined) -> Outcome {
    match examined.facts.aslr {
        None => Unavailable("address randomisation", "not reported"),
        Some(2) => InOrder("address randomisation"),
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

fn isolated(examined: &Examined) -> Outcome {
    let isolated = &examined.facts.isolated;
    if isolated.is_empty() {
        return InOrder("isolated CPUs");
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

fn perf(examined: &Examined) -> Outcome {
    let facts = &examined.facts;
    match facts.perf_paranoid {
        None => Unavailable("performance counters", "this kernel has none"),
        Some(level) if level <= 1 || facts.is_root => InOrder("performance counters"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Quota;

    fn names(examined: &Examined) -> Vec<String> {
        let record = diagnose(examined);
        record.findings.into_iter().map(|f| f.check).collect()
    }

    fn quiet() -> Examined {
        Examined {
            topology: Topology::from_synthetic("core:2 pu:1").unwrap(),
            ..Examined::default()
        }
    }

    #[test]
    fn a_quiet_host_has_no_findings() {
        assert_eq!(names(&quiet()), Vec::<String>::new());
    }

    #[test]
    fn findings_are_ranked() {
        let mut examined = quiet();
        examined.facts.huge_pages = Some("always".to_owned());
        examined.facts.tuners = vec!["irqbalance".to_owned()];
        examined.facts.governors = vec!["powersave".to_owned()];
        examined.topology.quota = Some(Quota {
            cpus: 0.5,
            source: "/sys/fs/cgroup/cpu.max".to_owned(),
        });
        examined.topology.identity.hypervisor = Some("kvm".to_owned());
        assert_eq!(
            names(&examined),
            [
                "quota",
                "virtual_machine",
                "tuners",
                "governor",
                "huge_pages"
            ]
        );
    }

    #[test]
    fn load_and_steal_are_measured_over_the_wait() {
        let usage = |at, busy0, busy1, steal| Usage {
            at: Duration::from_millis(at),
            busy: vec![
                (0, Duration::from_millis(busy0)),
                (1, Duration::from_millis(busy1)),
            ],
            steal: Duration::from_millis(steal),
        };
        let mut examined = quiet();
        examined.usage = Some((usage(1000, 500, 100, 0), usage(1500, 950, 110, 20)));
        let record = diagnose(&examined);
        assert_eq!(record.findings.len(), 2);
        assert!(
            record.findings[0].sentence.contains("CPU 0 90 %"),
            "{record:?}"
        );
        assert!(record.findings[1].sentence.contains("4.0 %"));
    }
}
