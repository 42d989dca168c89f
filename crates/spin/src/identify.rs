//! Identifies which of the known algorithms a loop belongs to.
//!
//! The names of its function, its callers and its file decide, if there are any; otherwise constants
//! and shape, with less certainty. The result is a guess with a reason, not a proof: two algorithms
//! may have the same shape.

use super::loops::{LoopKind, SpinLoop};

/// The facts about a loop and its context.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The loop; `None` if only names are known.
    pub found: Option<&'a SpinLoop>,
    /// Names of functions on the stack, demangled, innermost first; without a stack, those of the
    /// loop's function.
    pub symbols: &'a [&'a str],
    /// The file of its code; `None` for code generated at run time.
    pub module: Option<&'a str>,
    /// All files that the process has code from.
    pub modules: &'a [&'a str],
}

/// How sure an identification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Other algorithms have this shape as well.
    Possible,
    /// Shape and constants fit, or the file.
    Likely,
    /// The name of a function fits.
    Certain,
}

/// A possible algorithm of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id in the table.
    pub algorithm: &'static str,
    /// Its strength.
    pub strength: Strength,
    /// Why, as a full sentence.
    pub reason: String,
}

/// How to recognise an algorithm.
struct Signature {
    algorithm: &'static str,
    /// Parts of the names of its functions, with spaces between.
    symbols: &'static str,
    /// Prefixes of files that contain almost no other spin loop.
    modules: &'static str,
}

/// Algorithm | symbols | modules. Names are those of the sources cited in the table of algorithms.
/// The first matching name is taken.
const SIGNATURES: &str = "\
netfx_awarelock |  | clr.dll
coreclr_gc_join | gc_heap:: t_join:: |
coreclr_monitor | AwareLock:: YieldProcessorNormalized | libcoreclr.so
dotnet_spinwait | System.Threading.SpinWait |
dotnet_lock | System.Threading.Lock:: |
dotnet_threadpool | LowLevelLifoSemaphore |
hotspot_objectmonitor | ObjectMonitor::TrySpin ObjectMonitor::try_spin |
java_onspinwait | Thread.onSpinWait |
openj9_spin | omrthread_spinlock | libj9thr libj9vm
go_mutex | sync.(*Mutex).lockSlow sync_runtime_doSpin sync.runtime_doSpin |
go_runtime_mutex | runtime.lock2 runtime.procyield |
rust_std_mutex | sync::mutex::futex::Mutex sync::mutex::futex::<impl |
rust_std_rwlock_futex | sync::rwlock::futex |
rust_std_rwlock_queue | sync::rwlock::queue |
rust_std_mpmc | std::sync::mpmc |
parking_lot_10 | parking_lot_core::spinwait parking_lot::raw_ |
crossbeam_backoff | crossbeam_utils::backoff |
glibc_spinlock | pthread_spin_lock |
glibc_adaptive | pthread_mutex_lock pthread_mutex_cond_lock |
musl_mutex | __pthread_mutex_timedlock | ld-musl-
jemalloc | malloc_mutex_lock_slow | libjemalloc.so
folly_sleeper | folly::detail::Sleeper |
folly_waitoptions | folly::detail::spin_ |
abseil_mutex | ::Mutex::LockSlow |
abseil_spinlock | SpinLock::SpinLoop SpinLock::SlowLock |
onetbb_backoff | tbb::detail:: | libtbb.so
libgomp | gomp_barrier_wait gomp_team_barrier gomp_mutex_lock | libgomp.so libgomp-
libomp | __kmp_ | libomp.so libomp5.so libiomp5.so
dpdk | rte_spinlock_lock rte_pause | librte_
webkit_lock | WTF::Lock::lockSlow WTF::LockAlgorithm |
onnxruntime_pool | onnxruntime::concurrency | libonnxruntime.so
innodb_8 | ut_delay | mysqld
mariadb_srw | srw_mutex ssux_lock srw_lock | mariadbd
postgres_spin | perform_spin_delay s_lock | postgres
redis_io | IOThreadMain | redis-server
nginx_spinlock | ngx_spinlock | nginx
rocksdb_await | WriteThread::AwaitState | librocksdb.so
linux_pvqspinlock | __pv_queued_spin_lock_slowpath |
linux_qspinlock | queued_spin_lock_slowpath _raw_spin_lock |
linux_rwsem | rwsem_down_ rwsem_spin_on_owner rwsem_optimistic_spin |";

