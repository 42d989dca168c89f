//! The true cost of runs: without noise, and averaged over chance.
//!
//! It changes no state and draws no random number of the machine: later runs do not depend on it.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::mechanism::{self, NoWitness, Scheduler};
use super::workload::SimWorkload;
use super::{LONGEST_RUN_S, SimulatedMachine, performance};
use pinwise_machine::{Request, Simulation};

/// Number of mechanism runs whose mean is the truth.
const TRUTH_RUNS: u32 = 32;

impl Simulation for SimulatedMachine {
    fn true_cost(&self, request: &Request<'_>) -> Option<f64> {
        let (kernel, workload) = self.resolve_workload(request);
        let failure = workload.failure(request.cpus);
        if failure.is_some_and(|(exit, probability)| exit != 0 && probability >= 1.0) {
            return None;
        }
        let effect = self.description.effect(&workload, request.cpus);
        let time_s = match &self.description.performance {
            Some(performance) => performance.true_s(&performance::PlacedWorkload {
                workload: &workload,
                cpus: request.cpus,
                memory: request.memory,
            }),
            None if self.uses_mechanism(kernel.as_ref()) => {
                mean_mechanism_run_s(self, &workload, request)
            }
            None => workload.base_s,
        };
        Some((time_s * effect).min(LONGEST_RUN_S))
    }
}

/// Mean of runs of the mechanism, from a separate random stream.
fn mean_mechanism_run_s(
    machine: &SimulatedMachine,
    workload: &SimWorkload,
    request: &Request<'_>,
) -> f64 {
    let default_scheduler = Scheduler::default();
    let mut chance = ChaCha8Rng::seed_from_u64(0);
    chance.set_stream(4);
    let total: f64 = (0..TRUTH_RUNS)
        .map(|_| {
            let played = mechanism::play(
                &machine.description.topology,
                machine
                    .description
                    .scheduler
                    .as_ref()
                    .unwrap_or(&default_scheduler),
                workload,
                request.cpus,
                &request.workload.environment,
                &mut chance,
                &mut NoWitness,
            );
            played.wall_s.min(LONGEST_RUN_S)
        })
        .sum();
    total / f64::from(TRUTH_RUNS)
}
