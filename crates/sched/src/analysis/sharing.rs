//! Measures SMT sharing: on which cores several CPUs are busy, which cores are idle, and how much
//! of the sharing the idle cores could have avoided.
//!
//! A core with b busy CPUs has b − 1 threads that could run elsewhere. Each idle core takes one of
//! them; once all have moved, the last one shares no more either. First the idle cores within the
//! mask of a thread on the shared core are used: the cause is the scheduler, or another program if
//! our thread shares with one of its threads. Then the idle cores outside the mask are used: the
//! cause is the mask.

use super::super::cpu_map::CpuMap;
use super::super::summary::{AvoidableTotals, SharingSpans};
use super::spared::SharingSpanBuilder;
use pinwise_topology::CpuSet;

/// The use of a CPU in its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Unknown.
    Unknown,
    /// The CPU is idle.
    Idle,
    /// It runs a thread that is not followed.
    Foreign,
    /// It runs a followed thread with this mask.
    Own {
        /// Index of the mask.
        mask: usize,
    },
}

/// Shared CPU time, ns, and its avoidable parts caused by the scheduler, the mask and other
/// programs.
type Sums = [u64; 4];

#[derive(Debug, Clone, Default)]
struct Core {
    cpus: Vec<usize>,
    /// Numbers of busy and idle CPUs, and of those that run a followed thread.
    busy: u32,
    idle: u32,
    own: u32,
    /// The time before this is counted.
    since_ns: u64,
    busy_ns: u64,
    shared_ns: u64,
}

#[derive(Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    /// By CPU.
    core_of: Vec<Option<usize>>,
    uses: Vec<Use>,
    /// The cores that each mask contains.
    masks: Vec<CpuSet>,
    /// Idle cores.
    idle: CpuSet,
    /// Cores with several busy CPUs, at least one with a followed thread.
    shared: Vec<usize>,
    /// Threads that now add to each sum.
    rates: Sums,
    /// Up to `since_ns`.
    sums: Sums,
    since_ns: u64,
    /// Spans of time that do not count, disjoint and in time order, and their sums.
    uncounted: Vec<UncountedSpan>,
    deducted: Sums,
    /// Idle cores that are not used yet, in [`Self::attribute_sharing`].
    unused_cores: Vec<u64>,
    spans: SharingSpanBuilder,
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SumsAt {
    time_ns: u64,
    sums: Sums,
}

impl SumsAt {
    /// Before the trace.
    pub(super) const ZERO: Self = Self {
        time_ns: 0,
        sums: [0; 4],
    };
}

/// A span of time that does not count.
#[derive(Debug, Clone, Copy)]
struct UncountedSpan {
    from: SumsAt,
    to: SumsAt,
}
/// Limits the kept spans: a new one is joined only with these.
const MAX_UNCOUNTED: usize = 1_024;

impl Cores {
    pub(super) fn new(cpu_map: &CpuMap) -> Self {
        let cores: Vec<Core> = cpu_map
            .cores()
            .iter()
            .map(|cpus| Core {
                cpus: cpus.iter().collect(),
                ..Core::default()
            })
            .collect();
        let length = cpu_map.online().last().map_or(0, |last| last + 1);
        let core_of = (0..length).map(|cpu| cpu_map.core(u32::try_from(cpu).unwrap_or(u32::MAX)));
        Self {
            core_of: core_of.collect(),
            uses: vec![Use::Unknown; length],
            spans: SharingSpanBuilder::new(cores.len()),
            cores,
            masks: Vec::new(),
            idle: CpuSet::new(),
            shared: Vec::new(),
            rates: [0; 4],
            sums: [0; 4],
            since_ns: 0,
            uncounted: Vec::new(),
            deducted: [0; 4],
            unused_cores: Vec::new(),
        }
    }

    /// Adds a mask; masks are numbered in order.
    pub(super) fn add_mask(&mut self, cpus: &CpuSet) {
        let cores = cpus.iter().filter_map(|cpu| *self.core_of.get(cpu)?);
        self.masks.push(cores.collect());
    }