fn signatures() -> impl Iterator<Item = Signature> {
    SIGNATURES.lines().map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let mut cell = || cells.next().unwrap_or_default();
        Signature {
            algorithm: cell(),
            symbols: cell(),
            modules: cell(),
        }
    })
}

/// Algorithms of the table that fit, surest first; empty if none does.
#[must_use]
pub fn identify(evidence: &Evidence<'_>) -> Vec<Candidate> {
    let is_work = evidence
        .found
        .is_some_and(|found| found.kind == LoopKind::Work);
    if is_work {
        return Vec::new();
    }
    let mut all: Vec<Candidate> = Vec::new();
    all.extend(match_symbol(evidence));
    all.extend(match_constants(evidence));
    all.extend(match_folded_bound(evidence));
    all.extend(match_module(evidence));
    all.extend(match_jvm_code(evidence));
    all.extend(match_libc(evidence));
    all.sort_by_key(|one| std::cmp::Reverse(one.strength));
    let mut unique: Vec<Candidate> = Vec::new();
    for candidate in all {
        if unique
            .iter()
            .all(|one| one.algorithm != candidate.algorithm)
        {
            unique.push(candidate);
        }
    }
    unique
}

/// Finds the algorithm whose function is nearest on the stack. If that is a helper of several
/// algorithms, such as Go's `procyield`, its caller decides.
fn match_symbol(evidence: &Evidence<'_>) -> Option<Candidate> {
    let fits = |symbol: &&str| {
        let mut parts = signatures().map(|one| (one.algorithm, one.symbols.split_whitespace()));
        let named = parts.find(|(_, parts)| parts.clone().any(|part| is_part(symbol, part)));
        named.map(|(algorithm, _)| (algorithm, (*symbol).to_owned()))
    };
    let mut all = evidence.symbols.iter().filter_map(fits);
    let first = all.next()?;
    let is_shared = first.1.contains("runtime.procyield");
    let caller = is_shared.then(|| all.next()).flatten();
    let (algorithm, symbol) = caller.unwrap_or(first);
    Some(Candidate {
        algorithm,
        strength: Strength::Certain,
        reason: format!("It is in {symbol}, or called from there."),
    })
}

/// Does a symbol contain this part? Short names must match as a whole: many contain `s_lock`.
fn is_part(symbol: &str, part: &str) -> bool {
    let is_plain = part.len() < 10 && !part.contains("::") && !part.ends_with('_');
    if is_plain {
        symbol == part || symbol.split('(').next() == Some(part)
    } else {
        symbol.contains(part)
    }
}

/// Recognises the .NET Framework's lock by constants that rarely occur together elsewhere.
fn match_constants(evidence: &Evidence<'_>) -> Option<Candidate> {
    let found = evidence.found.filter(|_| !is_jvm_generated(evidence))?;
    let has_hints = matches!(found.kind, LoopKind::BlindDelay | LoopKind::Polling);
    let has = |constant: u64| found.constants.binary_search(&constant).is_ok();
    (has_hints && has(50) && has(NETFX_HINTS_PER_CPU)).then(|| Candidate {
        algorithm: "netfx_awarelock",
        strength: Strength::Likely,
        reason: format!("Its constants are those of it: 50, {NETFX_HINTS_PER_CPU}."),
    })
}

/// Hints for each CPU in the longest delay of the .NET Framework's lock.
const NETFX_HINTS_PER_CPU: u64 = 20_000;

