//! Repeats the experiments of five published performance reports, on this machine as far as it can,
//! or on the reports' machines, simulated.
//!
//! A simulation that returns its input proves nothing. A figure of a report that sets a parameter of
//! the simulated machine is marked in its description (`field-reports/*.toml`) and printed as *given*;
//! everything else follows from mechanisms (SMT, scheduler, caches, PAUSE) and is judged.
//! `docs/machine.md` explains each.

mod affinity_masks;
mod claim;
mod hyperthread_fill;
mod long_pause;
mod pinned_single_thread;
mod profiled;
mod replayed;
mod stage;
mod tuned_build;

use std::time::Duration;

use anyhow::Result;

use crate::compare::{Observer, Tuning};
use crate::is_interrupt;
use claim::Claim;
use pinwise_machine::Machine;
use pinwise_record::{
    ClaimCounts, ClaimVerdict, ExperimentRecord, Header, ReportRecord, Reproduction,
};
use pinwise_sim::SimulatedMachine;
use pinwise_topology::Topology;
use pinwise_workload::Metric;
use stage::{Answer, Arm, Stage, TooFew};

/// A field report.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// Name of the report.
    pub name: &'static str,
    /// What it reports: the end of "the report that".
    topic: &'static str,
    /// Year and machine of the report.
    pub machine: &'static str,
    /// Names of its experiments.
    pub experiments: &'static [&'static str],
    /// Descriptions of its machines, to be simulated.
    descriptions: &'static [&'static str],
    simulate: fn(&mut Simulation<'_>) -> Result<Vec<ExperimentRecord>>,
    run_here: fn(&mut Here<'_>) -> Result<Vec<ExperimentRecord>>,
    /// Maximum number of comparisons on this machine.
    comparisons: u32,
}

/// All reports.
pub const REPORTS: [Report; 5] = [
    Report {
        name: "hyperthread-fill",
        topic: "a scheduler fills hyper-threads before cores",
        machine: "2005, two Xeons of 3.0 GHz, 4 CPUs, Windows XP",
        experiments: &[
            "encode-wme",
            "encode-divx",
            "whetstone-placement",
            "encode-self-affinity",
        ],
        descriptions: &[hyperthread_fill::MACHINE],
        simulate: hyperthread_fill::simulate,
        run_here: hyperthread_fill::run_here,
        comparisons: 1,
    },
    Report {
        name: "affinity-masks",
        topic: "affinity masks decide the scores of a benchmark suite",
        machine: "2009, a Core i7 with 4 cores and 8 CPUs, Windows 2000",
        experiments: &["totals", "ranking", "tests", "bandwidths"],
        descriptions: &[affinity_masks::MACHINE],
        simulate: affinity_masks::simulate,
        run_here: affinity_masks::run_here,
        comparisons: 7,
    },
    Report {
        name: "long-pause",
        topic: "spin loops wait too long where PAUSE takes 14 times as long",
        machine: "2018, Xeon E5-1620 v3 against Xeon Gold 6126",
        experiments: &[
            "pause-latency",
            "spin-budget",
            "blind-gap",
            "producer-consumer",
            "spin-old-new",
            "profile-diff",
        ],
        descriptions: &[long_pause::MACHINE],
        simulate: long_pause::simulate,
        run_here: long_pause::run_here,
        comparisons: 1,
    },
    Report {
        name: "tuned-build",
        topic: "a kernel built for its processor is faster than a generic one",
        machine: "2001, Athlon of 1.13 GHz against Pentium III, Linux 2.2 and 2.4",
        experiments: &["times", "working-set"],
        descriptions: &[],
        simulate: tuned_build::simulate,
        run_here: tuned_build::run_here,
        comparisons: 6,
    },
    Report {
        name: "pinned-single-thread",
        topic: "a pinned program is faster and steadier",
        machine: "2008, Core 2 Quad 6600 and Phenom 9600, Windows XP",
        experiments: &["superpi"],
        descriptions: &[pinned_single_thread::INTEL, pinned_single_thread::AMD],
        simulate: pinned_single_thread::simulate,
        run_here: pinned_single_thread::run_here,
        comparisons: 1,
    },
];

/// Settings of a reproduction.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of orders and simulated machines.
    pub seed: u64,
    /// Time for all experiments on this machine.
    pub budget: Duration,
    /// This executable, whose kernels are run.
    pub program: String,
    /// Id of the record.
    pub id: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// Name of the machine that runs it.
    pub host: String,
}

/// What simulated experiments need.
struct Simulation<'a> {
    seed: u64,
    observer: &'a mut dyn Observer,
}

impl Simulation<'_> {
    fn stage(&mut self, label: &str, text: &str) -> Result<Stage<'_>> {
        Stage::from_description(label, text, self.seed, self.observer)
    }

    fn machine(&self, label: &str, text: &str) -> Result<SimulatedMachine> {
        Ok(SimulatedMachine::from_text(label, text, self.seed)?)
    }
}

/// What experiments on this machine need.
struct Here<'a> {
    stage: Stage<'a>,
    program: String,
}

