//! Random machines with random programs whose true figures are known.
//!
//! Programs share the time of CPUs, the issue slots of cores, last-level caches and the bandwidth
//! of memory; batch jobs follow Amdahl's law, services queue. The search's model is a different one.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::places::Place;
use pinwise_machine::{CommandRunner, End, Host, MachineError, Request, Run, Usage};
use pinwise_topology::{CpuSet, Level, Topology, Warning};
use pinwise_workload::Command;
use pinwise_workload::joint::{JointProgram, Round, RoundFigures, RoundReport, parse};

/// Machines, 4 to 96 CPUs.
const SHAPES: [&str; 8] = [
    "package:1 l3:1(size=8MB) core:4 pu:1",
    "package:1 l3:1(size=16MB) core:4 pu:2",
    "package:1 l3:1(size=24MB) core:8 pu:2",
    "package:1 l3:2(size=16MB) core:4 pu:2",
    "package:1 l3:4(size=16MB) core:6 pu:2",
    "package:2 l3:1(size=32MB) core:12 pu:2",
    "package:2 l3:4(size=16MB) core:4 pu:2",
    "package:1 l3:1(size=32MB) core:48 pu:1",
];

/// The true properties of a program.
#[derive(Debug, Clone)]
struct Program {
    threads: f64,
    /// Work that clients request, in CPUs; `None` for a batch job.
    demand: Option<f64>,
    base_s: f64,
    /// Share of the work that cannot run in parallel.
    serial: f64,
    /// Working set, MB.
    working_set: f64,
    /// Relative cost of missing the whole working set in the cache.
    sensitivity: f64,
    /// Memory bandwidth of a busy thread, GB/s.
    bandwidth: f64,
    /// Share of a thread's time in which it waits for memory.
    memory: f64,
    /// Relative cost of threads in different caches.
    span: f64,
    /// Relative cost of another program on its CPUs, beside their time.
    switching: f64,
}

/// A machine with programs.
#[derive(Debug, Clone)]
pub(super) struct JointWorld {
    pub(super) topology: Topology,
    programs: Vec<Program>,
    /// The programs as the user describes them.
    pub(super) file: Vec<JointProgram>,
    /// Speed of a hyper-thread beside a busy sibling, relative to one alone.
    smt: f64,
    /// Memory bandwidth of all nodes together, GB/s.
    node_bandwidth: f64,
    /// Standard deviation of a figure, relative.
    noise: f64,
}

