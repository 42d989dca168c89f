//! Samples sorted by what they were seen in: places, shares, threads.

use std::collections::BTreeMap;

use pinwise_code::{Code, disassemble};
use pinwise_profile::{Event, Frame, Samples};
use pinwise_record::{SpinCaller, SpinMatch, SpinPlace, SpinShares, SpinThread};
use pinwise_spin::algorithm::Tunable;
use pinwise_spin::identify::{Candidate, Evidence, identify};
use pinwise_spin::loops::LoopKind;
use pinwise_spin::table::algorithm;

use super::idle::Idle;
use super::sites::{Site, Sites, Standing};

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
    /// Samples right after what makes a loop wait, and those of them after a hint.
    waiting: u64,
    hinting: u64,
    weight_ns: u64,
    /// CPU time by thread, ns.
    threads: BTreeMap<usize, u64>,
    /// CPU time by stack of callers, ns.
    callers: BTreeMap<Vec<usize>, u64>,
}

/// Samples sorted by what they were seen in.
#[derive(Debug, Default)]
pub(super) struct Tally {
    heat: BTreeMap<Site, Heat>,
    /// CPU time that was no spinning, ns.
    worked_ns: u64,
    /// CPU time by thread, ns.
    used_ns: BTreeMap<usize, u64>,
}

impl Tally {
    pub(super) fn of(samples: &Samples, sites: &mut Sites) -> Self {
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
                let standing = sites.standing(samples, stack.frames[0], &site);
                (site, depth, standing)
            });
            // A hint of a function that a thread only passes through says less
            // than that it never gets anywhere.
            let is_sure = |(site, _, standing): &(Site, usize, Standing)| {
                *standing != Standing::Elsewhere || site.hints() == 0
            };
            let found = found.filter(is_sure);
            let found = found.or_else(|| {
                let site =
                    Site::in_function(samples, idle.place(samples, stack)?, LoopKind::BareLoad);
                Some((site, 0, Standing::AtAtomic))
            });
            let found = found.or_else(|| {
                let (site, depth) = sites.of(samples, stack)?;
                Some((site, depth, Standing::Elsewhere))
            });
            let Some((site, depth, standing)) = found else {
                self.worked_ns += stack.weight_ns;
                continue;
            };
            let heat = self.heat.entry(site).or_default();
            heat.count += stack.count;
            let counted = |is_so| if is_so { stack.count } else { 0 };
            heat.waiting += counted(standing != Standing::Elsewhere);
            heat.hinting += counted(standing == Standing::AtHint);
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

    pub(super) fn shares(&self) -> SpinShares {
        let mut shares = SpinShares::default();
        add(&mut shares, LoopKind::Work, self.worked_ns);
        for (site, heat) in &self.heat {
            add(&mut shares, site.kind(), heat.weight_ns);
        }
        shares
    }

    pub(super) fn places(
        &self,
        samples: &Samples,
        cpu_s: f64,
        pause_ns: Option<f64>,
    ) -> Vec<SpinPlace> {
        let mut hot: Vec<(&Site, &Heat)> = self.heat.iter().collect();
        hot.sort_by_key(|(_, heat)| std::cmp::Reverse(heat.weight_ns));
        let hot = hot.into_iter().take(MOST_PLACES);
        hot.map(|(site, heat)| place(samples, site, heat, cpu_s, pause_ns))
            .collect()
    }

    pub(super) fn threads(&self, samples: &Samples) -> Vec<SpinThread> {
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

    /// Time in loops that hint, over what a turn took there; where that is not known, the
    /// time at hints over what one takes on this machine. An estimate of three digits.
    pub(super) fn pauses_per_s(&self, samples: &Samples, pause_ns: Option<f64>) -> Option<f64> {
        if samples.event == Event::Proc || samples.wall_s <= 0.0 {
            return None;
        }
        let mut hinting = self.heat.iter().filter(|(site, _)| site.hints() > 0);
        // The sum of no floats would be −0.
        let total = hinting.try_fold(0.0, |total, (site, heat)| {
            let at_hints = heat.hinting as f64 / heat.count.max(1) as f64;
            let hints = match site.pace(samples, pause_ns) {
                Some(pace) => heat.weight_ns as f64 / pace.hint_ns,
                None => heat.weight_ns as f64 * at_hints / pause_ns?,
            };
            Some(total + hints)
        });
        total.map(|total| three_digits(total / samples.wall_s))
    }
}

fn three_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 2.0).max(1.0);
    (value / unit).round() * unit
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
    let pace = site.pace(samples, pause_ns);
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
