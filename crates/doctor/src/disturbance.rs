//! Checks of what disturbs a measurement at the moment: other programs' load, stolen time, quotas,
//! tuners and heat.

use std::time::Duration;

use serde_json::json;

use crate::CheckOutcome::{self, Found, InOrder, Unavailable};
use crate::{Examined, warning};
use pinwise_format::cpu_limit;
use pinwise_machine::Usage;

/// A CPU that other programs use for a larger share of the time is a finding.
const MAX_BUSY_SHARE: f64 = 0.05;
/// A larger share of stolen time, of one CPU, is a finding.
const MAX_STEAL_SHARE: f64 = 0.01;
/// A larger share of the time in which some task waited for a CPU is a finding.
const MAX_PRESSURE: f64 = 0.05;

pub(crate) fn check_load(examined: &Examined) -> CheckOutcome {
    let Some((before, after)) = &examined.usage else {
        return Unavailable("load", "/proc/stat cannot be read");
    };
    let shares = busy_shares(before, after);
    let usable = examined.topology.reachable();
    let mut busy: Vec<(usize, f64)> = shares
        .into_iter()
        .filter(|(cpu, _)| usable.contains(*cpu))
        .filter(|s| s.1 > MAX_BUSY_SHARE)
        .collect();
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
            format!(
                "Other programs keep {total:.1} CPUs busy right now ({}): a placement on those CPUs would be judged by other processes' load.",
                listed.join(", ")
            ),
            "Stop or move them (see pinwise top); comparisons stay valid meanwhile, but intervals are wider.",
        )
        .with_evidence("busy_cpus", json!(busy.into_iter().map(|(c, s)| (c.to_string(), s)).collect::<std::collections::BTreeMap<_, _>>()))
        .with_evidence("load_average_1min", json!(examined.facts.load_average)),
    )
}

pub(crate) fn check_steal(examined: &Examined) -> CheckOutcome {
    let Some((before, after)) = &examined.usage else {
        return Unavailable("steal", "/proc/stat cannot be read");
    };
    let interval = after.at.saturating_sub(before.at).as_secs_f64().max(1e-9);
    let share = after.steal.saturating_sub(before.steal).as_secs_f64() / interval;
    if share <= MAX_STEAL_SHARE {
        return InOrder("steal");
    }
    let cpus = after.busy.len().max(1) as f64;
    Found(
        warning(
            "steal",
            format!(
                "The hypervisor gives the time of {:.2} of {cpus} CPUs to other virtual machines.",
                share.min(cpus)
            ),
            "Use a dedicated host or instance type, or expect wide intervals.",
        )
        .with_evidence("steal_share", share),
    )
}

pub(crate) fn check_virtual_machine(examined: &Examined) -> CheckOutcome {
    let Some(hypervisor) = &examined.topology.identity.hypervisor else {
        return InOrder("virtual_machine");
    };
    let (sentence, advice) = match &examined.moving {
        Some(moving) => (
            format!(
                "This is a virtual machine ({hypervisor}), and its CPUs float over the host's: {moving}"
            ),
            "Ask for pinned vCPUs. Trust randomised comparisons more than the reported topology.",
        ),
        None => (
            format!(
                "This is a virtual machine ({hypervisor}): its CPUs may float over the host's, and the reported topology may be wrong."
            ),
            "Trust randomised comparisons more than the reported topology, and see whether CPUs move: pinwise topology --measure --watch 3m",
        ),
    };
    let finding = warning("virtual_machine", sentence, advice);
    Found(finding.with_evidence("hypervisor", hypervisor.as_str()))
}

pub(crate) fn check_quota(examined: &Examined) -> CheckOutcome {
    let allowed = examined.topology.allowed.len();
    // A quota that all CPUs together cannot exceed has no effect.
    let quota = examined.topology.quota.as_ref();
    let Some(quota) = quota.filter(|quota| quota.cpus < allowed as f64) else {
        return match examined.facts.quota_refusal {
            Some(reason) => Unavailable("quota", reason),
            None => InOrder("quota"),
        };
    };
    let fewer = match quota.cpus < 1.0 {
        true => "; even one thread exceeds it",
        false => ", or start no more threads than it allows",
    };
    Found(
        warning(
            "quota",
            format!(
                "A cgroup limits this process to {} of {allowed}; beyond that, all threads are throttled for the rest of the period.",
                cpu_limit(quota.cpus)
            ),
            format!("Raise the limit in {}{fewer}.", quota.source),
        )
        .with_evidence("quota_cpus", quota.cpus),
    )
}

pub(crate) fn check_tuners(examined: &Examined) -> CheckOutcome {
    let tuners = &examined.facts.tuners;
    if tuners.is_empty() {
        return InOrder("tuners");
    }
    Found(
        warning(
            "tuners",
            format!(
                "{} is running and moves interrupts, memory or threads on its own.",
                tuners.join(", ")
            ),
            format!(
                "Stop it for the measurement: systemctl stop {}",
                tuners.join(" ")
            ),
        )
        .with_evidence("daemons", json!(tuners)),
    )
}

pub(crate) fn check_thermal(examined: &Examined) -> CheckOutcome {
    match examined.facts.thermal_throttles {
        None => Unavailable("thermal", "no counter is reported"),
        Some(0) => InOrder("thermal"),
        Some(events) => Found(
            warning(
                "thermal",
                format!("Cores were thermally throttled {events} times since boot."),
                "Improve cooling, or pause between runs with --prepare 'sleep 2'.",
            )
            .with_evidence("events_since_boot", events),
        ),
    }
}

pub(crate) fn check_sched_ext(examined: &Examined) -> CheckOutcome {
    let Some(name) = &examined.facts.sched_ext else {
        return InOrder("sched_ext");
    };
    Found(
        warning(
            "sched_ext",
            format!("The scheduler is a BPF program ({name}): os-default means its policy, not the kernel's."),
            "Compare under the scheduler that will be used.",
        )
        .with_evidence("scheduler", name.as_str()),
    )
}

pub(crate) fn check_pressure(examined: &Examined) -> CheckOutcome {
    match examined.facts.cpu_pressure {
        None => Unavailable("cpu_pressure", "PSI is off in this kernel"),
        Some(share) if share <= MAX_PRESSURE => InOrder("cpu_pressure"),
        Some(share) => Found(
            warning(
                "cpu_pressure",
                format!(
                    "Over the last minute some task waited for a CPU {:.0} % of the time.",
                    100.0 * share
                ),
                "Wait until other work is done.",
            )
            .with_evidence("some_avg60", share),
        ),
    }
}

/// The share of the time that each CPU was busy between two readings.
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
            // The kernel counts whole ticks, which may exceed a short wait.
            (cpu, (busy / interval.max(1e-9)).min(1.0))
        })
        .collect()
}
