//! Traces one more run of each arm, to show what the scheduler did with it.
//!
//! Tracing comes after the experiment, so that no timed run is traced, and the traced run is not
//! one of the arm's runs. One run is an example, not a statistic: the verdict quotes it and claims
//! no cause. If tracing is not available, the comparison stays valid.

mod words;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::PADDING;
use super::outcome;
use super::plan::{ArmPlan, ComparePlan};
use super::{Observer, Progress};
use crate::trace;
use pinwise_machine::{MachineError, Request, Subject, Tracer};
use pinwise_record::{ArmTrace, Comparison, Finding, Severity, Stopped, TraceRecord, TraceSource};
use pinwise_sched::Availability;
use pinwise_workload::SuccessRule;

/// Up to this many arms, those that screening left out are traced as well.
const FEW_ARMS: usize = 6;
/// Random stream of the padding, so that no other draw depends on it.
const STREAM: u64 = 2;

/// Runs every arm of a finished comparison once more, traced, and adds the result to its record.
/// Nothing is traced if the comparison failed or was interrupted.
pub fn trace_arms(
    record: &mut Comparison,
    plan: &ComparePlan,
    machine: &mut dyn Tracer,
    observer: &mut dyn Observer,
) {
    if matches!(
        record.stopped,
        Some(Stopped::Failed | Stopped::Interrupted) | None
    ) {
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    rng.set_stream(STREAM);
    let is_many = record.arms.len() > FEW_ARMS;
    let arms: Vec<usize> = (0..record.arms.len())
        .filter(|&arm| record.arms[arm].invalid.is_none() && record.arms[arm].timed_out.is_none())
        .filter(|&arm| !(is_many && record.arms[arm].eliminated))
        .collect();
    let tiers = machine.tiers();
    for (done, &arm) in arms.iter().enumerate() {
        show_progress(observer, done, &plan.arms[arm].name);
        let padding = rng.random_range(0..PADDING);
        match trace_arm(plan, &plan.arms[arm], padding, &tiers, machine) {
            Ok(trace) => record.arms[arm].trace = Some(trace),
            Err(error) => {
                record
                    .findings
                    .push(report_unavailable(&plan.arms[arm].name, &error));
                if concerns_all_arms(&error) {
                    break;
                }
            }
        }
    }
    record.verdict.beside = words::compare_traces(record);
    record
        .findings
        .sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
    observer.end(record);
}

fn show_progress(observer: &mut dyn Observer, done: usize, arm: &str) {
    observer.progress(&Progress {
        phase: "trace",
        fraction: 1.0,
        blocks: done,
        arm,
        left_s: f64::INFINITY,
        look: None,
        names: &[],
    });
}

/// Would all other arms fail to be traced for the same reason?
const fn concerns_all_arms(error: &MachineError) -> bool {
    matches!(
        error,
        MachineError::Untraceable { .. } | MachineError::Interrupted
    )
}

/// Traces one run of an arm, with the settings of its measured runs.
fn trace_arm(
    plan: &ComparePlan,
    arm: &ArmPlan,
    padding: usize,
    tiers: &[Availability],
    machine: &mut dyn Tracer,
) -> Result<ArmTrace, MachineError> {
    if let Some(prepare) = &arm.workload.prepare {
        machine.run_helper("prepare", prepare)?;
    }
    let request = Request {
        workload: &arm.workload,
        cpus: &arm.place.cpus,
        memory: arm.place.memory.as_ref(),
        output: outcome::name_output_of_run(&plan.output, &arm.name, "trace"),
        environment_padding: padding,
        count_threads_closely: false,
        bound: arm.binding.as_ref(),
        settings: &arm.settings,
    };
    let trace_plan = trace::TracePlan {
        subject: Subject::Command(&request),
        source: TraceSource::Command {
            command: arm.workload.command.argv().to_vec(),
            placement: arm.place.placement.to_string(),
            cpus: arm.place.cpus.to_string(),
        },
        tiers,
        tier: None,
        limit: None,
        calibration: std::time::Duration::ZERO,
        interrupts: None,
        leaves_daemons: false,
        keeps_interrupted: false,
        tags: Vec::new(),
    };
    let traced = trace::run_trace(&trace_plan, machine, &mut trace::NoListener);
    if let Some(conclude) = &arm.workload.conclude {
        machine.run_helper("conclude", conclude)?;
    }
    Ok(to_arm_trace(arm, traced?))
}

/// What an arm's record keeps of a trace.
fn to_arm_trace(arm: &ArmPlan, traced: TraceRecord) -> ArmTrace {
    let mut notes = traced.header.notes;
    let has_failed = traced.exit.is_some_and(|status| status != 0);
    if has_failed && arm.workload.success != SuccessRule::AnyStatus {
        notes.insert(
            0,
            format!(
                "The traced run of {} failed: its figures may be incomplete.",
                arm.name
            ),
        );
    }
    ArmTrace {
        sentence: words::describe_arm(&arm.name, &traced.figures),
        tier: traced.tier,
        elapsed_s: traced.elapsed_s,
        notes,
        figures: traced.figures,
    }
}

fn report_unavailable(arm: &str, error: &MachineError) -> Finding {
    let (sentence, advice) = match error {
        MachineError::Untraceable { reason, remedy, .. } => (
            format!("--trace: no arm could be traced: {reason}."),
            remedy
                .as_ref()
                .map_or_else(String::new, |command| format!("Permit it with: {command}")),
        ),
        MachineError::Interrupted => (
            "--trace: the traced runs were interrupted.".to_owned(),
            String::new(),
        ),
        other => (
            format!("--trace: {arm} could not be traced: {other}."),
            String::new(),
        ),
    };
    Finding::new("trace_unavailable", Severity::Warning, sentence, advice).with_weight(4)
}

#[cfg(test)]
mod tests;