impl Here<'_> {
    const fn topology(&self) -> &Topology {
        &self.stage.topology
    }

    fn machine(&mut self) -> &mut dyn Machine {
        self.stage.machine()
    }

    /// An arm that runs this command, `pinwise bench kernel …`.
    fn arm(&self, name: &'static str, command: &str, place: &str) -> Arm {
        let mut arm = Arm::new(name, command, place);
        self.program.clone_into(&mut arm.command[0]);
        arm.command
            .extend(["--format".to_owned(), "json".to_owned()]);
        arm
    }

    fn compare(&mut self, arms: &[Arm]) -> Result<Answer> {
        self.stage.compare(arms)
    }
}

/// Runs reports on their own machines, simulated.
///
/// # Errors
/// If a description or a plan is not valid.
pub fn simulate(
    reports: &[&Report],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Reproduction> {
    let mut record = open_record(settings, true);
    for report in reports {
        let mut simulation = Simulation {
            seed: settings.seed,
            observer,
        };
        let experiments = (report.simulate)(&mut simulation)?;
        record.reports.push(describe_report(report, experiments)?);
    }
    Ok(close_record(record))
}

/// Runs reports on this machine, with the arms that it can offer.
///
/// # Errors
/// If a kernel cannot be run. An interrupt is not an error: the record says so.
pub fn run_here(
    reports: &[&Report],
    settings: &Settings,
    machine: &mut dyn Machine,
    observer: &mut dyn Observer,
) -> Result<Reproduction> {
    let mut record = open_record(settings, false);
    let start = machine.now();
    let comparisons: u32 = reports.iter().map(|report| report.comparisons).sum();
    let budget = settings.budget / comparisons.max(1);
    for report in reports {
        let tuning = Tuning {
            budget: Some(budget),
            ..Tuning::default()
        };
        let metric: Metric = "json:.seconds lower".parse()?;
        let mut here = Here {
            stage: Stage::new(machine, metric, settings.seed, tuning, observer)?,
            program: settings.program.clone(),
        };
        match (report.run_here)(&mut here) {
            Ok(experiments) => {
                drop(here);
                let mut described = describe_report(report, experiments)?;
                described.assumed.clear();
                record.reports.push(described);
            }
            Err(error) if is_interrupt(&error) => {
                record.interrupted = true;
                break;
            }
            Err(error) if error.downcast_ref::<TooFew>().is_some() => {
                drop(here);
                record
                    .reports
                    .push(unanswered_report(report, &error.to_string()));
            }
            Err(error) => return Err(error.context(report.name)),
        }
    }
    record.elapsed_s = machine.now().saturating_sub(start).as_secs_f64();
    Ok(close_record(record))
}

/// The record of a report whose experiments could not be answered in the budget.
fn unanswered_report(report: &Report, why: &str) -> ReportRecord {
    let experiments = report.experiments.iter().map(|name| ExperimentRecord {
        name: (*name).to_owned(),
        question: "tried on this machine".to_owned(),
        claims: vec![Claim::new("what the report says", "see --simulated").mark_untestable(why)],
    });
    ReportRecord {
        name: report.name.to_owned(),
        topic: report.topic.to_owned(),
        machine: report.machine.to_owned(),
        assumed: Vec::new(),
        experiments: experiments.collect(),
    }
}

fn open_record(settings: &Settings, simulated: bool) -> Reproduction {
    Reproduction {
        header: Header::new(&settings.id, &settings.started, Vec::new()),
        host: settings.host.clone(),
        simulated,
        seed: settings.seed,
        reports: Vec::new(),
        counts: ClaimCounts::default(),
        sentence: String::new(),
        advice: String::new(),
        interrupted: false,
        elapsed_s: 0.0,
    }
}

/// The record of a report, with the assumptions of its descriptions.
fn describe_report(report: &Report, experiments: Vec<ExperimentRecord>) -> Result<ReportRecord> {
    let mut assumed = Vec::new();
    for text in report.descriptions {
        let machine = SimulatedMachine::from_text(report.name, text, 0)?;
        let parts = machine.assumed().iter();
        assumed.extend(parts.map(|part| format!("{}: {}", part.key, part.why)));
    }
    Ok(ReportRecord {
        name: report.name.to_owned(),
        topic: report.topic.to_owned(),
        machine: report.machine.to_owned(),
        assumed,
        experiments,
    })
}

fn close_record(mut record: Reproduction) -> Reproduction {
    let mut counts = ClaimCounts::default();
    for experiment in record.reports.iter().flat_map(|report| &report.experiments) {
        for claim in &experiment.claims {
            *match claim.verdict {
                ClaimVerdict::Reproduced => &mut counts.reproduced,
                ClaimVerdict::Consistent => &mut counts.consistent,
                ClaimVerdict::Contradicted => &mut counts.contradicted,
                ClaimVerdict::Given => &mut counts.given,
                ClaimVerdict::NotHere => &mut counts.not_here,
            } += 1;
        }
    }
    record.counts = counts;
    record.sentence = record.verdict();
    record.advice = record.next_step();
    record
}

#[cfg(test)]
mod tests;
