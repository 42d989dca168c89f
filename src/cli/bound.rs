//! For commands with bound placements: the environment variables that tell runtimes how many CPUs
//! they have, and notes on how threads were bound.

use super::terminal::Terminal;
use pinwise_machine::{Binding, Coverage};
use pinwise_study::compare::coverage_record;
use pinwise_workload::{Workload, missing_thread_variables};

/// The variables with the number of CPUs for a program whose threads are bound: those that neither
/// its own environment nor that of this process sets.
pub(super) fn list_missing_variables(
    binding: &Binding,
    own: &[(String, String)],
) -> Vec<(String, String)> {
    #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
    let is_inherited = |name: &str| std::env::var_os(name).is_some();
    let is_own = |name: &str| own.iter().any(|(other, _)| other == name);
    missing_thread_variables(binding.order.len(), |name| {
        is_inherited(name) || is_own(name)
    })
}

/// A copy of the workload, with the missing variables if it is bound.
pub(super) fn add_missing_variables(workload: &Workload, binding: Option<&Binding>) -> Workload {
    let mut workload = workload.clone();
    if let Some(binding) = binding {
        let missing = list_missing_variables(binding, &workload.environment);
        workload.environment.extend(missing);
    }
    workload
}

/// Notes which variables are set.
pub(super) fn print_variables(variables: &[(String, String)], terminal: &Terminal) {
    if variables.is_empty() {
        return;
    }
    let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
    terminal.note(
        "A bound program gets OMP_NUM_THREADS and the like, set to its number of CPUs (-v: all).",
    );
    log::info!("set for bound programs: {}", names.join(", "));
}

/// Prints how much of the CPU time ran on the requested CPUs.
pub(super) fn print_coverage(coverage: &Coverage, terminal: &Terminal) {
    let record = coverage_record(coverage);
    let sentence = format!("{} {}", record.sentence(), record.advice());
    match record.moved_threads {
        0 => terminal.note(sentence.trim_end()),
        _ => terminal.warn(&sentence),
    }
}
