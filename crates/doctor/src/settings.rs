//! Checks of how the machine is set up: frequency, clock, memory, SMT, permissions.

use pinwise_format::{count_of, cpu_limit};
use pinwise_record::Finding;
use pinwise_topology::{CpuSet, Level, Restriction, Topology};
use serde_json::json;

use crate::CheckOutcome::{self, Found, InOrder, Unavailable};
use crate::{Examined, NICE_WEIGHT, NO_PROC, POD_WEIGHT, note, warning};

pub(crate) fn check_battery(examined: &Examined) -> CheckOutcome {
    match examined.facts.on_battery {
        None => Unavailable("battery", "no power supply is reported"),
        Some(false) => InOrder("battery"),
        Some(true) => Found(warning(
            "battery",
            "The machine runs on battery and saves power.",
            "Plug it in.",
        )),
    }
}

pub(crate) fn check_governor(examined: &Examined) -> CheckOutcome {
    let governors = &examined.facts.governors;
    if governors.is_empty() {
        return Unavailable("governor", "no cpufreq; usual in virtual machines");
    }
    if governors.iter().all(|g| g == "performance") {
        return InOrder("governor");
    }
    Found(
        warning(
            "governor",
            format!(
                "The frequency governor is {}: clocks follow the load, late and unevenly.",
                governors.join(", ")
            ),
            "For the measurement: cpupower frequency-set -g performance",
        )
        .with_evidence("governors", json!(governors)),
    )
}

pub(crate) fn check_clock(examined: &Examined) -> CheckOutcome {
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
                format!("The clock source is {name}, which is slow or coarse."),
                "See dmesg for why the TSC was given up.",
            )
            .with_evidence("clock_source", name.as_str()),
        ),
    }
}

pub(crate) fn check_swap(examined: &Examined) -> CheckOutcome {
    match examined.facts.swap_used_bytes {
        None => Unavailable("swap", "/proc/meminfo cannot be read"),
        Some(0) => InOrder("swap"),
        Some(used) => Found(
            warning(
                "swap",
                format!(
                    "{} MiB are swapped out: some runs may wait for the disk.",
                    used / (1 << 20)
                ),
                "Free memory, then swapoff -a && swapon -a",
            )
            .with_evidence("swap_used_bytes", used),
        ),
    }
}

pub(crate) fn check_smt(examined: &Examined) -> CheckOutcome {
    if !examined.topology.has_smt() {
        return InOrder("smt");
    }
    let control = examined.facts.smt_control.as_deref().unwrap_or("on");
    Found(
        note(
            "smt",
            "Two or more CPUs share a core (SMT): a neighbour on the sibling slows a thread by up to half.",
            "Nothing to do; compare one-per-core to measure its effect.",
        )
        .with_evidence("smt_control", control),
    )
}

pub(crate) fn check_turbo(examined: &Examined) -> CheckOutcome {
    match examined.facts.turbo {
        None => Unavailable("turbo", "not reported; usual in virtual machines"),
        Some(false) => InOrder("turbo"),
        Some(true) => Found(note(
            "turbo",
            "Turbo is on: clocks depend on how many cores are busy and how warm they are.",
            "It is part of a placement's effect; leave it as in production.",
        )),
    }
}

pub(crate) fn check_cpuset(examined: &Examined) -> CheckOutcome {
    let (allowed, online) = (&examined.topology.allowed, &examined.topology.online);
    if online.is_subset(allowed) {
        return InOrder("allowed_cpus");
    }
    // The kernel removes CPUs outside of a cpuset from the masks of its threads.
    let reachable = examined.topology.reachable();
    let open = |r: &Restriction| if r.is_mask { &reachable } else { online };
    let by = examined.topology.restrictions.iter();
    let by = by.filter(|r| !open(r).is_subset(&r.leaves));
    let by: Vec<&str> = by.map(|r| r.by.as_str()).collect();
    let cpus = describe_cpus(allowed);
    let sentence = match online.is_subset(&reachable) {
        true => format!(
            "Programs start on {cpus} of {online}: the affinity mask says so, which a placement may leave."
        ),
        false => format!("Only {cpus} of {online} may be used: {}.", by.join(", ")),
    };
    let finding = note("allowed_cpus", sentence, "");
    Found(finding.with_evidence("allowed", allowed.to_string()))
}

