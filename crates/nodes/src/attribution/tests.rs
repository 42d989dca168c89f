//! The mean that stands for a fleet.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// The spread of two nodes says little of what their mean is.
#[test]
fn the_mean_of_few_nodes_is_within_its_interval() {
    const DRAWS: u32 = 2000;
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    for many in [2, 3, 8] {
        let nodes: Vec<usize> = (0..many).collect();
        let mut holds = || {
            // The sum of twelve is as good as normal, with a variance of 1.
            let mut normal = || (0..12).map(|_| chance.random::<f64>()).sum::<f64>() - 6.0;
            let figure = Figure {
                step: "app".to_owned(),
                name: PER_UNIT_FACTS[0].to_owned(),
                unit: "ns".to_owned(),
                values: nodes.iter().map(|_| 40.0 + normal()).collect(),
                lows: Vec::new(),
                highs: Vec::new(),
            };
            let found = fact(&nodes, &figure).unwrap();
            (found.value - 40.0).abs() <= NORMAL * found.error
        };
        let held: u32 = (0..DRAWS).map(|_| u32::from(holds())).sum();
        let share = f64::from(held) / f64::from(DRAWS);
        assert!((0.93..=0.97).contains(&share), "{many} nodes: {share}");
    }
}
