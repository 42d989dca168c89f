//! Findings on made-up measurements, with and without isolation.

use std::time::Duration;

use super::*;
use pinwise_machine::Isolation;
use pinwise_record::{
    Answer, CountedRecord, Header, HostRecord, IsolationRecord, JitterCauseRecord,
};

/// A CPU with its counted interrupts (label, name, count) and the causes of its gaps.
fn cpu(
    number: usize,
    counted: &[(&str, &str, u64)],
    causes: &[JitterCauseRecord],
) -> JitterCpuRecord {
    let counted = |is_softirq: bool| {
        let counted = counted
            .iter()
            .filter(|(label, ..)| (*label == "RCU") == is_softirq);
        let records = counted.map(|(label, name, count)| CountedRecord {
            label: (*label).to_owned(),
            name: (*name).to_owned(),
            count: *count,
        });
        records.collect()
    };
    JitterCpuRecord {
        cpu: number,
        watched_s: 10.0,
        gaps: causes.iter().map(|cause| cause.gaps).sum(),
        causes: causes.to_vec(),
        interrupts: counted(false),
        softirqs: counted(true),
        ..JitterCpuRecord::default()
    }
}

fn cause(kind: GapCause, name: &str, gaps: u64, lost_ms: f64) -> JitterCauseRecord {
    JitterCauseRecord {
        irq: (kind == GapCause::Interrupt).then_some(38),
        kind,
        name: name.to_owned(),
        cpus: "3".to_owned(),
        gaps,
        lost_ms,
        longest_us: 250.0,
        ..JitterCauseRecord::default()
    }
}

/// The findings on a machine with four CPUs, of which two are `isolated`, or none.
fn find_in_four_cpus(cpus: Vec<JitterCpuRecord>, isolated: bool) -> Vec<Finding> {
    let topology = Topology::from_synthetic("core:4 pu:1").unwrap();
    let list = |text: &str| CpuSet::parse_list(text).unwrap();
    let isolation = match isolated {
        false => Isolation::default(),
        true => Isolation {
            isolated: list("2-3"),
            nohz_full: list("3"),
            rcu_nocbs: list("3"),
            ..Isolation::default()
        },
    };
    let plan = JitterPlan {
        cpus: cpus.iter().map(|cpu| cpu.cpu).collect(),
        time: Duration::from_secs(10),
        threshold: Duration::from_micros(5),
        isolation,
    };
    let causes = cpus.iter().flat_map(|cpu| cpu.causes.clone()).collect();
    let has_queues_alone = cpus.iter().any(|cpu| cpu.queued_ms.is_some());
    let record = JitterRecord {
        header: Header::default(),
        host: HostRecord::new("local".to_owned(), false, &topology),
        threshold_us: 5.0,
        asked_s: 10.0,
        interrupted: false,
        gaps: 0,
        named_share: None,
        cpus,
        causes,
        longest: Vec::new(),
        answer: Answer::default(),
        causes_unavailable: has_queues_alone.then(|| "tracefs is not mounted".to_owned()),
        isolation: IsolationRecord::default(),
    };
    list_findings(&record, &plan, &topology)
}

/// Expects one finding per line: check | part of the sentence | part of the advice.
#[track_caller]
fn check(cpus: Vec<JitterCpuRecord>, isolated: bool, expected: &str) {
    let found = find_in_four_cpus(cpus, isolated);
    assert_eq!(found.len(), expected.lines().count(), "{found:?}");
    for (finding, line) in found.iter().zip(expected.lines()) {
        let cells: Vec<&str> = line.split(" | ").collect();
        assert_eq!(finding.check, cells[0], "{found:?}");
        assert!(finding.sentence.contains(cells[1]), "{}", finding.sentence);
        assert!(finding.advice.contains(cells[2]), "{}", finding.advice);
    }
}

#[test]
fn an_isolated_cpu_that_is_interrupted_is_reported() {
    check(
        vec![cpu(3, &[("38", "virtio1-input.0", 212)], &[])],
        true,
        "isolated_interrupt | CPU 3 is isolated, but virtio1-input.0 (IRQ 38) interrupted it 212 times. | echo 0-1 > /proc/irq/38/smp_affinity_list",
    );
}

#[test]
fn interrupts_of_several_isolated_cpus_are_one_finding() {
    check(
        vec![
            cpu(1, &[("38", "nic", 99)], &[]),
            cpu(2, &[("38", "nic", 3)], &[]),
            cpu(3, &[("38", "nic", 4)], &[]),
        ],
        true,
        "isolated_interrupt | CPUs 2-3 are isolated, but nic (IRQ 38) interrupted them 7 times. | isolcpus=managed_irq",
    );
}

