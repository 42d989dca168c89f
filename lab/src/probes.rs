//! Makes single probes of this host and prints their results, for work on the probes and for `memory`
//! and `pairs`.
//!
//! ```text
//! cargo lab probes BATCHES REPETITIONS PROBE…
//! ```
//!
//! One line of JSON per repetition. Probes: `transfer:A:B`, `spin:A:B`,
//! `integer:A:B`, `float:A:B`, `pause:CPU`, `pause-cycles:CPU`, `cycle:CPU`,
//! `tick:CPU`, `step:CPU`, `chase:CPU:BYTES`, `read:CPUS:BYTES` (also `write`,
//! `copy`, `triad`), `loaded:CPU:LOADERS:BYTES`, `switch:CPU`,
//! `wake:WAKER:SLEEPER`; `transfer` and `chase` take a NUMA node as one more
//! field. Several probes are made side by side.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use pinwise_machine::linux::{CycleCounting, LinuxMachine};
use pinwise_machine::{Host, Port, Probe, Prober, Stream};
use pinwise_topology::CpuSet;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [batches, repetitions, probes @ ..] = arguments else {
        bail!("usage: cargo lab probes BATCHES REPETITIONS PROBE…");
    };
    let batches: usize = batches.parse()?;
    let probes = probes.iter().map(|text| parse_probe(text));
    let probes: Vec<Probe> = probes.collect::<Result<_>>()?;
    let mut machine = LinuxMachine::open(CycleCounting::IfCheap)?;
    for _ in 0..repetitions.parse::<usize>()? {
        let (wall, cpu) = (machine.now(), read_cpu_s());
        let results = machine.probe(&probes, batches, Duration::from_secs(60))?;
        let (wall, cpu) = (machine.now() - wall, read_cpu_s() - cpu);
        let probes: Vec<serde_json::Value> = results
            .iter()
            .map(|batches| {
                serde_json::json!({
                    "values": batches.values,
                    "background": batches.background,
                    "switched": batches.switched,
                    "stolen": batches.stolen,
                    "in_place": batches.was_in_place,
                    "unavailable": batches.unavailable,
                })
            })
            .collect();
        let line = serde_json::json!({
            "wall_ms": 1e3 * wall.as_secs_f64(),
            "cpu_ms": 1e3 * cpu,
            "probes": probes,
        });
        println!("{line}");
    }
    Ok(())
}

/// CPU seconds of this process so far.
#[expect(unsafe_code, reason = "one system call")]
fn read_cpu_s() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

fn parse_probe(text: &str) -> Result<Probe> {
    let fields: Vec<&str> = text.split(':').collect();
    let word = |at: usize| {
        let field = fields.get(at).copied();
        field.with_context(|| format!("{text}: a field is missing"))
    };
    let number = |at: usize| -> Result<usize> { Ok(word(at)?.parse()?) };
    let node = |at: usize| fields.get(at).map(|field| field.parse()).transpose();
    let cpus = |at: usize| -> Result<CpuSet> { Ok(CpuSet::parse_list(word(at)?)?) };
    let contention = |port| -> Result<Probe> {
        let (a, b) = (number(1)?, number(2)?);
        Ok(Probe::Contention { a, b, port })
    };
    Ok(match word(0)? {
        "transfer" => Probe::Transfer {
            a: number(1)?,
            b: number(2)?,
            home: node(3)?,
        },
        "spin" => contention(Port::Spin)?,
        "integer" => contention(Port::Integer)?,
        "float" => contention(Port::Float)?,
        "pause" => Probe::Pause { cpu: number(1)? },
        "pause-cycles" => Probe::PauseCycles { cpu: number(1)? },
        "cycle" => Probe::Cycle { cpu: number(1)? },
        "tick" => Probe::Tick { cpu: number(1)? },
        "step" => Probe::TimerStep { cpu: number(1)? },
        "chase" => Probe::Chase {
            cpu: number(1)?,
            bytes: number(2)?,
            node: node(3)?,
        },
        "loaded" => Probe::LoadedLatency {
            cpu: number(1)?,
            loaders: cpus(2)?,
            bytes: number(3)?,
        },
        "switch" => Probe::ContextSwitch { cpu: number(1)? },
        "wake" => Probe::FutexWake {
            waker: number(1)?,
            sleeper: number(2)?,
        },
        name => Probe::Bandwidth {
            stream: Stream::ALL
                .into_iter()
                .find(|stream| stream.name() == name)
                .with_context(|| format!("{name} is no probe"))?,
            cpus: cpus(1)?,
            bytes: number(2)?,
            node: node(3)?,
        },
    })
}
