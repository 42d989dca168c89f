//! `top`: shows threads on CPUs live, or one frame as text or JSON.
//!
//! Nothing is measured or drawn here: events come from the machine, figures from `trace::live`,
//! rows from `report::top`. Threads are changed only on the user's request, and are restored.

mod keys;
mod once;
mod pinning;
mod screen;
mod session;

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::args::{Format, Global, TopArgs, TopSort};
use super::machine::open_machine;
use super::terminal::{Terminal, read_variable};
use super::{Exit, restore};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::{Pins, random_seed};
use pinwise_machine::{Listener, MachineError, Subject, TraceOrder, TraceResult, Tracer};
use pinwise_record::{TopRecord, TraceTier};
use pinwise_report::top::{Order, View};
use pinwise_sched::live::{Live, Watching};
use pinwise_sched::{Scope, Tid, Tier};
use pinwise_topology::Topology;

/// The longest time until a key has an effect: users notice longer delays.
const KEY_DELAY: Duration = Duration::from_millis(100);
/// Permitted intervals: shorter ones show mostly chance.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(3600);
/// Time to measure the tier's overhead before the first frame.
const CALIBRATION: Duration = Duration::from_millis(250);

pub(super) fn run_top(
    global: &Global,
    args: &TopArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let requested_tier = check_arguments(args, terminal)?;
    let is_local = global.machine.is_local();
    // The guardian starts before the machine is open, which makes this process adopt orphans.
    let pins = match is_local && !args.once {
        true => {
            restore::note_leftovers(terminal);
            Some(Pins::start().context("starting the guardian of pins")?)
        }
        false => None,
    };
    let seed = args.seed.unwrap_or_else(random_seed);
    let mut machine = open_machine(global, seed, CycleCounting::IfCheap)?;
    let (topology, _) = machine.topology()?;
    let tiers = list_tiers(machine.as_mut(), requested_tier);
    let watch = Watch {
        topology,
        pid: args.pid,
        is_local,
        label: machine.label(),
        interval: args.interval,
    };
    let view = View {
        order: to_order(args.sort),
        filter: args.filter.clone().unwrap_or_default(),
        interval: args.interval,
        ascii: !has_utf8(),
        ..View::default()
    };
    if args.once {
        once::print(machine.as_mut(), &tiers, &watch, &view, terminal)
    } else {
        session::show(machine.as_mut(), &tiers, watch, view, pins, terminal)
    }
}

/// Checks the arguments before anything is opened; returns the tier of `--tier`.
fn check_arguments(args: &TopArgs, terminal: &Terminal) -> anyhow::Result<Option<Tier>> {
    let tier = args.tier.as_deref().map(str::parse::<Tier>).transpose();
    let tier = tier.map_err(|error| anyhow!("--tier {error}"))?;
    if let Some(pid) = args.pid.filter(|pid| *pid <= 0) {
        bail!("--pid {pid}: a process id is 1 or more");
    }
    if !INTERVALS.contains(&args.interval) {
        bail!("--interval must lie between 50ms and 1h");
    }
    if args.once {
        return Ok(tier);
    }
    if terminal.format() == Format::Json {
        bail!("--format json prints one frame: add --once");
    }
    if !io::stdout().is_terminal() {
        bail!("standard output is not a terminal: --once prints one frame as text");
    }
    Ok(tier)
}

/// The machine and process that are watched.
struct Watch {
    topology: Topology,
    pid: Option<Tid>,
    is_local: bool,
    label: String,
    interval: Duration,
}

/// How events are collected.
#[derive(Debug, Clone, Copy, Default)]
struct WatchMode {
    /// `None` on a machine with only one way.
    tier: Option<Tier>,
    /// Overhead per context switch, ns.
    cost_ns: Option<f64>,
}

impl Watch {
    /// The order for a trace, without its tier.
    fn trace_order(&self, limit: Option<Duration>) -> TraceOrder<'static> {
        TraceOrder {
            subject: match self.pid {
                Some(pid) => Subject::Process(pid),
                None => Subject::Everything,
            },
            tier: None,
            limit,
            round: KEY_DELAY.min(self.interval),
            interrupts: false,
            leaves_daemons: true,
        }
    }

    fn new_live(&self, tier: Option<Tier>) -> Live {
        let full = Scope {
            has_switches: true,
            has_all_cpus: true,
            has_wakeups: true,
        };
        let watching = Watching {
            scope: tier.map_or(full, Tier::scope),
            is_everything: self.pid.is_none(),
            observer: i32::try_from(std::process::id())
                .ok()
                .filter(|_| self.is_local),
        };
        Live::new(&self.topology, watching)
    }

    /// The record of a frame, with the machine, process and overhead.
    fn record(&self, live: &mut Live, mode: WatchMode, now_ns: u64) -> TopRecord {
        let frame = live.frame(now_ns);
        let tier = mode.tier.filter(|_| self.is_local);
        let tier = tier.map_or(TraceTier::Simulated, Into::into);
        let mut record = TopRecord::new(&frame, &self.topology, tier);
        if !self.is_local {
            record.simulated = true;
            record.host.clone_from(&self.label);
        }
        record.cost_ns_per_switch = mode.cost_ns;
        record.pid = self.pid;
        record
    }
}

/// The tiers to try, the most detailed first.
fn list_tiers(machine: &mut dyn Tracer, requested: Option<Tier>) -> Vec<Option<Tier>> {
    if requested.is_some() {
        return vec![requested];
    }
    let tiers = machine.tiers();
    let mut open: Vec<Tier> = tiers
        .iter()
        .filter(|tier| tier.refusal.is_none())
        .map(|tier| tier.tier)
        .collect();
    open.sort_unstable();
    let best_first: Vec<Option<Tier>> = open.into_iter().rev().map(Some).collect();
    match best_first.is_empty() {
        true => vec![None],
        false => best_first,
    }
}

/// Watches with the first tier that works; `start` prepares the listener for it. A tier that looks
/// permitted may still be refused for this subject.
fn watch<L: Listener>(
    machine: &mut dyn Tracer,
    tiers: &[Option<Tier>],
    order: TraceOrder<'_>,
    listener: &mut L,
    mut start: impl FnMut(&mut L, WatchMode),
) -> anyhow::Result<TraceResult> {
    let mut refused = None;
    for &tier in tiers {
        let cost_ns = measure_overhead(machine, tier);
        start(listener, WatchMode { tier, cost_ns });
        match machine.trace(&TraceOrder { tier, ..order }, listener) {
            Ok(traced) => return Ok(traced),
            Err(error @ MachineError::Untraceable { .. }) => {
                refused.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    match refused {
        Some(error) => Err(error.into()),
        None => bail!("this machine cannot be traced"),
    }
}

/// Measures the overhead per context switch, ns, briefly and so not precisely.
fn measure_overhead(machine: &mut dyn Tracer, tier: Option<Tier>) -> Option<f64> {
    let costs = machine.tracing_cost(&[tier?], CALIBRATION).ok()?;
    let cost = costs.iter().find(|cost| Some(cost.tier) == tier)?;
    Some(cost.ns_per_switch).filter(|cost| cost.is_finite() && *cost >= 0.0)
}

const fn to_order(sort: TopSort) -> Order {
    match sort {
        TopSort::Cpu => Order::Cpu,
        TopSort::Migrations => Order::Migrations,
        TopSort::Wait => Order::Wait,
        TopSort::Place => Order::Place,
        TopSort::Name => Order::Name,
    }
}

/// Does the terminal understand more than ASCII, by the locale?
fn has_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(read_variable);
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
