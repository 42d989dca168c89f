//! Samples sorted by the places where they were seen: places, shares, threads.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_code::{Code, disassemble};
use pinwise_profile::{Event, Frame, Samples, Stack};
use pinwise_record::{SpinCaller, SpinMatch, SpinPlace, SpinShares, SpinThread};
use pinwise_spin::algorithm::Tunable;
use pinwise_spin::identify::{Candidate, Evidence, identify};
use pinwise_spin::loops::LoopKind;
use pinwise_spin::table::find_algorithm;

use super::asking::Asking;
use super::idle::Idle;
use super::progress;
use super::sites::{Site, Sites, Standing};

/// Places, threads and stacks that are kept.
const MAX_PLACES: usize = 40;
const MAX_THREADS: usize = 64;
const MAX_CALLERS: usize = 3;
const DEEPEST_CALLER: usize = 8;
/// Instructions of a loop that are kept.
const LONGEST_LISTING: usize = 24;
/// A loop waits if at least this part of its samples are right after a hint or a locked
/// instruction; 97 to 99 % are if PAUSE is long.
const MIN_WAITING_SHARE: f64 = 0.2;

fn add(shares: &mut SpinShares, kind: LoopKind, ns: u64) {
    *match kind {
        LoopKind::Polling => &mut shares.polling_s,
        LoopKind::BlindDelay => &mut shares.blind_delay_s,
        LoopKind::BareLoad => &mut shares.bare_load_s,
        LoopKind::Yielding => &mut shares.yielding_s,
        LoopKind::Asking => &mut shares.asking_s,
        LoopKind::Work => &mut shares.work_s,
    } += ns as f64 * 1e-9;
}

/// Stacks of one place.
#[derive(Debug, Default)]
struct Heat {
    count: u64,
    /// Samples right after a hint.
    hinting: u64,
    weight_ns: u64,
    /// CPU time by thread, ns.
    threads: BTreeMap<usize, u64>,
    /// CPU time by stack of callers, ns.
    callers: BTreeMap<Vec<usize>, u64>,
}

/// The place at which a stack was seen waiting.
struct Located {
    site: Site,
    /// Frames inside of the one that waits.
    depth: usize,
    standing: Standing,
}

/// Samples sorted by the places where they were seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    heat: BTreeMap<Site, Heat>,
    /// CPU time that was not spinning, ns.
    worked_ns: u64,
    /// Of that in progress loops of libraries, ns.
    progress_ns: BTreeMap<&'static str, u64>,
    /// CPU time by thread, ns.
    used_ns: BTreeMap<usize, u64>,
}

impl Tally {
    pub(super) fn from_samples(samples: &Samples, sites: &mut Sites) -> Self {
        let idle = Idle::from_samples(samples, sites);
        let located: Vec<_> = samples
            .stacks
            .iter()
            .map(|stack| {
                let (site, depth) = sites.locate(samples, stack)?;
                let standing = sites.standing(samples, stack.frames[0], &site);
                Some(Located {
                    site,
                    depth,
                    standing,
                })
            })
            .collect();
        let acquitted = find_passing_loops(samples, &located);
        let asking = Asking::from_samples(samples);
        let mut tally = Self::default();
        for (stack, located) in samples.stacks.iter().zip(located) {
            *tally.used_ns.entry(stack.thread).or_default() += stack.weight_ns;
            let waits = located.filter(|located| !acquitted.contains(&located.site));
            let found = waits.or_else(|| {
                let depth = asking.depth(samples, stack)?;
                let site = Site::waiting_function(samples, stack.frames[depth], LoopKind::Asking);
                Some(Located {
                    site,
                    depth,
                    standing: Standing::AtAtomic,
                })
            });
            // The hint of a loop that is only passed through says less than that its thread never
            // makes progress.
            let found = found.or_else(|| {
                let frame = idle.place(samples, stack)?;
                let kind = if asking.has(stack.thread) {
                    LoopKind::Asking
                } else {
                    LoopKind::BareLoad
                };
                Some(Located {
                    site: Site::waiting_function(samples, frame, kind),
                    depth: 0,
                    standing: Standing::AtAtomic,
                })
            });
            match found {
                Some(found) => tally.note(stack, found),
                None => tally.note_work(samples, stack),
            }
        }
        tally
    }

