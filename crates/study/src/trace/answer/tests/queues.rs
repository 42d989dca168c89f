//! Programs whose threads wait for CPUs.

use super::*;

#[test]
fn waits_for_cpus_that_others_use_are_named_beside_the_program_s_own_work() {
    let looks = [(BlockedIn::Timer, 2)];
    let mut lives = [20, 21].map(|thread| life(thread, "worker", 2.8, &looks));
    for life in &mut lives {
        life.wait_s = 2.1;
    }
    // Others keep one CPU, so that both threads share the other.
    let judge = |foreign_s: f64| {
        let mut record = trace(&lives);
        record.figures.totals.foreign_cpu_s = Some(foreign_s);
        record.figures.waits.because = Some(WaitCauses {
            own_threads_s: 4.2,
            ..Default::default()
        });
        conclude(&mut record);
        record.answer.unwrap()
    };
    let beside = judge(4.15);
    let start =
        "Limited by its own work, and short of CPUs, of which other programs kept 0.8 busy: its ";
    assert!(beside.sentence.starts_with(start), "{beside:?}");
    assert!(
        beside
            .advice
            .contains("Other programs kept 0.8 CPUs busy: stop or move them"),
        "{beside:?}"
    );
    let alone = judge(0.0);
    let start = "Limited by its own work, and short of CPUs for its own threads: its threads ";
    assert!(alone.sentence.starts_with(start), "{alone:?}");
    let advice =
        "Fewer threads may be as fast. See where its CPU time goes: pinwise profile --pid 7";
    assert_eq!(alone.advice, advice);
}

#[test]
fn a_cause_of_few_waits_is_not_named_beside_the_program_s_own_work() {
    let mut one = life(20, "worker", 4.0, &[(BlockedIn::Timer, 2)]);
    one.wait_s = 1.0;
    let judge = |scheduler_s: f64| {
        let mut record = trace(std::slice::from_ref(&one));
        record.figures.waits.because = Some(WaitCauses {
            scheduler_s,
            own_threads_s: 1.0 - scheduler_s,
            ..Default::default()
        });
        conclude(&mut record);
        record.answer.unwrap().sentence
    };
    let most = judge(0.9);
    let start = "Limited by its own work, and held up by the scheduler, which left CPUs idle: it ";
    assert!(most.starts_with(start), "{most}");
    let some = judge(0.6);
    let start = "Limited by its own work, and waited for CPUs: it ";
    assert!(some.starts_with(start), "{some}");
}

#[test]
fn a_program_that_waits_for_cpus_is_not_mostly_blocked() {
    // A shell waits for its children while they run and wait for CPUs.
    let waits = |blocked: u64, cpu_s: f64, wait_s: f64| {
        let looks = [(BlockedIn::Pipe, blocked), (BlockedIn::Timer, blocked)];
        let mut one = life(20, "worker", cpu_s, &looks);
        one.wait_s = wait_s;
        trace(&[one]).answer.unwrap().sentence
    };
    let awake = waits(24, 1.0, 1.6);
    assert!(
        awake.starts_with("Held up by other programs on its CPUs: it "),
        "{awake}"
    );
    let blocked = waits(33, 0.2, 1.5);
    let start = "Mostly blocked, and held up by other programs on its CPUs: it ";
    assert!(blocked.starts_with(start), "{blocked}");
}

#[test]
fn a_quota_that_is_used_up_is_named_before_busy_neighbours() {
    let lives = [20, 21, 22, 23].map(|thread| Life {
        wait_s: 4.0,
        ..life(thread, "worker", 0.3, &[(BlockedIn::Timer, 2)])
    });
    let judge = |times: u64| {
        let mut record = trace(&lives);
        record.figures.totals.foreign_cpu_s = Some(7.5);
        record.figures.throttled = Some(ThrottledRecord {
            periods: 50,
            times,
            seconds: 8.0,
            quota: None,
        });
        conclude(&mut record);
        record.answer.unwrap().sentence
    };
    let whole = judge(45);
    assert!(whole.starts_with("Held back by a CPU quota: "), "{whole}");
    let hardly = judge(3);
    assert!(hardly.starts_with("Held up by other programs"), "{hardly}");
}

