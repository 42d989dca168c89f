//! A profile: the summary of one or several runs' samples.

use std::collections::{BTreeMap, BTreeSet};

use super::instructions::Instructions;
use super::{Amount, Event, Function, Kind, Samples, Spot, Stack, Stacks, Thread, Tree};
use pinwise_format::whole;

/// Limits the parts of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Number of functions.
    pub functions: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of hot instructions.
    pub spots: usize,
    /// Number of nodes of the call tree.
    pub nodes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            functions: 1_000,
            threads: 200,
            spots: 24,
            nodes: 5_000,
        }
    }
}

/// How CPU time was spent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// All time.
    pub total: Amount,
    /// Time in the kernel; `None` if the kernel was not sampled.
    pub kernel: Option<Amount>,
    /// Time that waits in spin hints.
    pub waits: Amount,
    /// Other time that was seen at memory accesses, see [`is_at_access`](super::is_at_access); `None`
    /// if no code was sampled.
    pub accesses: Option<Amount>,
    /// Time in code that could not be read: of the kernel, and of other users.
    pub unread: Amount,
    /// How complete its stacks are; `None` if there are none.
    pub stacks: Option<StackFigures>,
    /// Functions, the longest own time first.
    pub functions: Vec<FunctionTime>,
    /// Functions that are left out: their number, and their own time.
    pub functions_left_out: (u64, Amount),
    /// Threads, the busiest first.
    pub threads: Vec<ThreadTime>,
    /// Threads that are left out: their number, and their time.
    pub threads_left_out: (u64, Amount),
    /// Instructions, the hottest first.
    pub spots: Vec<Spot>,
    /// Time at instructions that no spot shows.
    pub spots_left_out: Amount,
    /// All stacks.
    pub tree: Tree,
    /// Time in stacks of the tree that are not listed one by one.
    pub tree_left_out: Amount,
}

/// How complete stacks are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackFigures {
    /// How callers were found.
    pub by: Stacks,
    /// Samples whose stack is truncated; with frame pointers a lower bound.
    pub broken: Amount,
    /// Frames of the program in a stack, on average.
    pub mean_frames: f64,
}

/// Time of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTime {
    /// The function.
    pub function: Function,
    /// Time in its own code.
    pub own: Amount,
    /// Time in it and the functions that it called; recursive calls count once.
    pub total: Amount,
    /// Part of its own time that waits in spin hints.
    pub waits: Amount,
}

/// Time of a thread, or of all threads of one name if there were several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadTime {
    /// Its name.
    pub name: String,
    /// Its number; `None` for several.
    pub tid: Option<i32>,
    /// The number of threads.
    pub threads: u64,
    /// The sampled amount.
    pub sampled: Amount,
    /// Part of it that waits in spin hints.
    pub waits: Amount,
    /// CPU time as the kernel counts it, s.
    pub cpu_s: Option<f64>,
}

impl Stack {
    /// The amount that it represents.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        Amount {
            samples: self.count,
            cpu_ns: self.weight_ns,
        }
    }
}

impl Profile {
    /// Summarises the samples of these runs.
    #[must_use]
    pub fn from_samples(runs: &[Samples], bounds: &Bounds) -> Self {
        let mut builder = ProfileBuilder::default();
        for (run, samples) in runs.iter().enumerate() {
            builder.add(samples, run, runs.len() > 1);
        }
        builder.finish(runs, bounds)
    }
}

/// Sums while samples are counted.
#[derive(Debug, Default)]
struct ProfileBuilder {
    total: Amount,
    waits: Amount,
    accesses: Amount,
    unread: Amount,
    has_code: bool,
    kernel: Amount,
    has_kernel: bool,
    stacks_by: Option<Stacks>,
    broken: Amount,
    user_frames: u64,
    functions: BTreeMap<Function, FunctionTime>,
    threads: BTreeMap<(String, Option<i32>), ThreadTime>,
    instructions: Instructions,
    tree: Tree,
}

impl ProfileBuilder {
    fn add(&mut self, samples: &Samples, run: usize, by_name: bool) {
        self.has_kernel |= samples.has_kernel;
        self.has_code |= samples.event != Event::Proc;
        let mut at_access: BTreeMap<usize, Option<bool>> = BTreeMap::new();
        self.stacks_by = Some(samples.stacks_by);
        let functions: Vec<Vec<Function>> = samples
            .frames
            .iter()
            .map(|frame| Function::all_from_frame(samples, frame))
            .collect();
        let mut by_thread = vec![(Amount::default(), Amount::default()); samples.threads.len()];
        for stack in &samples.stacks {
            let waits = samples.is_waiting(stack);
            let amount = stack.amount();
            if let Some((sampled, waiting)) = by_thread.get_mut(stack.thread) {
                *sampled += amount;
                *waiting += if waits { amount } else { Amount::default() };
            }
            self.add_stack(&functions, stack, waits);
            if let Some(&leaf) = stack.frames.first() {
                self.instructions.add(samples, run, leaf, amount);
                let at = at_access.entry(leaf);
                let at = at.or_insert_with(|| samples.is_at_access(leaf));
                match (waits, *at) {
                    (false, Some(true)) => self.accesses += amount,
                    (false, None) => self.unread += amount,
                    (true, _) | (false, Some(false)) => {}
                }
            }
        }
        for (thread, (sampled, waits)) in samples.threads.iter().zip(by_thread) {
            self.add_thread(thread, sampled, waits, by_name);
        }
        if samples.event == Event::Proc {
            // Polling shows only the threads' CPU time.
            let cpu_s: f64 = samples.threads.iter().filter_map(|t| t.cpu_s).sum();
            self.total.cpu_ns = self.total.cpu_ns.saturating_add(to_ns(cpu_s));
        }
    }

