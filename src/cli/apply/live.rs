//! `apply --pid`, `--unit`, `--cgroup`: places running threads.
//!
//! New threads are placed too while pinwise runs; at the end all get their old CPUs back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};

use super::super::args::{ApplyArgs, Global};
use super::super::machine::open_live_host;
use super::super::opening::require_store;
use super::super::terminal::Terminal;
use super::super::{Exit, plan, restore};
use super::answer::{ArmChoice, read_answer};
use pinwise_format::{count, round_bytes};
use pinwise_machine::linux::live::{POLL, RestoreSummary, Service, Target, Wish};
use pinwise_machine::linux::{Entry, LinuxMachine, UndoOutcome};
use pinwise_machine::{Host, MachineError, RunSetting};
use pinwise_placement::{InterruptCpus, Kind, MemoryPolicy, Placement, Realised};
use pinwise_record::{Applied, AppliedInterrupt, AppliedMemory, AppliedNode};
use pinwise_report::visible;
use pinwise_study::live::service_record;
use pinwise_topology::{CpuSet, Topology};

/// Observations before the report on where the threads run, and the time between them.
const FIRST_OBSERVATIONS: usize = 5;
const FIRST_STEP: Duration = Duration::from_millis(100);

pub(super) fn apply(
    global: &Global,
    args: &ApplyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let placement = choose_placement(global, args)?;
    check_memory(&placement)?;
    restore::note_leftovers(terminal);
    let (pins, mut host) = open_live_host(global, "apply --pid", &args.irqs)?;
    let target = find_target(
        args.pid,
        args.unit.as_deref(),
        args.cgroup.as_deref(),
        &mut host,
    )?;
    let mut service = Service::new(target, pins)?;
    let (topology, _) = host.topology()?;
    let topology = service.topology(&topology)?;
    let place = placement.realise(&topology).context("--place")?;
    let interrupts = plan_interrupts(args, &topology, &service, &place)?;
    if place.memory.is_some() && topology.usable_memory_nodes().len() < 2 {
        let argument = match args.memory {
            true => "--memory".to_owned(),
            false => format!("--place {placement}"),
        };
        bail!("{argument}: this machine has only one NUMA node, so memory cannot be moved");
    }
    let before = service.self_placed();
    if before > 0 {
        let knob = service.knob();
        let knob = knob.map(|knob| format!("; its own setting: {knob}"));
        terminal.warn(&format!(
            "already placed, by the program or somebody else: {} of {}; placed anew, with their old CPUs restored in the end{}",
            count(before, "thread"),
            visible(service.target().name()),
            knob.unwrap_or_default()
        ));
    }
    let mut applied = begin_record(&service, &place);
    let began = host.now();
    let temporary = TemporaryWish {
        wish: wish_for_threads(args, &place),
        place: &place,
        interrupts,
        lasts: args.lasts,
    };
    let ended = place_until_end(&mut service, &temporary, &mut host, &mut applied, terminal);
    let undone = service.restore_host();
    let stayed = service.move_memory_back();
    let (returned, exit) = (service.restore_masks(), ended?);
    note_interrupts(&mut applied, &undone, terminal);
    note_returned_memory(&mut applied, &service, &stayed, terminal);
    applied.elapsed_s = host.now().saturating_sub(began).as_secs_f64();
    report_end(&mut applied, &service, returned, terminal)?;
    Ok(exit)
}

/// The process, unit or cgroup whose threads are to be placed.
pub(in crate::cli) fn find_target(
    pid: Option<i32>,
    unit: Option<&str>,
    cgroup: Option<&str>,
    host: &mut LinuxMachine,
) -> anyhow::Result<Target> {
    match (pid, unit, cgroup) {
        (Some(pid), ..) => Target::process(pid).context("--pid"),
        (_, Some(unit), _) => Target::cgroup_of_unit(unit, host)?.context("--unit"),
        (.., Some(path)) => Target::cgroup(path).context("--cgroup"),
        (None, None, None) => bail!("say whose threads: --pid, --unit or --cgroup"),
    }
}

/// Refuses memory policies other than moving pages: only the program itself can set them.
fn check_memory(placement: &Placement) -> anyhow::Result<()> {
    match placement.memory.as_ref().map(|memory| memory.policy) {
        None | Some(MemoryPolicy::Bind | MemoryPolicy::Preferred) => Ok(()),
        Some(policy) => bail!(
            "--place {placement}: memory of a running program can only be moved to nodes: write /mem=bind (only the program itself can set the policy {})",
            policy.name()
        ),
    }
}

