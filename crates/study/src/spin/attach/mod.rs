//! Does a program spin, where, and by which algorithm?
//!
//! ```text
//! Sampler::sample ─► Samples ─► sites: the loop around each hot address
//!                                 └─► places, shares, threads ─► record
//! ```
//!
//! What a loop is follows from its instructions alone; names only help to say
//! who it is. No process is stopped or changed.

mod counters;
mod idle;
mod pace;
mod sites;

use std::collections::BTreeMap;
use std::time::Duration;

use pinwise_code::{Code, disassemble};
use pinwise_machine::{MachineError, Prober, SampleOrder, Sampled, Sampler, Subject};
use pinwise_profile::{Event, Frame, Samples, Stacks};
use pinwise_record::{
    Finding, HostRecord, SPIN_ATTACH_SCHEMA, Severity, SpinAttachRecord, SpinCaller, SpinMatch,
    SpinPlace, SpinShares, SpinThread, TraceSource,
};

use crate::host::host_record;
use crate::profile::{counted_s, missed, pause};
use crate::trace::{exit_of, last_words, left_running};
use idle::Idle;
use pinwise_spin::algorithm::Tunable;
use pinwise_spin::identify::{Candidate, Evidence, identify};
use pinwise_spin::loops::LoopKind;
use pinwise_spin::table::algorithm;
use sites::{Site, Sites};

/// Places, threads and stacks that are kept.
const MOST_PLACES: usize = 40;
const MOST_THREADS: usize = 64;
const MOST_CALLERS: usize = 3;
const DEEPEST_CALLER: usize = 8;
/// Instructions of a loop that are kept.
const LONGEST_LISTING: usize = 24;
/// A loop waits where at least this part of its samples stand right after a
/// hint or a locked instruction; 97 to 99 % do where PAUSE is long.
const LEAST_WAITING: f64 = 0.2;
/// From this share of CPU time on, spinning matters.
const NOTABLE: f64 = 0.05;

/// What is looked at, and how.
#[derive(Debug, Clone)]
pub struct AttachPlan<'a> {
    /// For the machine.
    pub subject: Subject<'a>,
    /// The same for the record.
    pub source: TraceSource,
    /// What makes samples; `None`: the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of CPU time.
    pub hz: u32,
    /// For how long at most.
    pub limit: Option<Duration>,
    /// Labels.
    pub tags: Vec<String>,
}

/// Samples a program and says where it spins; the caller names and dates the
/// record.
///
/// # Errors
/// [`MachineError`], see [`Sampler::sample`].
pub fn attach(
    plan: &AttachPlan<'_>,
    machine: &mut (impl Sampler + Prober + ?Sized),
) -> Result<SpinAttachRecord, MachineError> {
    let (topology, _) = machine.topology()?;
    let order = SampleOrder {
        subject: plan.subject,
        event: plan.event,
        hz: plan.hz,
        stacks: Stacks::FramePointers,
        limit: plan.limit,
    };
    let mut sampled = machine.sample(&order)?;
    // What was seen is complete by now: no failure here may lose it.
    let pause_ns = match topology.allowed.first().map(|cpu| pause(machine, cpu)) {
        Some(Ok(found)) => found.map(|found| found.ns),
        Some(Err(error)) => {
            let note = format!("The cost of a PAUSE was not measured: {error}.");
            sampled.notes.push(note);
            None
        }
        None => None,
    };
    let about = About {
        host: host_record(machine, &topology),
        source: plan.source.clone(),
        pause_ns,
        tags: plan.tags.clone(),
    };
    Ok(judge(&sampled, about))
}

/// What samples are of.
#[derive(Debug, Clone)]
pub struct About {
    /// Where they were made.
    pub host: HostRecord,
    /// The command or process.
    pub source: TraceSource,
    /// One PAUSE there, ns.
    pub pause_ns: Option<f64>,
    /// Labels.
    pub tags: Vec<String>,
}

