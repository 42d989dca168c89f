//! One round of a joint plan: several programs side by side, each on its CPUs, until each has
//! finished once.
//!
//! A process of its own makes the round: the engine starts it like any measured command, so a
//! time-out, a signal or the death of pinwise ends it and all its descendants. A program that
//! finishes before the others is started again, so that they are never alone and no figure depends
//! on who is fastest (Tuck and Tullsen, PACT 2003; Vera et al., PACT 2007). The first execution
//! counts. Loads stand for clients: they run on all CPUs, in every plan.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ranks::open_pidfd;
use super::{sys, tree};
use pinwise_topology::CpuSet;
use pinwise_workload::joint::{Round, RoundFigures, RoundProgram, RoundReport};

/// Longest time until a service is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Interval between checks whether it is ready.
const READY_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes kept of an output, from its end.
const KEPT_BYTES: usize = 1024 * 1024;

/// The index of a program, and why it failed.
type Failure = (usize, String);

/// A running command.
struct Running {
    child: Child,
    descriptor: OwnedFd,
    program: usize,
    is_service: bool,
    started: Duration,
    output: Option<JoinHandle<Vec<u8>>>,
}

/// Makes a round. Everything that it started has ended when it returns.
///
/// # Errors
/// If this process cannot become the parent of orphans. Programs that fail are not an error here: the
/// report says so.
pub fn run_round(round: &Round) -> io::Result<RoundReport> {
    sys::become_subreaper()?;
    let everywhere = sys::affinity()?;
    let mut running = Vec::new();
    let (finished, failure) = match run_programs(round, &everywhere, &mut running) {
        Ok(finished) => (finished, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    end_all(&mut running);
    // Only now are all writers of the pipes gone, so that the readers end.
    let programs = finished.into_iter().map(|(wall, output)| RoundFigures {
        wall_s: wall.as_secs_f64(),
        output: output
            .and_then(|output| output.join().ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default(),
    });
    Ok(RoundReport {
        programs: programs.collect(),
        failure,
    })
}

/// How long a first execution took, and the thread that reads its output.
type Finished = (Duration, Option<JoinHandle<Vec<u8>>>);

/// Runs all programs until each has finished once.
fn run_programs(
    round: &Round,
    everywhere: &CpuSet,
    running: &mut Vec<Running>,
) -> Result<Vec<Finished>, Failure> {
    for (number, program) in round.programs.iter().enumerate() {
        if program.load.is_some() {
            let own = own_cpus(number, program)?;
            let service = start(number, &program.command, &own, everywhere, false)?;
            running.push(Running {
                is_service: true,
                ..service
            });
            wait_until_ready(program, running, everywhere)?;
        }
    }
    for number in 0..round.programs.len() {
        running.push(start_figure(round, number, everywhere, true)?);
    }
    let mut finished: Vec<Option<Finished>> = round.programs.iter().map(|_| None).collect();
    while finished.iter().any(Option::is_none) {
        let (index, status) = wait_for_one(running)?;
        let now = sys::monotonic();
        let Running {
            program: number,
            is_service,
            started,
            output,
            ..
        } = running.swap_remove(index);
        if is_service {
            let reason = format!("it ended during a round, {}", describe(status));
            return Err((number, reason));
        }
        if !status.success() {
            let what = match (&round.programs[number].load, &finished[number]) {
                (Some(_), _) => "its load failed",
                (None, None) => "it failed",
                (None, Some(_)) => "it failed when it was started again beside the others",
            };
            return Err((number, format!("{what}, {}", describe(status))));
        }
        if finished[number].is_none() {
            finished[number] = Some((now.saturating_sub(started), output));
        }
        if finished.iter().any(Option::is_none) {
            running.push(start_figure(round, number, everywhere, false)?);
        }
    }
    Ok(finished.into_iter().flatten().collect())
}

/// Starts the command whose duration is measured: a service's load, or the program itself.
fn start_figure(
    round: &Round,
    number: usize,
    everywhere: &CpuSet,
    is_first: bool,
) -> Result<Running, Failure> {
    let program = &round.programs[number];
    if let Some(load) = &program.load {
        return start(number, load, everywhere, everywhere, is_first);
    }
    let own = own_cpus(number, program)?;
    start(number, &program.command, &own, everywhere, is_first)
}

fn own_cpus(number: usize, program: &RoundProgram) -> Result<CpuSet, Failure> {
    CpuSet::parse_list(&program.cpus).map_err(|error| (number, error.to_string()))
}

/// Starts a command on `cpus`; this process stays on all of its own.
fn start(
    number: usize,
    argv: &[String],
    cpus: &CpuSet,
    everywhere: &CpuSet,
    keeps_output: bool,
) -> Result<Running, Failure> {
    let failed = |error: io::Error| (number, format!("{}: {error}", argv[0]));
    #[expect(clippy::disallowed_methods, reason = "the Edge starts processes")]
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null());
    command.stdout(match keeps_output {
        true => Stdio::piped(),
        false => Stdio::null(),
    });
    // A child inherits the mask of the thread that starts it.
    sys::set_affinity(cpus).map_err(failed)?;
    let started = sys::monotonic();
    let child = command.spawn();
    sys::set_affinity(everywhere).map_err(failed)?;
    let mut child = child.map_err(failed)?;
    let output = child.stdout.take();
    let output = output.map(|output| std::thread::spawn(move || read_end(output)));
    // If this fails, the child is ended with the round.
    let descriptor = open_pidfd(&child).map_err(failed)?;
    Ok(Running {
        child,
        descriptor,
        program: number,
        is_service: false,
        started,
        output,
    })
}

/// Reads an output to its end, and keeps the last [`KEPT_BYTES`].
fn read_end(mut output: ChildStdout) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(bytes @ 1..) = output.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..bytes]);
        if kept.len() > 2 * KEPT_BYTES {
            kept.drain(..kept.len() - KEPT_BYTES);
        }
    }
    kept
}

