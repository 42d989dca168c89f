//! What to apply, according to a stored record.

use anyhow::bail;

use super::super::terminal::Terminal;
use pinwise_format::shell;
use pinwise_placement::emit::Context;
use pinwise_record::{
    AnyRecord, Bench, BenchCell, CompanionRecord, Comparison, HostRecord, SearchAnswer,
    SearchRecord, SettingRecord, VerdictKind,
};
use pinwise_store::Stored;

/// The best arm of a record.
#[derive(Debug)]
pub(in crate::cli) struct Answer {
    /// The record.
    pub(super) id: String,
    /// The machine it ran on.
    pub(super) host: String,
    /// The shape of that machine.
    pub(super) shape_hash: String,
    /// The placement's name.
    pub(in crate::cli) placement: String,
    /// The CPUs that the placement meant on that machine.
    pub(super) cpus: String,
    /// The program; empty if a recipe made it, whose folder no longer exists.
    pub(in crate::cli) command: Vec<String>,
    /// Added environment of the program.
    pub(in crate::cli) environment: Vec<(String, String)>,
    /// The file that it read on standard input.
    pub(in crate::cli) input: Option<String>,
    /// Threads, if they were set.
    pub(super) threads: Option<usize>,
    /// The settings of its runs beside the placement.
    pub(super) setting: SettingRecord,
    /// Why doing nothing is as good; `None` if it is not.
    pub(super) nothing_to_apply: Option<String>,
}

/// What is said in place of a command that would change nothing.
pub(in crate::cli) const NOTHING_TO_APPLY: &str =
    "Nothing to apply: the verdict is to change nothing.";

impl Answer {
    /// Does it leave the program as the system runs it? A command of its own is applied.
    pub(in crate::cli) fn has_nothing_to_apply(&self) -> bool {
        self.nothing_to_apply.is_some()
            && self.placement == "os-default"
            && self.setting == SettingRecord::default()
    }

    /// What tools get beside the placement.
    pub(in crate::cli) fn context(&self) -> Context {
        Context {
            command: self.command.clone(),
            environment: self.environment.clone(),
            threads: self.threads,
            limit: self.setting.limit.and_then(|limit| limit.limit()),
        }
    }

    /// What no line of a tool says.
    pub(in crate::cli) fn report_input(&self, terminal: &Terminal) {
        if let Some(input) = &self.input {
            terminal.note(&format!("It read its standard input from {input}."));
        }
        if self.setting.is_isolated {
            terminal.note(
                "It ran on isolated CPUs, a thread on each, without their interrupts: for good that takes isolcpus= at boot.",
            );
        } else if self.setting.is_exclusive {
            terminal.note(
                "It ran in a cpuset of its own: a mask, as of taskset, is one that it can leave.",
            );
        }
        for CompanionRecord { name, command } in &self.setting.beside {
            terminal.note(&format!("It ran beside {name}: {}.", shell::line(command)));
        }
    }
}

/// Reads the answer off a record.
pub(super) fn read_answer(stored: &Stored) -> anyhow::Result<Answer> {
    match stored.record()? {
        AnyRecord::Comparison(record) => answer_from_comparison(&record),
        AnyRecord::Search(record) => answer_from_search(&record),
        AnyRecord::Bench(record) => answer_from_bench(&record),
        other => bail!(
            "record {} ({}) has no best placement: comparisons, searches and benches have one",
            stored.entry.id,
            other.kind().name()
        ),
    }
}

fn answer(id: &str, host: &HostRecord) -> Answer {
    Answer {
        id: id.to_owned(),
        host: host.name(),
        shape_hash: host.shape_hash.clone(),
        placement: "os-default".to_owned(),
        cpus: host.allowed.clone(),
        command: Vec::new(),
        environment: Vec::new(),
        input: None,
        threads: None,
        setting: SettingRecord::default(),
        nothing_to_apply: None,
    }
}

fn no_best_arm(id: &str, sentence: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "record {id} has no best arm ({}); measure longer, or choose with --place",
        sentence.trim_end_matches('.')
    )
}

/// The record's own words on why, and how to apply it all the same.
fn not_recommended(id: &str, advice: &str, placement: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "record {id}: {} To apply it all the same, name the place instead of the record: --place {}",
        advice.trim_end_matches('.').to_owned() + ".",
        shell::word(placement)
    )
}

