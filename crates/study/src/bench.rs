//! Built-in workloads over threads, placements, instruction sets and sizes.
//!
//! ```text
//! BenchRequest ──cells──► Trials ──command──► compare::ComparePlan ──► Comparison
//!                                                                  │ figures
//!                                                conclusions ◄── Bench
//! ```
//!
//! Every question to a kernel is one randomised comparison, so that whatever
//! disturbs the machine disturbs all cells alike; nothing is timed here.
//! [`run`] stores and prints nothing: a [`Conductor`] runs the comparisons
//! and saves partial results.

pub mod builds;
pub mod cache_fit;
mod cells;
pub mod command;
mod conclusions;
mod figures;
pub mod smt;

use std::time::Duration;

pub use cells::{BenchRequest, Cell, MachineFacts, Suite, Trial, plan_trials};

use crate::compare::{self, ArmPlan, Tuning};
use crate::host::host_record;
use crate::is_interrupt;
use cache_fit::DataCaches;
use command::Call;
use pinwise_machine::{Binding, CommandRunner, Host};
use pinwise_record::{
    Bench, Comparison, ComparisonStudy, Finding, Header, KernelRecord, Severity, SmtRecord, Stopped,
};
use pinwise_topology::Topology;
use pinwise_workload::{Metric, Workload};

/// The figure that cells are compared by: the kernel's own time, which excludes starting and
/// preparing.
pub const METRIC: &str = "json:.seconds lower";

/// A bench that can be carried out.
#[derive(Debug, Clone)]
pub struct BenchPlan {
    /// This executable.
    pub program: String,
    /// Id of the record.
    pub id: String,
    /// When the bench begins, RFC 3339.
    pub started: String,
    /// Seed from which each comparison derives its own.
    pub seed: u64,
    /// The suite's name, if one was requested.
    pub suite: Option<String>,
    /// Settings of the method; the budget is for all trials together.
    pub tuning: Tuning,
    /// The comparisons to run, in this order.
    pub trials: Vec<Trial>,
    /// What is known about SMT siblings.
    pub smt: SmtRecord,
    /// Caches of the machine.
    pub caches: DataCaches,
    /// What was left out, as full sentences.
    pub notes: Vec<String>,
    /// The user's labels.
    pub tags: Vec<String>,
}

/// Runs comparisons, names and stores them.
pub trait Conductor {
    /// Id and start time of a new record.
    fn new_id_and_start(&mut self) -> (String, String);

    /// Runs a comparison.
    ///
    /// # Errors
    /// If it could not be planned or started.
    fn compare(
        &mut self,
        plan: &compare::ComparePlan,
        machine: &mut dyn CommandRunner,
    ) -> anyhow::Result<Comparison>;

    /// Tells the user something at once, as a full sentence.
    fn note(&mut self, sentence: &str);

    /// Stores the record so far.
    fn keep(&mut self, record: &Bench);
}

/// Runs all trials, as far as time and the user allow.
///
/// # Errors
/// If a kernel rejects its arguments, before anything is measured, or if a comparison could not be
/// started.
pub fn run(
    plan: &BenchPlan,
    machine: &mut dyn CommandRunner,
    conductor: &mut dyn Conductor,
) -> anyhow::Result<Bench> {
    let (topology, _) = machine.topology()?;
    let started = machine.now();
    let mut record = open_record(plan, machine, &topology);
    let ready = match probe_kernels(plan, machine, conductor, &mut record) {
        Err(error) if is_interrupt(&error) => {
            record.stopped = Some(Stopped::Interrupted);
            return Ok(record);
        }
        ready => ready?,
    };
    record.planned = ready.len();
    for (index, (trial, facts)) in ready.iter().enumerate() {
        let spent = machine.now().saturating_sub(started);
        // Blocks are not equally long: what is left is shared out afresh before each trial.
        let blocks_s: f64 = ready[index..].iter().map(|(t, _)| t.block_s()).sum();
        let remaining = plan.tuning.budget.map(|b| b.saturating_sub(spent));
        let budget = remaining.map(|time| time.mul_f64((trial.block_s() / blocks_s).min(1.0)));
        let comparison_plan =
            plan_comparison(plan, trial, facts.as_ref(), index, budget, conductor)?;
        let comparison = conductor.compare(&comparison_plan, machine)?;
        let figures = figures::compute_figures(trial, plan, facts.as_ref(), &comparison);
        record.kernels.push(figures);
        figures::copy_findings(&mut record.findings, trial, &comparison);
        record.elapsed_s = machine.now().saturating_sub(started).as_secs_f64();
        record.ended = conductor.new_id_and_start().1;
        conclusions::draw_conclusions(&mut record);
        if comparison.stopped == Some(Stopped::Interrupted) {
            record.stopped = Some(Stopped::Interrupted);
            break;
        }
        if index + 1 < ready.len() {
            conductor.keep(&record);
        }
    }
    record.stopped = record.stopped.or_else(|| figures::stop_reason(&record));
    conclusions::draw_conclusions(&mut record);
    conductor.keep(&record);
    Ok(record)
}

