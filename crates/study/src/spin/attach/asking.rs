//! Threads that poll through the kernel and get nothing: they repeat `epoll_wait` or `poll` with a
//! time-out of 0, or a non-blocking receive.
//!
//! The program's code does not show what a call returns, but the kernel's functions do: it runs
//! others to hand something over or to sleep, and samples show them. A thread counts as asking only
//! if it hardly does anything else and never makes another call: a thread that learns from `poll`
//! that something arrived would fetch it. `read` is ignored, as it also reads files.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_profile::{Frame, Samples, Stack};

/// Kernel functions of the calls that may return without a result.
const ASKING_CALLS: [&str; 7] = [
    "sys_epoll_wait",
    "sys_epoll_pwait",
    "sys_poll",
    "sys_ppoll",
    "sys_select",
    "sys_pselect6",
    "sys_recv",
];
/// Kernel functions that hand over events and data.
const HANDING_OVER: [&str; 5] = [
    "ep_send_events",
    "copy_to_iter",
    "copy_datagram",
    "consume_skb",
    "kfree_skb",
];
/// Prefixes of kernel functions of any system call; the dispatcher (`do_syscall_64`) has none.
const ANY_CALL: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__sys_", "ksys_"];
/// Part of the names of the glibc functions that make a thread cancellable during a call. Each such
/// call includes them; they take up to a fifth of its time.
const CANCELLATION: &str = "able_asynccancel";
/// Threads with fewer samples are not judged.
const MIN_SAMPLES: u64 = 30;
/// An asking thread has at least this share of its samples in asking calls.
const MIN_ASKING_SHARE: f64 = 0.8;
/// An asking thread has at most this share of its samples in calls that hand something over, sleep,
/// or do something else.
const MAX_GETTING_SHARE: f64 = 0.01;

/// Threads that ask and get nothing, with the functions that make their calls.
#[derive(Debug, Default)]
pub(super) struct Asking {
    threads: BTreeMap<usize, BTreeSet<Caller>>,
}

/// The function of the program, or of its library, that makes the call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Caller {
    Function(Option<usize>, String),
    Address(i32, u64),
}

impl Caller {
    fn new(frame: &Frame) -> Self {
        match &frame.symbol {
            Some(symbol) => Self::Function(frame.module, symbol.name.clone()),
            None => Self::Address(frame.pid, frame.address),
        }
    }

    fn is_cancellation(&self) -> bool {
        matches!(self, Self::Function(_, name) if name.contains(CANCELLATION))
    }
}

/// What a sample shows about the system call that its thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// It asks, and has not got anything so far.
    Asks,
    /// It got something, sleeps, or is another kind of call.
    Gets,
    /// In no call, or on the way in or out of one.
    Unknown,
}

impl Asking {
    pub(super) fn from_samples(samples: &Samples) -> Self {
        let mut threads: BTreeMap<usize, Vec<(&Stack, Call)>> = BTreeMap::new();
        for stack in &samples.stacks {
            let seen = threads.entry(stack.thread).or_default();
            seen.push((stack, classify_call(samples, stack)));
        }
        let judged = threads.into_iter().filter_map(|(thread, seen)| {
            let callers = find_asking_callers(samples, &seen)?;
            Some((thread, callers))
        });
        Self {
            threads: judged.collect(),
        }
    }

    pub(super) fn is_asking(&self, thread: usize) -> bool {
        self.threads.contains_key(&thread)
    }

    /// The depth of the frame whose function asks; `None` if the thread does something else.
    pub(super) fn find_asking_depth(&self, samples: &Samples, stack: &Stack) -> Option<usize> {
        let callers = self.threads.get(&stack.thread)?;
        let depth = user_depth(samples, stack)?;
        let caller = Caller::new(&samples.frames[stack.frames[depth]]);
        (callers.contains(&caller) || caller.is_cancellation()).then_some(depth)
    }
}

/// The functions through which a thread asks; `None` if it gets something, or does much else.
fn find_asking_callers(samples: &Samples, seen: &[(&Stack, Call)]) -> Option<BTreeSet<Caller>> {
    let count = |wanted: Call| {
        let matching = seen.iter().filter(|(_, call)| *call == wanted);
        matching.map(|(stack, _)| stack.count).sum::<u64>()
    };
    let all: u64 = seen.iter().map(|(stack, _)| stack.count).sum();
    let getting = count(Call::Gets);
    let max_getting = MAX_GETTING_SHARE * all as f64;
    if all < MIN_SAMPLES || count(Call::Asks) == 0 || getting as f64 > max_getting {
        return None;
    }
    let caller = |stack: &Stack| {
        let depth = user_depth(samples, stack)?;
        Some(Caller::new(&samples.frames[stack.frames[depth]]))
    };
    let asks = seen.iter().filter(|(_, call)| *call == Call::Asks);
    let callers: BTreeSet<Caller> = asks.filter_map(|(stack, _)| caller(stack)).collect();
    // A call spends much of its time on entry and exit, where its kernel function is not on the
    // stack: all samples of its caller count.
    let of_callers = seen.iter().filter(|(stack, _)| {
        caller(stack).is_some_and(|one| callers.contains(&one) || one.is_cancellation())
    });
    let asking: u64 = of_callers.map(|(stack, _)| stack.count).sum();
    (asking as f64 >= MIN_ASKING_SHARE * all as f64).then_some(callers)
}

/// The depth of the innermost frame outside the kernel.
fn user_depth(samples: &Samples, stack: &Stack) -> Option<usize> {
    let is_user = |&frame: &usize| !samples.frames[frame].is_kernel;
    stack.frames.iter().position(is_user)
}

fn classify_call(samples: &Samples, stack: &Stack) -> Call {
    let frames = stack.frames.iter().map(|&frame| &samples.frames[frame]);
    let kernel = frames.take_while(|frame| frame.is_kernel);
    let names: Vec<&str> = kernel
        .filter_map(|frame| Some(frame.symbol.as_ref()?.name.as_str()))
        .collect();
    let has = |parts: &[&str]| {
        let mut names = names.iter();
        names.any(|name| parts.iter().any(|part| name.contains(part)))
    };
    let sleeps = names.contains(&"schedule");
    match (has(&ASKING_CALLS), has(&ANY_CALL)) {
        (true, _) if !sleeps && !has(&HANDING_OVER) => Call::Asks,
        (false, false) => Call::Unknown,
        _ => Call::Gets,
    }
}