    fn note_work(&mut self, samples: &Samples, stack: &Stack) {
        self.worked_ns += stack.weight_ns;
        if let Some(library) = progress::library(samples, stack) {
            *self.progress_ns.entry(library).or_default() += stack.weight_ns;
        }
    }

    fn note(&mut self, stack: &Stack, located: Located) {
        let heat = self.heat.entry(located.site).or_default();
        heat.count += stack.count;
        if located.standing == Standing::AtHint {
            heat.hinting += stack.count;
        }
        heat.weight_ns += stack.weight_ns;
        *heat.threads.entry(stack.thread).or_default() += stack.weight_ns;
        let callers = stack.frames[located.depth + 1..]
            .iter()
            .take(DEEPEST_CALLER);
        *heat.callers.entry(callers.copied().collect()).or_default() += stack.weight_ns;
    }

    pub(super) fn shares(&self) -> SpinShares {
        let mut shares = SpinShares::default();
        add(&mut shares, LoopKind::Work, self.worked_ns);
        for (site, heat) in &self.heat {
            add(&mut shares, site.kind(), heat.weight_ns);
        }
        shares
    }

    /// CPU time in progress loops of libraries, s.
    pub(super) fn progress(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = self.progress_ns.iter();
        all.map(|(&library, &ns)| (library, ns as f64 * 1e-9))
    }

    pub(super) fn places(
        &self,
        samples: &Samples,
        cpu_s: f64,
        pause_ns: Option<f64>,
    ) -> Vec<SpinPlace> {
        let mut hot: Vec<(&Site, &Heat)> = self.heat.iter().collect();
        hot.sort_by_key(|(_, heat)| std::cmp::Reverse(heat.weight_ns));
        let hot = hot.into_iter().take(MAX_PLACES);
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
        threads.truncate(MAX_THREADS);
        threads
    }

    /// Time in loops that hint, divided by the time of a turn there; if that is not known, the time
    /// at hints divided by the cost of one on this machine. An estimate with three digits.
    pub(super) fn pauses_per_s(&self, samples: &Samples, pause_ns: Option<f64>) -> Option<f64> {
        if samples.event == Event::Proc || samples.wall_s <= 0.0 {
            return None;
        }
        let is_pausing = |site: &Site| site.hints() > 0 && !site.has_deadline();
        let mut hinting = self.heat.iter().filter(|(site, _)| is_pausing(site));
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

/// Loops with hints that do not wait, as they are hardly ever seen at the place where they would:
/// readers of the kernel's clock hint only while it is being set. A loop is judged as a whole: the
/// clock that it reads beside its hint may take as long.
fn find_passing_loops(samples: &Samples, located: &[Option<Located>]) -> BTreeSet<Site> {
    let mut seen: BTreeMap<&Site, (u64, u64)> = BTreeMap::new();
    for (stack, located) in samples.stacks.iter().zip(located) {
        let Some(located) = located else { continue };
        let (all, waiting) = seen.entry(&located.site).or_default();
        *all += stack.count;
        *waiting += u64::from(located.standing != Standing::Elsewhere) * stack.count;
    }
    seen.retain(|site, (all, waiting)| {
        site.hints() > 0 && (*waiting as f64) < MIN_WAITING_SHARE * *all as f64
    });
    seen.into_keys().cloned().collect()
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

/// A file's path; `None` for code generated at run time.
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
    let kept = named.into_iter().take(MAX_CALLERS);
    kept.map(|(functions, ns)| SpinCaller {
        functions,
        cpu_s: ns as f64 * 1e-9,
    })
    .collect()
}

/// A function, or the address of its code.
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
    let row = find_algorithm(candidate.algorithm).ok()?;
    Some(SpinMatch {
        algorithm: row.id.to_owned(),
        name: row.name.to_owned(),
        strength: candidate.strength.into(),
        why: candidate.reason,
        tunables: row.tunables.iter().map(Tunable::words).collect(),
    })
}