fn open_record(plan: &BenchPlan, machine: &dyn Host, topology: &Topology) -> Bench {
    Bench {
        header: Header {
            findings: plan
                .notes
                .iter()
                .map(|note| Finding::new("left_out", Severity::Note, note.clone(), ""))
                .collect(),
            ..Header::new(&plan.id, &plan.started, plan.tags.clone())
        },
        ended: plan.started.clone(),
        host: host_record(machine, topology),
        seed: plan.seed,
        suite: plan.suite.clone(),
        budget_s: plan.tuning.budget.map(|budget| budget.as_secs_f64()),
        min_effect: plan.tuning.min_effect,
        smt: plan.smt.clone(),
        kernels: Vec::new(),
        scores: Vec::new(),
        conclusions: Vec::new(),
        advice: String::new(),
        planned: plan.trials.len(),
        stopped: None,
        elapsed_s: 0.0,
    }
}

/// Trials whose kernel works, with what it reported about itself.
type ReadyTrials<'a> = Vec<(&'a Trial, Option<KernelRecord>)>;

/// Runs each trial's baseline once with little work, to learn its working set and to find kernels
/// that reject their arguments before anything is measured. Such a kernel is left out if it came
/// from a suite; if the user named it, this is an error.
fn probe_kernels<'a>(
    plan: &'a BenchPlan,
    machine: &mut dyn CommandRunner,
    conductor: &mut dyn Conductor,
    record: &mut Bench,
) -> anyhow::Result<ReadyTrials<'a>> {
    let mut ready = Vec::new();
    for trial in &plan.trials {
        let cell = &trial.cells[0];
        let call = kernel_call(plan, trial, cell, cell.threads as u64);
        let workload = Workload::new(call.command()?);
        match command::run_once(&workload, &cell.place, machine) {
            Ok(facts) => ready.push((trial, facts)),
            Err(error) if plan.suite.is_none() || is_interrupt(&error) => {
                return Err(error);
            }
            Err(error) => {
                let sentence = format!("{} is left out: {error}.", trial.kernel.name);
                conductor.note(&sentence);
                record
                    .findings
                    .push(Finding::new("left_out", Severity::Warning, sentence, ""));
            }
        }
    }
    Ok(ready)
}

fn kernel_call(plan: &BenchPlan, trial: &Trial, cell: &Cell, work: u64) -> Call {
    Call {
        program: plan.program.clone(),
        kernel: trial.kernel,
        threads: cell.threads,
        work,
        size: cell.size,
        isa: cell.isa,
        more: Vec::new(),
    }
}

/// The comparison for the trial with this index, within `budget`.
fn plan_comparison(
    plan: &BenchPlan,
    trial: &Trial,
    facts: Option<&KernelRecord>,
    index: usize,
    budget: Option<Duration>,
    conductor: &mut dyn Conductor,
) -> anyhow::Result<compare::ComparePlan> {
    let mut arms = Vec::new();
    for cell in &trial.cells {
        let command = kernel_call(plan, trial, cell, trial.work).command()?;
        arms.push(ArmPlan {
            name: trial.name(cell),
            workload: Workload::new(command),
            place: cell.place.clone(),
            same_as: cell.same_as.clone(),
            is_default: false,
            binding: Binding::for_place(&cell.place, None),
            settings: Vec::new(),
        });
    }
    let fit = figures::describe_cache_fit(trial, plan, facts);
    let known =
        facts.and_then(|f| cache_fit::to_finding(trial.kernel.name, f.working_set_bytes, &fit));
    let (id, started) = conductor.new_id_and_start();
    Ok(compare::ComparePlan {
        arms,
        metric: METRIC.parse::<Metric>()?,
        tuning: Tuning {
            budget,
            precision: Some(plan.tuning.precision.unwrap_or(PRECISION)),
            ..plan.tuning.clone()
        },
        // With one seed, all comparisons would have the same order of runs.
        seed: plan.seed.wrapping_add(index as u64),
        output: pinwise_machine::Output::Keep,
        is_survey: true,
        known: known.into_iter().collect(),
        study: ComparisonStudy::Bench,
        id,
        started,
        tags: plan.tags.clone(),
        ..compare::ComparePlan::default()
    })
}

/// Half-width at which a comparison stops: half of the difference up to which two cells count as
/// the same, so that equality can be concluded too.
const PRECISION: f64 = 0.005;
