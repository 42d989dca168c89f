//! Threads that ask the kernel over and over and get nothing: `epoll_wait` or `poll` without a
//! time-out, a non-blocking receive.
//!
//! The code does not show what a call will return, but the kernel does: handing something over, and
//! sleeping, take functions of their own, which samples show. A thread counts only if it does next
//! to nothing else, and never makes another call: a thread that learns from `poll` that something
//! arrived fetches it. Reads are ignored, as files answer them as well.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_profile::{Frame, Samples, Stack};

/// Calls that may bring nothing, by their functions in the kernel.
const ASKS: [&str; 7] = [
    "sys_epoll_wait",
    "sys_epoll_pwait",
    "sys_poll",
    "sys_ppoll",
    "sys_select",
    "sys_pselect6",
    "sys_recv",
];
/// Functions by which the kernel hands over events and data.
const HANDS_OVER: [&str; 5] = [
    "ep_send_events",
    "copy_to_iter",
    "copy_datagram",
    "consume_skb",
    "kfree_skb",
];
/// Prefixes of system calls' functions; that of the dispatcher (`do_syscall_64`) is not among them.
const CALLS: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__sys_", "ksys_"];
/// Functions with which glibc lets a thread be cancelled meanwhile: part of each such call, with up
/// to a fifth of its time.
const CANCELS: &str = "able_asynccancel";
/// Samples of a thread that are needed to judge it.
const MIN_SAMPLES: u64 = 30;
/// The part of a thread's samples that are in such calls, at least.
const ASKING_SHARE: f64 = 0.8;
/// The share in which something was handed over, waited for, or asked for by other calls, at most.
const MAX_ASKING_SHARE: f64 = 0.01;

/// Threads that ask and get nothing, with the functions that ask for them.
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

    fn cancels(&self) -> bool {
        matches!(self, Self::Function(_, name) if name.contains(CANCELS))
    }
}

/// What a sample shows of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// It asks, and nothing came so far.
    Asks,
    /// It got something, sleeps, or does something else.
    Gets,
    /// In no call, or on the way in or out of one.
    Unknown,
}

impl Asking {
    pub(super) fn from_samples(samples: &Samples) -> Self {
        let mut threads: BTreeMap<usize, Vec<(&Stack, Call)>> = BTreeMap::new();
        for stack in &samples.stacks {
            let seen = threads.entry(stack.thread).or_default();
            seen.push((stack, call(samples, stack)));
        }
        let judged = threads.into_iter().filter_map(|(thread, seen)| {
            let callers = asking_callers(samples, &seen)?;
            Some((thread, callers))
        });
        Self {
            threads: judged.collect(),
        }
    }

    pub(super) fn has(&self, thread: usize) -> bool {
        self.threads.contains_key(&thread)
    }

    /// The depth of the function that asks; `None` if its thread does something else.
    pub(super) fn depth(&self, samples: &Samples, stack: &Stack) -> Option<usize> {
        let callers = self.threads.get(&stack.thread)?;
        let depth = user_depth(samples, stack)?;
        let caller = Caller::new(&samples.frames[stack.frames[depth]]);
        (callers.contains(&caller) || caller.cancels()).then_some(depth)
    }
}

/// The functions by which a thread asks; `None` if it gets something, or does much else.
fn asking_callers(samples: &Samples, seen: &[(&Stack, Call)]) -> Option<BTreeSet<Caller>> {
    let count = |wanted: Call| {
        let such = seen.iter().filter(|(_, call)| *call == wanted);
        such.map(|(stack, _)| stack.count).sum::<u64>()
    };
    let all: u64 = seen.iter().map(|(stack, _)| stack.count).sum();
    let getting = count(Call::Gets);
    if all < MIN_SAMPLES || count(Call::Asks) == 0 || getting as f64 > MAX_ASKING_SHARE * all as f64
    {
        return None;
    }
    let caller = |stack: &Stack| {
        let depth = user_depth(samples, stack)?;
        Some(Caller::new(&samples.frames[stack.frames[depth]]))
    };
    let asks = seen.iter().filter(|(_, call)| *call == Call::Asks);
    let callers: BTreeSet<Caller> = asks.filter_map(|(stack, _)| caller(stack)).collect();
    // Much of a call is its way in and out, which no function of it shows.
    let by_them = seen.iter().filter(|(stack, _)| {
        caller(stack).is_some_and(|one| callers.contains(&one) || one.cancels())
    });
    let asking: u64 = by_them.map(|(stack, _)| stack.count).sum();
    (asking as f64 >= ASKING_SHARE * all as f64).then_some(callers)
}

fn user_depth(samples: &Samples, stack: &Stack) -> Option<usize> {
    let is_user = |&frame: &usize| !samples.frames[frame].is_kernel;
    stack.frames.iter().position(is_user)
}

fn call(samples: &Samples, stack: &Stack) -> Call {
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
    match (has(&ASKS), has(&CALLS)) {
        (true, _) if !sleeps && !has(&HANDS_OVER) => Call::Asks,
        (false, false) => Call::Unknown,
        _ => Call::Gets,
    }
}