/// The requested placement, with the memory policy of `--memory`.
fn choose_placement(global: &Global, args: &ApplyArgs) -> anyhow::Result<Placement> {
    let mut placement = load_placement(global, args)?;
    if args.memory && placement.memory.is_none() {
        placement.memory = Some(MemoryPolicy::Bind.into());
    }
    Ok(placement)
}

/// The placement of `--place`, or that of a record's best arm.
fn load_placement(global: &Global, args: &ApplyArgs) -> anyhow::Result<Placement> {
    if let Some(place) = &args.place {
        return place.parse().context("--place");
    }
    let Some(id) = &args.record else {
        if is_only_interrupts(args) {
            return Ok(Placement::os_default());
        }
        bail!("say where its threads should run: --place one-per-core, or a stored record");
    };
    let answer = read_answer(
        &require_store(global)?.load(id)?,
        &ArmChoice::from_args(global, args),
    )?;
    if let Some(sentence) = &answer.nothing_to_apply {
        bail!("record {id} recommends no change: {sentence}");
    }
    answer.placement.parse().with_context(|| id.clone())
}

/// Are only interrupts to be moved?
fn is_only_interrupts(args: &ApplyArgs) -> bool {
    let is_placed = args.place.is_some() || args.record.is_some() || args.memory;
    !args.irqs.is_empty() && !is_placed
}

/// What to change until the end.
struct TemporaryWish<'a> {
    wish: Wish,
    place: &'a Realised,
    interrupts: InterruptCpus,
    lasts: Option<Duration>,
}

fn wish_for_threads(args: &ApplyArgs, place: &Realised) -> Wish {
    match place.placement.kind {
        _ if is_only_interrupts(args) => Wish::Before,
        Kind::Bound => Wish::Bound(place.order.clone()),
        Kind::Confined => Wish::Shared(place.cpus.clone()),
    }
}

/// The CPUs that interrupts are to have; nothing is changed yet.
fn plan_interrupts(
    args: &ApplyArgs,
    topology: &Topology,
    service: &Service,
    place: &Realised,
) -> anyhow::Result<InterruptCpus> {
    if args.irqs.is_empty() {
        return Ok(InterruptCpus::default());
    }
    let program = match is_only_interrupts(args) {
        true => service.granted(),
        false => place.cpus.clone(),
    };
    plan::realise_interrupts(&args.irqs, topology.clone(), &program)
}

/// Moves interrupts, and reports where they were.
fn move_interrupts(
    service: &mut Service,
    interrupts: &InterruptCpus,
) -> anyhow::Result<Vec<AppliedInterrupt>> {
    if interrupts.is_empty() {
        return Ok(Vec::new());
    }
    let setting = RunSetting::Interrupts(interrupts.clone());
    service.set_host(&[setting]).context("--irq")?;
    let moved = service.host_changes().filter_map(describe_moved_interrupt);
    Ok(moved.collect())
}

fn describe_moved_interrupt(entry: &Entry) -> Option<AppliedInterrupt> {
    let (irq, queue, before, asked) = match entry {
        Entry::Interrupt {
            number,
            before,
            asked,
            ..
        } => (Some(*number), None, before, asked),
        Entry::Queue(set) => {
            let name = set.queue.to_string();
            (None, Some(name), &set.before, &set.asked)
        }
        _ => return None,
    };
    Some(AppliedInterrupt {
        irq,
        queue,
        before_cpus: before.to_string(),
        asked_cpus: asked.to_string(),
        returned: None,
    })
}

/// Notes which interrupts are back on their old CPUs.
fn note_interrupts(applied: &mut Applied, undone: &[(Entry, UndoOutcome)], terminal: &Terminal) {
    for (entry, outcome) in undone {
        let is_returned = matches!(outcome, UndoOutcome::Restored | UndoOutcome::AsBefore);
        if !is_returned {
            terminal.warn(&format!("{entry}: {outcome}"));
        }
        let Some(interrupt) = describe_moved_interrupt(entry) else {
            continue;
        };
        let mut moved = applied.interrupts.iter_mut();
        if let Some(moved) = moved.find(|moved| **moved == interrupt) {
            moved.returned = Some(is_returned);
        }
    }
    let returned = applied
        .interrupts
        .iter()
        .filter(|i| i.returned == Some(true));
    if !applied.interrupts.is_empty() {
        terminal.note(&format!(
            "interrupts and queues with their old CPUs restored: {}",
            returned.count()
        ));
    }
}

