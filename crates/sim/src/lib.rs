//! Described machines: their shape, the cost of each placement, and their noise. The truth is
//! known, so that methods can be judged.
//!
//! A run takes `base × effect(placement) × noise` or, if the description has a scheduler, what
//! follows from a `mechanism`. The noise comes from models or from a recorded series that is
//! replayed in time order. Time is simulated: a budget of an hour is over in a moment. Of the host,
//! only the description's own files are read.
//!
//! ```
//! use pinwise_machine::Host;
//! use pinwise_sim::SimulatedMachine;
//!
//! let mut machine = SimulatedMachine::open("package:2 l3:2 core:4 pu:2", 1)?;
//! let (topology, _) = machine.topology()?;
//! assert_eq!(topology.counts().cores, 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

/// Defines a struct for a section of descriptions, with a default for each key.
macro_rules! with_defaults {
    (
        $(#[$of_all:meta])*
        $visible:vis struct $name:ident {
            $($(#[$of_key:meta])* $key_visible:vis $key:ident: $type:ty = $default:expr,)+
        }
    ) => {
        $(#[$of_all])*
        $visible struct $name {
            $($(#[$of_key])* $key_visible $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)+
                }
            }
        }
    };
}

mod behaviour;
mod checker;
mod demand;
mod description;
mod jitter;
mod mechanism;
mod noise;
mod performance;
mod replay;
mod series;
mod shape;
mod trace;
mod truth;
mod wiring;
mod workload;
#[cfg(any(test, feature = "examples"))]
pub mod world;

use std::path::Path;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use checker::DescriptionError;
use description::Description;
pub use mechanism::{AssumedParameter, SourceFigure};
use mechanism::{Kernel, NoWitness, PlayedRun, Scheduler, Witness, parse_kernel};
use noise::{Noise, RunNoise};
use wiring::Probing;
use workload::SimWorkload;

use pinwise_machine::{
    CommandRunner, End, GapListener, GapWatcher, Host, JitterOrder, MachineError, Output, Request,
    Run, SampleOrder, Sampler, SamplingResult, Simulation, Usage, WatchedCpus,
};
use pinwise_sched::Tid;
use pinwise_topology::{CpuSet, Topology, Warning};
use pinwise_workload::{Command, Counts};

/// The longest run, some thirty years: an effect, drift or burst that overflows must not make the
/// clock infinite.
const LONGEST_RUN_S: f64 = 1e9;
/// The range of thread ids in traces: they are reused from the first on, as in a kernel.
const FIRST_THREAD: Tid = 1000;
const LAST_THREAD: Tid = 4_194_304;

/// A machine made from a description and a seed.
#[derive(Debug)]
pub struct SimulatedMachine {
    label: String,
    description: Description,
    noise: Noise,
    history: behaviour::RunHistory,
    probing: Probing,
    chance: ChaCha8Rng,
    now_s: f64,
    next_thread: Tid,
}

/// A run before it is simulated.
#[derive(Debug)]
struct PreparedRun {
    /// The name of its program.
    name: String,
    /// `None` for programs other than pinwise's own kernels.
    kernel: Option<Kernel>,
    workload: SimWorkload,
    /// Factor on its time: the placement's effect and behaviour.
    effect: f64,
    noise: RunNoise,
}

impl PreparedRun {
    /// A workload that never ends.
    fn endless(workload: &SimWorkload) -> Self {
        Self {
            name: "default".to_owned(),
            kernel: None,
            workload: SimWorkload {
                base_s: LONGEST_RUN_S,
                ..workload.clone()
            },
            effect: 1.0,
            noise: RunNoise {
                factor: 1.0,
                user_share: None,
                sys_share: None,
                foreign_cpus: None,
            },
        }
    }

    /// Applies effects and noise to a time.
    fn apply_effects_s(&self, time_s: f64) -> f64 {
        time_s * self.effect * self.noise.factor
    }
}

impl SimulatedMachine {
    /// A machine from the text after `sim:`: the path of a TOML file, or a synthetic topology on
    /// which placement does not matter and every run takes 100 ms with 1 % of noise.
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

    /// A machine from the text of a description, called `label`. The text cannot name files.
    ///
    /// # Errors
    /// [`DescriptionError`] names the line and key.
    pub fn from_text(label: &str, text: &str, seed: u64) -> Result<Self, DescriptionError> {
        let description = Description::from_text(label, text, None)?;
        Ok(Self::new(label.to_owned(), description, seed))
    }

    /// The same, with `folder` as the base of relative paths.
    ///
    /// # Errors
    /// [`DescriptionError`] names the line and key.
    #[cfg(any(test, feature = "examples"))]
    pub fn from_text_in(
        label: &str,
        text: &str,
        folder: &Path,
        seed: u64,
    ) -> Result<Self, DescriptionError> {
        let description = Description::from_text(label, text, Some(folder))?;
        Ok(Self::new(label.to_owned(), description, seed))
    }

    /// The source's figures behind parameters, according to the description.
    #[must_use]
    pub fn given(&self) -> &[SourceFigure] {
        &self.description.given
    }

    /// Parameters that the description declares as assumed.
    #[must_use]
    pub fn assumed(&self) -> &[AssumedParameter] {
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
            history: behaviour::RunHistory::default(),
            chance,
            now_s: 0.0,
            next_thread: FIRST_THREAD,
        }
    }

    /// Does a mechanism simulate the run? Kernels always use one: their threads are meaningless
    /// otherwise.
    fn uses_mechanism(&self, kernel: Option<&Kernel>) -> bool {
        let has_mechanism = self.description.scheduler.is_some() || kernel.is_some();
        has_mechanism && self.description.performance.is_none()
    }

    /// Computes a run with the performance model; `None` if there is none.
    fn compute(&mut self, prepared: &PreparedRun, request: &Request<'_>) -> Option<PlayedRun> {
        let placed = performance::PlacedWorkload {
            workload: &prepared.workload,
            cpus: request.cpus,
            memory: request.memory,
        };
        let performance = self.description.performance.as_ref()?;
        let outcome = performance.play(&placed, &mut self.chance);
        Some(PlayedRun {
            wall_s: outcome.wall_s,
            busy_s: outcome.busy_s,
            foreign_s: 0.0,
            migrations: outcome.migrations,
            followed_s: outcome.wall_s,
        })
    }

    /// Runs the mechanism; `None` if there is none.
    fn play(
        &mut self,
        prepared: &PreparedRun,
        cpus: &CpuSet,
        environment: &[(String, String)],
        witness: &mut dyn Witness,
    ) -> Option<PlayedRun> {
        if !self.uses_mechanism(prepared.kernel.as_ref()) {
            return None;
        }
        let default_scheduler = Scheduler::default();
        let scheduler = self.description.scheduler.as_ref();
        Some(mechanism::play(
            &self.description.topology,
            scheduler.unwrap_or(&default_scheduler),
            &prepared.workload,
            cpus,
            environment,
            &mut self.chance,
            witness,
        ))
    }

    /// A program that starts in its own folder may be described separately, as `FOLDER/PROGRAM`.
    fn find_workload(&self, request: &Request<'_>) -> &SimWorkload {
        let name = request.workload.command.program_name();
        let folder = request.workload.folder.as_deref();
        let folder = folder.and_then(|folder| folder.file_name());
        folder
            .and_then(|folder| {
                let both = format!("{}/{name}", folder.to_string_lossy());
                self.description.find_workload(&both)
            })
            .unwrap_or_else(|| self.description.workload(name))
    }

    /// Resolves a command to its workload, and to a kernel if it is one.
    fn resolve_workload(&self, request: &Request<'_>) -> (Option<Kernel>, SimWorkload) {
        let kernel = parse_kernel(request.workload.command.argv());
        let mut workload = match &kernel {
            Some(kernel) => kernel.workload(self.description.find_workload(&kernel.name)),
            None => self.find_workload(request).clone(),
        };
        if kernel.is_none() && self.description.performance.is_some() {
            let threads = performance::requested_threads(request.workload);
            workload.threads = threads.unwrap_or(workload.threads);
        }
        (kernel, workload)
    }

    /// Prepares a run; draws its noise.
    fn prepare(&mut self, request: &Request<'_>) -> PreparedRun {
        let name = request.workload.command.program_name();
        let (kernel, workload) = self.resolve_workload(request);
        let noise = self.noise.draw_run(self.now_s, &mut self.chance);
        let behaviour = self.history.draw_factor(
            &self.description.behaviours,
            request.cpus,
            noise.foreign_cpus.unwrap_or(0.0),
            &mut self.chance,
        );
        let effect = behaviour * self.description.effect(&workload, request.cpus);
        PreparedRun {
            name: name.to_owned(),
            kernel,
            workload,
            effect,
            noise,
        }
    }

    /// Adds effects and noise to the simulated times, and moves the clock to the run's end.
    fn finish(
        &mut self,
        prepared: &PreparedRun,
        request: &Request<'_>,
        played: Option<PlayedRun>,
    ) -> Run {
        let PreparedRun {
            name,
            kernel,
            workload,
            noise,
            ..
        } = prepared;
        let base_s = played.map_or(workload.base_s, |played| played.wall_s);
        let wall_s = prepared.apply_effects_s(base_s).min(LONGEST_RUN_S);
        let timeout = request.workload.timeout.map(|t| t.as_secs_f64());
        let is_late = timeout.is_some_and(|limit| self.noise.round_to_clock(wall_s) > limit);
        // A run beyond its limit is killed at the limit.
        let wall_s = timeout.filter(|_| is_late).unwrap_or(wall_s);
        self.now_s += wall_s;
        let wall_s = self.noise.round_to_clock(wall_s);
        let failure = self.draw_failure(workload, request.cpus);
        let end = failure.unwrap_or(End::Status(0));
        let described_share = workload.cpu_share(request.cpus);
        let cpu_share = played.map_or(described_share, |played| played.busy_s / played.wall_s);
        let user_share = noise.user_share.unwrap_or(0.98 * cpu_share);
        let sys_share = noise.sys_share.unwrap_or(0.02 * cpu_share);
        let printed = match kernel {
            Some(kernel) => kernel.print_json(wall_s),
            None => format!("simulated {name}: {wall_s:.9} s\n"),
        };
        let played_foreign = played
            .filter(|_| self.has_neighbours())
            .map(|played| prepared.apply_effects_s(played.foreign_s));
        let drawn_foreign = noise.foreign_cpus.map(|cpus| cpus * wall_s);
        // A recorded run of one thread that has no CPU waits for one.
        let shares = noise.user_share.zip(noise.sys_share);
        let queued_share = shares.map(|(user, sys)| (1.0 - user - sys).max(0.0));
        Run {
            user: Some(to_duration(wall_s * user_share)),
            system: Some(to_duration(wall_s * sys_share)),
            max_rss_bytes: workload.max_rss_bytes,
            counts: Counts {
                migrations: played.map(|played| played.migrations),
                ..Counts::default()
            },
            queued: queued_share
                .filter(|_| workload.threads == 1)
                .map(|share| to_duration(wall_s * share)),
            threads: Some(workload.threads),
            granted: request.cpus.clone(),
            foreign_cpu: played_foreign.or(drawn_foreign).map(to_duration),
            output: (request.output == Output::Keep).then(|| printed.into_bytes()),
            ..Run::ended(
                to_duration(wall_s),
                if is_late { End::TimedOut } else { end },
            )
        }
    }

    fn has_neighbours(&self) -> bool {
        let scheduler = self.description.scheduler.as_ref();
        scheduler.is_some_and(|scheduler| !scheduler.neighbours.is_empty())
    }

    /// Ids for this many consecutive threads; returns the first.
    fn new_threads(&mut self, threads: u32) -> Tid {
        let threads = Tid::try_from(threads).unwrap_or(1);
        if self.next_thread > LAST_THREAD - threads {
            self.next_thread = FIRST_THREAD;
        }
        let first = self.next_thread;
        self.next_thread += threads;
        first
    }

    /// The exit status of a failing run; `None` if it succeeds.
    fn draw_failure(&mut self, workload: &SimWorkload, cpus: &CpuSet) -> Option<End> {
        let (exit, probability) = workload.failure(cpus)?;
        (self.chance.random::<f64>() < probability).then_some(End::Status(exit))
    }
}

impl Host for SimulatedMachine {
    fn label(&self) -> String {
        format!("sim:{}", self.label)
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        Some(self)
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        Ok((self.description.topology.clone(), Vec::new()))
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now_s)
    }

    fn usage(&mut self) -> Option<Usage> {
        None
    }

    fn wait(&mut self, time: Duration) -> Result<(), MachineError> {
        self.now_s += time.as_secs_f64();
        Ok(())
    }
}

impl CommandRunner for SimulatedMachine {
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let prepared = self.prepare(request);
        let environment = &request.workload.environment;
        let played = match self.compute(&prepared, request) {
            Some(computed) => Some(computed),
            None => self.play(&prepared, request.cpus, environment, &mut NoWitness),
        };
        Ok(self.finish(&prepared, request, played))
    }

    fn run_helper(&mut self, _role: &'static str, _command: &Command) -> Result<(), MachineError> {
        Ok(())
    }
}

impl Sampler for SimulatedMachine {
    fn sample(&mut self, _order: &SampleOrder<'_>) -> Result<SamplingResult, MachineError> {
        Err(MachineError::System {
            action: "sampling".to_owned(),
            reason: "a simulated machine executes no instructions; it needs --machine local"
                .to_owned(),
        })
    }
}

impl GapWatcher for SimulatedMachine {
    fn watch_gaps(
        &mut self,
        order: &JitterOrder<'_>,
        listener: &mut dyn GapListener,
    ) -> Result<WatchedCpus, MachineError> {
        let Some(jitter) = &self.description.jitter else {
            return Err(MachineError::System {
                action: "watching CPUs for jitter".to_owned(),
                reason: "the description of this simulated machine has no section [jitter]"
                    .to_owned(),
            });
        };
        let from_ns = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        let watched = jitter.watch(order, from_ns, &mut self.chance, listener);
        self.now_s += order.time.as_secs_f64();
        Ok(watched)
    }
}

fn to_duration(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.min(LONGEST_RUN_S)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests;