impl JointWorld {
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = SHAPES[rng.random_range(0..SHAPES.len())];
        let topology = Topology::from_synthetic(shape).unwrap();
        let count = [2, 2, 2, 3, 3, 4, 5, 6][rng.random_range(0..8)];
        let cpus = topology.allowed.len() as f64;
        let mut between = |low: f64, high: f64| rng.random_range(low..high);
        let mut programs = Vec::new();
        for number in 0..count {
            let is_service = number == 0 || between(0.0, 1.0) < 0.25;
            programs.push(Program {
                threads: (cpus * between(0.2, 1.2) / (f64::from(count) - 1.0))
                    .max(1.0)
                    .ceil(),
                demand: is_service.then(|| cpus * between(0.1, 0.8) / f64::from(count)),
                base_s: between(0.5, 5.0),
                serial: between(0.0, 0.15),
                working_set: between(2.0, 40.0),
                sensitivity: between(0.0, 1.0),
                bandwidth: between(0.2, 8.0),
                memory: between(0.0, 0.7),
                span: between(0.0, 0.15),
                switching: between(0.0, 0.3),
            });
        }
        let mut world = Self {
            smt: between(0.5, 0.75),
            node_bandwidth: cpus * between(1.0, 4.0),
            noise: between(0.01, 0.04),
            topology,
            programs,
            file: Vec::new(),
        };
        let keeping_share = (between(0.0, 1.0) < 0.5).then(|| between(0.2, 0.6));
        world.file = world.write_file(keeping_share);
        world
    }

    /// The programs' descriptions; the first has a limit that this share of the first plans keeps.
    fn write_file(&self, keeping_share: Option<f64>) -> Vec<JointProgram> {
        let limit = keeping_share.map(|share| {
            let plans = super::places::list_first_plans(&self.topology, self.programs.len());
            let figures: Vec<f64> = plans.iter().map(|place| self.figures(place)[0]).collect();
            pinwise_stats::describe::quantile(&figures, share)
        });
        let tables = (0..self.programs.len()).map(|number| {
            let limit = limit.filter(|_| number == 0);
            let limit = limit.map_or(String::new(), |limit| format!("limit = \"{limit:.9} s\"\n"));
            format!("[[program]]\nname = \"p{number}\"\ncommand = \"p\"\nweight = 1.0\n{limit}")
        });
        parse(&tables.collect::<String>()).unwrap()
    }

    /// The true figure of each program, seconds.
    pub(super) fn figures(&self, place: &Place) -> Vec<f64> {
        let loads = self.loads(place);
        let missing = self.topology.llcs.iter().map(|cache| {
            let own = self.topology.caches.iter().find(|c| c.cpus == *cache);
            let size = own.and_then(|c| c.size_bytes).unwrap_or(1 << 24) as f64 / 1e6;
            let used: f64 = (self.programs.iter().zip(&loads))
                .map(|(program, loads)| {
                    let all: f64 = loads.iter().sum();
                    program.working_set * sum_loads(loads, cache) / all.max(1e-9)
                })
                .sum();
            (1.0 - size / used.max(1e-9)).max(0.0)
        });
        let nodes = self.topology.packages.len() as f64;
        let queues = self.topology.packages.iter().map(|node| {
            let programs = self.programs.iter().zip(&loads);
            let demand: f64 = programs
                .map(|(p, loads)| p.bandwidth * sum_loads(loads, node))
                .sum();
            (demand * nodes / self.node_bandwidth - 1.0).max(0.0)
        });
        let (missing, queues): (Vec<f64>, Vec<f64>) = (missing.collect(), queues.collect());
        let programs = 0..self.programs.len();
        programs
            .map(|number| self.figure(number, place, &loads, &missing, &queues))
            .collect()
    }

    /// By program and CPU: the share of the CPU's time that the program demands. Threads go where
    /// other programs leave room.
    fn loads(&self, place: &Place) -> Vec<Vec<f64>> {
        let size = self.topology.allowed.last().unwrap_or(0) + 1;
        let wanted = |number: usize| {
            let program = &self.programs[number];
            program.demand.unwrap_or(program.threads)
        };
        let even = |number: usize, cpu: usize| match place[number].contains(cpu) {
            true => (wanted(number) / place[number].len() as f64).min(1.0),
            false => 0.0,
        };
        let program_loads = |number: usize| {
            let room = |cpu: usize| {
                let others = (0..place.len()).filter(|&other| other != number);
                let taken: f64 = others.map(|other| even(other, cpu)).sum();
                1.0 / (0.2 + taken)
            };
            let all: f64 = place[number].iter().map(room).sum();
            let mut loads = vec![0.0; size];
            for cpu in place[number].iter() {
                loads[cpu] = (wanted(number) * room(cpu) / all).min(1.0);
            }
            loads
        };
        (0..place.len()).map(program_loads).collect()
    }

    /// The true figure of program `number`. `missing`: by last-level cache, the share of the working
    /// sets that does not fit; `queues`: by package, the excess demand for bandwidth.
    fn figure(
        &self,
        number: usize,
        place: &Place,
        loads: &[Vec<f64>],
        missing: &[f64],
        queues: &[f64],
    ) -> f64 {
        let program = &self.programs[number];
        let total_load = |cpu: usize| loads.iter().map(|loads| loads[cpu]).sum::<f64>();
        let (mut capacity, mut speeds, mut beside) = (0.0, 0.0, 0.0);
        for cpu in place[number].iter() {
            let own = loads[number][cpu];
            let busy = total_load(cpu);
            let others = (busy - own).clamp(0.0, 1.0);
            let units = self.topology.cpu(cpu).unwrap();
            let siblings = self.topology.cores[units.core.unwrap()].iter();
            let siblings = siblings.filter(|&other| other != cpu);
            let sibling = siblings.map(total_load).sum::<f64>().min(1.0);
            let missing = missing[units.llc.unwrap()];
            let queue = queues[units.package.unwrap()];
            let speed = (1.0 - (1.0 - self.smt) * sibling)
                / (1.0 + program.sensitivity * missing)
                / (1.0 + program.memory * queue)
                * (1.0 - program.switching * others);
            let share = (1.0 / busy.max(1e-9)).min(1.0);
            capacity += own * share * speed;
            // The speed that a service could have on this CPU.
            speeds += speed * (1.0 - others).max(0.1);
            beside += others / place[number].len() as f64;
        }
        let caches = self.topology.units(Level::Llc);
        let spread = caches.iter().filter(|unit| unit.intersects(&place[number]));
        let apart = 1.0 - 1.0 / spread.count().max(1) as f64;
        let span = 1.0 + program.span * apart;
        let size = place[number].len() as f64;
        match program.demand {
            None => {
                let speed = capacity / sum_loads(&loads[number], &place[number]).max(1e-9);
                let parallel = (1.0 - program.serial) / capacity.max(1e-9);
                program.base_s * (program.serial / speed.max(1e-9) + parallel) * span
            }
            Some(demand) => {
                let usage = demand / speeds.max(1e-9);
                let kept = usage.min(0.9);
                let queueing = 1.0 + kept * kept / (1.0 - kept) + 20.0 * (usage - 0.9).max(0.0);
                let scheduling = 1.0 + 0.5 * beside;
                1e-2 * program.base_s * size / speeds.max(1e-9) * queueing * scheduling * span
            }
        }
    }

    /// True ln of the joint cost, and whether all limits are kept (within 0.5 %).
    pub(super) fn truth(&self, place: &Place) -> (f64, bool) {
        let figures = self.figures(place);
        let cost = figures.iter().map(|figure| figure.ln()).sum::<f64>() / figures.len() as f64;
        let mut programs = self.file.iter().zip(&figures);
        let keeps_limits =
            programs.all(|(program, figure)| program.is_within_limit(figure / 1.005));
        (cost, keeps_limits)
    }

    /// ln(cost) of the best of the first plans, and of the best that hill climbing by moves of single
    /// cores makes of the three best; 1000 more if a limit is broken.
    pub(super) fn best(&self) -> (f64, f64) {
        let plans = super::places::list_first_plans(&self.topology, self.programs.len());
        let value = |place: &Place| match self.truth(place) {
            (cost, true) => cost,
            (cost, false) => cost + 1e3,
        };
        let mut best: Vec<(f64, Place)> = plans.into_iter().map(|p| (value(&p), p)).collect();
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.truncate(3);
        let structured = best[0].0;
        let cores = self.topology.units(Level::Core);
        let climbed = best.into_iter().map(|(mut cost, mut place)| {
            loop {
                let mut better = None;
                for (program, core) in
                    (0..place.len()).flat_map(|p| cores.iter().map(move |c| (p, c)))
                {
                    for other in (0..place.len()).map(Some).chain([None]) {
                        let mut moved = place.clone();
                        let has = moved[program].intersects(core);
                        moved[program] = match has {
                            true => moved[program].difference(core),
                            false => moved[program].union(core),
                        };
                        if let Some(other) = other.filter(|&other| other != program) {
                            moved[other] = match has {
                                true => moved[other].union(core),
                                false => moved[other].difference(core),
                            };
                        }
                        if moved.iter().any(CpuSet::is_empty) {
                            continue;
                        }
                        let moved_cost = value(&moved);
                        if moved_cost < cost - 1e-9 {
                            cost = moved_cost;
                            better = Some(moved);
                        }
                    }
                }
                match better {
                    Some(moved) => place = moved,
                    None => break cost,
                }
            }
        });
        (structured, climbed.fold(structured, f64::min))
    }
}