/// From samples to a record without name and date.
#[must_use]
pub fn judge(sampled: &Sampled, about: About) -> SpinAttachRecord {
    let pause_ns = about.pause_ns;
    let samples = &sampled.samples;
    let is_seen = samples.event != Event::Proc;
    let by_thread = samples.threads.iter().filter_map(|thread| thread.cpu_s);
    let cpu_s = if is_seen {
        samples.total_s()
    } else {
        by_thread.sum()
    };
    let mut sites = Sites::default();
    let tally = Tally::of(samples, &mut sites);
    let shares = tally.shares();
    let spin_s = shares.spinning_s();
    let share = is_seen.then(|| if cpu_s > 0.0 { spin_s / cpu_s } else { 0.0 });
    let total = samples.total();
    let places = tally.places(samples, cpu_s, pause_ns);
    let notes = sampled.notes.iter().cloned();
    let run = sampled.run.as_ref();
    let left = run.and_then(|run| left_running(run, "no longer sampled"));
    let counted_cpu_s = run.and_then(|run| counted_s(run, samples.has_kernel));
    let missed = missed(cpu_s, counted_cpu_s.filter(|_| is_seen), samples.hz);
    let words = missed
        .into_iter()
        .chain(left)
        .chain(run.and_then(last_words));
    let mut record = SpinAttachRecord {
        schema: SPIN_ATTACH_SCHEMA.to_owned(),
        id: String::new(),
        started: String::new(),
        host: about.host,
        source: about.source,
        event: samples.event.into(),
        hz: samples.hz,
        wall_s: samples.wall_s,
        samples: total,
        cpu_s,
        counted_cpu_s,
        lost: samples.lost,
        own_cpu_s: sampled.own_cpu.as_secs_f64(),
        shares: is_seen.then_some(shares),
        spin_share: share,
        spin_share_error: share
            .filter(|_| total > 0)
            .map(|share| (share * (1.0 - share) / total as f64).sqrt()),
        pause_ns,
        pauses_per_s: tally.pauses_per_s(samples, &places, pause_ns),
        threads: tally.threads(samples),
        places,
        findings: Vec::new(),
        exit: sampled.run.as_ref().and_then(|run| exit_of(&run.end)),
        notes: notes.chain(words).collect(),
        tags: about.tags,
    };
    findings(&mut record);
    record
}

fn add(shares: &mut SpinShares, kind: LoopKind, ns: u64) {
    *match kind {
        LoopKind::Polling => &mut shares.polling_s,
        LoopKind::BlindDelay => &mut shares.blind_delay_s,
        LoopKind::BareLoad => &mut shares.bare_load_s,
        LoopKind::Yielding => &mut shares.yielding_s,
        LoopKind::Work => &mut shares.work_s,
    } += ns as f64 * 1e-9;
}

/// Stacks of one place.
#[derive(Debug, Default)]
struct Heat {
    count: u64,
    /// Samples right after what makes a loop wait.
    waiting: u64,
    weight_ns: u64,
    /// CPU time by thread, ns.
    threads: BTreeMap<usize, u64>,
    /// CPU time by stack of callers, ns.
    callers: BTreeMap<Vec<usize>, u64>,
}

/// Samples sorted by what they were seen in.
#[derive(Debug, Default)]
struct Tally {
    heat: BTreeMap<Site, Heat>,
    /// CPU time that was no spinning, ns.
    worked_ns: u64,
    /// CPU time by thread, ns.
    used_ns: BTreeMap<usize, u64>,
}

impl Tally {
    fn of(samples: &Samples, sites: &mut Sites) -> Self {
        let mut tally = Self::default();
        tally.sort(samples, sites);
        tally.acquit();
        tally
    }

    fn sort(&mut self, samples: &Samples, sites: &mut Sites) {
        let idle = Idle::of(samples, sites);
        for stack in &samples.stacks {
            *self.used_ns.entry(stack.thread).or_default() += stack.weight_ns;
            let found = sites.of(samples, stack).map(|(site, depth)| {
                let is_waiting = sites.is_waiting(samples, stack.frames[0], &site);
                (site, depth, is_waiting)
            });
            // A hint of a function that a thread only passes through says less
            // than that it never gets anywhere.
            let found = found.filter(|(site, _, is_waiting)| *is_waiting || site.hints() == 0);
            let found = found.or_else(|| {
                let site =
                    Site::in_function(samples, idle.place(samples, stack)?, LoopKind::BareLoad);
                Some((site, 0, true))
            });
            let found = found.or_else(|| {
                let (site, depth) = sites.of(samples, stack)?;
                Some((site, depth, false))
            });
            let Some((site, depth, is_waiting)) = found else {
                self.worked_ns += stack.weight_ns;
                continue;
            };
            let heat = self.heat.entry(site).or_default();
            heat.count += stack.count;
            heat.waiting += if is_waiting { stack.count } else { 0 };
            heat.weight_ns += stack.weight_ns;
            *heat.threads.entry(stack.thread).or_default() += stack.weight_ns;
            let callers = stack.frames[depth + 1..].iter().take(DEEPEST_CALLER);
            *heat.callers.entry(callers.copied().collect()).or_default() += stack.weight_ns;
        }
    }

