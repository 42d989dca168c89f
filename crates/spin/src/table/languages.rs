//! Waiters of the JVM, Go, Rust and Swift.
//!
//! Nothing is computed here.

use super::{DEFAULT_ROW, doubling, looking, tunable};
use crate::algorithm::{Algorithm, Backoff, Bound, Evidence, Growth, Unit};

pub(super) static ROWS: &[Algorithm] = &[
    Algorithm {
        id: "hotspot_objectmonitor",
        name: "HotSpot ObjectMonitor TrySpin",
        versions: "JDK 11..21",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(30), 1),
        then: "park",
        source: "openjdk/jdk src/hotspot/share/runtime/objectMonitor.cpp @009970c984d82c1a5750df28118adc9fa151de07",
        evidence: Evidence::Read,
        note: "11 hints and up to 5000 loads of the owner with a hint every 256th: the cost of a hint matters little. It adapts by success, not by time; -XX:PreBlockSpin is gone.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "java_onspinwait",
        name: "Thread.onSpinWait",
        versions: "JDK 9+",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(1), 1),
        then: "caller decides",
        tunables: &[
            tunable("-XX:OnSpinWaitInst", "none", "JVM option, arm64"),
            tunable("-XX:OnSpinWaitInstCount", "1", "JVM option, arm64"),
        ],
        source: "https://github.com/openjdk/jdk/pull/16994 ; https://github.com/openjdk/jdk/pull/17430",
        evidence: Evidence::Excerpt,
        note: "One hint a call: PAUSE on x86.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "openj9_spin",
        name: "OpenJ9 object monitor",
        versions: "current",
        unit: Unit::Hint,
        backoff: Backoff::Unknown,
        then: "park",
        tunables: &[tunable("-Xthr:", "", "JVM option")],
        source: "https://github.com/eclipse-openj9/openj9/issues/10773 ; https://github.com/eclipse-openj9/openj9/pull/553",
        evidence: Evidence::Excerpt,
        note: "Options set it: hints, looks and yields multiply. A slower PAUSE is an open question there.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "go_mutex",
        name: "Go sync.Mutex",
        versions: "1.26.8",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(4), 30),
        min_cpus: 2,
        then: "semacquire",
        source: "go1.26.8 src/runtime/lock_spinbit.go:54-55, proc.go:7944, internal/sync/mutex.go, asm_amd64.s:863, asm_arm64.s:1103",
        evidence: Evidence::Read,
        note: "PAUSEs on amd64; on arm64 since 1.26 the 30 are nanoseconds. Only with another P running and an empty local queue.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "go_runtime_mutex",
        name: "Go runtime.mutex lock2 (spinbit)",
        versions: "1.24+",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(4), 30),
        min_cpus: 2,
        then: "osyield, then futex sleep",
        tunables: &[tunable(
            "GOEXPERIMENT=nospinbitmutex",
            "",
            "when Go itself is built, 1.24",
        )],
        source: "go1.26.8 src/runtime/lock_spinbit.go",
        evidence: Evidence::Read,
        note: "Only one spinning thread is allowed.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "rust_std_mutex",
        name: "Rust std Mutex (futex)",
        versions: "1.95",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(100), 1),
        then: "futex_wait",
        source: "rust-lang/rust library/std/src/sys/sync/mutex/futex.rs (rust-src 1.95.0)",
        evidence: Evidence::Read,
        note: "It stops at once where others wait already, and spins again after a wake-up.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "rust_std_rwlock_futex",
        name: "Rust std RwLock (futex)",
        versions: "1.95",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(100), 1),
        then: "futex_wait",
        source: "library/std/src/sys/sync/rwlock/futex.rs",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "rust_std_rwlock_queue",
        name: "Rust std RwLock (queue)",
        versions: "1.95",
        unit: Unit::Hint,
        backoff: doubling(7, 1, 64),
        then: "thread park",
        source: "library/std/src/sys/sync/rwlock/queue.rs SPIN_COUNT 7",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "rust_std_mpmc",
        name: "Rust std::sync::mpsc (mpmc) Backoff",
        versions: "1.95",
        unit: Unit::Hint,
        backoff: Backoff::Counted {
            runs: Bound::Fixed(7),
            first: 0,
            growth: Growth::Square,
            cap: 36,
        },
        then: "yield_now",
        source: "library/std/src/sync/mpmc/utils.rs SPIN_LIMIT 6",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "parking_lot_09",
        name: "parking_lot (core 0.9)",
        versions: "0.12",
        unit: Unit::Hint,
        backoff: doubling(3, 2, 8),
        then: "7 sched_yield, then park",
        source: "parking_lot_core 0.9 src/spinwait.rs",
        evidence: Evidence::Read,
        note: "It starts at 2 by accident: Amanieu/parking_lot#484.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "parking_lot_10",
        name: "parking_lot (core 0.10)",
        versions: "0.13",
        unit: Unit::Hint,
        backoff: doubling(3, 1, 4),
        then: "7 sched_yield, then park",
        source: "parking_lot_core 0.10.0 src/spinwait.rs",
        evidence: Evidence::Read,
        note: "The version of 2017 ran 8184 PAUSEs: Amanieu/parking_lot#43.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "crossbeam_backoff",
        name: "crossbeam Backoff::snooze",
        versions: "0.8.23",
        unit: Unit::Hint,
        backoff: doubling(7, 1, 64),
        then: "4 yields, then the caller parks",
        source: "crossbeam-utils 0.8.23 src/backoff.rs SPIN_LIMIT 6 YIELD_LIMIT 10",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "swift_mutex",
        name: "Swift Synchronization.Mutex (Linux)",
        versions: "2026",
        unit: Unit::Hint,
        backoff: Backoff::Unknown,
        then: "futex",
        source: "https://github.com/swiftlang/swift/pull/88523",
        evidence: Evidence::Excerpt,
        note: "Adaptive; it parks at once where four or more are parked already.",
        ..DEFAULT_ROW
    },
];