/// Places the threads, reports where they run, and follows until the time or the program ends.
fn place_until_end(
    service: &mut Service,
    temporary: &TemporaryWish<'_>,
    host: &mut LinuxMachine,
    applied: &mut Applied,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let lasts = temporary.lasts;
    let end = lasts.map(|lasts| host.now() + lasts);
    service.place(&temporary.wish)?;
    applied.memory = move_memory(service, temporary.place)?;
    applied.interrupts = move_interrupts(service, &temporary.interrupts)?;
    let mut observations = 0;
    loop {
        let step = match observations < FIRST_OBSERVATIONS {
            true => FIRST_STEP,
            false => service.pause(),
        };
        let remaining = end.map(|end| end.saturating_sub(host.now()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) {
            return Ok(Exit::Done);
        }
        let exit = match host.wait(remaining.map_or(step, |remaining| remaining.min(step))) {
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
        update_record(applied, service);
        observations += 1;
        if observations == FIRST_OBSERVATIONS && !terminal.is_json() {
            report(applied, terminal)?;
        }
        if let Some(exit) = exit {
            return Ok(exit);
        }
        if !service.target().exists() {
            terminal.note(&format!("{} ended", visible(service.target().name())));
            return Ok(Exit::Done);
        }
    }
}

/// Moves memory if the placement has a policy; the bytes on each node before and after.
fn move_memory(service: &mut Service, place: &Realised) -> anyhow::Result<Option<AppliedMemory>> {
    let Some(memory) = &place.memory else {
        return Ok(None);
    };
    let nodes: CpuSet = memory.nodes.iter().copied().collect();
    let before = service.memory();
    service.move_memory(&nodes)?;
    let after = service.memory();
    let bytes_on = |nodes: &BTreeMap<usize, u64>, node| nodes.get(&node).copied().unwrap_or(0);
    let used_nodes: BTreeSet<usize> = before.keys().chain(after.keys()).copied().collect();
    let nodes = used_nodes.into_iter().map(|node| AppliedNode {
        node,
        before_bytes: bytes_on(&before, node),
        placed_bytes: bytes_on(&after, node),
        returned_bytes: None,
    });
    Ok(Some(AppliedMemory {
        asked_nodes: memory.nodes.clone(),
        nodes: nodes.collect(),
    }))
}

/// Notes where memory is after it was moved back; `stayed` says why some was not.
fn note_returned_memory(
    applied: &mut Applied,
    service: &Service,
    stayed: &[String],
    terminal: &Terminal,
) {
    let Some(memory) = &mut applied.memory else {
        return;
    };
    for reason in stayed {
        terminal.warn(&visible(reason));
    }
    let now = service.memory();
    if now.is_empty() {
        return;
    }
    let mut back = 0;
    for node in &mut memory.nodes {
        let bytes = now.get(&node.node).copied().unwrap_or(0);
        node.returned_bytes = Some(bytes);
        if !memory.asked_nodes.contains(&node.node) {
            back += bytes.saturating_sub(node.placed_bytes);
        }
    }
    terminal.note(&format!("memory back where it was: {}", round_bytes(back)));
}

fn begin_record(service: &Service, place: &Realised) -> Applied {
    Applied {
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
        memory: None,
        interrupts: Vec::new(),
    }
}

/// Updates what is known so far; a service that has ended keeps its last CPUs.
fn update_record(applied: &mut Applied, service: &Service) {
    let granted = service.granted();
    if granted != CpuSet::new() {
        applied.granted_cpus = granted.to_string();
    }
    let seen = service.observed();
    applied.observed_cpus = seen.cpus.to_string();
    applied.observations = seen.times;
    applied.observed_share = (seen.times > 0).then(|| seen.inside as f64 / seen.times as f64);
    applied.threads = service.touched();
    applied.left_alone = service.left_alone();
}

/// Prints the requested, granted and observed CPUs.
fn report(applied: &Applied, terminal: &Terminal) -> anyhow::Result<()> {
    terminal.print(&pinwise_report::describe_applied(applied))?;
    if let Some(memory) = &applied.memory {
        let (_, left) = memory.moved_and_left();
        if left > 0 {
            terminal.note("pages that other processes share, that are in use, or for which there is no room are not moved");
        }
        terminal.note("new pages follow the program's own memory policy, which only it can change: by default the node of the allocating thread");
    }
    terminal.note(&format!(
        "new threads inherit the CPUs; polling for new processes{} every {} ms. Ctrl-C restores the old CPUs of all threads",
        if applied.placement.contains("/bound") {
            ", and threads to bind,"
        } else {
            ""
        },
        POLL.as_millis()
    ));
    Ok(())
}

fn report_end(
    applied: &mut Applied,
    service: &Service,
    returned: RestoreSummary,
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
