//! Runs rounds: all programs together, with a figure of each.
//!
//! To [`compare`](crate::compare), a round is the run of a command that prints the joint cost.

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

/// Name of the joint cost in the output of a round.
const COST: &str = "joint cost";
/// Minimum run time of a program: shorter ones hardly share the machine with others.
const MIN_WALL_S: f64 = 0.01;

/// The joint cost as a metric.
pub(super) fn joint_metric() -> Metric {
    let text = format!("regex:{COST} (\\S+) lower");
    text.parse().unwrap_or_else(|_| Metric::wall())
}

/// Why a round has no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Index of the program that failed.
    pub(super) program: usize,
    pub(super) reason: String,
}

/// Runs rounds on a machine.
pub(super) struct Rounds<'a> {
    pub(super) search: &'a JointSearch,
    allowed: CpuSet,
    machine: &'a mut dyn CommandRunner,
    /// By program: ln(cost) in the first round; joint costs are relative to it.
    reference: Vec<f64>,
    /// Command and figures of the rounds that confirm, in time order.
    confirmed: Vec<(Vec<String>, Vec<f64>)>,
    is_confirming: bool,
    /// Figures of the interrupted search by the programs' CPUs, in time order.
    past: BTreeMap<Vec<String>, VecDeque<Vec<f64>>>,
    /// Rounds whose figures were taken from the interrupted search.
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
            reference: Vec::new(),
            confirmed: Vec::new(),
            is_confirming: false,
            past: (search.past.tried.iter())
                .map(|trial| (trial.cpus.clone(), trial.figures.iter().cloned().collect()))
                .collect(),
            replayed: 0,
        }
    }

    /// The time that the replayed rounds took in the interrupted search.
    pub(super) fn replayed_time(&self) -> Duration {
        let past = &self.search.past;
        let rounds: usize = past.tried.iter().map(|trial| trial.figures.len()).sum();
        let share = self.replayed as f64 / rounds.max(1) as f64;
        past.spent.mul_f64(share)
    }

    /// From now on rounds are those of the confirmation: their figures are kept.
    pub(super) const fn start_confirmation(&mut self) {
        self.is_confirming = true;
    }

    /// The figures of the confirmation rounds of this command.
    pub(super) fn confirmed_figures(&self, command: &[String]) -> impl Iterator<Item = &[f64]> {
        let rounds = self.confirmed.iter();
        rounds
            .filter(move |(other, _)| other == command)
            .map(|(_, figures)| figures.as_slice())
    }

    /// The command that runs a round of this plan.
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
        // Cannot fail: the words of commands were checked when they were read.
        let command = Command::from_argv(argv).or_else(|_| Command::from_line("false"));
        Workload {
            timeout: self.search.timeout,
            ..Workload::new(command.unwrap_or_else(|_| self.search.programs[0].command.clone()))
        }
    }

    /// The figures of all programs in a round of this plan: from the interrupted search if it has one
    /// left, else from a new round.
    pub(super) fn run_or_replay(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let cpus: Vec<String> = place.iter().map(ToString::to_string).collect();
        let past = self.past.get_mut(&cpus).and_then(VecDeque::pop_front);
        match past {
            Some(figures) => {
                self.replayed += 1;
                Ok(figures)
            }
            None => self.run_round(place),
        }
    }

    fn run_round(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let workload = self.workload(place);
        let request = Request {
            output: Output::Keep,
            ..Request::new(&workload, &self.allowed)
        };
        let run = self.machine.run(&request)?;
        self.read_figures(&run, &workload)
            .map_err(|failure| self.search.explain_failure(failure))
    }

    /// Runs the first round, without placement, to check that the programs can be measured together.
    pub(super) fn try_out(&mut self, place: &Place) -> Result<Vec<f64>, StudyError> {
        let figures = self.run_round(place)?;
        for (number, program) in self.search.programs.iter().enumerate() {
            let is_short = program.metric.is_wall() && figures[number] < MIN_WALL_S;
            if is_short {
                return Err(self.search.explain_failure(Failure {
                    program: number,
                    reason: format!(
                        "it ended after {:.1} ms: too soon to be measured beside others (a service \
                         has load = \"…\")",
                        1e3 * figures[number]
                    ),
                }));
            }
        }
        self.reference = self.log_costs(&figures);
        Ok(figures)
    }

    /// ln(cost) of each program's figure.
    pub(super) fn log_costs(&self, figures: &[f64]) -> Vec<f64> {
        let programs = self.search.programs.iter().zip(figures);
        programs
            .map(|(program, &figure)| program.metric.cost(figure).ln())
            .collect()
    }

    /// Reads the figures of all programs from the output of a round.
    fn read_figures(&self, run: &Run, workload: &Workload) -> Result<Vec<f64>, Failure> {
        // Failures of the whole round are reported with the first program.
        let round_failure = |reason: String| Failure { program: 0, reason };
        if let Some(failure) = RunFailure::from_run(run, workload) {
            return Err(round_failure(match run.end {
                End::TimedOut => "the round took longer than --timeout".to_owned(),
                _ => failure.to_string(),
            }));
        }
        let output = String::from_utf8_lossy(run.output.as_deref().unwrap_or_default());
        let mut documents = serde_json::Deserializer::from_str(&output).into_iter();
        let report: RoundReport = match documents.next() {
            Some(Ok(report)) => report,
            _ => return Err(round_failure("the round gave no figures".to_owned())),
        };
        if let Some((program, reason)) = report.failure {
            let words = String::from_utf8_lossy(&run.stderr_tail);
            let last = words.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map_or(String::new(), |line| format!(": {}", line.trim()));
            let reason = format!("{reason}{last}");
            return Err(Failure { program, reason });
        }
        let programs = self.search.programs.iter().zip(&report.programs);
        let figures = programs.enumerate().map(|(number, (program, reported))| {
            let measured = RunFigures {
                wall_s: reported.wall_s,
                output: Some(reported.output.as_bytes()),
                ..RunFigures::default()
            };
            program.metric.read(&measured).map_err(|reason| Failure {
                program: number,
                reason: reason.to_string(),
            })
        });
        let figures: Vec<f64> = figures.collect::<Result<_, _>>()?;
        match figures.len() == self.search.programs.len() {
            true => Ok(figures),
            false => Err(round_failure("the round lacks figures".to_owned())),
        }
    }

    /// The weighted geometric mean of the costs, each relative to the first round.
    fn joint_cost(&self, figures: &[f64]) -> f64 {
        let relative = self.log_costs(figures).into_iter().zip(&self.reference);
        let weighted = relative.zip(self.search.weights());
        let sum: f64 = weighted.map(|((y, first), w)| w * (y - first)).sum();
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
        match self.read_figures(&run, request.workload) {
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
