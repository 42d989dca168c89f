//! Random machines with a program: its candidates and their true costs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pinwise_machine::{CommandRunner, End, Host, Request, Simulation};
use pinwise_placement::space::Space;
use pinwise_placement::{Placement, Realised};
use pinwise_sim::SimulatedMachine;
use pinwise_sim::world::{self, World, WorldNoise};
use pinwise_topology::Topology;
use pinwise_workload::{Command, Workload};

use super::rivals::Arms;
use xtask::programs::root;

/// Recordings, which seeds select in turn.
const SERIES: [&str; 3] = ["light_cpu", "medium_mem", "aa_bg"];

/// The noise of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    /// Independent, 3 % a run.
    LogNormal,
    /// Recorded series.
    Recorded,
}

impl Noise {
    pub(crate) const ALL: [Self; 2] = [Self::LogNormal, Self::Recorded];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LogNormal => "log-normal 3 %",
            Self::Recorded => "recorded",
        }
    }

    /// The noise of this seed.
    fn draw(self, seed: u64) -> WorldNoise {
        match self {
            Self::LogNormal => WorldNoise::LogNormal(0.03),
            Self::Recorded => {
                let turn = usize::try_from(seed % SERIES.len() as u64).unwrap_or(0);
                WorldNoise::Series(PathBuf::from(format!("{}.csv.xz", SERIES[turn])))
            }
        }
    }
}

/// A machine and a program, with its candidates.
#[derive(Debug)]
pub(crate) struct Case {
    text: String,
    seed: u64,
    pub(crate) topology: Topology,
    pub(crate) threads: usize,
    /// Without a number of threads.
    pub(crate) program: Workload,
    candidates: Vec<Realised>,
    /// Seconds without noise, candidate by candidate.
    pub(crate) truths: Vec<f64>,
}

impl Case {
    /// The case of a description with this noise.
    pub(crate) fn new(text: &str, noise: Noise, seed: u64) -> Result<Self> {
        let text = world::with_noise(text, &noise.draw(seed));
        let program = Workload::new(Command::from_line("sim-workload")?);
        let mut machine = open_machine(&text, seed)?;
        let (topology, _) = machine.topology()?;
        let everywhere = Placement::os_default().realise(&topology)?;
        let counted = machine.run(&request_run(&program, &everywhere))?.threads;
        let counted = usize::try_from(counted.context("threads are not given")?)?;
        let space = Space::from_topology(&topology);
        let threads = counted.clamp(1, space.cpus());
        let mut candidates = vec![everywhere];
        for shape in space.shapes(threads) {
            let place = shape.placement.realise(&topology)?;
            if place.cpus != candidates[0].cpus {
                candidates.push(place);
            }
        }
        let mut case = Self {
            text,
            seed,
            topology,
            threads,
            program,
            candidates,
            truths: Vec::new(),
        };
        case.truths = case.true_costs(&machine)?;
        Ok(case)
    }

    /// Not if the program needs all CPUs.
    pub(crate) const fn has_choice(&self) -> bool {
        self.candidates.len() > 1
    }

    fn true_costs(&self, machine: &SimulatedMachine) -> Result<Vec<f64>> {
        let workload = self.workload();
        let truths = self.candidates.iter().map(|place| {
            let truth = machine.true_cost(&request_run(&workload, place));
            truth.with_context(|| format!("{}: no truth of {}", self.seed, place.placement))
        });
        truths.collect()
    }

    /// The program with its number of threads.
    fn workload(&self) -> Workload {
        self.program.with_threads(self.threads, true)
    }

    /// The machine before its first run, with the same seed every time.
    pub(crate) fn machine(&self) -> Result<SimulatedMachine> {
        open_machine(&self.text, self.seed)
    }

    /// The candidates on such a machine, for a rival.
    pub(crate) fn arms(&self) -> Result<SimulatedArms<'_>> {
        Ok(SimulatedArms {
            machine: self.machine()?,
            workload: self.workload(),
            candidates: &self.candidates,
        })
    }
}

fn open_machine(text: &str, seed: u64) -> Result<SimulatedMachine> {
    let folder = root().join("tests/data/series");
    let machine = SimulatedMachine::from_text_in("random", text, &folder, seed)?;
    Ok(machine)
}

fn request_run<'a>(workload: &'a Workload, place: &'a Realised) -> Request<'a> {
    Request {
        memory: place.memory.as_ref(),
        ..Request::new(workload, &place.cpus)
    }
}

/// The candidates of a case, to be run.
#[derive(Debug)]
pub(crate) struct SimulatedArms<'a> {
    machine: SimulatedMachine,
    workload: Workload,
    candidates: &'a [Realised],
}

impl Arms for SimulatedArms<'_> {
    fn count(&self) -> usize {
        self.candidates.len()
    }

    fn run(&mut self, arm: usize) -> f64 {
        let request = request_run(&self.workload, &self.candidates[arm]);
        let run = self.machine.run(&request).expect("a simulated run");
        assert_eq!(run.end, End::Status(0), "a program that does not fail");
        run.wall.as_secs_f64().ln()
    }
}

/// The power of two that, as a number of threads, has the most shapes.
pub(crate) fn threads_with_most_shapes(topology: &str) -> Result<usize> {
    let text = world::describe_on(World::Fits, 1, topology, 1);
    let mut machine = SimulatedMachine::from_text("shapes", &text, 1)?;
    let space = Space::from_topology(&machine.topology()?.0);
    let numbers = std::iter::successors(Some(1), |threads| Some(2 * threads));
    let counts = numbers
        .take_while(|threads| *threads <= space.cpus())
        .map(|threads| (threads, space.shapes(threads).len()));
    let most = counts.max_by_key(|count| count.1).context("no CPUs")?;
    Ok(most.0)
}