    fn add_stack(&mut self, functions: &[Vec<Function>], stack: &Stack, waits: bool) {
        let amount = stack.amount();
        self.total += amount;
        let called = stack.frames.iter().filter_map(|&at| functions.get(at));
        let is_user = |at: &&Vec<Function>| at.iter().any(|f| f.kind == Kind::User);
        let of_user = called.clone().filter(is_user).count() as u64;
        let called: Vec<&Function> = called.flatten().collect();
        let frames = of_user.saturating_mul(amount.samples);
        self.user_frames = self.user_frames.saturating_add(frames);
        if stack.is_broken {
            self.broken += amount;
        }
        if let Some(leaf) = called.first() {
            let time = self.time_mut(leaf);
            time.own += amount;
            if waits {
                time.waits += amount;
                self.waits += amount;
            }
            if leaf.kind == Kind::Kernel {
                self.kernel += amount;
            }
        }
        let each: BTreeSet<&Function> = called.iter().copied().collect();
        for function in each {
            self.time_mut(function).total += amount;
        }
        let path = called.into_iter().rev().cloned();
        let missing = stack.is_broken.then(Function::broken).into_iter();
        let path = missing.chain(path).chain(waits.then(Function::pause));
        self.tree.add(path, amount);
    }

    fn time_mut(&mut self, function: &Function) -> &mut FunctionTime {
        let place = self.functions.entry(function.clone());
        place.or_insert_with(|| FunctionTime {
            function: function.clone(),
            own: Amount::default(),
            total: Amount::default(),
            waits: Amount::default(),
        })
    }

    fn add_thread(&mut self, thread: &Thread, sampled: Amount, waits: Amount, by_name: bool) {
        let tid = (!by_name).then_some(thread.tid);
        let place = (thread.name.clone(), tid);
        let time = self.threads.entry(place).or_insert_with(|| ThreadTime {
            name: thread.name.clone(),
            tid,
            threads: 0,
            sampled: Amount::default(),
            waits: Amount::default(),
            cpu_s: None,
        });
        time.threads += 1;
        time.sampled += sampled;
        time.waits += waits;
        if let Some(cpu_s) = thread.cpu_s {
            time.cpu_s = Some(time.cpu_s.unwrap_or(0.0) + cpu_s);
        }
    }

    fn finish(self, runs: &[Samples], bounds: &Bounds) -> Profile {
        let mut functions: Vec<FunctionTime> = self.functions.into_values().collect();
        functions.sort_by_key(|time| {
            let order = std::cmp::Reverse((time.own.cpu_ns, time.total.cpu_ns));
            (order, time.function.clone())
        });
        let mut threads: Vec<ThreadTime> = self.threads.into_values().collect();
        threads.sort_by(|a, b| {
            let cpu_s = |time: &ThreadTime| time.cpu_s.unwrap_or_else(|| time.sampled.cpu_s());
            cpu_s(b).total_cmp(&cpu_s(a)).then(a.tid.cmp(&b.tid))
        });
        let (tree, tree_left_out) = self.tree.keep_largest(bounds.nodes);
        let (spots, spots_left_out) = self.instructions.find_hottest(runs, bounds.spots);
        let rest = |cut: Vec<Amount>| (cut.len() as u64, cut.into_iter().sum());
        let cut = functions.split_off(functions.len().min(bounds.functions));
        let functions_left_out = rest(cut.iter().map(|time| time.own).collect());
        let cut = threads.split_off(threads.len().min(bounds.threads));
        let threads_left_out = rest(cut.iter().map(|time| time.sampled).collect());
        Profile {
            total: self.total,
            kernel: self.has_kernel.then_some(self.kernel),
            waits: self.waits,
            accesses: self.has_code.then_some(self.accesses),
            unread: self.unread,
            stacks: self
                .stacks_by
                .filter(|by| *by != Stacks::None)
                .map(|by| StackFigures {
                    by,
                    broken: self.broken,
                    mean_frames: self.user_frames as f64 / self.total.samples.max(1) as f64,
                }),
            functions,
            functions_left_out,
            threads,
            threads_left_out,
            spots,
            spots_left_out,
            tree,
            tree_left_out,
        }
    }
}

fn to_ns(time_s: f64) -> u64 {
    whole((time_s * 1e9).min(1e18))
}

#[cfg(test)]
mod tests;
