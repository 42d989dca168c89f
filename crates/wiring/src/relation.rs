//! Judges what two CPUs share, from their own figures alone.
//!
//! Two CPUs, or one pair watched over time, show no gap between pairs. Only the ranges of machines of
//! known wiring can decide. They are wide, and anything between them is unclear.

/// Minimum slowdown of work beside an SMT sibling, as a factor: 1.72 was seen on Zen 3 for a spin
/// loop; MCTOP uses 1.33 (Chatzopoulos et al. 2017: "SMT" if alone takes less than 0.75 of together).
pub const SMT_CONTENTION: f64 = 1.3;
/// Maximum slowdown of work beside another core, as a factor: 1.03 was seen; shared power and
/// last-level caches cost a little more on some machines.
pub const NO_CONTENTION: f64 = 1.15;

/// Limits of the ranges of one-way times, ns, in published matrices of known machines. SMT siblings: up
/// to 13, on slow cores 18 (Zen 5, Loongson). One cache: 15 to 57. Another complex of the same package:
/// 68 to 150. Another package: 97 (two-socket Ice Lake) to 320.
const CORE_TO_NS: f64 = 14.0;
pub(super) const LLC_FROM_NS: f64 = 20.0;
pub(super) const LLC_TO_NS: f64 = 60.0;
pub(super) const APART_FROM_NS: f64 = 70.0;
const PACKAGE_FROM_NS: f64 = 160.0;
/// Edges of the ranges that show whether a cache is shared.
pub(super) const EDGES_NS: [f64; 4] = [CORE_TO_NS, LLC_FROM_NS, LLC_TO_NS, APART_FROM_NS];
/// No interconnect takes this long. A hypervisor that runs two vCPUs in turn on one hardware thread
/// takes its time slice, milliseconds.
const STACKED_NS: f64 = 3_000.0;

/// What two CPUs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// One hardware thread, in turn.
    Stacked,
    /// A core.
    SameCore,
    /// A last-level cache or cluster, not a core.
    SameLlc,
    /// No cache; whether a package is unknown.
    OtherLlc,
    /// Not even a package.
    OtherPackage,
    /// The figures lie in between.
    Unclear,
}

impl Relation {
    /// Its meaning, to follow "CPUs 0 and 1".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stacked => "take turns on one hardware thread",
            Self::SameCore => "share a core",
            Self::SameLlc => "share a last-level cache but no core",
            Self::OtherLlc => "share no cache",
            Self::OtherPackage => "are in different packages",
            Self::Unclear => "cannot be distinguished from neighbouring or unrelated CPUs",
        }
    }
}

/// Judges a pair by its median one-way time in ns and, if measured, by how many times longer work
/// takes beside the other CPU's.
#[must_use]
pub fn classify_relation(latency_ns: f64, contention: Option<f64>) -> Relation {
    let ratio = contention.filter(|ratio| ratio.is_finite());
    let is_near = latency_ns <= LLC_TO_NS;
    match ratio {
        _ if latency_ns >= STACKED_NS => Relation::Stacked,
        Some(ratio) if ratio >= SMT_CONTENTION && is_near => Relation::SameCore,
        Some(ratio) if ratio > NO_CONTENTION => Relation::Unclear,
        // CPUs that do not slow each other down share no core, however close.
        Some(_) if is_near => Relation::SameLlc,
        None if latency_ns < CORE_TO_NS => Relation::SameCore,
        None if latency_ns < LLC_FROM_NS => Relation::Unclear,
        None if is_near => Relation::SameLlc,
        _ if latency_ns >= PACKAGE_FROM_NS => Relation::OtherPackage,
        _ if latency_ns >= APART_FROM_NS => Relation::OtherLlc,
        _ => Relation::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_relation(latency_ns: f64, contention: Option<f64>, expected: Relation) {
        assert_eq!(classify_relation(latency_ns, contention), expected);
    }

    #[test]
    fn figures_of_known_machines_are_recognised() {
        check_relation(14.4, Some(1.72), Relation::SameCore);
        check_relation(36.6, Some(1.03), Relation::SameLlc);
        check_relation(117.0, Some(1.03), Relation::OtherLlc);
        check_relation(200.0, Some(1.0), Relation::OtherPackage);
    }

    #[test]
    fn latency_alone_is_not_enough_on_zen_5() {
        check_relation(18.0, None, Relation::Unclear);
        check_relation(18.0, Some(1.6), Relation::SameCore);
        check_relation(19.0, Some(1.02), Relation::SameLlc);
    }

    #[test]
    fn latencies_between_and_beyond_the_ranges_are_unclear() {
        check_relation(36.0, Some(1.2), Relation::Unclear);
        check_relation(65.0, None, Relation::Unclear);
        check_relation(2e6, None, Relation::Stacked);
        check_relation(f64::NAN, None, Relation::Unclear);
    }
}
