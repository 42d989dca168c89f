//! Machines that are only described: their shape, what each placement costs,
//! and how noisy they are. The truth is known, so that methods can be judged.
//!
//! A run takes `base × effect(placement) × noise`, or where the description has
//! a scheduler, what follows from a `mechanism`. The noise comes from models
//! or from a recorded series that is replayed in time order. Time is
//! simulated: a budget of an hour is over in a moment. Nothing of the host is
//! looked at but the description's own files.

mod description;
mod mechanism;
mod noise;
mod series;
mod wiring;
mod workload;

use std::path::Path;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use description::Description;
pub use description::DescriptionError;
pub use mechanism::{Assumed, Given};
use mechanism::{Kernel, Played, Scheduler};
use noise::Noise;
use wiring::Probing;
use workload::SimWorkload;

use super::{
    Batches, End, Listener, Machine, MachineError, Output, Probe, Request, Run, TierCost,
    TraceOrder, Traced, Usage,
};
use crate::topology::{Topology, Warning};
use crate::trace::{Availability, Tier};
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

    /// A machine from the text of a description, called `label`. It cannot
    /// name files of its own.
    ///
    /// # Errors
    /// [`DescriptionError`] names the line and key.
    pub fn from_text(label: &str, text: &str, seed: u64) -> Result<Self, DescriptionError> {
        let description = Description::from_text(label, text, None)?;
        Ok(Self::new(label.to_owned(), description, seed))
    }

    /// Figures of a source that parameters were set from, as the description
    /// says.
    #[must_use]
    pub fn given(&self) -> &[Given] {
        &self.description.given
    }

    /// Parameters that the description says are assumed.
    #[must_use]
    pub fn assumed(&self) -> &[Assumed] {
        &self.description.assumed
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

    /// What the mechanism makes of a run; `None` where there is none. Kernels
    /// have one everywhere: their threads mean nothing without.
    fn play(
        &mut self,
        workload: &SimWorkload,
        request: &Request<'_>,
        kernel: Option<&Kernel>,
    ) -> Option<Played> {
        let usual = Scheduler::default();
        let scheduler = match &self.description.scheduler {
            Some(scheduler) => scheduler,
            None if kernel.is_some() => &usual,
            None => return None,
        };
        Some(mechanism::play(
            &self.description.topology,
            scheduler,
            workload,
            request.cpus,
            &request.workload.environment,
            &mut self.chance,
        ))
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
        let command = &request.workload.command;
        let name = command.program_name();
        let kernel = mechanism::kernel(command.argv());
        let workload = match &kernel {
            Some(kernel) => kernel.workload(self.description.described(&kernel.name)),
            None => self.description.workload(name).clone(),
        };
        let effect = self.description.effect(&workload, request.cpus);
        let noise = self.noise.next(self.now_s, &mut self.chance);
        let played = self.play(&workload, request, kernel.as_ref());
        let base_s = played.map_or(workload.base_s, |played| played.wall_s);
        let wall_s = (base_s * effect * noise.factor).min(LONGEST_RUN_S);
        self.now_s += wall_s;
        let end = self.fails(&workload).unwrap_or(End::Status(0));
        let timeout = request.workload.timeout.map(|t| t.as_secs_f64());
        let is_late = timeout.is_some_and(|limit| wall_s > limit);
        let cpu_share = played.map_or(workload.cpu_share, |played| played.busy_s / played.wall_s);
        let user_share = noise.user_share.unwrap_or(0.98 * cpu_share);
        let sys_share = noise.sys_share.unwrap_or(0.02 * cpu_share);
        let printed = match &kernel {
            Some(kernel) => kernel.printed(wall_s),
            None => format!("simulated {name}: {wall_s:.9} s\n"),
        };
        Ok(Run {
            user: Some(seconds(wall_s * user_share)),
            system: Some(seconds(wall_s * sys_share)),
            max_rss_bytes: workload.max_rss_bytes,
            migrations: played.map(|played| played.migrations),
            threads: Some(workload.threads),
            granted: request.cpus.clone(),
            output: (request.output == Output::Keep).then(|| printed.into_bytes()),
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

    fn tiers(&mut self) -> Vec<Availability> {
        Vec::new()
    }

    fn trace(
        &mut self,
        _order: &TraceOrder<'_>,
        _listener: &mut dyn Listener,
    ) -> Result<Traced, MachineError> {
        Err(MachineError::Untraceable {
            tier: "any",
            reason: "this machine cannot be traced yet".to_owned(),
            remedy: None,
        })
    }

    fn tracing_cost(
        &mut self,
        _tiers: &[Tier],
        _time: Duration,
    ) -> Result<Vec<TierCost>, MachineError> {
        Ok(Vec::new())
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.min(LONGEST_RUN_S)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests;