fn describe_cpus(cpus: &CpuSet) -> String {
    match cpus.len() {
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {cpus}"),
    }
}

pub(crate) fn check_niceness(examined: &Examined) -> CheckOutcome {
    match describe_niceness(examined.facts.nice) {
        Some(finding) => Found(finding),
        None => InOrder("nice"),
    }
}

/// Reports a low priority of pinwise, which the programs that it starts inherit; `None` at the usual
/// priority and above.
#[must_use]
pub fn describe_niceness(nice: i32) -> Option<Finding> {
    (nice > 0).then(|| {
        warning(
            "nice",
            format!(
                "pinwise runs at nice {nice}, so programs that it starts yield the CPUs to all others."
            ),
            "Start it without nice, or as root, in the same shell, first: renice -n 0 -p $$",
        )
        .with_weight(NICE_WEIGHT)
        .with_evidence("nice", nice)
    })
}

pub(crate) fn check_pod(examined: &Examined) -> CheckOutcome {
    match examined.facts.is_pod {
        true => Found(describe_pod(&examined.topology)),
        false => InOrder("pod"),
    }
}

/// Describes the CPUs that the kubelet gave to this pod, and advises which of its options would give
/// better ones.
#[must_use]
pub fn describe_pod(topology: &Topology) -> Finding {
    let allowed = &topology.allowed;
    let limit = topology.quota.as_ref().map(|quota| quota.cpus);
    let cpusets = topology.restrictions.iter().filter(|r| !r.is_mask);
    let cpusets: Vec<&str> = cpusets.map(|r| r.by.as_str()).collect();
    // The names of the kubelet's cgroups show pods that never have CPUs to themselves.
    let is_pooled = cpusets
        .iter()
        .any(|by| by.contains("burstable") || by.contains("besteffort"));
    // With the static policy a pod owns whole CPUs, and newer kubelets set no quota then; a pod of
    // the pool may have none either. A node always keeps some CPUs for itself and the pool, so a pod
    // that may use every CPU is one of the pool.
    let is_pooled = is_pooled || *allowed == topology.online;
    let is_exclusive =
        !cpusets.is_empty() && !is_pooled && limit.is_none_or(|cpus| cpus >= allowed.len() as f64);
    let cpus = describe_cpus(allowed);
    let mut advice: Vec<&str> = Vec::new();
    let mut sentence = match (is_exclusive, limit) {
        (true, Some(_)) => format!("This pod has {cpus} to itself"),
        (true, None) => format!("This pod has {cpus}, to itself if it is Guaranteed"),
        (false, Some(limit)) => format!(
            "This pod runs in the shared pool on {cpus}, for {} of time",
            cpu_limit(limit)
        ),
        (false, None) => format!("This pod runs in the shared pool on {cpus}, without a limit"),
    };
    let split = topology.split_cores();
    if is_exclusive {
        let nodes = topology.allowed_units(Level::Numa).len();
        let cores = topology.counts().cores as u64;
        sentence.push_str(&match split {
            0 => format!(": {}", count_of(cores, "whole core", "whole cores")),
            1 if cores == 1 => ", but others run on the sibling in its core".to_owned(),
            split => format!(", but others run on siblings in {split} of its cores"),
        });
        if split > 0 {
            advice.push(
                "Whole cores: the kubelet's --cpu-manager-policy-options=full-pcpus-only=true.",
            );
        }
        if nodes > 1 {
            sentence.push_str(&format!(", on {nodes} NUMA nodes"));
            advice.push("One node: the kubelet's --topology-manager-policy=single-numa-node.");
        }
    } else {
        advice.push("For CPUs of its own: requests equal to limits, in whole CPUs, and the kubelet's --cpu-manager-policy=static.");
    }
    sentence.push('.');
    note("pod", sentence, advice.join(" "))
        .with_weight(POD_WEIGHT)
        .with_evidence("exclusive", is_exclusive)
        .with_evidence("split_cores", split)
}

