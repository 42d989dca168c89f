//! Places processes by the rules of a file, for as long as this runs.
//!
//! ```text
//! file ──► RulesPlan ────────────────┐
//! Watch ──WatchEvents──► enforce ──► RuleEnforcer ──► Processes (masks, nice values)
//!                                      └──────► HeldJournal (each change, in advance)
//! ```
//!
//! A process has the CPUs and the nice value of its first matching rule. Its children and threads
//! inherit them, as from `taskset`, unless a rule matches them. Threads whose CPUs or nice value
//! somebody else set are left alone.

mod enforcer;
mod plan;

pub use enforcer::{RuleEnforcer, RuleEvent};
pub use plan::{DemandedCpus, RulesPlan};

use pinwise_machine::processes::{HeldJournal, Processes, Watch};
use pinwise_record::{RuleProcess, RuleRecord, RulesRecord};

/// Enforces the rules until the watch reports a request to stop. `load` reads the file again.
///
/// # Errors
/// If no further events about processes will arrive.
pub fn enforce<P: Processes, L: HeldJournal>(
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
            enforcer.consider_all(notify);
        }
    }
}

/// Lists the rules with the processes that they match now.
pub fn list_matches<P: Processes>(plan: &RulesPlan, file: &str, host: &mut P) -> RulesRecord {
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
