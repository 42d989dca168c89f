//! Probes on the host that runs the tests: properties that hold at any speed and load.

use std::time::Duration;

use super::*;
use crate::Port;
use crate::linux::sys;

const LIMIT: Duration = Duration::from_secs(30);

fn allowed() -> Vec<usize> {
    sys::affinity().unwrap().iter().collect()
}

fn measure(
    probes: &[Probe],
    batches: usize,
    limit: Duration,
) -> Result<Vec<Batches>, MachineError> {
    ProbeSession::new()?.measure(probes, batches, limit, || false)
}

/// Makes a probe and checks that its figures are within bounds that every real machine meets.
#[track_caller]
fn check(probe: Probe, low: f64, high: f64) -> Batches {
    let results = measure(std::slice::from_ref(&probe), 5, LIMIT).unwrap();
    let [batches] = <[Batches; 1]>::try_from(results).unwrap();
    assert_eq!(batches.unavailable, None, "{probe:?}");
    assert!(batches.was_in_place, "{probe:?}");
    assert_eq!(batches.values.len(), 5, "{probe:?}: {batches:?}");
    for value in &batches.values {
        assert!((low..high).contains(value), "{probe:?}: {value}");
    }
    batches
}

#[test]
fn one_cpu_is_measured() {
    let cpu = allowed()[0];
    check(Probe::Cycle { cpu }, 0.1, 2.0);
    check(Probe::Pause { cpu }, 0.1, 500.0);
    check(Probe::PauseCycles { cpu }, 0.5, 1000.0);
    check(Probe::TimerStep { cpu }, 0.1, 10_000.0);
    check(Probe::ContextSwitch { cpu }, 100.0, 1e6);
    let (waker, sleeper) = (cpu, cpu);
    check(Probe::FutexWake { waker, sleeper }, 100.0, 1e6);
}

#[test]
fn memory_is_measured() {
    let cpus: CpuSet = allowed().into_iter().take(2).collect();
    let cpu = cpus.first().unwrap();
    for (bytes, node) in [(4096, None), (1 << 20, Some(0)), (1 << 20, None)] {
        let node = node.filter(|_| std::path::Path::new("/sys/devices/system/node/node0").exists());
        check(Probe::Chase { cpu, bytes, node }, 0.2, 10_000.0);
    }
    for stream in Stream::ALL {
        let probe = Probe::Bandwidth {
            cpus: cpus.clone(),
            stream,
            bytes: 1 << 20,
            node: None,
        };
        check(probe, 0.01, 100_000.0);
    }
}

#[test]
fn pairs_are_measured() {
    let [a, b, ..] = allowed()[..] else {
        return report_skipped("one CPU has no pairs");
    };
    check(Probe::Transfer { a, b, home: None }, 1.0, 10_000.0);
    for port in [Port::Spin, Port::Integer, Port::Float] {
        check(Probe::Contention { a, b, port }, 0.3, 10.0);
    }
    let (waker, sleeper) = (a, b);
    check(Probe::FutexWake { waker, sleeper }, 100.0, 1e6);
    let probe = Probe::LoadedLatency {
        cpu: a,
        loaders: CpuSet::single(b),
        bytes: 1 << 20,
    };
    let batches = check(probe, 0.2, 100_000.0);
    assert_eq!(batches.background.len(), batches.values.len());
    assert!(batches.background.iter().all(|&bandwidth| bandwidth > 0.0));
}

#[test]
fn results_of_simultaneous_probes_are_in_order() {
    let [a, b, ..] = allowed()[..] else {
        return report_skipped("one CPU has nothing beside it");
    };
    let bytes = usize::MAX;
    let probes = [
        Probe::Pause { cpu: a },
        Probe::Chase {
            cpu: a,
            bytes,
            node: None,
        },
        Probe::Cycle { cpu: b },
    ];
    let batches = measure(&probes, 3, LIMIT).unwrap();
    assert_eq!(batches[0].values.len(), 3);
    assert!(batches[1].unavailable.is_some());
    assert!(
        batches[2].values.iter().all(|&cycle| cycle < 2.0),
        "{batches:?}"
    );
}

#[test]
fn impossible_probes_are_reported_in_a_sentence() {
    let cpu = allowed()[0];
    let chase = |bytes, node| Probe::Chase { cpu, bytes, node };
    let bandwidth = |bytes| Probe::Bandwidth {
        cpus: CpuSet::single(cpu),
        stream: Stream::Triad,
        bytes,
        node: None,
    };
    let sizes = [0, 63, 1 << 50, usize::MAX];
    let probes = sizes
        .iter()
        .flat_map(|&bytes| [chase(bytes, None), bandwidth(bytes)])
        .chain([chase(4096, Some(900))]);
    for probe in probes {
        let batches = measure(std::slice::from_ref(&probe), 3, LIMIT).unwrap();
        let reason = batches[0].unavailable.as_deref().unwrap_or_default();
        assert!(reason.ends_with('.'), "{probe:?}: {reason:?}");
        assert!(batches[0].values.is_empty());
    }
}

#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    let cpu = CpuSet::MAX_CPU;
    let error = measure(&[Probe::Pause { cpu }], 3, LIMIT).unwrap_err();
    assert!(error.to_string().contains(&cpu.to_string()), "{error}");
}

/// Probes to make with more batches than the time allows.
fn endless_probes() -> Vec<Probe> {
    let cpus = allowed();
    let (a, b) = (cpus[0], *cpus.get(1).unwrap_or(&cpus[0]));
    let mut probes = vec![
        Probe::Pause { cpu: a },
        Probe::ContextSwitch { cpu: a },
        Probe::FutexWake {
            waker: a,
            sleeper: b,
        },
        Probe::Bandwidth {
            cpus: [a, b].into_iter().collect(),
            stream: Stream::Copy,
            bytes: 1 << 20,
            node: None,
        },
    ];
    if a != b {
        probes.push(Probe::Transfer { a, b, home: None });
        probes.push(Probe::Contention {
            a,
            b,
            port: Port::Spin,
        });
        probes.push(Probe::LoadedLatency {
            cpu: a,
            loaders: CpuSet::single(b),
            bytes: 1 << 20,
        });
    }
    probes
}

#[test]
fn probes_return_their_results_at_the_limit() {
    for limit in [Duration::ZERO, Duration::from_millis(50)] {
        for probe in endless_probes() {
            let batches = measure(std::slice::from_ref(&probe), usize::MAX, limit).unwrap();
            assert_eq!(batches[0].unavailable, None, "{probe:?}");
            assert!(limit > Duration::ZERO || batches[0].values.is_empty());
        }
    }
}

#[test]
fn probes_end_when_the_user_interrupts() {
    for probe in endless_probes() {
        let mut checks = 0;
        let batches = ProbeSession::new().unwrap().measure(
            std::slice::from_ref(&probe),
            usize::MAX,
            Duration::from_secs(3600),
            || {
                checks += 1;
                checks > 1
            },
        );
        assert!(
            matches!(batches, Err(MachineError::Interrupted)),
            "{probe:?}"
        );
    }
}

#[test]
fn a_second_call_uses_the_same_threads() {
    let cpu = allowed()[0];
    let mut prober = ProbeSession::new().unwrap();
    for _ in 0..3 {
        let probe = [Probe::Cycle { cpu }];
        let batches = prober.measure(&probe, 2, LIMIT, || false).unwrap();
        assert_eq!(batches[0].values.len(), 2);
    }
    assert_eq!(prober.pool.len(), 1);
}

fn report_skipped(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}
