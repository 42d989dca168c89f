//! The mean of a fleet's nodes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// With two nodes, the spread is a poor estimate of the mean's error.
#[test]
fn the_mean_of_few_nodes_is_within_its_interval() {
    const DRAWS: u32 = 2000;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for count in [2, 3, 8] {
        let nodes: Vec<usize> = (0..count).collect();
        let mut covers_truth = || {
            // The sum of twelve uniform numbers is nearly normal, with a variance of 1.
            let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            let figure = Figure {
                step: "app".to_owned(),
                name: PER_UNIT_FACTS[0].to_owned(),
                unit: "ns".to_owned(),
                values: nodes.iter().map(|_| 40.0 + normal()).collect(),
                lows: Vec::new(),
                highs: Vec::new(),
            };
            let found = mean_with_error(&nodes, &figure).unwrap();
            (found.value - 40.0).abs() <= NORMAL * found.error
        };
        let covered: u32 = (0..DRAWS).map(|_| u32::from(covers_truth())).sum();
        let share = f64::from(covered) / f64::from(DRAWS);
        assert!((0.93..=0.97).contains(&share), "{count} nodes: {share}");
    }
}
