//! Rounds: all programs together, with a figure of each.
//!
//! To [`compare`](crate::compare) a round is the run of a command whose output holds the joint cost.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::JointSearch;
use super::places::Place;
use crate::compare::RunFailure;
use crate::error::StudyError;
use pinwise_machine::{
    BusyProcess, CommandRunner, End, Host, MachineError, Output, Request, Run, Usage,
};
use pinwise_topology::{CpuSet, Topology, Warning};
use pinwise_workload::joint::{Round, RoundProgram, RoundReport};
use pinwise_workload::{Command, Metric, RunFigures, Workload};

/// What the joint cost is called in the output that stands for a round.
const COST: &str = "joint cost";
/// A program that ends sooner is none that shares a machine, seconds.
const SHORTEST_S: f64 = 0.01;

/// The joint cost as a metric.
pub(super) fn joint_metric() -> Metric {
    let text = format!("regex:{COST} (\\S+) lower");
    text.parse().unwrap_or_else(|_| Metric::wall())
}

/// Why a round has no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The number of the program that is to blame.
    pub(super) program: usize,
    pub(super) reason: String,
}

/// Carries rounds out, and keeps their figures.
pub(super) struct Rounds<'a> {
    pub(super) search: &'a JointSearch,
    allowed: CpuSet,
    machine: &'a mut dyn CommandRunner,
    /// ln(cost) of each program in the first round, which costs are relative to.
    level: Vec<f64>,
    /// Command and figures of the rounds that confirm, in time order.
    confirmed: Vec<(Vec<String>, Vec<f64>)>,
    is_confirming: bool,
    /// Figures of an interrupted search by the CPUs of programs, in time order.
    past: BTreeMap<Vec<String>, VecDeque<Vec<f64>>>,
    /// Rounds that were not made again.
    replayed: usize,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        search: &'a JointSearch,
        topology: &Topology,
        machine: &'a mut dyn CommandRunner,
    ) -> Self {
        Self {
            search,
            allowed: topology.allowed.clone(),
            machine,
            level: Vec::new(),
            confirmed: Vec::new(),
            is_confirming: false,
            past: (search.past.tried.iter())
                .map(|trial| (trial.cpus.clone(), trial.figures.iter().cloned().collect()))
                .collect(),
            replayed: 0,
        }
    }

    /// The time that the rounds took which were not made again.
    pub(super) fn saved(&self) -> Duration {
        let past = &self.search.past;
        let rounds: usize = past.tried.iter().map(|trial| trial.figures.len()).sum();
        let share = self.replayed as f64 / rounds.max(1) as f64;
        past.spent.mul_f64(share)
    }

    /// From now on figures are kept.
    pub(super) const fn confirm(&mut self) {
        self.is_confirming = true;
    }

    /// The figures of the rounds that confirm with this command.
    pub(super) fn confirmed(&self, command: &[String]) -> impl Iterator<Item = &[f64]> {
        let own = self.confirmed.iter();
        own.filter(move |(other, _)| other == command)
            .map(|(_, figures)| figures.as_slice())
    }

    /// The command that carries out a round of this plan.
    pub(super) fn workload(&self, place: &Place) -> Workload {
        let words = |command: &Command| command.argv().to_vec();
        let programs = self.search.programs.iter().zip(place);
        let round = Round {
            programs: programs
                .map(|(program, cpus)| RoundProgram {
                    command: words(&program.command),
                    ready: program.ready.as_ref().map(words),
                    load: program.load.as_ref().map(words),
                    cpus: cpus.to_string(),
                })
                .collect(),
        };
        let text = serde_json::to_string(&round).unwrap_or_default();
        let argv = self.search.runner.iter().cloned().chain([text]).collect();
        // Words of commands were checked where they were read.
        let command = Command::from_argv(argv).or_else(|_| Command::from_line("false"));
        Workload {
            timeout: self.search.timeout,
            ..Workload::new(command.unwrap_or_else(|_| self.search.programs[0].command.clone()))
        }
    }

    /// A round of this plan, unless an interrupted search has made it: the figures of all programs.
    pub(super) fn round(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let cpus: Vec<String> = place.iter().map(ToString::to_string).collect();
        let past = self.past.get_mut(&cpus).and_then(VecDeque::pop_front);
        match past {
            Some(figures) => {
                self.replayed += 1;
                Ok(figures)
            }
            None => self.make_round(place),
        }
    }

    fn make_round(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let workload = self.workload(place);
        let request = Request {
            output: Output::Keep,
            ..Request::new(&workload, &self.allowed)
        };
        let run = self.machine.run(&request)?;
        self.figures(&run, &workload)
            .map_err(|failure| self.search.error(failure))
    }

    /// The first round, without placement, which shows whether programs can be measured together.
    pub(super) fn try_out(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let figures = self.make_round(place)?;
        for (number, program) in self.search.programs.iter().enumerate() {
            let is_short = program.metric.is_wall() && figures[number] < SHORTEST_S;
            if is_short {
                return Err(self.search.error(Failure {
                    program: number,
                    reason: format!(
                        "it ended after {:.1} ms: too soon to be measured beside others (a service \
                         has load = \"…\")",
                        1e3 * figures[number]
                    ),
                }));
            }
        }
        self.level = self.costs(&figures);
        Ok(figures)
    }

    /// ln(cost) of each figure.
    pub(super) fn costs(&self, figures: &[f64]) -> Vec<f64> {
        let programs = self.search.programs.iter().zip(figures);
        programs
            .map(|(program, &figure)| program.metric.cost(figure).ln())
            .collect()
    }

    fn figures(&self, run: &Run, workload: &Workload) -> Result<Vec<f64>, Failure> {
        let of_round = |reason: String| Failure { program: 0, reason };
        if let Some(failure) = RunFailure::from_run(run, workload) {
            return Err(of_round(match run.end {
                End::TimedOut => "the round took longer than --timeout".to_owned(),
                _ => failure.to_string(),
            }));
        }
        let output = String::from_utf8_lossy(run.output.as_deref().unwrap_or_default());
        let mut documents = serde_json::Deserializer::from_str(&output).into_iter();
        let report: RoundReport = match documents.next() {
            Some(Ok(report)) => report,
            _ => return Err(of_round("the round gave no figures".to_owned())),
        };
        if let Some((program, reason)) = report.failure {
            let words = String::from_utf8_lossy(&run.stderr_tail);
            let last = words.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map_or(String::new(), |line| format!(": {}", line.trim()));
            let reason = format!("{reason}{last}");
            return Err(Failure { program, reason });
        }
        let both = self.search.programs.iter().zip(&report.programs);
        let read = both.enumerate().map(|(number, (program, seen))| {
            let measured = RunFigures {
                wall_s: seen.wall_s,
                output: Some(seen.output.as_bytes()),
                ..RunFigures::default()
            };
            program.metric.read(&measured).map_err(|reason| Failure {
                program: number,
                reason: reason.to_string(),
            })
        });
        let figures: Vec<f64> = read.collect::<Result<_, _>>()?;
        match figures.len() == self.search.programs.len() {
            true => Ok(figures),
            false => Err(of_round("the round lacks figures".to_owned())),
        }
    }

    /// The weighted geometric mean of the costs, relative to the first round.
    fn joint_cost(&self, figures: &[f64]) -> f64 {
        let relative = self.costs(figures).into_iter().zip(&self.level);
        let weighted = relative.zip(self.search.weights());
        let sum: f64 = weighted.map(|((y, level), w)| w * (y - level)).sum();
        sum.exp()
    }
}

