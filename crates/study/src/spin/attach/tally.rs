//! Sums up samples by the place that they spin in, by thread, and by kind of spinning.

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
use super::sites::{LoopPosition, Site, Sites};

/// The record keeps this many places, those with the most CPU time.
const MAX_PLACES: usize = 40;
/// The record keeps this many threads, those with the most CPU time.
const MAX_THREADS: usize = 64;
/// The record keeps this many stacks of callers per place.
const MAX_CALLERS: usize = 3;
/// Callers in such a stack.
const MAX_CALLER_DEPTH: usize = 8;
/// The record keeps this many instructions of a loop.
const MAX_LISTED_INSTRUCTIONS: usize = 24;
/// A loop waits if at least this share of its samples is at a hint or a locked instruction, or
/// right behind one. If PAUSE takes long, it is 97 to 99 %.
const MIN_WAITING_SHARE: f64 = 0.2;

fn add_time(shares: &mut SpinShares, kind: LoopKind, ns: u64) {
    *match kind {
        LoopKind::Polling => &mut shares.polling_s,
        LoopKind::BlindDelay => &mut shares.blind_delay_s,
        LoopKind::BareLoad => &mut shares.bare_load_s,
        LoopKind::Yielding => &mut shares.yielding_s,
        LoopKind::Asking => &mut shares.asking_s,
        LoopKind::Work => &mut shares.work_s,
    } += ns as f64 * 1e-9;
}

/// The samples of one place.
#[derive(Debug, Default)]
struct PlaceSamples {
    count: u64,
    /// Samples at a hint.
    at_hint: u64,
    /// CPU time, ns.
    weight_ns: u64,
    /// CPU time by thread, ns.
    threads: BTreeMap<usize, u64>,
    /// CPU time by stack of callers, ns.
    callers: BTreeMap<Vec<usize>, u64>,
}

/// The place in which a stack waits.
struct Located {
    site: Site,
    /// Number of frames that the waiting function called, directly or not.
    depth: usize,
    position: LoopPosition,
}

