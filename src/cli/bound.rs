//! Common parts of commands with bound placements: the variables that tell runtimes how many CPUs
//! they have, and the words for what happened to threads.

use super::terminal::Terminal;
use pinwise_machine::{Binding, Coverage};
use pinwise_study::compare::coverage_record;
use pinwise_workload::{Workload, missing_thread_variables};

/// The variables that a program needs whose threads are bound: those that
/// neither the user nor this process's environment sets.
pub(super) fn variables(binding: &Binding, own: &[(String, String)]) -> Vec<(String, String)> {
    #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
    let is_inherited = |name: &str| std::env::var_os(name).is_some();
    let is_own = |name: &str| own.iter().any(|(other, _)| other == name);
    missing_thread_variables(binding.order.len(), |name| {
        is_inherited(name) || is_own(name)
    })
}

/// The same workload for a bound placement.
pub(super) fn workload(of: &Workload, binding: Option<&Binding>) -> Workload {
    let mut workload = of.clone();
    if let Some(binding) = binding {
        let missing = variables(binding, &workload.environment);
        workload.environment.extend(missing);
    }
    workload
}

/// Says which variables are set, once for all.
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

/// Prints how much ran on the requested CPUs.
pub(super) fn print_coverage(coverage: &Coverage, terminal: &Terminal) {
    let record = coverage_record(coverage);
    let sentence = format!("{} {}", record.sentence(), record.advice());
    match record.moved_threads {
        0 => terminal.note(sentence.trim_end()),
        _ => terminal.warn(&sentence),
    }
}