fn sum_loads(loads: &[f64], cpus: &CpuSet) -> f64 {
    cpus.iter().map(|cpu| loads[cpu]).sum()
}

/// A machine that runs rounds of a world's programs.
pub(super) struct JointMachine {
    world: JointWorld,
    rng: ChaCha8Rng,
    drift: f64,
    now: Duration,
    pub(super) rounds: usize,
    /// Report this instead in the round with this number.
    pub(super) failure: Option<(usize, RoundReport)>,
    /// The round in which the user stops the search.
    pub(super) interrupted: Option<usize>,
    /// Are figures without noise?
    pub(super) is_quiet: bool,
}

impl JointMachine {
    pub(super) fn new(world: &JointWorld, seed: u64) -> Self {
        Self {
            world: world.clone(),
            rng: ChaCha8Rng::seed_from_u64(seed ^ 0x5eed),
            drift: 0.0,
            now: Duration::ZERO,
            rounds: 0,
            failure: None,
            interrupted: None,
            is_quiet: false,
        }
    }

    /// A standard normal number (Box and Muller 1958).
    fn draw_normal(&mut self) -> f64 {
        let [u, v]: [f64; 2] = [self.rng.random(), self.rng.random()];
        (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    fn report(&mut self, round: &Round) -> RoundReport {
        let cpus = round.programs.iter();
        let place: Place = cpus.map(|p| CpuSet::parse_list(&p.cpus).unwrap()).collect();
        let noise = if self.is_quiet { 0.0 } else { self.world.noise };
        self.drift = 0.8 * self.drift + 0.5 * noise * self.draw_normal();
        let programs = self.world.figures(&place).into_iter().map(|figure| {
            let wall_s = figure * (self.drift + noise * self.draw_normal()).exp();
            RoundFigures {
                wall_s,
                output: String::new(),
            }
        });
        RoundReport {
            programs: programs.collect(),
            failure: None,
        }
    }
}

impl Host for JointMachine {
    fn label(&self) -> String {
        "local".to_owned()
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        Ok((self.world.topology.clone(), Vec::new()))
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn usage(&mut self) -> Option<Usage> {
        None
    }

    fn wait(&mut self, _time: Duration) -> Result<(), MachineError> {
        Ok(())
    }
}

impl CommandRunner for JointMachine {
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        if self.interrupted == Some(self.rounds) {
            return Err(MachineError::Interrupted);
        }
        self.now += Duration::from_secs(5);
        let round = request.workload.command.argv().last().unwrap();
        let round: Round = serde_json::from_str(round).unwrap();
        let report = match &self.failure {
            Some((number, report)) if *number == self.rounds => report.clone(),
            _ => self.report(&round),
        };
        self.rounds += 1;
        Ok(Run {
            output: Some(serde_json::to_vec(&report).unwrap()),
            ..Run::ended(Duration::from_secs(5), End::Status(0))
        })
    }

    fn run_helper(&mut self, _: &'static str, _: &Command) -> Result<(), MachineError> {
        Ok(())
    }
}