/// The arm of the verdict; of one that says nothing matters, the baseline.
pub(in crate::cli) fn answer_from_comparison(record: &Comparison) -> anyhow::Result<Answer> {
    if record.joint.is_some() {
        bail!(
            "record {} places several programs: pinwise apply {0} --as systemd, or kubernetes",
            record.id
        );
    }
    let kind = record.verdict.kind;
    let is_idle = matches!(kind, VerdictKind::Same | VerdictKind::LeaveAlone);
    let Some(arm) = record.recommended_arm() else {
        let best = record
            .arms
            .iter()
            .find(|arm| Some(&arm.name) == record.best.as_ref());
        return Err(match (&record.verdict.not_recommended, best) {
            (Some(_), Some(arm)) => {
                not_recommended(&record.id, &record.verdict.advice, &arm.placement.name)
            }
            _ => no_best_arm(&record.id, &record.verdict.sentence),
        });
    };
    let is_recipe = arm.workload.recipe.is_some();
    // The advice is the same as of a verdict to leave it alone.
    let changes_nothing = arm.name == record.baseline && record.verdict.commands.is_empty();
    Ok(Answer {
        placement: arm.placement.name.clone(),
        cpus: arm.cpus.clone(),
        setting: arm.setting.clone(),
        command: if is_recipe {
            Vec::new()
        } else {
            let launcher = arm.setting.launcher().into_iter();
            launcher.chain(arm.command.iter().cloned()).collect()
        },
        environment: arm.workload.environment.clone(),
        input: arm.workload.input.clone(),
        nothing_to_apply: (is_idle || changes_nothing).then(|| record.verdict.sentence.clone()),
        ..answer(&record.id, &record.host)
    })
}

fn answer_from_search(record: &SearchRecord) -> anyhow::Result<Answer> {
    let kind = record.verdict.kind;
    let is_idle = matches!(kind, SearchAnswer::LeaveAlone | SearchAnswer::DoesNotMatter);
    let Some(arm) = record.recommended_arm() else {
        let best = record
            .arms
            .iter()
            .find(|arm| Some(&arm.name) == record.best.as_ref());
        return Err(match (&record.verdict.not_recommended, best) {
            (Some(_), Some(arm)) => {
                not_recommended(&record.id, &record.verdict.advice, &arm.placement)
            }
            _ => no_best_arm(&record.id, &record.verdict.sentence),
        });
    };
    let (command, environment) = record.command_line(arm);
    Ok(Answer {
        placement: arm.placement.clone(),
        cpus: arm.cpus.clone(),
        command,
        environment,
        input: record.workload.input.clone(),
        threads: arm.threads,
        nothing_to_apply: is_idle.then(|| record.verdict.sentence.clone()),
        ..answer(&record.id, &record.host)
    })
}

/// The fastest cell, if the whole bench is about one kernel and question.
fn answer_from_bench(record: &Bench) -> anyhow::Result<Answer> {
    let [kernel] = &record.kernels[..] else {
        bail!(
            "record {} is a bench of {} comparisons, each with a best arm of its own: apply one of \
             them (pinwise record history lists them)",
            record.id,
            record.kernels.len()
        );
    };
    let speed = |cell: &&BenchCell| cell.speed_up.map_or(1.0, |speed_up| speed_up.value);
    let usable = kernel.cells.iter().filter(|cell| cell.invalid.is_none());
    let Some(cell) = usable.max_by(|a, b| speed(a).total_cmp(&speed(b))) else {
        return Err(no_best_arm(&record.id, "no cell could be measured"));
    };
    let speed_up = cell.speed_up.as_ref();
    if speed_up.is_some_and(|speed_up| speed_up.low.is_none_or(|low| low <= 1.0)) {
        let why = format!(
            "{} is fastest, but may be no faster than the baseline",
            cell.name
        );
        return Err(no_best_arm(&record.id, &why));
    }
    Ok(Answer {
        placement: cell.placement.clone(),
        cpus: cell.cpus.clone(),
        command: ["pinwise", "bench", "kernel", &kernel.kernel]
            .map(str::to_owned)
            .to_vec(),
        threads: Some(cell.threads),
        ..answer(&record.id, &record.host)
    })
}
