//! Machines that are only described: their shape, what each placement costs,
//! and how noisy they are. The truth is known, so that methods can be judged.
//!
//! A run takes `base × effect(placement) × noise`. The noise comes from models
//! or from a recorded series that is replayed in time order. Time is
//! simulated: a budget of an hour is over in a moment. Nothing of the host is
//! looked at but the description's own files.

mod description;
mod noise;
mod series;
mod wiring;

use std::path::Path;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use description::DescriptionError;
use description::{Description, SimWorkload};
use noise::Noise;
use wiring::Probing;

use super::{Batches, End, Machine, MachineError, Output, Probe, Request, Run, Usage};
use crate::topology::{Topology, Warning};
use crate::workload::Command;

/// No run takes longer, some thirty years: an effect, drift or burst that
/// overflows must not make the clock infinite.
const LONGEST_RUN_S: f64 = 1e9;

/// A machine made of a description and a seed.
#[derive(Debug)]
pub struct SimulatedMachine {
    label: String,
    description: Description,
    noise: Noise,
    probing: Probing,
    chance: ChaCha8Rng,
    now_s: f64,
}

impl SimulatedMachine {
    /// A machine from what stands behind `sim:`: the path of a TOML file, or a
    /// synthetic topology on which nothing matters and every run takes the
    /// same 100 ms but for 1 % of noise.
    ///
    /// # Errors
    /// [`DescriptionError`] names the file, line and key.
    pub fn open(text: &str, seed: u64) -> Result<Self, DescriptionError> {
        let is_file = Path::new(text)
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("toml"));
        let description = if is_file {
            Description::from_file(Path::new(text))?
        } else {
            Description::from_topology(text)?
        };
        Ok(Self::new(text.to_owned(), description, seed))
    }

    fn new(label: String, description: Description, seed: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        chance.set_stream(1);
        let noise = Noise::new(description.noise.clone(), &mut chance);
        Self {
            probing: Probing::new(&description.wiring, seed),
            label,
            description,
            noise,
            chance,
            now_s: 0.0,
        }
    }

    fn fails(&mut self, workload: &SimWorkload) -> Option<End> {
        let exit = workload.exit?;
        let probability = workload.fail_probability.unwrap_or(1.0);
        (self.chance.random::<f64>() < probability).then_some(End::Status(exit))
    }
}

impl Machine for SimulatedMachine {
    fn label(&self) -> String {
        format!("sim:{}", self.label)
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        Ok((self.description.topology.clone(), Vec::new()))
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now_s)
    }

    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let name = request.workload.command.program_name();
        let workload = self.description.workload(name).clone();
        let effect = self.description.effect(&workload, request.cpus);
        let noise = self.noise.next(self.now_s, &mut self.chance);
        let wall_s = (workload.base_s * effect * noise.factor).min(LONGEST_RUN_S);
        self.now_s += wall_s;
        let end = self.fails(&workload).unwrap_or(End::Status(0));
        let timeout = request.workload.timeout.map(|t| t.as_secs_f64());
        let is_late = timeout.is_some_and(|limit| wall_s > limit);
        let user_share = noise.user_share.unwrap_or(0.98 * workload.cpu_share);
        let sys_share = noise.sys_share.unwrap_or(0.02 * workload.cpu_share);
        let printed = format!("simulated {name}: {wall_s:.9} s\n").into_bytes();
        Ok(Run {
            user: Some(seconds(wall_s * user_share)),
            system: Some(seconds(wall_s * sys_share)),
            max_rss_bytes: workload.max_rss_bytes,
            threads: Some(workload.threads),
            granted: request.cpus.clone(),
            output: (request.output == Output::Keep).then_some(printed),
            ..Run::of(seconds(wall_s), if is_late { End::TimedOut } else { end })
        })
    }

    fn run_helper(&mut self, _role: &'static str, _command: &Command) -> Result<(), MachineError> {
        Ok(())
    }

    fn usage(&mut self) -> Option<Usage> {
        None
    }

    fn wait(&mut self, time: Duration) -> Result<(), MachineError> {
        self.now_s += time.as_secs_f64();
        Ok(())
    }

    fn probe(
        &mut self,
        probes: &[Probe],
        batches: usize,
        limit: Duration,
    ) -> Result<Vec<Batches>, MachineError> {
        Ok(wiring::probe(self, probes, batches, limit))
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.min(LONGEST_RUN_S)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests;