/// Sums of samples.
#[derive(Debug, Default)]
pub(super) struct Tally {
    places: BTreeMap<Site, PlaceSamples>,
    /// CPU time that was not spinning, ns.
    work_ns: u64,
    /// The part of it in progress loops, by library, ns.
    progress_ns: BTreeMap<&'static str, u64>,
    /// All CPU time by thread, ns.
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
                let position = sites.find_position(samples, stack.frames[0], &site);
                Some(Located {
                    site,
                    depth,
                    position,
                })
            })
            .collect();
        let passing_loops = find_passing_loops(samples, &located);
        let asking = Asking::from_samples(samples);
        let mut tally = Self::default();
        for (stack, located) in samples.stacks.iter().zip(located) {
            *tally.used_ns.entry(stack.thread).or_default() += stack.weight_ns;
            let waiting = located.filter(|located| !passing_loops.contains(&located.site));
            let waiting = waiting.or_else(|| {
                let depth = asking.find_asking_depth(samples, stack)?;
                let site = Site::from_function(samples, stack.frames[depth], LoopKind::Asking);
                Some(Located {
                    site,
                    depth,
                    position: LoopPosition::AtAtomic,
                })
            });
            // A thread that never makes progress waits even in a loop that it only passes through.
            let waiting = waiting.or_else(|| {
                let frame = idle.find_waiting_frame(samples, stack)?;
                let kind = if asking.is_asking(stack.thread) {
                    LoopKind::Asking
                } else {
                    LoopKind::BareLoad
                };
                Some(Located {
                    site: Site::from_function(samples, frame, kind),
                    depth: 0,
                    position: LoopPosition::AtAtomic,
                })
            });
            match waiting {
                Some(located) => tally.add_waiting(stack, located),
                None => tally.add_work(samples, stack),
            }
        }
        tally
    }

    fn add_work(&mut self, samples: &Samples, stack: &Stack) {
        self.work_ns += stack.weight_ns;
        if let Some(library) = progress::find_library(samples, stack) {
            *self.progress_ns.entry(library).or_default() += stack.weight_ns;
        }
    }

    fn add_waiting(&mut self, stack: &Stack, located: Located) {
        let place = self.places.entry(located.site).or_default();
        place.count += stack.count;
        if located.position == LoopPosition::AtHint {
            place.at_hint += stack.count;
        }
        place.weight_ns += stack.weight_ns;
        *place.threads.entry(stack.thread).or_default() += stack.weight_ns;
        let callers = stack.frames[located.depth + 1..]
            .iter()
            .take(MAX_CALLER_DEPTH);
        *place.callers.entry(callers.copied().collect()).or_default() += stack.weight_ns;
    }

    pub(super) fn shares(&self) -> SpinShares {
        let mut shares = SpinShares::default();
        add_time(&mut shares, LoopKind::Work, self.work_ns);
        for (site, place) in &self.places {
            add_time(&mut shares, site.kind(), place.weight_ns);
        }
        shares
    }

    /// Libraries in whose progress loops the program was seen, each with the CPU time there, s.
    pub(super) fn progress_loops(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = self.progress_ns.iter();
        all.map(|(&library, &ns)| (library, ns as f64 * 1e-9))
    }

    /// The places with the most CPU time, that with the most first.
    pub(super) fn list_places(
        &self,
        samples: &Samples,
        cpu_s: f64,
        pause_ns: Option<f64>,
    ) -> Vec<SpinPlace> {
        let mut places: Vec<(&Site, &PlaceSamples)> = self.places.iter().collect();
        places.sort_by_key(|(_, place)| std::cmp::Reverse(place.weight_ns));
        let kept = places.into_iter().take(MAX_PLACES);
        kept.map(|(site, place)| describe_place(samples, site, place, cpu_s, pause_ns))
            .collect()
    }

    /// The threads with the most CPU time, that with the most first.
    pub(super) fn list_threads(&self, samples: &Samples) -> Vec<SpinThread> {
        let seconds = |times: &BTreeMap<usize, u64>, index: usize| {
            times.get(&index).copied().unwrap_or(0) as f64 * 1e-9
        };
        let all = samples.threads.iter().enumerate();
        let is_seen = samples.event != Event::Proc;
        let mut spun_ns: BTreeMap<usize, u64> = BTreeMap::new();
        for (&thread, ns) in self.places.values().flat_map(|place| &place.threads) {
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

    /// Estimates PAUSEs per second, to three digits: the time in loops with hints, divided by the
    /// time per hint there; if that is unknown, the time at hints divided by the cost of a PAUSE on
    /// this machine.
    pub(super) fn pauses_per_s(&self, samples: &Samples, pause_ns: Option<f64>) -> Option<f64> {
        if samples.event == Event::Proc || samples.wall_s <= 0.0 {
            return None;
        }
        let is_pausing = |site: &Site| site.hints() > 0 && !site.has_deadline();
        let mut pausing = self.places.iter().filter(|(site, _)| is_pausing(site));
        // `sum()` of no floats would be −0.
        let total = pausing.try_fold(0.0, |total, (site, place)| {
            let hint_share = place.at_hint as f64 / place.count.max(1) as f64;
            let hints = match site.measure_pace(samples, pause_ns) {
                Some(pace) => place.weight_ns as f64 / pace.hint_ns,
                None => place.weight_ns as f64 * hint_share / pause_ns?,
            };
            Some(total + hints)
        });
        total.map(|total| round_to_three_digits(total / samples.wall_s))
    }
}

/// Loops with hints that do not wait, as they are hardly ever seen at a hint or a locked
/// instruction: a reader of the kernel's clock, for example, hints only while the clock is being
/// set. Each loop is judged as a whole, as a waiting one may also spend much of its time elsewhere,
/// for example in reading the clock.
fn find_passing_loops(samples: &Samples, located: &[Option<Located>]) -> BTreeSet<Site> {
    let mut seen: BTreeMap<&Site, (u64, u64)> = BTreeMap::new();
    for (stack, located) in samples.stacks.iter().zip(located) {
        let Some(located) = located else { continue };
        let (all, waiting) = seen.entry(&located.site).or_default();
        *all += stack.count;
        *waiting += u64::from(located.position != LoopPosition::Elsewhere) * stack.count;
    }
    seen.retain(|site, (all, waiting)| {
        site.hints() > 0 && (*waiting as f64) < MIN_WAITING_SHARE * *all as f64
    });
    seen.into_keys().cloned().collect()
}

/// Rounds to three digits, but not below whole numbers.
fn round_to_three_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 2.0).max(1.0);
    (value / unit).round() * unit
}

