//! Rules in force: processes are placed as a file says, for as long as this runs.
//!
//! ```text
//! file ──► RulesPlan ───────────────┐
//! Watch ──WatchEvents──► keep ──► RuleEnforcer ──► Processes (masks, nice values)
//!                                     └──────► HeldJournal (written down before)
//! ```
//!
//! A process keeps what its first matching rule says. Its children and threads inherit it, as they
//! do from `taskset`, until a rule says otherwise. A process is left alone if somebody else set its
//! CPUs or nice value. Nothing is printed here.

mod enforcer;
mod plan;

pub use enforcer::{RuleEnforcer, RuleEvent};
pub use plan::{DemandedCpus, RulesPlan};

use pinwise_machine::processes::{HeldJournal, Processes, Watch};
use pinwise_record::{RuleProcess, RuleRecord, RulesRecord};

/// Enforces the rules until it is asked to stop. `load` reads the file again.
///
/// # Errors
/// If no further events about processes will arrive.
pub fn keep<P: Processes, L: HeldJournal>(
    enforcer: &mut RuleEnforcer<P, L>,
    watch: &mut dyn Watch,
    load: &mut dyn FnMut() -> Result<RulesPlan, String>,
    notify: &mut dyn FnMut(RuleEvent),
) -> anyhow::Result<()> {
    watch.report_user_changes(enforcer.plan().rules.need_users())?;
    loop {
        let heard = watch.next()?;
        if heard.stop {
            return Ok(());
        }
        if heard.reload {
            match load() {
                Ok(plan) => {
                    watch.report_user_changes(plan.rules.need_users())?;
                    notify(RuleEvent::Note("the rules were reloaded".to_owned()));
                    enforcer.change_plan(plan, notify);
                }
                Err(reason) => notify(RuleEvent::Warning(format!(
                    "{reason}; the old rules stay in force"
                ))),
            }
        }
        for process in heard.started {
            enforcer.consider(process, notify);
        }
        if heard.look {
            enforcer.look(notify);
        }
    }
}

/// The rules with the processes that they match now.
pub fn survey<P: Processes>(plan: &RulesPlan, file: &str, host: &mut P) -> RulesRecord {
    let mut processes: Vec<Vec<RuleProcess>> = vec![Vec::new(); plan.rules.rules.len()];
    for process in host.all() {
        let Some(rule) = plan.rules.first_match(&mut host.facts(process)) else {
            continue;
        };
        if let Some(identity) = host.identity(process) {
            processes[rule].push(RuleProcess {
                process,
                name: identity.name,
                cpus: host.mask(process).map(|mask| mask.to_string()),
            });
        }
    }
    let rules = plan.rules.rules.iter().zip(processes).enumerate();
    let rules = rules.map(|(index, (rule, processes))| RuleRecord {
        name: rule.name.value.clone(),
        line: rule.name.position.line,
        patterns: rule.patterns.clone(),
        place: rule.place.as_ref().map(|place| place.value.clone()),
        cpus: plan.cpus_here(index).map(|cpus| cpus.to_string()),
        nice: rule.nice.as_ref().map(|nice| nice.value),
        processes,
    });
    RulesRecord {
        file: file.to_owned(),
        rules: rules.collect(),
        warnings: plan
            .rules
            .warnings
            .iter()
            .map(|w| format!("{file}:{w}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