pub(crate) fn check_numa_balancing(examined: &Examined) -> CheckOutcome {
    let nodes = examined.topology.numa_nodes.len();
    match examined.facts.numa_balancing {
        None => Unavailable("numa_balancing", "not reported"),
        Some(true) if nodes > 1 => Found(note(
            "numa_balancing",
            "Automatic NUMA balancing moves pages during a run.",
            "For the measurement: sysctl kernel.numa_balancing=0",
        )),
        Some(_) => InOrder("numa_balancing"),
    }
}

pub(crate) fn check_huge_pages(examined: &Examined) -> CheckOutcome {
    match examined.facts.huge_pages.as_deref() {
        None => Unavailable("huge_pages", "not reported"),
        Some("always") => Found(note(
            "huge_pages",
            "Transparent huge pages are always on: whether a run gets them depends on how fragmented memory is.",
            "If run times fall into two clear levels, try: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        Some(_) => InOrder("huge_pages"),
    }
}

pub(crate) fn check_aslr(examined: &Examined) -> CheckOutcome {
    match examined.facts.aslr {
        None => Unavailable("aslr", "not reported"),
        Some(2) => InOrder("aslr"),
        Some(level) => Found(
            note(
                "aslr",
                "Address-space randomisation is reduced: all runs share one arbitrary memory layout.",
                "Leave it on: sysctl kernel.randomize_va_space=2",
            )
            .with_evidence("level", level),
        ),
    }
}

/// Reports isolated CPUs, and what may still run on them; each of these needs its own setting.
pub(crate) fn check_isolated_cpus(examined: &Examined) -> CheckOutcome {
    let isolation = &examined.facts.isolation;
    let isolated = &isolation.isolated;
    if isolated.is_empty() {
        return InOrder("isolated");
    }
    let irqs = isolation.irq_cpus.iter();
    let irqs = irqs.filter(|(_, cpus)| cpus.intersects(isolated)).count();
    let disturbing = [
        (irqs > 0).then(|| count_of(irqs as u64, "interrupt", "interrupts")),
        (!isolated.is_subset(&isolation.nohz_full)).then(|| "the timer tick".to_owned()),
        (!isolated.is_subset(&isolation.rcu_nocbs)).then(|| "RCU callbacks".to_owned()),
        isolated
            .intersects(&isolation.kernel_threads)
            .then(|| "kernel threads".to_owned()),
    ];
    let disturbing: Vec<String> = disturbing.into_iter().flatten().collect();
    let sentence = format!(
        "{} {} isolated: only threads placed there run there.",
        describe_cpus(isolated),
        if isolated.len() == 1 { "is" } else { "are" },
    );
    let rest = examined.topology.online.difference(isolated);
    let (sentence, advice) = match disturbing.is_empty() {
        true => (sentence, String::new()),
        false => (
            format!(
                "{sentence} Still possible there: {}.",
                disturbing.join(", ")
            ),
            format!(
                " To keep these off, add to the kernel's command line: isolcpus=managed_irq,domain,{isolated} nohz_full={isolated} rcu_nocbs={isolated} irqaffinity={rest}."
            ),
        ),
    };
    let advice = format!(
        "`--place isolated` uses them; `pinwise bench jitter --cpus {isolated}` measures what interrupts them.{advice}"
    );
    let finding =
        note("isolated", sentence, advice).with_evidence("isolated", isolated.to_string());
    Found(finding.with_evidence("disturbed_by", disturbing))
}

pub(crate) fn check_perf(examined: &Examined) -> CheckOutcome {
    let facts = &examined.facts;
    match (facts.perf_paranoid, &facts.perf_refusal) {
        // Whether events can be opened was tried, and needs no file.
        (_, None) => InOrder("perf"),
        (None, Some(_)) if facts.lacks_proc => Unavailable("perf", NO_PROC),
        (None, Some(_)) => Unavailable("perf", "this kernel has none"),
        // It is not the kernel's setting that refuses it.
        (Some(level), Some(refusal)) if level <= 1 || facts.is_root => Found(note(
            "perf",
            format!("Migrations are not counted: {}.", refusal.reason),
            refusal.remedy.as_deref().unwrap_or_default(),
        )),
        (Some(level), Some(_)) => Found(
            note(
                "perf",
                "Performance counters of the kernel are not permitted: migrations are not counted.",
                "As root: sysctl kernel.perf_event_paranoid=1",
            )
            .with_evidence("perf_event_paranoid", level),
        ),
    }
}
