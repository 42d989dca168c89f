//! Waiters of C and C++ libraries.
//!
//! Nothing is computed here.

use super::{DEFAULT_ROW, doubling, looking, tunable};
use crate::algorithm::{Algorithm, Backoff, Bound, Evidence, Growth, Unit};

pub(super) static ROWS: &[Algorithm] = &[
    Algorithm {
        id: "glibc_adaptive",
        name: "glibc PTHREAD_MUTEX_ADAPTIVE_NP",
        versions: "2.36 x86_64",
        unit: Unit::Hint,
        backoff: Backoff::Budgeted {
            below: 100,
            first: 1,
            growth: Growth::Jittered(2),
            cap: 16,
        },
        then: "futex",
        tunables: &[tunable(
            "glibc.pthread.mutex_spin_count",
            "100",
            "GLIBC_TUNABLES, 0 to 32767",
        )],
        source: "glibc-2.36 nptl/pthread_mutex_lock.c, sysdeps/x86_64/nptl/pthread_mutex_backoff.h, sysdeps/generic/adaptive_spin_count.h",
        evidence: Evidence::Read,
        note: "It begins with 10 and adapts up to 100. The growing runs are x86 only; the default type of mutex does not spin.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "glibc_spinlock",
        name: "glibc pthread_spin_lock",
        versions: "2.36",
        unit: Unit::Hint,
        backoff: Backoff::Endless { gap: 1 },
        then: "never parks",
        source: "glibc-2.36 nptl/pthread_spin_lock.c",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "musl_mutex",
        name: "musl pthread_mutex",
        versions: "1.2.3",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(100), 1),
        then: "futex",
        source: "musl-1.2.3 src/thread/pthread_mutex_timedlock.c, __wait.c",
        evidence: Evidence::Read,
        note: "It stops where waiters exist; a barrier spins 200.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "jemalloc",
        name: "jemalloc malloc_mutex",
        versions: "5.3.0",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(601), 1),
        min_cpus: 2,
        then: "pthread mutex",
        tunables: &[tunable(
            "mutex_max_spin",
            "600",
            "MALLOC_CONF; -1 is unbounded",
        )],
        source: "jemalloc-5.3.0 src/mutex.c",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "folly_waitoptions",
        name: "folly Baton/SharedMutex wait options",
        versions: "current",
        unit: Unit::Clock,
        backoff: Backoff::Timed { ns: 2000 },
        then: "futex",
        tunables: &[tunable("WaitOptions::spin_max", "2 us", "in the program")],
        source: "facebook/folly folly/synchronization/WaitOptions.h @0deef031cb8aab76dc7e736f8b7c22d701d5f36b, detail/Spin.h @323b297ad9d31375ae310b340c61bd12ac924082",
        evidence: Evidence::Read,
        note: "A comment of 2013 assumes 7 ns a hint.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "folly_sleeper",
        name: "folly MicroSpinLock Sleeper",
        versions: "current",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(4000), 1),
        then: "sleep 500 us",
        source: "facebook/folly folly/synchronization/detail/Sleeper.h @32711cc53888eec2083c72321b992365aa48daf1",
        evidence: Evidence::Read,
        note: "MicroLock.h not in the index",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "abseil_mutex",
        name: "abseil Mutex",
        versions: "20220623",
        unit: Unit::Load,
        backoff: looking(Bound::Fixed(1500), 1),
        min_cpus: 2,
        then: "250 or 5000 spins, a yield, sleep 10 us, then futex",
        source: "abseil-20220623.1 absl/synchronization/mutex.cc",
        evidence: Evidence::Read,
        note: "Immune to PAUSE latency.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "abseil_spinlock",
        name: "abseil SpinLock",
        versions: "20220623",
        unit: Unit::Load,
        backoff: looking(Bound::Fixed(1000), 1),
        min_cpus: 2,
        then: "futex or sleep of 128 us to 4 ms",
        source: "abseil-20220623.1 absl/base/internal/spinlock.cc, spinlock_wait.cc",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "onetbb_backoff",
        name: "oneTBB atomic_backoff",
        versions: "2021.8",
        unit: Unit::Hint,
        backoff: doubling(5, 1, 16),
        then: "sched_yield",
        source: "oneTBB-2021.8.0 include/oneapi/tbb/detail/_utils.h LOOPS_BEFORE_YIELD 16",
        evidence: Evidence::Read,
        note: "Arm: YIELD.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "libgomp",
        name: "libgomp do_spin",
        versions: "GCC 14",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(300_000), 1),
        then: "futex",
        tunables: &[
            tunable("GOMP_SPINCOUNT", "300000", "environment variable"),
            tunable(
                "OMP_WAIT_POLICY",
                "",
                "environment variable: passive does not spin, active spins 30e9",
            ),
        ],
        source: "gcc-mirror/gcc libgomp/config/linux/wait.h @167637297f0dcd5bc22153f88b6273fb32487b0e; env.c",
        evidence: Evidence::Read,
        note: "100 where threads outnumber CPUs (1000 if active). A comment assumes 100,000 hints a millisecond.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "libomp",
        name: "LLVM libomp blocktime",
        versions: "17+",
        unit: Unit::Clock,
        backoff: Backoff::Timed { ns: 200_000_000 },
        then: "condvar sleep",
        tunables: &[
            tunable("KMP_BLOCKTIME", "200ms", "environment variable"),
            tunable("OMP_WAIT_POLICY", "", "environment variable"),
        ],
        source: "https://reviews.llvm.org/D157646 ; https://reviews.llvm.org/D113012",
        evidence: Evidence::Excerpt,
        note: "0 on hybrid CPUs.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "dpdk",
        name: "DPDK rte_spinlock / rte_wait_until",
        versions: "22.11",
        unit: Unit::Hint,
        backoff: Backoff::Endless { gap: 1 },
        then: "never parks",
        source: "dpdk-22.11.11 lib/eal/include/generic/rte_spinlock.h, rte_pause.h",
        evidence: Evidence::Read,
        note: "rte_power_pause and rte_power_monitor use TPAUSE and UMWAIT.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "webkit_lock",
        name: "WebKit WTF::Lock",
        versions: "current",
        unit: Unit::Yield,
        backoff: looking(Bound::Fixed(40), 1),
        then: "ParkingLot",
        source: "WebKit/WebKit Source/WTF/wtf/LockAlgorithmInlines.h @0be502df2ad637b34a61af28b692ad9ab3cbf045",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "onnxruntime_pool",
        name: "ONNX Runtime Eigen pool",
        versions: "before 2026-03",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(1_048_576), 1),
        then: "block",
        tunables: &[tunable(
            "session.intra_op.allow_spinning",
            "1",
            "session option",
        )],
        source: "https://github.com/microsoft/onnxruntime/pull/27916",
        evidence: Evidence::Excerpt,
        note: "By time since 2026-03; the same constant was 3 ms, 47 ms and 500 ms.",
        ..DEFAULT_ROW
    },
];
