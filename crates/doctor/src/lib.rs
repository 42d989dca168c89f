//! Finds what distorts measurements on a machine, and ranks it, each with evidence and a fix.
//!
//! Checks are pure functions of facts, so that they can be tested for hosts that are not available.
//! Nothing is changed: turbo, SMT and frequency are part of a placement's effect, and only the user
//! decides to switch them off. The weights follow how much each distorted measured comparisons: most
//! of all other users of the CPUs, then the invisible neighbours of a virtual machine, then order
//! effects and frequency.

mod disturbance;
mod settings;

use pinwise_machine::Usage;
use pinwise_machine::linux::HostFacts;
use pinwise_record::{Answer, Doctor, Finding, Severity};
use pinwise_topology::Topology;

/// The facts that checks use.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// Settings and state.
    pub facts: HostFacts,
    /// The machine.
    pub topology: Topology,
    /// CPU time at the start and the end of a short wait.
    pub usage: Option<(Usage, Usage)>,
    /// How a map that was measured in this boot saw the wiring move, as a sentence.
    pub moving: Option<String>,
}

/// The result of a check.
enum CheckOutcome {
    Found(Finding),
    /// The check, by its name, found nothing.
    InOrder(&'static str),
    /// The check, by its name, could not be made for this reason.
    Unavailable(&'static str, &'static str),
}

pub use settings::{describe_niceness, describe_pod};

use CheckOutcome::{Found, InOrder, Unavailable};
use disturbance::{
    check_load, check_pressure, check_quota, check_sched_ext, check_steal, check_thermal,
    check_tuners, check_virtual_machine,
};
use settings::{
    check_aslr, check_battery, check_clock, check_cpuset, check_governor, check_huge_pages,
    check_isolated_cpus, check_niceness, check_numa_balancing, check_perf, check_pod, check_smt,
    check_swap, check_turbo,
};

/// The weight of the finding about a pod.
const POD_WEIGHT: u8 = 5;
/// The weight of the finding about niceness.
const NICE_WEIGHT: u8 = 9;

/// A check of the facts.
type Check = fn(&Examined) -> CheckOutcome;

/// What a check reads.
#[derive(Clone, Copy)]
enum Source {
    /// Files of `/proc`.
    Proc,
    /// Files of `/sys`.
    Sys,
    /// System calls.
    Calls,
}

use Source::{Calls, Proc, Sys};

const NO_PROC: &str = "no /proc";
const NO_SYS: &str = "no /sys";

impl Source {
    /// Why nothing can be read from it.
    fn explain_absence(self, facts: &HostFacts) -> Option<&'static str> {
        match self {
            Proc => facts.lacks_proc.then_some(NO_PROC),
            Sys => facts.lacks_sys.then_some(NO_SYS),
            Calls => None,
        }
    }
}

/// The checks, what they read, and the weights of their findings, from 0 to 10.
const CHECKS: [(Check, Source, u8); 22] = [
    (check_load, Proc, 10),
    (check_steal, Proc, 8),
    (check_virtual_machine, Sys, 7),
    (check_quota, Proc, 9),
    (check_niceness, Calls, NICE_WEIGHT),
    (check_tuners, Proc, 6),
    (check_battery, Sys, 7),
    (check_governor, Sys, 6),
    (check_thermal, Sys, 5),
    (check_sched_ext, Sys, 6),
    (check_clock, Sys, 5),
    (check_swap, Proc, 4),
    (check_pressure, Proc, 8),
    (check_smt, Sys, 4),
    (check_turbo, Sys, 4),
    (check_cpuset, Sys, 3),
    (check_pod, Proc, POD_WEIGHT),
    (check_numa_balancing, Proc, 4),
    (check_huge_pages, Sys, 2),
    (check_aslr, Proc, 3),
    (check_isolated_cpus, Sys, 3),
    (check_perf, Calls, 1),
];