#[test]
fn a_quota_is_named_with_the_command_that_raises_it() {
    let judge = |file: &str, quota_cpus, ready_s| {
        let mut life = life(7, "service", 1.0, &[(BlockedIn::Timer, 2)]);
        life.wait_s = ready_s - 1.0;
        let mut record = trace(&[life]);
        record.host.counts.cpus = 8;
        record.figures.throttled = Some(ThrottledRecord {
            periods: 50,
            times: 45,
            seconds: 8.0,
            quota: Some(CpuQuotaRecord {
                file: file.to_owned(),
                cpus: quota_cpus,
                period_s: 0.05,
            }),
        });
        conclude(&mut record);
        let answer = record.answer.unwrap();
        (answer.sentence, answer.advice)
    };
    let (sentence, advice) = judge("/sys/fs/cgroup/box/cpu.max", 0.2, 14.0);
    let start = "Held back by a CPU quota of 0.2 CPUs (/sys/fs/cgroup/box): ";
    assert!(sentence.starts_with(start), "{sentence}");
    let end = ": echo '150000 50000' > /sys/fs/cgroup/box/cpu.max";
    assert!(advice.ends_with(end), "{advice}");
    let (sentence, advice) = judge("/sys/fs/cgroup/cpu/web.service/cpu.cfs_quota_us", 1.0, 5.0);
    let start = "Held back by a CPU quota of 1 CPU (web.service): ";
    assert!(sentence.starts_with(start), "{sentence}");
    let end = ": systemctl set-property web.service CPUQuota=200%";
    assert!(advice.ends_with(end), "{advice}");
    let (_, advice) = judge("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", 1.0, 100.0);
    let end = ": echo 400000 > /sys/fs/cgroup/cpu/box/cpu.cfs_quota_us";
    assert!(advice.ends_with(end), "{advice}");
}

#[test]
fn who_starts_many_processes_is_told_so() {
    let mut record = trace(&[life(20, "sh", 1.0, &[(BlockedIn::Pipe, 40)])]);
    record.figures.totals.processes = 4_500;
    let answer = |record: &mut TraceRecord, started| {
        record.figures.totals.started_processes = Some(started);
        conclude(record);
        record.answer.clone().unwrap()
    };
    // A service may have had them before.
    let idle = answer(&mut record, 3);
    assert!(!idle.sentence.contains("processes"), "{idle:?}");
    let busy = answer(&mut record, 4_500);
    let start = "Busy starting processes, 900 a second: it spent ";
    assert!(busy.sentence.starts_with(start), "{busy:?}");
    let end = "strace -f -e trace=execve -p 7";
    assert!(busy.advice.ends_with(end), "{busy:?}");
    // What many CPUs do is more than to start these.
    record.figures.totals.cpu_s = 60.0;
    let large = answer(&mut record, 4_500);
    assert!(!large.sentence.contains("processes"), "{large:?}");
    record.figures.totals.cpu_s = 1.0;
    record.source = TraceSource::Command {
        command: ["sh", "-c", "work"].map(str::to_owned).into(),
        placement: "os-default".to_owned(),
        cpus: "0-1".to_owned(),
    };
    conclude(&mut record);
    let answer = record.answer.unwrap();
    let start = "Busy starting processes, 900 a second: it spent ";
    assert!(answer.sentence.starts_with(start), "{answer:?}");
    let end = "strace -f -e trace=execve -- sh -c work";
    assert!(answer.advice.ends_with(end), "{answer:?}");
}

#[test]
fn a_program_whose_threads_are_idle_is_not_held_up_by_others() {
    // A virtual machine keeps house for moments, and finds the CPUs busy.
    let lives = [20, 21].map(|thread| Life {
        is_idle: true,
        wait_s: 0.2,
        ..life(thread, "housekeeper", 0.002, &[(BlockedIn::Lock, 50)])
    });
    let record = trace(&lives);
    let loud = |finding: &&Finding| {
        finding.severity > Severity::Note && finding.check == "other_processes"
    };
    assert_eq!(record.header.findings.iter().find(loud), None);
    let answer = record.answer.unwrap();
    let start = "Idle, or held up: its threads spent 91.9 % of their time blocked and 8.0 %";
    assert!(answer.sentence.starts_with(start), "{answer:?}");
}