/// Waits until the service that was started last is ready.
fn wait_until_ready(
    program: &RoundProgram,
    running: &mut [Running],
    everywhere: &CpuSet,
) -> Result<(), Failure> {
    let Some(service) = running.last_mut() else {
        return Ok(());
    };
    let number = service.program;
    let until = sys::monotonic() + READY_WITHIN;
    loop {
        let is_ready = match &program.ready {
            None => true,
            Some(ready) => {
                let mut check = start(number, ready, everywhere, everywhere, false)?.child;
                check.wait().is_ok_and(|status| status.success())
            }
        };
        if let Ok(Some(status)) = service.child.try_wait() {
            let reason = format!("it ended before it was ready, {}", describe(status));
            return Err((number, reason));
        }
        if is_ready {
            return Ok(());
        }
        if sys::monotonic() > until {
            let reason = format!("not ready after {} s", READY_WITHIN.as_secs());
            return Err((number, reason));
        }
        std::thread::sleep(READY_CHECK_INTERVAL);
    }
}

/// Waits for the first command to end; returns its index and status.
fn wait_for_one(running: &mut [Running]) -> Result<(usize, ExitStatus), Failure> {
    loop {
        let descriptors: Vec<RawFd> = running
            .iter()
            .map(|one| one.descriptor.as_raw_fd())
            .collect();
        let ended = sys::poll_all(&descriptors, None);
        for (index, _) in ended
            .iter()
            .enumerate()
            .filter(|(_, has_ended)| **has_ended)
        {
            let one = &mut running[index];
            let failed = |error: io::Error| (one.program, error.to_string());
            if let Some(status) = one.child.try_wait().map_err(failed)? {
                return Ok((index, status));
            }
        }
    }
}

/// Ends all descendants of this process: services get SIGTERM and time to save their data, the
/// others are killed.
fn end_all(running: &mut [Running]) {
    for one in &*running {
        let pid = libc::pid_t::try_from(one.child.id()).unwrap_or(0);
        let signal = match one.is_service {
            true => libc::SIGTERM,
            false => libc::SIGKILL,
        };
        sys::kill(pid, signal);
    }
    let until = sys::monotonic() + GRACE;
    let own = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    loop {
        while let Ok(Some(_)) = sys::reap() {}
        let remaining = tree::descendants(own);
        let is_late = sys::monotonic() > until;
        if remaining.is_empty() || sys::monotonic() > until + tree::KILL_TIMEOUT {
            return;
        }
        let services = running.iter().filter(|one| one.is_service);
        let services = services.filter_map(|one| libc::pid_t::try_from(one.child.id()).ok());
        let spared: Vec<libc::pid_t> = services
            .flat_map(|pid| tree::descendants(pid).into_iter().chain([pid]))
            .collect();
        for pid in remaining {
            if is_late || !spared.contains(&pid) {
                sys::kill(pid, libc::SIGKILL);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
