//! Waiters of .NET and of Windows.
//!
//! Nothing is computed here.

use super::{DEFAULT_ROW, NORMALISED, doubling, looking, tunable};
use crate::algorithm::{Algorithm, Backoff, Bound, Evidence, Growth, Unit};

/// Monitor of the .NET Framework and of `CoreCLR` before 2.1: rounds of 50 PAUSEs that triple while
/// below 20,000 times the number of CPUs, ten times.
pub const NETFX_AWARELOCK: Algorithm = Algorithm {
    id: "netfx_awarelock",
    name: ".NET Framework Monitor / CoreCLR <2.1 AwareLock",
    versions: "Framework 4.x",
    unit: Unit::Hint,
    backoff: Backoff::Rounds {
        repetitions: 10,
        first: 50,
        growth: Growth::Times(3),
        below: Bound::PerCpu(20_000),
    },
    then: "SwitchToThread between repetitions, then event wait",
    tunables: &[
        tunable(
            "COMPlus_SpinLimitProcFactor",
            "0x4E20",
            "environment variable",
        ),
        tunable(
            "COMPlus_SpinLimitProcCap",
            "0xFFFFFFFF",
            "environment variable",
        ),
        tunable("COMPlus_SpinBackoffFactor", "3", "environment variable"),
        tunable(
            "COMPlus_SpinInitialDuration",
            "0x32",
            "environment variable",
        ),
        tunable("COMPlus_SpinRetryCount", "0xA", "environment variable"),
    ],
    source: "dotnet/coreclr src/vm/crst.cpp, syncblk.inl, eeconfig.cpp, src/inc/clrconfigvalues.h",
    evidence: Evidence::Excerpt,
    note: "It looks at the lock only between rounds; a step function of the number of logical processors.",
    ..DEFAULT_ROW
};

/// Monitor of `CoreCLR` since 2.1, the repaired one.
pub const CORECLR_MONITOR: Algorithm = Algorithm {
    id: "coreclr_monitor",
    name: "CoreCLR Monitor (AwareLock)",
    versions: "2.1-8",
    unit: NORMALISED,
    backoff: doubling(30, 1, u64::MAX),
    then: "event wait",
    tunables: &[
        tunable(
            "DOTNET_Monitor_SpinCount",
            "0x1e",
            "environment variable (internal)",
        ),
        tunable(
            "DOTNET_SpinLimitProcFactor",
            "0x4E20",
            "environment variable; 0 disables spinning",
        ),
    ],
    source: "dotnet/runtime src/coreclr/inc/yieldprocessornormalized.h @165bbb9d7c58e3cae4ec279e16821349788dea43; yieldprocessornormalized.cpp @00845426b0a1a325a1b414d0bf63cc9b3c85af43; clrconfigvalues.h",
    evidence: Evidence::Read,
    note: "The length of a unit is measured at start (for 10 ms; from .NET 6 or 7 on now and then).",
    ..DEFAULT_ROW
};

pub(super) static ROWS: &[Algorithm] = &[
    NETFX_AWARELOCK,
    Algorithm {
        id: "netfx_spinwait",
        name: "System.Threading.SpinWait before .NET Core 2.1",
        versions: "Framework 4.x",
        unit: Unit::Hint,
        backoff: doubling(10, 4, 2048),
        then: "Thread.Yield, Sleep(0), Sleep(1)",
        source: "https://github.com/dotnet/coreclr/pull/9548 (benaadams: 4,8,...,2048 then yields)",
        evidence: Evidence::Excerpt,
        note: "ManualResetEventSlim and Task multiplied it by the number of processors until dotnet/coreclr#13556.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "coreclr_gc_join",
        name: "CoreCLR GC j_join",
        versions: "1.x-2.0",
        unit: Unit::Hint,
        backoff: looking(Bound::PerCpu(4096), 1),
        then: "event wait",
        source: "https://github.com/dotnet/coreclr/issues/13388",
        evidence: Evidence::Excerpt,
        note: "Later versions normalise it.",
        ..DEFAULT_ROW
    },
    CORECLR_MONITOR,
    Algorithm {
        id: "dotnet_spinwait",
        name: "System.Threading.SpinWait",
        versions: ".NET Core 2.1+",
        unit: NORMALISED,
        backoff: doubling(10, 1, u64::MAX),
        min_cpus: 2,
        then: "Thread.Yield, Sleep(0) every 5 yields, Sleep(1) after 20",
        source: "dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/SpinWait.cs @04da5a173f6331f6bb4ce24a28ccf32e136c427e",
        evidence: Evidence::Read,
        note: "35 iterations are suggested before waiting; on one CPU it always yields.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "dotnet_lock",
        name: "System.Threading.Lock",
        versions: ".NET 8 preview/9+",
        unit: NORMALISED,
        backoff: doubling(22, 1, u64::MAX),
        then: "AutoResetEvent wait",
        source: "dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/Lock.cs @047a59c5d265f94a9197fca7cab2ea9af67b7beb",
        evidence: Evidence::Read,
        note: "1 to 22 iterations by how well they went before; it begins with 22.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "dotnet_threadpool",
        name: "ThreadPool LowLevelLifoSemaphore",
        versions: ".NET 6+",
        unit: NORMALISED,
        backoff: looking(Bound::Fixed(70), 1),
        then: "futex or condvar wait",
        tunables: &[tunable(
            "DOTNET_ThreadPool_UnfairSemaphoreSpinLimit",
            "0x46",
            "environment variable (hexadecimal)",
        )],
        source: "https://github.com/dotnet/runtime/issues/100348 ; https://github.com/dotnet/coreclr/pull/13921",
        evidence: Evidence::Excerpt,
        note: "280 on arm64, where an idle program was seen to use 46 % CPU against 3 % with 0. How often it looks the source does not say: after each unit is assumed.",
        ..DEFAULT_ROW
    },
    Algorithm {
        id: "windows_cs",
        name: "Windows CRITICAL_SECTION (heap)",
        versions: "documented",
        unit: Unit::Hint,
        backoff: looking(Bound::Fixed(4000), 1),
        min_cpus: 2,
        then: "semaphore wait",
        tunables: &[tunable(
            "InitializeCriticalSectionAndSpinCount",
            "4000",
            "in the program",
        )],
        source: "https://learn.microsoft.com/en-us/windows/win32/api/synchapi/nf-synchapi-initializecriticalsectionandspincount",
        evidence: Evidence::Excerpt,
        note: "4000 is the heap manager's; the default of plain critical sections is not verified.",
        ..DEFAULT_ROW
    },
];