    /// Clears all sums, but keeps the state of CPUs.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.sums = [0; 4];
        self.uncounted.clear();
        self.deducted = [0; 4];
        self.since_ns = time_ns;
        self.spans.restart(time_ns);
        for core in &mut self.cores {
            core.since_ns = time_ns;
            core.busy_ns = 0;
            core.shared_ns = 0;
        }
    }

    /// Counts the time of a CPU's core up to now, before a change. Returns the core's CPUs, and for
    /// how long since the last call several of them were busy, ns.
    pub(super) fn count_core_time(&mut self, cpu: u32, time_ns: u64) -> Option<(&[usize], u64)> {
        let at = (*self.core_of.get(cpu as usize)?)?;
        let core = &mut self.cores[at];
        let passed = time_ns.saturating_sub(core.since_ns);
        core.since_ns = time_ns;
        if core.busy > 0 {
            core.busy_ns += passed;
        }
        let mut shared_ns = 0;
        if core.busy > 1 {
            core.shared_ns += passed;
            shared_ns = passed;
        }
        Some((&core.cpus, shared_ns))
    }

    /// Changes the use of a CPU. The time of its core must have been counted up to now.
    pub(super) fn set_use(&mut self, cpu: u32, time_ns: u64, to: Use) {
        let Some(Some(at)) = self.core_of.get(cpu as usize).copied() else {
            return;
        };
        let from = std::mem::replace(&mut self.uses[cpu as usize], to);
        if from == to {
            return;
        }
        let core = &mut self.cores[at];
        let was_shared = core.busy > 1 && core.own > 0;
        let was_idle = is_idle(core);
        core.count_use(from, false);
        core.count_use(to, true);
        let is_shared = core.busy > 1 && core.own > 0;
        let is_now_idle = is_idle(core);
        if is_now_idle != was_idle {
            if is_now_idle {
                self.idle.insert(at);
            } else {
                self.idle.remove(at);
            }
        }
        if was_shared && !is_shared {
            self.shared.retain(|&core| core != at);
        } else if !was_shared && is_shared {
            self.shared.push(at);
        }
        let changes_sharing =
            was_shared || is_shared || (is_now_idle != was_idle && !self.shared.is_empty());
        if changes_sharing {
            self.advance(time_ns);
            self.rates = self.attribute_sharing(time_ns);
        }
    }

    /// Adds the time up to this moment to the sums.
    pub(super) fn advance(&mut self, time_ns: u64) {
        let passed = time_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(time_ns);
        for (sum, rate) in self.sums.iter_mut().zip(self.rates) {
            *sum += rate * passed;
        }
    }

    pub(super) fn sums_at(&mut self, time_ns: u64) -> SumsAt {
        self.advance(time_ns);
        SumsAt {
            time_ns: self.since_ns,
            sums: self.sums,
        }
    }

    /// Deducts what was added from one moment to another; where spans overlap, only once.
    pub(super) fn deduct_since(&mut self, mut from: SumsAt, time_ns: u64) {
        let to = self.sums_at(time_ns);
        self.spans.remove(from.time_ns, to.time_ns);
        while let Some(last) = self.uncounted.pop_if(|last| last.to.time_ns > from.time_ns) {
            if last.from.time_ns < from.time_ns {
                from = last.from;
            }
            self.change_deducted(last, false);
        }
        if self.uncounted.len() == MAX_UNCOUNTED {
            self.uncounted.remove(0);
        }
        let span = UncountedSpan { from, to };
        self.change_deducted(span, true);
        self.uncounted.push(span);
    }

    /// Adds the sums of a span to those that are deducted (`adds`), or removes them.
    fn change_deducted(&mut self, span: UncountedSpan, adds: bool) {
        for at in 0..self.deducted.len() {
            let amount = span.to.sums[at] - span.from.sums[at];
            if adds {
                self.deducted[at] += amount;
            } else {
                self.deducted[at] -= amount;
            }
        }
    }

    /// Shared CPU time of followed threads, ns, and its avoidable part.
    pub(super) fn totals(&self) -> (u64, AvoidableTotals) {
        let total = |at: usize| self.sums[at] - self.deducted[at];
        let avoidable = AvoidableTotals {
            scheduler: total(1),
            mask: total(2),
            others: total(3),
        };
        (total(0), avoidable)
    }

    /// When and on which cores sharing was avoidable.
    pub(super) fn finish(self, time_ns: u64) -> SharingSpans {
        self.spans.finish(time_ns)
    }

    /// Time of a core with at least one busy CPU, and with several, ns, as far as it was counted.
    pub(super) fn busy_time_of_core(&self, core: usize) -> (u64, u64) {
        (self.cores[core].busy_ns, self.cores[core].shared_ns)
    }

    /// Counts the followed threads that share a core, and by cause those for which idle cores could
    /// have avoided it.
    fn attribute_sharing(&mut self, time_ns: u64) -> Sums {
        let mut rates = [0; 4];
        self.spans.begin_round();
        if self.shared.is_empty() {
            self.spans.end_round(time_ns);
            return rates;
        }
        self.unused_cores.clear();
        self.unused_cores.extend_from_slice(self.idle.words());
        let mut allowed_cores: Vec<(usize, u32)> = Vec::with_capacity(self.shared.len());
        for &at in &self.shared {
            let core = &self.cores[at];
            rates[0] += u64::from(core.own);
            let mut taken = 0;
            while taken + 1 < core.busy {
                let masks = own_masks(core, &self.uses);
                if !take_allowed_core(&mut self.unused_cores, masks.map(|mask| &self.masks[mask])) {
                    break;
                }
                taken += 1;
            }
            allowed_cores.push((at, taken));
        }
        for (at, allowed) in allowed_cores {
            let core = &self.cores[at];
            let mut taken = allowed;
            while taken + 1 < core.busy && take_any_core(&mut self.unused_cores) {
                taken += 1;
            }
            // In the order of `SHARING_CAUSES`: scheduler, mask, others.
            let mut avoidable = [0; 3];
            let first_cause = if core.own == core.busy { 0 } else { 2 };
            avoidable[first_cause] = count_relieved(core, 0, allowed);
            avoidable[1] = count_relieved(core, allowed, taken);
            for (rate, threads) in rates[1..].iter_mut().zip(avoidable) {
                *rate += u64::from(threads);
            }
            self.spans.set_core(at, avoidable, time_ns);
        }
        self.spans.end_round(time_ns);
        rates
    }
}