#[test]
fn the_cpus_of_a_pinned_program_are_named() {
    let mut life = life(7, "service", 1.5, &[(BlockedIn::Timer, 2)]);
    life.wait_s = 3.4;
    let mut record = trace(&[life]);
    record.threads[0].allowed = Some("1".to_owned());
    conclude(&mut record);
    let cpus = record.host.counts.cpus;
    let start =
        "Held up by other programs on CPU 1, to which its affinity mask keeps it: it spent ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    let advice = &record.answer.as_ref().unwrap().advice;
    let more = format!("taskset -a -cp 0-{} 7", cpus - 1);
    assert!(advice.ends_with(&more), "{advice}");
}

#[test]
fn threads_that_share_the_cpu_of_their_mask_are_not_held_up_by_others() {
    let mut lives = [20, 21].map(|thread| life(thread, "worker", 2.4, &[(BlockedIn::Timer, 2)]));
    for life in &mut lives {
        life.wait_s = 2.5;
    }
    let mut record = trace(&lives);
    for thread in &mut record.threads {
        thread.allowed = Some("0".to_owned());
    }
    // Others keep the second CPU busy.
    record.figures.totals.foreign_cpu_s = Some(5.0);
    record.figures.waits.because = Some(WaitCauses {
        own_threads_s: 5.0,
        ..Default::default()
    });
    conclude(&mut record);
    check(
        &record,
        "Short of CPUs for its own threads on CPU 0, to which its affinity mask keeps it: its threads \
         spent 50.0 % of their time waiting for a CPU, 48.0 % running and 2.0 % blocked.",
        "Allow it more CPUs, or use fewer threads.",
    );
}

/// Threads that are always ready.
fn computing(threads: i32, nice: Option<u8>) -> TraceRecord {
    let lives: Vec<Life> = (0..threads)
        .map(|thread| Life {
            wait_s: ELAPSED_S - 0.3,
            ..life(8 + thread, "cpu", 0.3, &[(BlockedIn::Unknown, 1)])
        })
        .collect();
    let mut record = trace(&lives);
    record.host.counts.cpus = 2;
    for thread in &mut record.threads {
        (thread.nice, thread.allowed) = (nice, Some("0-1".to_owned()));
    }
    conclude(&mut record);
    record
}

/// Queued for nearly as long beside an idle CPU as behind their own threads.
#[test]
fn waits_for_several_reasons_are_no_want_of_cpus() {
    let mut record = trace(&[8, 9].map(|thread| Life {
        wait_s: 1.5,
        ..life(thread, "worker", 2.8, &[(BlockedIn::Timer, 5)])
    }));
    record.host.counts.cpus = 2;
    record.figures.waits.because = Some(WaitCauses {
        own_threads_s: 1.4,
        scheduler_s: 1.3,
        other_processes_s: 0.3,
        ..Default::default()
    });
    conclude(&mut record);
    let start = "Limited by its own work, and waited for CPUs: its threads spent ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    let advice = &record.answer.as_ref().unwrap().advice;
    assert!(!advice.contains("Fewer threads"), "{advice}");
}

#[test]
fn more_ready_threads_than_cpus_wait_for_each_other_whoever_else_runs() {
    let many = computing(16, None);
    let start = "Short of CPUs for its own threads (16 ready at a time on 2 CPUs): ";
    assert!(many.verdict().starts_with(start), "{}", many.verdict());
    let few = computing(2, None).verdict();
    assert!(few.starts_with("Held up by other programs"), "{few}");
}

#[test]
fn a_program_that_yields_by_its_niceness_is_said_to() {
    let record = computing(1, Some(19));
    let start = "Held up by other programs on its CPUs, to which it yields at nice 19: ";
    check(&record, &record.verdict(), "renice -n 0 -p 7");
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}
