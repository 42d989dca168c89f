//! `apply --pid`, `--unit`, `--cgroup`: threads that run already.
//!
//! They are placed, followed while pinwise runs, and given back in the end.

use std::time::Duration;

use anyhow::{Context, bail};

use super::super::args::{ApplyArgs, Global};
use super::super::opening::needed_store;
use super::super::terminal::Terminal;
use super::super::{Exit, live_host, restore};
use super::answer::of_record;
use pinwise_machine::linux::LinuxMachine;
use pinwise_machine::linux::live::{POLL, Returned, Service, Target, Wish};
use pinwise_machine::{Machine, MachineError};
use pinwise_placement::{Kind, Placement, Realised};
use pinwise_record::{APPLIED_SCHEMA, Applied};
use pinwise_report::visible;
use pinwise_study::live::service_record;
use pinwise_topology::CpuSet;

/// Looks before reporting where the threads run, and the time between them.
const FIRST_LOOKS: usize = 5;
const FIRST_STEP: Duration = Duration::from_millis(100);

pub(super) fn apply(
    global: &Global,
    args: &ApplyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let placement = wanted(global, args)?;
    if placement.memory.is_some() {
        bail!("--place {placement}: what runs keeps its memory policy; leave out /mem=");
    }
    restore::offer(terminal);
    let (pins, mut host) = live_host(global, "apply --pid")?;
    let target = target(
        args.pid,
        args.unit.as_deref(),
        args.cgroup.as_deref(),
        &mut host,
    )?;
    let mut service = Service::new(target, pins)?;
    let (topology, _) = host.topology()?;
    let topology = service.topology(&topology)?;
    let place = placement.realise(&topology).context("--place")?;
    let before = service.self_placed();
    if before > 0 {
        let knob = service.knob();
        let knob = knob.map(|knob| format!("; its own setting: {knob}"));
        terminal.warn(&format!(
            "{before} threads of {} are placed already, by the program or somebody else; they are placed all the same and get their CPUs back in the end{}",
            visible(service.target().name()),
            knob.unwrap_or_default()
        ));
    }
    let mut applied = applied(&service, &place);
    let began = host.now();
    let ended = keep(
        &mut service,
        &place,
        args.lasts,
        &mut host,
        &mut applied,
        terminal,
    );
    let (returned, exit) = (service.give_back(), ended?);
    applied.elapsed_s = host.now().saturating_sub(began).as_secs_f64();
    close(&mut applied, &service, returned, terminal)?;
    Ok(exit)
}

/// Whose threads are meant.
pub(in crate::cli) fn target(
    pid: Option<i32>,
    unit: Option<&str>,
    cgroup: Option<&str>,
    host: &mut LinuxMachine,
) -> anyhow::Result<Target> {
    match (pid, unit, cgroup) {
        (Some(pid), ..) => Target::process(pid).context("--pid"),
        (_, Some(unit), _) => Target::unit(unit, host)?.context("--unit"),
        (.., Some(path)) => Target::cgroup(path).context("--cgroup"),
        (None, None, None) => bail!("say whose threads: --pid, --unit or --cgroup"),
    }
}

/// The placement that was named, or that of a record's best arm.
fn wanted(global: &Global, args: &ApplyArgs) -> anyhow::Result<Placement> {
    if let Some(place) = &args.place {
        return place.parse().context("--place");
    }
    let Some(id) = &args.record else {
        bail!("say where its threads should run: --place one-per-core, or a stored record");
    };
    let answer = of_record(&needed_store(global)?.load(id)?)?;
    if let Some(sentence) = &answer.nothing_to_apply {
        bail!("record {id} says that there is nothing to apply: {sentence}");
    }
    answer.placement.parse().with_context(|| id.clone())
}

/// Places, reports where the threads run, and follows until it is over.
fn keep(
    service: &mut Service,
    place: &Realised,
    lasts: Option<Duration>,
    host: &mut LinuxMachine,
    applied: &mut Applied,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let end = lasts.map(|lasts| host.now() + lasts);
    let wish = match place.placement.kind {
        Kind::Bound => Wish::Bound(place.order.clone()),
        Kind::Confined => Wish::Shared(place.cpus.clone()),
    };
    service.place(&wish)?;
    let mut looks = 0;
    loop {
        let step = match looks < FIRST_LOOKS {
            true => FIRST_STEP,
            false => service.pause(),
        };
        let left = end.map(|end| end.saturating_sub(host.now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Exit::Done);
        }
        let exit = match host.wait(left.map_or(step, |left| left.min(step))) {
            Err(MachineError::Interrupted) if lasts.is_none() => Some(Exit::Done),
            Err(MachineError::Interrupted) => Some(Exit::Interrupted),
            Err(error) => return Err(error.into()),
            Ok(()) => None,
        };
        if exit.is_none() {
            for sentence in service.follow()?.changed {
                terminal.warn(&visible(&sentence));
            }
        }
        service.observe();
        note(applied, service);
        looks += 1;
        if looks == FIRST_LOOKS && !terminal.is_json() {
            report(applied, terminal)?;
        }
        if let Some(exit) = exit {
            return Ok(exit);
        }
        if !service.target().is_there() {
            terminal.note(&format!("{} ended", visible(service.target().name())));
            return Ok(Exit::Done);
        }
    }
}

fn applied(service: &Service, place: &Realised) -> Applied {
    Applied {
        schema: APPLIED_SCHEMA.to_owned(),
        service: service_record(service.target().facts()),
        placement: place.placement.to_string(),
        asked_cpus: place.cpus.to_string(),
        granted_cpus: String::new(),
        observed_cpus: String::new(),
        observations: 0,
        observed_share: None,
        threads: 0,
        left_alone: Vec::new(),
        returned: 0,
        ended: 0,
        elapsed_s: 0.0,
    }
}

/// What is known so far; of a service that has ended, what was known last.
fn note(applied: &mut Applied, service: &Service) {
    let granted = service.granted();
    if granted != CpuSet::new() {
        applied.granted_cpus = granted.to_string();
    }
    let seen = service.seen();
    applied.observed_cpus = seen.cpus.to_string();
    applied.observations = seen.times;
    applied.observed_share = (seen.times > 0).then(|| seen.inside as f64 / seen.times as f64);
    applied.threads = service.touched();
    applied.left_alone = service.left_alone();
}

/// Asked, granted, observed.
fn report(applied: &Applied, terminal: &Terminal) -> anyhow::Result<()> {
    terminal.print(&pinwise_report::applied(applied))?;
    terminal.note(&format!(
        "new threads inherit the CPUs; new processes{} are looked for every {} ms. Ctrl-C restores the old CPUs of all threads",
        if applied.placement.contains("/bound") {
            ", and threads to bind,"
        } else {
            ""
        },
        POLL.as_millis()
    ));
    Ok(())
}

fn close(
    applied: &mut Applied,
    service: &Service,
    returned: Returned,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    applied.returned = returned.returned;
    applied.ended = returned.ended;
    applied.left_alone = service.left_alone();
    if terminal.is_json() {
        return terminal.print_json(applied);
    }
    let mut sentence = format!(
        "threads with their old CPUs restored: {}",
        returned.returned
    );
    if returned.ended > 0 {
        sentence.push_str(&format!("; ended meanwhile: {}", returned.ended));
    }
    if returned.left > 0 {
        sentence.push_str(&format!(
            "; left as somebody else set them: {}",
            returned.left
        ));
    }
    terminal.note(&sentence);
    Ok(())
}