fn describe_place(
    samples: &Samples,
    site: &Site,
    place: &PlaceSamples,
    cpu_s: f64,
    pause_ns: Option<f64>,
) -> SpinPlace {
    let seconds = place.weight_ns as f64 * 1e-9;
    let frame = &samples.frames[site.frame];
    let pace = site.measure_pace(samples, pause_ns);
    let found = site.spin_loop.as_ref();
    SpinPlace {
        kind: site.kind().into(),
        function: frame.symbol.as_ref().map(|symbol| symbol.name.clone()),
        module: module_of(samples, frame),
        address: site.address(frame),
        cpu_s: seconds,
        share: if cpu_s > 0.0 { seconds / cpu_s } else { 0.0 },
        samples: place.count,
        threads: place.threads.len(),
        hints: found.map_or(0, |found| found.hints),
        gap_hints: found.and_then(|found| found.gap),
        hint_ns_seen: pace.map(|pace| pace.hint_ns),
        hint_ns_pairs: pace.map_or(0, |pace| pace.pairs),
        constants: found.map_or_else(Vec::new, |found| found.constants.clone()),
        callers: list_callers(samples, place),
        algorithms: identify_algorithms(samples, site, place),
        code: site
            .code(samples)
            .map_or_else(Vec::new, |code| list_instructions(code, site)),
    }
}

/// The path of the file with the code; `None` for code generated at run time.
fn module_of(samples: &Samples, frame: &Frame) -> Option<String> {
    let path = &samples.modules[frame.module?].path;
    (!path.starts_with("//") && !path.is_empty()).then(|| path.clone())
}

fn list_instructions(code: &Code, site: &Site) -> Vec<String> {
    let Some(found) = &site.spin_loop else {
        return Vec::new();
    };
    disassemble(code, found.start, found.end)
        .into_iter()
        .take(MAX_LISTED_INSTRUCTIONS)
        .map(|instruction| instruction.text)
        .collect()
}

/// The stacks of callers with the most CPU time, that with the most first.
fn list_callers(samples: &Samples, place: &PlaceSamples) -> Vec<SpinCaller> {
    let mut named: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, ns) in &place.callers {
        let functions = frames
            .iter()
            .map(|&frame| describe_function(samples, frame));
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

/// The name of a frame's function; without one its file and address.
fn describe_function(samples: &Samples, frame: usize) -> String {
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

/// Known algorithms that a place may belong to, according to its loop and its most frequent stack
/// of callers.
fn identify_algorithms(samples: &Samples, site: &Site, place: &PlaceSamples) -> Vec<SpinMatch> {
    let frame = &samples.frames[site.frame];
    let hottest = place.callers.iter().max_by_key(|(_, ns)| **ns);
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
    candidates.into_iter().filter_map(describe_match).collect()
}

fn describe_match(candidate: Candidate) -> Option<SpinMatch> {
    let row = find_algorithm(candidate.algorithm).ok()?;
    Some(SpinMatch {
        algorithm: row.id.to_owned(),
        name: row.name.to_owned(),
        strength: candidate.strength.into(),
        why: candidate.reason,
        tunables: row.tunables.iter().map(Tunable::words).collect(),
    })
}