impl Host for Rounds<'_> {
    fn label(&self) -> String {
        self.machine.label()
    }

    fn is_simulated(&self) -> bool {
        self.machine.is_simulated()
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        self.machine.topology()
    }

    fn now(&self) -> Duration {
        self.machine.now()
    }

    fn usage(&mut self) -> Option<Usage> {
        self.machine.usage()
    }

    fn busiest(&mut self) -> Vec<BusyProcess> {
        self.machine.busiest()
    }

    fn wait(&mut self, time: Duration) -> Result<(), MachineError> {
        self.machine.wait(time)
    }
}

impl CommandRunner for Rounds<'_> {
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let run = self.machine.run(request)?;
        if run.end != End::Status(0) {
            return Ok(run);
        }
        match self.figures(&run, request.workload) {
            Ok(figures) => {
                let text = format!("{COST} {:e}\n", self.joint_cost(&figures));
                if self.is_confirming {
                    let command = request.workload.command.argv().to_vec();
                    self.confirmed.push((command, figures));
                }
                Ok(Run {
                    output: Some(text.into_bytes()),
                    ..run
                })
            }
            Err(Failure { program, reason }) => Ok(Run {
                end: End::NoFigure(format!("{}: {reason}", self.search.programs[program].name)),
                ..run
            }),
        }
    }

    fn run_helper(&mut self, role: &'static str, command: &Command) -> Result<(), MachineError> {
        self.machine.run_helper(role, command)
    }
}