/// Makes all checks.
#[must_use]
pub fn diagnose(examined: &Examined) -> Doctor {
    let hostname = examined.topology.identity.hostname.as_deref();
    let mut record = Doctor {
        host: hostname.unwrap_or_default().to_owned(),
        started: String::new(),
        findings: Vec::new(),
        passed: Vec::new(),
        unavailable: std::collections::BTreeMap::new(),
        answer: Answer::default(),
    };
    for (check, source, weight) in CHECKS {
        let absent = source.explain_absence(&examined.facts);
        match (check(examined), absent) {
            (Found(finding), _) => record.findings.push(finding.with_weight(weight)),
            (InOrder(name), None) => record.passed.push(name.to_owned()),
            (Unavailable(name, reason), None)
            | (InOrder(name) | Unavailable(name, _), Some(reason)) => {
                record
                    .unavailable
                    .insert(name.to_owned(), reason.to_owned());
            }
        }
    }
    record
        .findings
        .sort_by_key(|f| std::cmp::Reverse((f.severity, f.weight)));
    record.conclude();
    record
}

fn warning(check: &'static str, sentence: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::new(check, Severity::Warning, sentence, advice)
}

fn note(check: &'static str, sentence: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::new(check, Severity::Note, sentence, advice)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use pinwise_machine::Usage;
    use pinwise_sched::Refusal;
    use pinwise_topology::{CpuSet, Quota, Restriction};

    fn list_findings(examined: &Examined) -> Vec<String> {
        let record = diagnose(examined);
        record.findings.into_iter().map(|f| f.check).collect()
    }

    fn quiet_host() -> Examined {
        Examined {
            topology: Topology::from_synthetic("core:2 pu:1").unwrap(),
            ..Examined::default()
        }
    }

    #[test]
    fn a_virtual_machine_that_was_seen_to_float_is_not_said_to_do_so_perhaps() {
        let mut examined = quiet_host();
        examined.topology.identity.hypervisor = Some("kvm".to_owned());
        let describe = |examined: &Examined| {
            let finding = diagnose(examined).findings.remove(0);
            format!("{} {}", finding.sentence, finding.advice)
        };
        assert!(describe(&examined).contains("may float"));
        examined.moving = Some("It changed 5 times in 75 s.".to_owned());
        let text = describe(&examined);
        assert!(
            text.contains("float over the host's: It changed 5"),
            "{text}"
        );
        assert!(!text.contains("--watch"), "{text}");
    }

    #[test]
    fn a_quiet_host_has_no_findings() {
        assert_eq!(list_findings(&quiet_host()), Vec::<String>::new());
    }

    #[test]
    fn nothing_that_was_not_read_is_said_to_be_fine() {
        let mut examined = quiet_host();
        examined.facts.quota_refusal = Some("no cgroup files");
        let record = diagnose(&examined);
        assert_eq!(record.unavailable["quota"], "no cgroup files");
        examined.facts.lacks_proc = true;
        examined.facts.lacks_sys = true;
        let record = diagnose(&examined);
        assert_eq!(record.passed, ["nice", "perf"]);
        for check in ["quota", "tuners", "pod", "cpu_pressure", "load"] {
            assert_eq!(record.unavailable[check], "no /proc", "{check}");
        }
        for check in ["sched_ext", "smt", "allowed_cpus", "isolated", "governor"] {
            assert_eq!(record.unavailable[check], "no /sys", "{check}");
        }
        examined.facts.perf_refusal = Some(Refusal {
            reason: "no file".to_owned(),
            remedy: None,
        });
        assert_eq!(diagnose(&examined).unavailable["perf"], "no /proc");
    }

    #[test]
    fn the_load_of_cpus_outside_the_cpuset_is_not_reported() {
        let mut examined = quiet_host();
        let usage = |at, busy: [u64; 2]| Usage {
            at: Duration::from_millis(at),
            busy: busy
                .map(Duration::from_millis)
                .into_iter()
                .enumerate()
                .collect(),
            ..Usage::default()
        };
        examined.usage = Some((usage(0, [0, 0]), usage(500, [0, 450])));
        assert_eq!(list_findings(&examined), ["load"]);
        let leaves = CpuSet::single(0);
        examined.topology.restrictions = vec![Restriction::limit("cpuset /one", leaves)];
        assert_eq!(list_findings(&examined), Vec::<String>::new());
    }

    #[test]
    fn a_low_priority_is_reported() {
        let mut examined = quiet_host();
        for (nice, is_reported) in [(-5, false), (0, false), (1, true), (19, true)] {
            examined.facts.nice = nice;
            let findings = list_findings(&examined);
            assert_eq!(findings.contains(&"nice".to_owned()), is_reported, "{nice}");
        }
        let finding = diagnose(&examined).findings.remove(0);
        assert!(finding.sentence.contains("at nice 19"), "{finding:?}");
        assert!(finding.advice.contains("renice -n 0"), "{finding:?}");
    }

    /// Ticks of 10 ms, over waits that are no multiple of it.
    #[test]
    fn no_cpu_is_busier_than_it_can_be() {
        let mut examined = quiet_host();
        let ms = Duration::from_millis;
        let after = Usage {
            at: ms(291),
            busy: vec![(0, ms(300)), (1, ms(0))],
            steal: ms(300),
        };
        examined.usage = Some((
            Usage {
                busy: vec![(0, ms(0)), (1, ms(0))],
                ..Usage::default()
            },
            after,
        ));
        let sentences = diagnose(&examined).findings.into_iter();
        let sentences: Vec<String> = sentences.map(|finding| finding.sentence).collect();
        assert!(sentences[0].contains("CPU 0 100 %"), "{sentences:?}");
        assert!(
            sentences[1].contains("the time of 1.03 of 2 CPUs"),
            "{sentences:?}"
        );
    }

    #[test]
    fn the_limits_of_a_pod_are_reported() {
        let in_group = |group: &str, cpuset: &str, limit: Option<f64>| {
            let mut topology = Topology::from_synthetic("numa:2 core:4 pu:2").unwrap();
            let leaves = CpuSet::parse_list(cpuset).unwrap();
            topology.allowed.clone_from(&leaves);
            topology.restrictions = vec![Restriction::limit(format!("cpuset {group}"), leaves)];
            let source = "/sys/fs/cgroup/cpu.max".to_owned();
            topology.quota = limit.map(|cpus| Quota { cpus, source });
            let mut examined = Examined {
                topology,
                ..Examined::default()
            };
            examined.facts.is_pod = true;
            let findings = diagnose(&examined).findings;
            let pod = findings
                .iter()
                .find(|finding| finding.check == "pod")
                .unwrap();
            format!("{} {}", pod.sentence, pod.advice)
        };
        let in_pod = |cpuset: &str, limit| in_group("/kubepods/pod1", cpuset, limit);
        assert_eq!(
            in_pod("2-5", Some(4.0)),
            "This pod has CPUs 2-5 to itself: 2 whole cores. "
        );
        let split = in_pod("2,4,8", None);
        assert!(
            split.starts_with("This pod has CPUs 2,4,8, to itself if it is Guaranteed, but others run on siblings in 3 of its cores, on 2 NUMA nodes. "),
            "{split}"
        );
        for option in ["full-pcpus-only=true", "single-numa-node"] {
            assert!(split.contains(option), "{split}");
        }
        let shared = in_pod("0-15", Some(1.5));
        assert!(
            shared.starts_with(
                "This pod runs in the shared pool on CPUs 0-15, for 1.5 CPUs of time. "
            ),
            "{shared}"
        );
        assert!(shared.contains("--cpu-manager-policy=static"), "{shared}");
        let one = in_pod("3", Some(1.0));
        assert!(
            one.starts_with(
                "This pod has CPU 3 to itself, but others run on the sibling in its core. "
            ),
            "{one}"
        );
        // A small node, and a limit as large as it: nothing is kept for others.
        let whole = in_pod("0-15", Some(16.0));
        assert!(
            whole.starts_with("This pod runs in the shared pool on CPUs 0-15, for 16 CPUs"),
            "{whole}"
        );
        // The pool that the static policy leaves to others.
        let pooled = in_group("/kubepods/burstable/pod2", "0-7", None);
        assert!(
            pooled.starts_with(
                "This pod runs in the shared pool on CPUs 0-7, without a limit. For CPUs of its own"
            ),
            "{pooled}"
        );
    }

    #[test]
    fn disturbances_left_on_isolated_cpus_are_named() {
        let list = |text: &str| CpuSet::parse_list(text).unwrap();
        let mut examined = Examined {
            topology: Topology::from_synthetic("core:4 pu:1").unwrap(),
            ..Examined::default()
        };
        let isolation = &mut examined.facts.isolation;
        isolation.isolated = list("2-3");
        isolation.irq_cpus = vec![(30, list("0-3")), (31, list("0-1"))];
        isolation.rcu_nocbs = list("2-3");
        isolation.kernel_threads = list("0-3");
        let sentence = |examined: &Examined| diagnose(examined).findings[0].sentence.clone();
        let text = sentence(&examined);
        assert!(
            text.ends_with("Still possible there: 1 interrupt, the timer tick, kernel threads."),
            "{text}"
        );
        let advice = diagnose(&examined).findings[0].advice.clone();
        assert!(
            advice.contains("nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1"),
            "{advice}"
        );
        examined.facts.isolation.irq_cpus.clear();
        examined.facts.isolation.nohz_full = list("2-3");
        examined.facts.isolation.kernel_threads = list("0-1");
        assert!(!sentence(&examined).contains("Still"));
    }

    #[test]
    fn findings_are_ranked() {
        let mut examined = quiet_host();
        examined.facts.huge_pages = Some("always".to_owned());
        examined.facts.tuners = vec!["irqbalance".to_owned()];
        examined.facts.governors = vec!["powersave".to_owned()];
        examined.topology.quota = Some(Quota {
            cpus: 0.5,
            source: "/sys/fs/cgroup/cpu.max".to_owned(),
        });
        examined.topology.identity.hypervisor = Some("kvm".to_owned());
        assert_eq!(
            list_findings(&examined),
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
    fn a_quota_is_reported_where_it_has_an_effect() {
        let mut examined = quiet_host();
        let cpus = examined.topology.allowed.len() as f64;
        let mut describe = |quota: f64| {
            examined.topology.quota = Some(Quota {
                cpus: quota,
                source: "/sys/fs/cgroup/cpu.max".to_owned(),
            });
            let findings = diagnose(&examined).findings.into_iter();
            findings
                .map(|f| f.sentence + " " + &f.advice)
                .collect::<String>()
        };
        assert_eq!(describe(cpus), "");
        assert_eq!(describe(cpus + 6.0), "");
        let one = describe(1.0);
        assert!(one.contains("limits this process to 1 CPU of"), "{one}");
        assert!(one.contains("no more threads than it allows"), "{one}");
        let half = describe(0.5);
        assert!(half.contains("even one thread exceeds it"), "{half}");
    }

    #[test]
    fn refused_performance_counters_are_a_finding() {
        let mut examined = quiet_host();
        examined.facts.perf_paranoid = Some(1);
        examined.facts.is_root = true;
        assert_eq!(list_findings(&examined), Vec::<String>::new());
        examined.facts.perf_refusal = Some(Refusal {
            reason: "perf_event_open: denied".to_owned(),
            remedy: Some("docker run --cap-add PERFMON".to_owned()),
        });
        let finding = diagnose(&examined).findings.remove(0);
        assert!(finding.sentence.contains("perf_event_open"), "{finding:?}");
        assert!(!finding.advice.contains("sysctl"), "{finding:?}");
        examined.facts.is_root = false;
        examined.facts.perf_paranoid = Some(2);
        let finding = diagnose(&examined).findings.remove(0);
        assert!(finding.advice.contains("sysctl"), "{finding:?}");
    }

    #[test]
    fn load_and_steal_are_measured_between_two_readings() {
        let usage = |at, busy0, busy1, steal| Usage {
            at: Duration::from_millis(at),
            busy: vec![
                (0, Duration::from_millis(busy0)),
                (1, Duration::from_millis(busy1)),
            ],
            steal: Duration::from_millis(steal),
        };
        let mut examined = quiet_host();
        examined.usage = Some((usage(1000, 500, 100, 0), usage(1500, 950, 110, 20)));
        let record = diagnose(&examined);
        assert_eq!(record.findings.len(), 2);
        assert!(
            record.findings[0].sentence.contains("CPU 0 90 %"),
            "{record:?}"
        );
        assert!(record.findings[1].sentence.contains("0.04 of 2 CPUs"));
    }
}