impl Core {
    /// Counts a CPU with this use (`adds`), or no longer.
    fn count_use(&mut self, used: Use, adds: bool) {
        let change = |count: &mut u32| {
            *count = if adds {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        };
        match used {
            Use::Unknown => {}
            Use::Idle => change(&mut self.idle),
            Use::Foreign => change(&mut self.busy),
            Use::Own { .. } => {
                change(&mut self.busy);
                change(&mut self.own);
            }
        }
    }
}

const fn is_idle(core: &Core) -> bool {
    core.idle as usize == core.cpus.len() && !core.cpus.is_empty()
}

/// Counts the followed threads that stop sharing if threads move to `after` idle cores instead of
/// `before`.
fn count_relieved(core: &Core, before: u32, after: u32) -> u32 {
    let relieved = |taken: u32| {
        let is_alone = taken + 1 >= core.busy && taken > 0;
        if is_alone { core.busy } else { taken }
    };
    relieved(after).min(core.own) - relieved(before).min(core.own)
}

/// Masks of the followed threads on a core.
fn own_masks<'a>(core: &'a Core, uses: &'a [Use]) -> impl Iterator<Item = usize> + 'a {
    core.cpus.iter().filter_map(|&cpu| match uses[cpu] {
        Use::Own { mask } => Some(mask),
        _ => None,
    })
}

/// Removes an idle core that one of the masks allows; false if there is none.
fn take_allowed_core<'a>(idle: &mut [u64], masks: impl Iterator<Item = &'a CpuSet>) -> bool {
    for mask in masks {
        for (word, allowed) in idle.iter_mut().zip(mask.words()) {
            let both = *word & allowed;
            if both != 0 {
                *word &= !(1 << both.trailing_zeros());
                return true;
            }
        }
    }
    false
}

