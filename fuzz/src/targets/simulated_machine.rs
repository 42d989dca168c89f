//! A simulated machine's TOML, optionally followed by a NUL byte and the series `s.csv`: refused
//! with a reason, or a machine whose clock advances whatever its noise, and whose probes find
//! finite figures.

use std::time::Duration;

use pinwise_sim::SimulatedMachine;
use pinwise_machine::{CommandRunner, Host, Output, Port, Probe, Prober, Request, Stream};
use pinwise_placement::Placement;
use pinwise_workload::{Command, Workload};

thread_local! {
    static FOLDER: tempfile::TempDir = crate::invariants::create_folder();
}

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let at = bytes.iter().position(|&byte| byte == 0);
    let (toml, series) = bytes.split_at(at.unwrap_or(bytes.len()));
    // A series is read relative to the description: with a slash, plain or as an escape, it could
    // be any file of this system.
    if toml.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
        return;
    }
    FOLDER.with(|folder| {
        let description = folder.path().join("m.toml");
        std::fs::write(&description, toml).expect("a file");
        let series = series.get(1..).unwrap_or_default();
        std::fs::write(folder.path().join("s.csv"), series).expect("a file");
        let path = description.to_str().expect("a path in UTF-8");
        match SimulatedMachine::open(path, 1) {
            Ok(mut machine) => check(&mut machine),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

fn check(machine: &mut SimulatedMachine) {
    let (topology, _) = machine.topology().expect("simulated machines have one");
    let place = Placement::os_default().realise(&topology).expect("a place");
    let workload = Workload::new(Command::from_line("prog").expect("a command"));
    let request = Request { output: Output::Keep, ..Request::new(&workload, &place.cpus) };
    let mut total = Duration::ZERO;
    for _ in 0..8 {
        let before = machine.now();
        let run = machine.run(&request).expect("simulated runs do not break");
        assert!(machine.now() >= before);
        assert!(run.output.is_some() && run.granted == place.cpus);
        // Studies add such times.
        let cpu = run.user.unwrap_or_default() + run.system.unwrap_or_default();
        total += run.wall + cpu;
    }
    assert!(total < Duration::MAX);
    check_probes(machine);
}

fn check_probes(machine: &mut SimulatedMachine) {
    let (topology, _) = machine.topology().expect("simulated machines have one");
    let a = topology.online.first().expect("a CPU");
    let b = topology.online.last().expect("a CPU");
    let port = Port::Spin;
    let stream = Stream::Triad;
    let cpus = topology.online.clone();
    for probe in [
        Probe::Transfer {
            a,
            b,
            home: Some(0),
        },
        Probe::Contention { a, b, port },
        Probe::PauseCycles { cpu: a },
        Probe::Tick { cpu: b },
        Probe::TimerStep { cpu: a },
        Probe::Chase {
            cpu: b,
            bytes: 1 << 22,
            node: None,
        },
        Probe::Bandwidth {
            cpus,
            stream,
            bytes: 1 << 22,
            node: Some(0),
        },
        Probe::FutexWake {
            waker: a,
            sleeper: b,
        },
    ] {
        let before = machine.now();
        let limit = Duration::from_millis(2);
        let batches = machine
            .probe(&[probe], 20, limit)
            .expect("simulated probes do not break");
        let values = &batches[0].values;
        assert!(values.len() <= 20);
        assert!(
            values
                .iter()
                .all(|value| value.is_finite() && *value >= 0.0)
        );
        assert!(machine.now() >= before && machine.now() - before < 2 * limit);
    }
}
