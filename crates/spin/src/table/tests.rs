use std::collections::BTreeMap;

use super::*;
use crate::algorithm::{Case, Evidence, Setting, Wait};

/// Reads a table of the corpus; prints why it is skipped if there is none.
pub(crate) fn read_corpus(file: &str) -> Option<Vec<BTreeMap<String, String>>> {
    #[expect(clippy::disallowed_methods, reason = "tests read their surroundings")]
    let Some(folder) = std::env::var_os("PINWISE_CORPUS") else {
        println!("SKIPPED: PINWISE_CORPUS names no folder with {file}");
        return None;
    };
    let path = std::path::Path::new(&folder).join(file);
    let Ok(mut reader) = csv::Reader::from_path(&path) else {
        println!("SKIPPED: no {}", path.display());
        return None;
    };
    let rows = reader.deserialize().map(Result::unwrap);
    Some(rows.collect())
}

fn wait_of(id: &str, setting: (u64, f64), case: Case) -> Wait {
    let (cpus, hint_ns) = setting;
    let setting = Setting { cpus, hint_ns };
    find_algorithm(id)
        .unwrap()
        .compute_wait(&setting, case)
        .unwrap()
}

/// Totals at 37 ns on 8 CPUs: typical, longest, and the longest blind gap, as
/// derived from the sources by hand.
#[test]
fn totals_are_those_of_the_sources() {
    let expected = [
        ("netfx_awarelock", 1_640_000, 1_640_000, 109_350),
        ("netfx_spinwait", 4_092, 4_092, 2_048),
        ("coreclr_gc_join", 32_768, 32_768, 1),
        ("coreclr_monitor", 196, 196, 7),
        ("dotnet_spinwait", 56, 56, 7),
        ("dotnet_lock", 140, 140, 7),
        ("dotnet_threadpool", 70, 70, 1),
        ("windows_cs", 4_000, 4_000, 1),
        ("hotspot_objectmonitor", 30, 30, 1),
        ("java_onspinwait", 1, 1, 1),
        ("go_mutex", 120, 120, 30),
        ("go_runtime_mutex", 120, 120, 30),
        ("rust_std_mutex", 100, 100, 1),
        ("rust_std_rwlock_queue", 127, 127, 64),
        ("rust_std_mpmc", 91, 91, 36),
        ("parking_lot_09", 14, 14, 8),
        ("parking_lot_10", 7, 7, 4),
        ("crossbeam_backoff", 127, 127, 64),
        ("glibc_adaptive", 88, 99, 31),
        ("musl_mutex", 100, 100, 1),
        ("jemalloc", 601, 601, 1),
        ("folly_waitoptions", 55, 55, 1),
        ("abseil_mutex", 0, 0, 0),
        ("webkit_lock", 0, 0, 0),
        ("onetbb_backoff", 31, 31, 16),
        ("libgomp", 300_000, 300_000, 1),
        ("libomp", 5_405_406, 5_405_406, 1),
        ("onnxruntime_pool", 1_048_576, 1_048_576, 1),
        ("innodb_8", 3_750, 7_500, 250),
        ("mariadb_srw", 3_000, 3_000, 100),
        ("postgres_spin", 100, 1_000, 1),
        ("nginx_spinlock", 2_047, 2_047, 1_024),
        ("rocksdb_await", 200, 200, 1),
        ("linux_pvqspinlock", 32_768, 32_768, 1),
    ];
    for (id, typical, longest, gap) in expected {
        let setting = (8, 37.0);
        let total = wait_of(id, setting, Case::Typical).total_hints();
        assert_eq!(total, Some(typical), "{id}");
        let longest_wait = wait_of(id, setting, Case::Longest);
        assert_eq!(longest_wait.total_hints(), Some(longest), "{id}");
        assert_eq!(longest_wait.blind_gap_hints(), gap, "{id}");
    }
    assert_eq!(
        wait_of("mariadb_srw", (8, 3.0), Case::Typical).total_hints(),
        Some(6_000)
    );
}

#[test]
fn some_waits_never_end_and_some_need_two_cpus() {
    for id in ["glibc_spinlock", "dpdk", "linux_qspinlock"] {
        assert_eq!(wait_of(id, (8, 37.0), Case::Typical).total_hints(), None);
    }
    let alone = wait_of("go_mutex", (1, 37.0), Case::Typical);
    assert_eq!(alone.total_hints(), Some(0));
    for id in ["openj9_spin", "swift_mutex"] {
        let setting = Setting {
            cpus: 8,
            hint_ns: 37.0,
        };
        let unknown = find_algorithm(id).unwrap();
        assert_eq!(unknown.compute_wait(&setting, Case::Typical), None);
    }
}

#[test]
fn ids_are_found_and_unknown_ones_get_a_hint() {
    assert_eq!(
        find_algorithm("NetFx-AwareLock").map(|a| a.id),
        Ok("netfx_awarelock")
    );
    let error = find_algorithm("netfx_awarelok").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no algorithm is called 'netfx_awarelok'; did you mean netfx_awarelock?"
    );
    let mut ids: Vec<&str> = algorithms().map(|row| row.id).collect();
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), all), (44, 44));
}

#[test]
fn rows_are_those_of_the_corpus() {
    let Some(rows) = read_corpus("spin_algorithms.csv") else {
        return;
    };
    assert_eq!(rows.len(), algorithms().count());
    for row in &rows {
        let known = find_algorithm(&row["id"]).unwrap();
        assert_eq!(known.name, row["name"], "{}", known.id);
        assert_eq!(known.versions, row["version"], "{}", known.id);
        let evidence = match known.evidence {
            Evidence::Read => "read",
            Evidence::Excerpt => "excerpt",
        };
        assert_eq!(evidence, row["evidence"], "{}", known.id);
        // The corpus's plain numbers must equal ours.
        let setting = Setting {
            cpus: 8,
            hint_ns: 37.0,
        };
        let (Ok(total), Some(wait)) = (
            row["total_units"].parse::<u64>(),
            known.compute_wait(&setting, Case::Typical),
        ) else {
            continue;
        };
        assert_eq!(wait.total_hints(), Some(total), "{}", known.id);
        if let Ok(gap) = row["max_blind_gap_units"].parse::<u64>() {
            assert_eq!(wait.blind_gap_hints(), gap, "{}", known.id);
        }
    }
}