/// Removes any idle core; false if there is none.
fn take_any_core(idle: &mut [u64]) -> bool {
    let Some(word) = idle.iter_mut().find(|word| **word != 0) else {
        return false;
    };
    *word &= *word - 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Topology;

    /// The state of each CPU for 10 ns: `.` idle, `f` foreign, `?` unknown, a digit a followed
    /// thread with that mask.
    #[track_caller]
    fn check(machine: &str, masks: &[&str], uses: &str, shared: u64, avoidable: [u64; 3]) {
        let topology = Topology::from_synthetic(machine).unwrap();
        let mut cores = Cores::new(&CpuMap::new(&topology));
        for mask in masks {
            cores.add_mask(&CpuSet::parse_list(mask).unwrap());
        }
        for (cpu, letter) in (0u32..).zip(uses.chars()) {
            let used = match letter {
                '.' => Use::Idle,
                'f' => Use::Foreign,
                '?' => Use::Unknown,
                digit => Use::Own {
                    mask: digit.to_digit(10).unwrap() as usize,
                },
            };
            cores.count_core_time(cpu, 100);
            cores.set_use(cpu, 100, used);
        }
        cores.restart(100);
        cores.advance(110);
        let (reported, causes) = cores.totals();
        assert_eq!(reported, shared * 10, "shared");
        let causes = [causes.scheduler, causes.mask, causes.others];
        assert_eq!(causes, avoidable.map(|ns| ns * 10), "{uses}");
    }

    const SMT: &str = "package:2 core:2 pu:2";

    #[test]
    fn nothing_is_shared_if_threads_have_their_own_cores() {
        check(SMT, &["0-7"], "0.0.0...", 0, [0; 3]);
        check(SMT, &["0-7"], "0.f.f.f.", 0, [0; 3]);
    }

    #[test]
    fn the_scheduler_causes_sharing_while_an_allowed_core_idles() {
        check(SMT, &["0-7"], "00......", 2, [2, 0, 0]);
        check(SMT, &["0-7"], "0000....", 4, [4, 0, 0]);
    }

    #[test]
    fn the_mask_causes_sharing_while_only_forbidden_cores_idle() {
        check(SMT, &["0-1"], "00......", 2, [0, 2, 0]);
        check(SMT, &["0-3"], "0000....", 4, [0, 4, 0]);
        check(SMT, &["0-3"], "0000..f.", 4, [0, 2, 0]);
    }

    #[test]
    fn sharing_cannot_be_avoided_if_no_core_idles() {
        check(SMT, &["0-7"], "00000000", 8, [0; 3]);
        check(SMT, &["0-7"], "00f.f.f.", 2, [0; 3]);
        check(SMT, &["0-7"], "00?.?.?.", 2, [0; 3]);
    }

    #[test]
    fn others_cause_sharing_with_a_foreign_sibling() {
        check(SMT, &["0-7"], "0f......", 1, [0, 0, 1]);
        check(SMT, &["0-7"], "ff......", 0, [0; 3]);
    }

    #[test]
    fn an_idle_core_counts_once_and_first_for_threads_that_may_use_it() {
        check(SMT, &["0-7"], "0000f...", 4, [2, 0, 0]);
        check(SMT, &["0-1", "2-7"], "0011..f.", 4, [2, 0, 0]);
        check(SMT, &["0-1", "2-7"], "0011....", 4, [2, 2, 0]);
    }

    #[test]
    fn cores_with_four_busy_cpus_need_three_idle_cores() {
        check("core:4 pu:4", &["0-15"], "000.............", 3, [3, 0, 0]);
        check("core:4 pu:4", &["0-15"], "0000f...f.......", 4, [1, 0, 0]);
    }

    #[test]
    fn overlapping_lost_spans_are_deducted_once() {
        let topology = Topology::from_synthetic(SMT).unwrap();
        let mut cores = Cores::new(&CpuMap::new(&topology));
        cores.add_mask(&CpuSet::first_n(8));
        for cpu in 0..2 {
            cores.set_use(cpu, 0, Use::Own { mask: 0 });
        }
        let early = cores.sums_at(10);
        let late = cores.sums_at(20);
        cores.deduct_since(late, 30);
        assert_eq!(cores.totals().0, 40);
        cores.deduct_since(early, 40);
        assert_eq!(cores.totals().0, 20);
        cores.deduct_since(late, 50);
        assert_eq!(cores.totals().0, 20);
        cores.advance(60);
        assert_eq!(cores.totals().0, 40);
    }
}
