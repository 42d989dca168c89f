//! CPU time for a program's memory that many functions share, so that no row of a profile shows it:
//! garbage collection, and page faults.

use crate::trace::is_collector;
use pinwise_format::percent;
use pinwise_profile::{Amount, FunctionTime, Kind, Profile};

/// Upkeep that takes this part of the CPU time is named.
pub(super) const WORTH_NAMING: f64 = 0.1;
/// What reduces page faults.
pub(super) const FEWER_FAULTS: &str = "memory that is reused, or huge pages, take fewer";
/// The beginnings of the names of functions that collect Go's garbage.
const GO: [&str; 8] = [
    "internal/runtime/gc",
    "runtime.(*gc",
    "runtime.(*mspan).sweep",
    "runtime.gc",
    "runtime.greyobject",
    "runtime.markroot",
    "runtime.scan",
    "runtime.wbBufFlush",
];
/// Parts of the names of V8's functions that collect garbage.
const V8: [&str; 5] = ["Mark", "Sweep", "Scaveng", "Evacuat", "GC"];
/// Functions of the kernel that handle a page fault, called from one another.
const FAULTS: [&str; 5] = [
    "asm_exc_page_fault",
    "exc_page_fault",
    "do_user_addr_fault",
    "do_page_fault",
    "handle_mm_fault",
];

/// Garbage collection of a runtime.
#[derive(Debug)]
pub(super) struct Collection {
    /// All its time.
    time: Amount,
    /// Part of it in spin hints: collecting threads wait so for each other.
    pub(super) waits: Amount,
    whose: &'static str,
    advice: &'static str,
}

impl Collection {
    /// The garbage collection that takes most of a profile; `None` if it takes little.
    pub(super) fn of_profile(profile: &Profile) -> Option<Self> {
        let runtimes = [
            Self::of_functions(
                profile,
                is_of_go,
                "Go's",
                "a larger GOGC or GOMEMLIMIT takes less",
            ),
            Self::of_functions(
                profile,
                is_of_v8,
                "V8's",
                "--max-semi-space-size and --max-old-space-size set the room that it has",
            ),
            Self::of_jvm(profile),
        ];
        let most = runtimes.into_iter().max_by_key(|one| one.time.cpu_ns)?;
        let share = most.time.share_of(profile.total)?;
        (share >= WORTH_NAMING).then_some(most)
    }

    fn of_functions(
        profile: &Profile,
        collects: fn(&str) -> bool,
        whose: &'static str,
        advice: &'static str,
    ) -> Self {
        let own = || {
            let functions = profile.functions.iter();
            functions.filter(|time| collects(&time.function.name))
        };
        Self {
            time: sum_below(profile, collects),
            waits: own().map(|time| time.waits).sum(),
            whose,
            advice,
        }
    }

    fn of_jvm(profile: &Profile) -> Self {
        let threads = || {
            let all = profile.threads.iter();
            all.filter(|thread| is_collector(&thread.name))
        };
        Self {
            time: threads().map(|thread| thread.sampled).sum(),
            waits: threads().map(|thread| thread.waits).sum(),
            whose: "the JVM's",
            advice: "a larger heap, -Xmx, takes less",
        }
    }

    /// `Go's garbage collection takes 35.0 % (a larger GOGC or GOMEMLIMIT takes less)`.
    pub(super) fn describe(&self, total: Amount) -> String {
        let share = percent(self.time.share_of(total).unwrap_or_default());
        let Self { whose, advice, .. } = self;
        format!("{whose} garbage collection takes {share} ({advice})")
    }
}

/// Time in the functions that collect garbage and in all that they call, whatever its name.
fn sum_below(profile: &Profile, collects: fn(&str) -> bool) -> Amount {
    let nodes = profile.tree.nodes();
    // Callers come before the functions that they call.
    let mut collecting: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let is_called = node.parent.is_some_and(|caller| collecting[caller]);
        collecting.push(is_called || collects(&node.function.name));
    }
    let both = nodes.iter().zip(collecting);
    both.filter_map(|(node, collects)| collects.then_some(node.own))
        .sum()
}

fn is_of_go(function: &str) -> bool {
    GO.iter().any(|start| function.starts_with(start))
}

fn is_of_v8(function: &str) -> bool {
    // Arguments may be of V8 as well: the function's own name comes before them.
    let function = function.replace("(anonymous namespace)::", "");
    let name = function
        .split_once('(')
        .map_or(&*function, |(name, _)| name);
    let is_of_namespace = name.contains("v8::internal::") || name.contains("heap::base::");
    is_of_namespace && V8.iter().any(|part| name.contains(part))
}

/// Time in page faults: that of the outermost of the kernel's functions that handle them.
pub(super) fn sum_page_faults(profile: &Profile) -> Amount {
    let handles = |time: &&FunctionTime| {
        let function = &time.function;
        function.kind == Kind::Kernel && FAULTS.contains(&function.name.as_str())
    };
    let all = profile.functions.iter().filter(handles);
    let most = all.max_by_key(|time| time.total.cpu_ns);
    most.map_or_else(Amount::default, |time| time.total)
}
