//! SMT sharing: which cores have several busy CPUs, which idle entirely, and
//! how much of the sharing the idle ones could have spared.
//!
//! A core with b busy CPUs has b − 1 threads that could run elsewhere. Each idle core takes one of
//! them; once all have moved, the last one shares no more either. Idle cores within the mask of a
//! thread on the shared core are dealt first: leaving them idle was the scheduler's doing, or
//! another program's if our thread shares with one of its threads. Idle cores beyond the mask are
//! dealt next: that was the mask's doing.

use super::super::cpu_map::CpuMap;
use super::super::summary::{AvoidableTotals, SharingSpans};
use super::spared::Spared;
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

/// Shared time, and avoidable time by scheduler, mask and other programs.
type Sums = [u64; 4];

#[derive(Debug, Clone, Default)]
struct Core {
    cpus: Vec<usize>,
    busy: u32,
    idle: u32,
    own: u32,
    since_ns: u64,
    busy_ns: u64,
    shared_ns: u64,
}

#[derive(Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    core_of: Vec<Option<usize>>,
    uses: Vec<Use>,
    /// Cores of each mask.
    masks: Vec<CpuSet>,
    idle: CpuSet,
    /// Cores with several busy CPUs, at least one with a followed thread.
    shared: Vec<usize>,
    rates: Sums,
    sums: Sums,
    since_ns: u64,
    /// Uncounted spans, disjoint and in time order.
    void: Vec<Void>,
    deducted: Sums,
    scratch: Vec<u64>,
    spared: Spared,
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moment {
    time_ns: u64,
    sums: Sums,
}

impl Moment {
    /// Before all.
    pub(super) const ZERO: Self = Self {
        time_ns: 0,
        sums: [0; 4],
    };
}

/// An uncounted span of time.
#[derive(Debug, Clone, Copy)]
struct Void {
    from: Moment,
    to: Moment,
}

