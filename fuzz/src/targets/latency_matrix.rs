//! Latency matrices as CSV, and the wiring inferred from them: groups are disjoint and hold CPUs of
//! the matrix, and a parsed matrix survives writing and reading.

use pinwise_topology::CpuSet;
use pinwise_wiring::{Evidence, PairMatrix, infer};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match PairMatrix::from_csv(text) {
        Ok(matrix) => check(&matrix),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn check(matrix: &PairMatrix) {
    let written = PairMatrix::from_csv(&matrix.to_csv()).expect("what was written is read");
    assert_eq!(written.to_csv(), matrix.to_csv());
    let cpus: CpuSet = matrix.cpus().iter().copied().collect();
    let wiring = infer(&Evidence {
        latency_ns: matrix.clone(),
        contention: None,
    });
    for level in &wiring.levels {
        let mut seen = CpuSet::new();
        for group in &level.groups {
            assert!(group.len() >= 2 && group.is_subset(&cpus));
            assert!(!group.intersects(&seen));
            seen = seen.union(group);
        }
        assert!((0.0..=1.0).contains(&level.confidence));
    }
    assert!(!wiring.is_flat || wiring.levels.is_empty());
}