    /// A loop that is hardly ever seen where it waits does not wait: readers of
    /// the kernel's clock hint only when it was just being set.
    fn acquit(&mut self) {
        let mut acquitted_ns = 0;
        self.heat.retain(|site, heat| {
            let waits = heat.waiting as f64 >= LEAST_WAITING * heat.count as f64;
            let keeps = waits || site.hints() == 0;
            if !keeps {
                acquitted_ns += heat.weight_ns;
            }
            keeps
        });
        self.worked_ns += acquitted_ns;
    }

    fn shares(&self) -> SpinShares {
        let mut shares = SpinShares::default();
        add(&mut shares, LoopKind::Work, self.worked_ns);
        for (site, heat) in &self.heat {
            add(&mut shares, site.kind(), heat.weight_ns);
        }
        shares
    }

    fn places(&self, samples: &Samples, cpu_s: f64, pause_ns: Option<f64>) -> Vec<SpinPlace> {
        let mut hot: Vec<(&Site, &Heat)> = self.heat.iter().collect();
        hot.sort_by_key(|(_, heat)| std::cmp::Reverse(heat.weight_ns));
        let hot = hot.into_iter().take(MOST_PLACES);
        hot.map(|(site, heat)| place(samples, site, heat, cpu_s, pause_ns))
            .collect()
    }

    fn threads(&self, samples: &Samples) -> Vec<SpinThread> {
        let seconds = |times: &BTreeMap<usize, u64>, index: usize| {
            times.get(&index).copied().unwrap_or(0) as f64 * 1e-9
        };
        let all = samples.threads.iter().enumerate();
        let is_seen = samples.event != Event::Proc;
        let mut spun_ns: BTreeMap<usize, u64> = BTreeMap::new();
        for (&thread, ns) in self.heat.values().flat_map(|heat| &heat.threads) {
            *spun_ns.entry(thread).or_default() += ns;
        }
        let mut threads: Vec<SpinThread> = all
            .map(|(index, thread)| SpinThread {
                pid: thread.pid,
                tid: thread.tid,
                name: thread.name.clone(),
                cpu_s: if is_seen {
                    seconds(&self.used_ns, index)
                } else {
                    thread.cpu_s.unwrap_or(0.0)
                },
                spin_s: is_seen.then(|| seconds(&spun_ns, index)),
            })
            .collect();
        threads.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        threads.truncate(MOST_THREADS);
        threads
    }

    /// Time in loops that hint, over what a hint took there.
    fn pauses_per_s(
        &self,
        samples: &Samples,
        places: &[SpinPlace],
        pause_ns: Option<f64>,
    ) -> Option<f64> {
        if samples.event == Event::Proc || samples.wall_s <= 0.0 {
            return None;
        }
        let mut hinting = places.iter().filter(|place| place.hints > 0);
        // The sum of no floats would be −0.
        let total = hinting.try_fold(0.0, |total, place| {
            let ns = place.hint_ns_seen.or(pause_ns)?;
            Some(total + place.cpu_s * 1e9 / ns)
        });
        total.map(|total| total / samples.wall_s)
    }
}

fn place(
    samples: &Samples,
    site: &Site,
    heat: &Heat,
    cpu_s: f64,
    pause_ns: Option<f64>,
) -> SpinPlace {
    let seconds = heat.weight_ns as f64 * 1e-9;
    let frame = &samples.frames[site.frame];
    let pace = site
        .spin_loop
        .as_ref()
        .and_then(|found| pace::of(samples, frame.pid, found, pause_ns));
    let found = site.spin_loop.as_ref();
    SpinPlace {
        kind: site.kind().into(),
        function: frame.symbol.as_ref().map(|symbol| symbol.name.clone()),
        module: module_of(samples, frame),
        address: site.address(frame),
        cpu_s: seconds,
        share: if cpu_s > 0.0 { seconds / cpu_s } else { 0.0 },
        samples: heat.count,
        threads: heat.threads.len(),
        hints: found.map_or(0, |found| found.hints),
        gap_hints: found.and_then(|found| found.gap),
        hint_ns_seen: pace.map(|pace| pace.hint_ns),
        hint_ns_pairs: pace.map_or(0, |pace| pace.pairs),
        constants: found.map_or_else(Vec::new, |found| found.constants.clone()),
        callers: callers(samples, heat),
        algorithms: matches(samples, site, heat),
        code: site
            .code(samples)
            .map_or_else(Vec::new, |code| listing(code, site)),
    }
}