/// Limits the remembered spans: older ones are no longer joined with new ones.
const MAX_VOIDS: usize = 1_024;

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
            spared: Spared::new(cores.len()),
            cores,
            masks: Vec::new(),
            idle: CpuSet::new(),
            shared: Vec::new(),
            rates: [0; 4],
            sums: [0; 4],
            since_ns: 0,
            void: Vec::new(),
            deducted: [0; 4],
            scratch: Vec::new(),
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
        self.void.clear();
        self.deducted = [0; 4];
        self.since_ns = time_ns;
        self.spared.restart(time_ns);
        for core in &mut self.cores {
            core.since_ns = time_ns;
            core.busy_ns = 0;
            core.shared_ns = 0;
        }
    }

    /// The CPUs of a CPU's core, and for how long since its last change several of them were busy.
    /// Call before a change.
    pub(super) fn settle(&mut self, cpu: u32, time_ns: u64) -> Option<(&[usize], u64)> {
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

    /// Changes the use of a CPU. The core must have been settled to this time.
    pub(super) fn change(&mut self, cpu: u32, time_ns: u64, to: Use) {
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
        core.count(from, false);
        core.count(to, true);
        let is_shared = core.busy > 1 && core.own > 0;
        let now_idle = is_idle(core);
        if now_idle != was_idle {
            if now_idle {
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
        let matters = was_shared || is_shared || (now_idle != was_idle && !self.shared.is_empty());
        if matters {
            self.advance(time_ns);
            self.rates = self.attribute_sharing(time_ns);
        }
    }

    /// Brings the sums up to this time.
    pub(super) fn advance(&mut self, time_ns: u64) {
        let passed = time_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(time_ns);
        for (sum, rate) in self.sums.iter_mut().zip(self.rates) {
            *sum += rate * passed;
        }
    }

    /// The sums at this time.
    pub(super) fn moment(&mut self, time_ns: u64) -> Moment {
        self.advance(time_ns);
        Moment {
            time_ns: self.since_ns,
            sums: self.sums,
        }
    }

    /// Removes what was added between two moments; overlapping spans are removed once.
    pub(super) fn take_back(&mut self, mut from: Moment, time_ns: u64) {
        let to = self.moment(time_ns);
        self.spared.cut(from.time_ns, to.time_ns);
        while let Some(last) = self.void.pop_if(|last| last.to.time_ns > from.time_ns) {
            if last.from.time_ns < from.time_ns {
                from = last.from;
            }
            self.deduct(last, false);
        }
        if self.void.len() == MAX_VOIDS {
            self.void.remove(0);
        }
        let void = Void { from, to };
        self.deduct(void, true);
        self.void.push(void);
    }

    fn deduct(&mut self, void: Void, adds: bool) {
        for at in 0..self.deducted.len() {
            let amount = void.to.sums[at] - void.from.sums[at];
            if adds {
                self.deducted[at] += amount;
            } else {
                self.deducted[at] -= amount;
            }
        }
    }

    /// Shared CPU time of followed threads, and its avoidable part.
    pub(super) fn totals(&self) -> (u64, AvoidableTotals) {
        let left = |at: usize| self.sums[at] - self.deducted[at];
        let avoidable = AvoidableTotals {
            scheduler: left(1),
            mask: left(2),
            others: left(3),
        };
        (left(0), avoidable)
    }

    /// When and where sharing was avoidable.
    pub(super) fn spans(self, time_ns: u64) -> SharingSpans {
        self.spared.finish(time_ns)
    }

    /// Time of a core with a busy CPU, and with several; it must have been settled.
    pub(super) fn busy_time_of_core(&self, core: usize) -> (u64, u64) {
        (self.cores[core].busy_ns, self.cores[core].shared_ns)
    }

    /// Sharing followed threads, and those that idle cores could have spared it, by cause.
    fn attribute_sharing(&mut self, time_ns: u64) -> Sums {
        let mut rates = [0; 4];
        self.spared.begin_round();
        if self.shared.is_empty() {
            self.spared.end_round(time_ns);
            return rates;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(self.idle.words());
        let mut left: Vec<(usize, u32, u32)> = Vec::with_capacity(self.shared.len());
        for &at in &self.shared {
            let core = &self.cores[at];
            rates[0] += u64::from(core.own);
            let mut taken = 0;
            while taken + 1 < core.busy {
                let masks = own_masks(core, &self.uses);
                if !take_from(&mut self.scratch, masks.map(|mask| &self.masks[mask])) {
                    break;
                }
                taken += 1;
            }
            left.push((at, taken, core.busy));
        }
        for (at, taken, busy) in left {
            let mut more = taken;
            while more + 1 < busy && take_any(&mut self.scratch) {
                more += 1;
            }
            let core = &self.cores[at];
            let mut spared = [0; 3];
            spared[if core.own == core.busy { 0 } else { 2 }] = count_relieved(core, 0, taken);
            spared[1] = count_relieved(core, taken, more);
            for (rate, threads) in rates[1..].iter_mut().zip(spared) {
                *rate += u64::from(threads);
            }
            self.spared.set_core(at, spared, time_ns);
        }
        self.spared.end_round(time_ns);
        rates
    }
}

impl Core {
    fn count(&mut self, used: Use, comes: bool) {
        let step = |count: &mut u32| {
            *count = if comes {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        };
        match used {
            Use::Unknown => {}
            Use::Idle => step(&mut self.idle),
            Use::Foreign => step(&mut self.busy),
            Use::Own { .. } => {
                step(&mut self.busy);
                step(&mut self.own);
            }
        }
    }
}

const fn is_idle(core: &Core) -> bool {
    core.idle as usize == core.cpus.len() && !core.cpus.is_empty()
}

/// Followed threads that stop sharing if the number of used idle cores grows from `before` to
/// `after`.
fn count_relieved(core: &Core, before: u32, after: u32) -> u32 {
    let by = |taken: u32| {
        let all_gone = taken + 1 >= core.busy && taken > 0;
        if all_gone { core.busy } else { taken }
    };
    by(after).min(core.own) - by(before).min(core.own)
}

fn own_masks<'a>(core: &'a Core, uses: &'a [Use]) -> impl Iterator<Item = usize> + 'a {
    core.cpus.iter().filter_map(|&cpu| match uses[cpu] {
        Use::Own { mask } => Some(mask),
        _ => None,
    })
}

/// Takes an idle core allowed by one of the masks.
fn take_from<'a>(idle: &mut [u64], masks: impl Iterator<Item = &'a CpuSet>) -> bool {
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

fn take_any(idle: &mut [u64]) -> bool {
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
            cores.settle(cpu, 100);
            cores.change(cpu, 100, used);
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
    fn sharing_is_the_schedulers_if_an_allowed_core_idles() {
        check(SMT, &["0-7"], "00......", 2, [2, 0, 0]);
        check(SMT, &["0-7"], "0000....", 4, [4, 0, 0]);
    }

    #[test]
    fn sharing_is_the_masks_if_only_forbidden_cores_idle() {
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
    fn a_foreign_sibling_is_blamed_on_others() {
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
    fn wider_cores_need_more_idle_ones() {
        check("core:4 pu:4", &["0-15"], "000.............", 3, [3, 0, 0]);
        check("core:4 pu:4", &["0-15"], "0000f...f.......", 4, [1, 0, 0]);
    }

    #[test]
    fn lost_spans_are_removed_once() {
        let topology = Topology::from_synthetic(SMT).unwrap();
        let mut cores = Cores::new(&CpuMap::new(&topology));
        cores.add_mask(&CpuSet::first_n(8));
        for cpu in 0..2 {
            cores.change(cpu, 0, Use::Own { mask: 0 });
        }
        let early = cores.moment(10);
        let late = cores.moment(20);
        cores.take_back(late, 30);
        assert_eq!(cores.totals().0, 40);
        cores.take_back(early, 40);
        assert_eq!(cores.totals().0, 20);
        cores.take_back(late, 50);
        assert_eq!(cores.totals().0, 20);
        cores.advance(60);
        assert_eq!(cores.totals().0, 40);
    }
}