/// Recognises the .NET Framework's lock compiled for a known number of CPUs: rounds from 50 then stay
/// below a multiple of 20,000. Such numbers are common, so the loop must also be a blind delay, and
/// triple.
fn match_folded_bound(evidence: &Evidence<'_>) -> Option<Candidate> {
    let found = evidence.found.filter(|_| !is_jvm_generated(evidence))?;
    let is_blind_delay = found.kind == LoopKind::BlindDelay;
    let has = |constant: &u64| found.constants.binary_search(constant).is_ok();
    // `below 480,000` may be compiled as `at most 479,999`.
    let bound = found
        .constants
        .iter()
        .flat_map(|&c| [c, c.saturating_add(1)]);
    let bound = bound
        .filter(|bound| *bound >= NETFX_HINTS_PER_CPU && bound.is_multiple_of(NETFX_HINTS_PER_CPU))
        .min()?;
    (is_blind_delay && has(&50) && has(&3)).then(|| Candidate {
        algorithm: "netfx_awarelock",
        strength: Strength::Likely,
        reason: format!(
            "Rounds from 50 that triple while below {bound}, which is {} times 20000.",
            bound / NETFX_HINTS_PER_CPU
        ),
    })
}

fn match_module(evidence: &Evidence<'_>) -> Option<Candidate> {
    let file = file_name(evidence.module?);
    let is_of = |one: &Signature| {
        one.modules
            .split_whitespace()
            .any(|name| file.starts_with(name))
    };
    let one = signatures().find(is_of)?;
    Some(Candidate {
        algorithm: one.algorithm,
        strength: Strength::Likely,
        reason: format!("It is in {file}, which waits so."),
    })
}

fn file_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Is it code that a JVM generated?
fn is_jvm_generated(evidence: &Evidence<'_>) -> bool {
    let mut files = evidence.modules.iter().map(|path| file_name(path));
    evidence.module.is_none() && files.any(|file| file.starts_with("libjvm.so"))
}

/// Recognises code that a JVM generated, with a hint in it.
fn match_jvm_code(evidence: &Evidence<'_>) -> Option<Candidate> {
    let has_hint = evidence.found.is_some_and(|found| found.hints > 0);
    (has_hint && is_jvm_generated(evidence)).then(|| Candidate {
        algorithm: "java_onspinwait",
        strength: Strength::Likely,
        reason: "It is code that a JVM made at run time, with a hint in it, as \
                 Thread.onSpinWait becomes."
            .to_owned(),
    })
}