/// A file's path; `None` for code made at run time.
fn module_of(samples: &Samples, frame: &Frame) -> Option<String> {
    let path = &samples.modules[frame.module?].path;
    (!path.starts_with("//") && !path.is_empty()).then(|| path.clone())
}

fn listing(code: &Code, site: &Site) -> Vec<String> {
    let Some(found) = &site.spin_loop else {
        return Vec::new();
    };
    disassemble(code, found.start, found.end)
        .into_iter()
        .take(LONGEST_LISTING)
        .map(|instruction| instruction.text)
        .collect()
}

fn callers(samples: &Samples, heat: &Heat) -> Vec<SpinCaller> {
    let mut named: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, ns) in &heat.callers {
        let functions = frames.iter().map(|&frame| name_of(samples, frame));
        *named.entry(functions.collect()).or_default() += ns;
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let kept = named.into_iter().take(MOST_CALLERS);
    kept.map(|(functions, ns)| SpinCaller {
        functions,
        cpu_s: ns as f64 * 1e-9,
    })
    .collect()
}

/// A function, or where its code lies.
fn name_of(samples: &Samples, frame: usize) -> String {
    let frame = &samples.frames[frame];
    if let Some(symbol) = &frame.symbol {
        return symbol.name.clone();
    }
    let path = frame.module.map(|module| &samples.modules[module].path);
    let file = path.and_then(|path| path.rsplit('/').next());
    match (file, frame.file_address) {
        (Some(file), Some(address)) => format!("{file}+{address:#x}"),
        (Some(file), None) if !file.is_empty() => format!("{:#x} ({file})", frame.address),
        _ => format!("{:#x}", frame.address),
    }
}

/// Known algorithms that a place may be, by its loop and the stack that it was
/// seen under most.
fn matches(samples: &Samples, site: &Site, heat: &Heat) -> Vec<SpinMatch> {
    let frame = &samples.frames[site.frame];
    let hottest = heat.callers.iter().max_by_key(|(_, ns)| **ns);
    let callers = hottest.into_iter().flat_map(|(frames, _)| frames);
    let named = callers.filter_map(|&caller| samples.frames[caller].symbol.as_ref());
    let symbols: Vec<&str> = frame
        .symbol
        .iter()
        .chain(named)
        .map(|symbol| symbol.name.as_str())
        .collect();
    let module = module_of(samples, frame);
    let modules: Vec<&str> = samples.modules.iter().map(|m| m.path.as_str()).collect();
    let candidates = identify(&Evidence {
        found: site.spin_loop.as_ref(),
        symbols: &symbols,
        module: module.as_deref(),
        modules: &modules,
    });
    candidates.into_iter().filter_map(match_of).collect()
}

fn match_of(candidate: Candidate) -> Option<SpinMatch> {
    let row = algorithm(candidate.algorithm).ok()?;
    Some(SpinMatch {
        algorithm: row.id.to_owned(),
        name: row.name.to_owned(),
        strength: candidate.strength.into(),
        why: candidate.reason,
        tunables: row.tunables.iter().map(Tunable::words).collect(),
    })
}

fn findings(record: &mut SpinAttachRecord) {
    let Some(share) = record.spin_share else {
        record.findings.push(Finding::new(
            "unseen",
            Severity::Warning,
            "Only CPU time per thread is available here: whether it is spinning is unknown.",
            "Permit perf events as the notes say, or run as root.",
        ));
        return;
    };
    if share < NOTABLE {
        return;
    }
    let blind = record.shares.map_or(0.0, |shares| shares.blind_delay_s);
    if blind > NOTABLE * record.cpu_s {
        record.findings.push(Finding::new(
            "blind_delay",
            Severity::Problem,
            format!(
                "{blind:.2} of {:.2} s of CPU time pass in delays that do not look at what they \
                 wait for: whoever waits there is late by up to the length of the delay.",
                record.cpu_s
            ),
            "See `pinwise spin predict` for how long that is on this and other chips.",
        ));
    }
    let tunable = record
        .places
        .iter()
        .flat_map(|place| &place.algorithms)
        .find_map(|found| {
            found
                .tunables
                .first()
                .map(|t| (found.name.clone(), t.clone()))
        });
    if let Some((name, tunable)) = tunable {
        record.findings.push(Finding::new(
            "tunable",
            Severity::Note,
            format!("The spinning looks like {name}, which {tunable} changes."),
            "`pinwise spin advise` suggests a value, and how to verify it.",
        ));
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