#[test]
fn threads_on_isolated_cpus_are_reported() {
    let worker = cause(GapCause::Thread, "kworker/3:1", 9, 0.2);
    check(
        vec![cpu(
            3,
            &[],
            &[worker, cause(GapCause::Thread, "cron", 1, 0.1)],
        )],
        true,
        "isolated_thread | CPU 3 is isolated, but kworker/3:1 and 1 other thread ran on it and took 0.300 ms. | echo 3 > /sys/devices/virtual/workqueue/cpumask",
    );
}

#[test]
fn unexpected_ticks_and_callbacks_are_reported() {
    let ticks = ("LOC", "Local timer interrupts", 2500);
    check(
        vec![
            cpu(2, &[ticks, ("RCU", "", 40)], &[]),
            cpu(3, &[ticks], &[]),
        ],
        true,
        "nohz_full_tick | CPU 3 is in nohz_full, but its timer interrupted it 2,500 times (250 a second). | timer:tick_stop -C 3\n\
         isolated_rcu | CPU 2 is isolated, but RCU had work there 40 times. | rcu_nocbs=2-3",
    );
    let few = ("LOC", "Local timer interrupts", 10);
    check(vec![cpu(3, &[few], &[])], true, "");
}

#[test]
fn gaps_that_the_kernel_did_not_see_are_attributed_to_hypervisor_or_firmware() {
    let steal = cause(GapCause::Hypervisor, "", 9, 30.0);
    check(
        vec![cpu(3, &[], &[steal])],
        true,
        "hypervisor_gaps | Most likely the hypervisor took CPU 3 away for 0.3 % of the time, at most 250 µs at once | virsh vcpupin",
    );
    let smi = cause(GapCause::Hardware, "", 9, 30.0);
    check(
        vec![cpu(3, &[], &[smi])],
        true,
        "hardware_gaps | (SMI) | hwlatdetect",
    );
    check(
        vec![cpu(3, &[], &[cause(GapCause::Hypervisor, "", 1, 0.1)])],
        true,
        "",
    );
}

#[test]
fn without_isolation_its_benefit_is_estimated() {
    let tick = cause(GapCause::CpuInterrupt, "local_timer", 2500, 25.0);
    let nic = cause(GapCause::Interrupt, "nic", 400, 4.0);
    check(
        vec![cpu(0, &[], &[]), cpu(3, &[], &[tick, nic])],
        false,
        "not_isolated | took 0.1 % of the time | isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3 irqaffinity=0-2\n\
         device_interrupt | nic (IRQ 38) made 400 of the 2,900 gaps of CPU 3. | echo 0-2 > /proc/irq/38/smp_affinity_list",
    );
}

#[test]
fn other_programs_and_quotas_are_named() {
    let rustc = cause(GapCause::Thread, "rustc", 900, 6000.0);
    let quota = cause(GapCause::Quota, "", 5, 400.0);
    check(
        vec![cpu(0, &[], &[rustc, quota])],
        false,
        "quota_gaps | throttled pinwise's threads 5 times | cpu.max\n\
         busy | Other threads took 60.0 % of the time, rustc more than any other. | pinwise top",
    );
}

#[test]
fn without_causes_other_load_is_taken_from_queueing_time() {
    let mut waiting = cpu(3, &[], &[]);
    waiting.queued_ms = Some(6_000.0);
    check(
        vec![waiting],
        false,
        "busy | Other threads took 60.0 % of the time. | pinwise top",
    );
}

#[test]
fn masks_are_written_as_the_kernel_reads_them() {
    let mask = |list: &str| kernel_mask(&CpuSet::parse_list(list).unwrap());
    assert_eq!(mask("0-1"), "3");
    assert_eq!(mask("0,31-32,64"), "1,00000001,80000001");
}

#[test]
fn an_interrupt_on_several_cpus_is_one_finding() {
    let nic = || cause(GapCause::Interrupt, "nic", 400, 0.0);
    let hit = |number: usize| cpu(number, &[], &[nic()]);
    check(
        vec![hit(2), hit(3)],
        false,
        "device_interrupt | nic (IRQ 38) made 800 of the 800 gaps of CPUs 2-3. | Move IRQ 38 to other CPUs, as root: echo 0-1 > /proc/irq/38/smp_affinity_list",
    );
    check(
        vec![hit(0), hit(1), hit(2), hit(3)],
        false,
        "device_interrupt | gaps of CPUs 0-3. | Keep IRQ 38 on one CPU, as root: echo 0 > /proc/irq/38/smp_affinity_list",
    );
}
