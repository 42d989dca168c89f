//! Waiters of databases, servers and the Linux kernel.
//!
//! Nothing is computed here.

use super::{DEFAULT_ROW, doubling, looking, tunable};
use crate::algorithm::{Algorithm, Backoff, Bound, Evidence, Growth, Unit};

pub(super) static ROWS: &[Algorithm] = &[
    Algorithm {
        id: "innodb_8",
        name: "MySQL InnoDB mutex",
        versions: "8.0.16+",
        unit: Unit::Hint,
        backoff: Backoff::Counted {
            runs: Bound::Fixed(30),
            first: 0,
            growth: Growth::Random,
            cap: 250,
        },
        then: "sync array wait",
        tunables: &[
            tunable(
                "innodb_spin_wait_pause_multiplier",
                "50",
                "server variable, 8.0.16 and later",
            ),
            tunable("innodb_spin_wait_delay", "6", "server variable"),
            tunable("innodb_sync_spin_loops", "30", "server variable"),
        ],
        source: "https://dev.mysql.com/doc/refman/9.1/en/innodb-performance-spin_lock_polling.html ; ha_innodb.cc",
        evidence: Evidence::Excerpt,
        note: "Each run is drawn from 0 to 5 times 50. The multiplier was fixed at 50 before 8.0.16.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "mariadb_srw",
        name: "MariaDB InnoDB srw_mutex",
        versions: "10.11.18",
        unit: Unit::Graded {
            above_ns: 7.5,
            short: 200,
            long: 100,
        },
        backoff: looking(Bound::Fixed(30), 1),
        then: "futex",
        tunables: &[
            tunable("innodb_spin_wait_delay", "4", "server variable"),
            tunable("innodb_sync_spin_loops", "30", "server variable"),
        ],
        source: "mariadb-10.11.18 mysys/my_cpu.c, storage/innobase/sync/srw_lock.cc, handler/ha_innodb.cc:19597-19605",
        evidence: Evidence::Read,
        note: "A PAUSE of more than 30 ticks halves it; taken as 7.5 ns, a counter of 4 GHz: no listed chip is near. 40 and 229 cycles fall into one class.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "postgres_spin",
        name: "PostgreSQL s_lock",
        versions: "15.18",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(100), 1),
        longest: Some(looking(Bound::Fixed(1000), 1)),
        then: "pg_usleep 1 ms to 1 s; PANIC after 1000",
        source: "postgresql-15.18 src/backend/storage/lmgr/s_lock.c, src/include/storage/s_lock.h:347",
        evidence: Evidence::Read,
        note: "Adapts from 10 to 1000: 100 more where it did not sleep, 1 less where it did.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "redis_io",
        name: "Redis I/O threads",
        versions: "7.0.15",
        unit: Unit::Load,
        backoff: looking(Bound::Fixed(1_000_000), 1),
        then: "mutex block",
        tunables: &[tunable("io-threads", "1", "redis.conf")],
        source: "redis-7.0.15 src/networking.c:4083",
        evidence: Evidence::Read,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "nginx_spinlock",
        name: "nginx ngx_spinlock",
        versions: "1.x",
        unit: Unit::Hint,
        backoff: doubling(11, 1, 1024),
        min_cpus: 2,
        then: "sched_yield, then again",
        source: "nginx src/core/ngx_spinlock.c",
        evidence: Evidence::Excerpt,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "rocksdb_await",
        name: "RocksDB WriteThread::AwaitState",
        versions: "current",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(200), 1),
        then: "yield up to 100 us, then block",
        tunables: &[tunable(
            "write_thread_max_yield_usec",
            "100",
            "database option",
        )],
        source: "https://github.com/facebook/rocksdb/issues/4086",
        evidence: Evidence::Excerpt,
        note: "A comment assumes 7 ns each; the issue measured 43 ns on Skylake-X.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "linux_qspinlock",
        name: "Linux qspinlock (x86 native)",
        versions: "6.x",
        unit: Unit::Hint,
        backoff: Backoff::Endless { gap: 1 },
        then: "never parks",
        tunables: &[tunable("nopvspin", "", "kernel command line")],
        source: "torvalds/linux arch/x86/include/asm/qspinlock.h @0b77b97066628deef03a6eac7b29e5c3756f4ab0; kernel/locking/qspinlock.c @0200fbdd431519d730b5d399a12840ec832b27cc",
        evidence: Evidence::Read,
        note: "The wait for the pending bit is bounded to 512 hints.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "linux_pvqspinlock",
        name: "Linux paravirt qspinlock",
        versions: "6.x",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(32_768), 1),
        then: "pv_wait (HLT)",
        tunables: &[tunable("nopvspin", "", "kernel command line")],
        source: "torvalds/linux arch/x86/include/asm/spinlock.h",
        evidence: Evidence::Excerpt,
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "linux_rwsem",
        name: "Linux rwsem writer spinning on readers",
        versions: "5.3+",
        unit: Unit::Clock,
        backoff: Backoff::Timed { ns: 25_000 },
        then: "schedule",
        source: "torvalds/linux kernel/locking/rwsem.c rwsem_rspin_threshold",
        evidence: Evidence::Excerpt,
        note: "10 us and half a microsecond per reader, 25 us at most; the clock is read every 16 loops. A mutex spins while its owner is on a CPU.",
        ..DEFAULT_ROW
    },
];