/// Tells the two waits of glibc apart: the spin lock only reads one number, the adaptive mutex counts.
fn match_libc(evidence: &Evidence<'_>) -> Option<Candidate> {
    let file = file_name(evidence.module?);
    let found = evidence.found.filter(|one| one.kind == LoopKind::Polling)?;
    let is_libc = file.starts_with("libc.so") || file.starts_with("libc-");
    if !is_libc && !file.starts_with("libpthread") {
        return None;
    }
    let is_bare = found.instructions <= 5 && found.looks == 1 && found.hints == 1;
    let (algorithm, reason) = if is_bare {
        ("glibc_spinlock", "only looks at one number")
    } else {
        ("glibc_adaptive", "does more than looking at one number")
    };
    Some(Candidate {
        algorithm,
        strength: Strength::Possible,
        reason: format!("It is a loop of {file} that hints and {reason}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn polling_loop(constants: &[u64]) -> SpinLoop {
        SpinLoop {
            hidden_progress: Vec::new(),
            kind: LoopKind::Polling,
            start: 0x1000,
            end: 0x1010,
            instructions: 4,
            hints: 1,
            looks: 1,
            locked: 0,
            system_calls: 0,
            calls: Vec::new(),
            computed_calls: 0,
            hinting: vec![0x1004],
            has_deadline: false,
            gap: Some(1),
            constants: constants.to_vec(),
        }
    }

    #[track_caller]
    fn check_first(evidence: &Evidence<'_>, expected: Option<(&str, Strength)>) {
        let found = identify(evidence);
        let first = found.first().map(|one| (one.algorithm, one.strength));
        assert_eq!(first, expected, "{found:?}");
    }

    const NOTHING: Evidence<'static> = Evidence {
        found: None,
        symbols: &[],
        module: None,
        modules: &[],
    };

    #[test]
    fn a_bound_for_known_cpus_is_recognised() {
        for constants in [&[3, 50, 480_000][..], &[3, 50, 479_999]] {
            let found = SpinLoop {
                kind: LoopKind::BlindDelay,
                ..polling_loop(constants)
            };
            let evidence = Evidence {
                found: Some(&found),
                ..NOTHING
            };
            check_first(&evidence, Some(("netfx_awarelock", Strength::Likely)));
        }
        let found = polling_loop(&[3, 50, 100_001]);
        let evidence = Evidence {
            found: Some(&found),
            ..NOTHING
        };
        check_first(&evidence, None);
    }

    #[test]
    fn common_constants_do_not_identify_the_net_framework_lock() {
        // Fifty rounds, a million turns: a spinning loop of a Java program.
        let constants = [3, 50, 20_000, 1_000_000];
        let looks = polling_loop(&constants[..]);
        let blind = SpinLoop {
            kind: LoopKind::BlindDelay,
            ..looks.clone()
        };
        for found in [&looks, &blind] {
            let evidence = Evidence {
                found: Some(found),
                modules: &["/usr/lib/jvm/17/lib/server/libjvm.so"],
                ..NOTHING
            };
            let ids: Vec<&str> = identify(&evidence)
                .iter()
                .map(|one| one.algorithm)
                .collect();
            assert_eq!(ids, ["java_onspinwait"]);
        }
        let found = polling_loop(&[3, 50, 1_000_000]);
        let evidence = Evidence {
            found: Some(&found),
            module: Some("/bin/prog"),
            ..NOTHING
        };
        check_first(&evidence, None);
    }

    #[test]
    fn every_signature_is_of_the_table() {
        for one in signatures() {
            assert!(
                table::find_algorithm(one.algorithm).is_ok(),
                "{}",
                one.algorithm
            );
        }
    }

    #[test]
    fn names_decide_and_callers_outweigh_helpers() {
        let symbols = [
            "runtime.procyield.abi0",
            "sync.(*Mutex).lockSlow",
            "main.main",
        ];
        for (symbols, expected) in [
            (&symbols[..], Some("go_mutex")),
            (&symbols[..1], Some("go_runtime_mutex")),
            (&["_raw_spin_lock_irqsave"], Some("linux_qspinlock")),
            (&["process_lock"], None),
            (&["s_lock"], Some("postgres_spin")),
        ] {
            let evidence = Evidence { symbols, ..NOTHING };
            check_first(&evidence, expected.map(|id| (id, Strength::Certain)));
        }
    }

    #[test]
    fn files_and_constants_make_it_likely() {
        let found = polling_loop(&[0, 1]);
        let stripped = Evidence {
            found: Some(&found),
            module: Some("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0"),
            ..NOTHING
        };
        check_first(&stripped, Some(("libgomp", Strength::Likely)));
        let netfx = polling_loop(&[1, 3, 10, 50, 20_000]);
        let named = Evidence {
            found: Some(&netfx),
            module: Some("/tmp/a.out"),
            ..NOTHING
        };
        check_first(&named, Some(("netfx_awarelock", Strength::Likely)));
        let other = polling_loop(&[1, 3, 10, 50]);
        check_first(
            &Evidence {
                found: Some(&other),
                ..named
            },
            None,
        );
    }

    #[test]
    fn code_generated_by_a_jvm_is_recognised() {
        let found = polling_loop(&[]);
        let modules = ["/usr/bin/java", "/usr/lib/jvm/x/lib/server/libjvm.so"];
        let jit = Evidence {
            found: Some(&found),
            modules: &modules,
            ..NOTHING
        };
        check_first(&jit, Some(("java_onspinwait", Strength::Likely)));
        check_first(
            &Evidence {
                modules: &modules[..1],
                ..jit
            },
            None,
        );
    }

    #[test]
    fn work_is_not_identified_as_a_wait() {
        let mut found = polling_loop(&[]);
        found.kind = LoopKind::Work;
        let symbols = ["pthread_spin_lock"];
        check_first(
            &Evidence {
                found: Some(&found),
                symbols: &symbols,
                ..NOTHING
            },
            None,
        );
        found.kind = LoopKind::Polling;
        let libc = Evidence {
            found: Some(&found),
            module: Some("/lib/libc.so.6"),
            ..NOTHING
        };
        check_first(&libc, Some(("glibc_spinlock", Strength::Possible)));
    }
}
