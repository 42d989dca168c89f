//! Which placement to apply, according to a stored record.

use anyhow::{Context as _, bail};

use super::super::args::{ApplyArgs, Global};
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
    /// The id of the record.
    pub(super) id: String,
    /// The machine it ran on.
    pub(super) host: String,
    /// The shape of that machine.
    pub(super) shape_hash: String,
    /// The placement's name.
    pub(in crate::cli) placement: String,
    /// The CPUs of the placement on that machine.
    pub(super) cpus: String,
    /// The program; empty if a recipe made it, whose folder no longer exists.
    pub(in crate::cli) command: Vec<String>,
    /// Environment variables added for the program.
    pub(in crate::cli) environment: Vec<(String, String)>,
    /// The file that the program read on standard input.
    pub(in crate::cli) input: Option<String>,
    /// Threads, if they were set.
    pub(super) threads: Option<usize>,
    /// The other settings of its runs.
    pub(super) setting: SettingRecord,
    /// The verdict, if it says that changing nothing is as good.
    pub(super) nothing_to_apply: Option<String>,
}

/// The most arms that an error lists: a search has hundreds.
const MAX_LISTED_ARMS: usize = 8;

/// Printed instead of commands if they would change nothing.
pub(in crate::cli) const NOTHING_TO_APPLY: &str =
    "Nothing to apply: the verdict is to change nothing.";

impl Answer {
    /// Would applying it leave the program as the system runs it anyway?
    pub(in crate::cli) fn has_nothing_to_apply(&self) -> bool {
        // A companion was part of the question, and is nothing to apply.
        let own = SettingRecord {
            beside: Vec::new(),
            ..self.setting.clone()
        };
        self.nothing_to_apply.is_some()
            && self.placement == "os-default"
            && own == SettingRecord::default()
    }

    /// Why its placement does not exist on this machine, if it is of a simulated one.
    pub(super) fn explain_simulated(&self, args: &ApplyArgs) -> Option<String> {
        let machine = self.host.strip_prefix("sim:").map(|_| &self.host)?;
        let words = ["pinwise", "apply", &self.id, "--machine", machine];
        let mut words = words.map(str::to_owned).to_vec();
        let arm = args.arm.as_ref().map(|arm| ["--arm", arm]);
        let target = args.target.as_ref().map(|target| ["--as", target]);
        let options = arm.into_iter().chain(target).flatten();
        words.extend(options.map(str::to_owned));
        Some(format!(
            "record {} is of the simulated machine {machine}, and this one has no {}; to print it for that machine: {}",
            self.id,
            self.placement,
            shell::line(&words)
        ))
    }

    /// What the output for a tool needs beside the placement.
    pub(in crate::cli) fn context(&self) -> Context {
        Context {
            command: self.command.clone(),
            environment: self.environment.clone(),
            threads: self.threads,
            limit: self.setting.limit.and_then(|limit| limit.to_limit()),
        }
    }

    /// Notes conditions of the measured runs that the output for tools does not reproduce.
    pub(in crate::cli) fn note_conditions(&self, terminal: &Terminal) {
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

/// Which arm of a record to apply, and where.
#[derive(Debug, Default)]
pub(in crate::cli) struct ArmChoice {
    /// The arm of `--arm`; `None` for that of the verdict.
    name: Option<String>,
    /// Options of this call, which the command suggested by an error repeats.
    options: Vec<String>,
}

impl ArmChoice {
    pub(super) fn from_args(global: &Global, args: &ApplyArgs) -> Self {
        let machine = (!global.machine.is_local()).then(|| global.machine.to_string());
        let options = [
            ("--machine", machine),
            ("--as", args.target.clone()),
            ("--pid", args.pid.map(|pid| pid.to_string())),
            ("--unit", args.unit.clone()),
            ("--cgroup", args.cgroup.clone()),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        Self {
            name: args.arm.clone(),
            options: given.flatten().collect(),
        }
    }

    /// Ends an error: lists the arms, and suggests a command that applies one whatever the
    /// verdict, `suggested` or else the first. Empty if there are no arms.
    fn suggest_arm(&self, id: &str, suggested: Option<&str>, names: &[&str]) -> String {
        let Some(arm) = suggested.or(names.first().copied()) else {
            return String::new();
        };
        let words = ["pinwise", "apply", id, "--arm", arm].map(str::to_owned);
        let words: Vec<String> = words.into_iter().chain(self.options.clone()).collect();
        format!(
            ". To apply one of its arms ({}) all the same: {}",
            names.join(", "),
            shell::line(&words)
        )
    }

    /// Finds the arm of `--arm`; `None` without the option.
    fn find<'a, T>(
        &self,
        id: &str,
        arms: &'a [T],
        name_of: impl Fn(&'a T) -> &'a str,
    ) -> anyhow::Result<Option<&'a T>> {
        let Some(wanted) = &self.name else {
            return Ok(None);
        };
        let found = arms.iter().find(|arm| name_of(arm) == wanted);
        found.map(Some).with_context(|| {
            let names: Vec<&str> = arms.iter().map(name_of).collect();
            format!(
                "--arm {}: record {id} has no such arm (arms: {})",
                shell::word(wanted),
                names.join(", ")
            )
        })
    }
}

/// Reads the answer from a record.
pub(super) fn read_answer(stored: &Stored, choice: &ArmChoice) -> anyhow::Result<Answer> {
    match stored.record()? {
        AnyRecord::Comparison(record) => answer_from_comparison(&record, choice),
        AnyRecord::Search(record) => answer_from_search(&record, choice),
        AnyRecord::Bench(record) => answer_from_bench(&record, choice),
        other => bail!(
            "record {} ({}) has no best placement: comparisons, searches and benches have one",
            stored.entry.id,
            other.kind().name()
        ),
    }
}

/// The answer to change nothing, for a record of this host.
fn make_unchanged_answer(id: &str, host: &HostRecord) -> Answer {
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

/// The error that a record has no best arm.
fn no_best_arm_error(id: &str, sentence: &str, hint: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "record {id} has no best arm ({}); measure longer{hint}",
        sentence.trim_end_matches('.')
    )
}

/// The error that a record advises against its best arm.
fn not_recommended_error(id: &str, advice: &str, hint: &str) -> anyhow::Error {
    anyhow::anyhow!("record {id}: {}{hint}", advice.trim_end_matches('.'))
}

/// The best arm of a comparison, or without one the arm with the best estimate.
fn find_likely_best(record: &Comparison) -> Option<&str> {
    let contrasts = record.contrasts.iter();
    let competing = contrasts.filter_map(|contrast| {
        let beside = record.companions_of(&contrast.arm);
        let is_choice = record.companions_of(&contrast.baseline) == beside;
        is_choice.then_some((contrast, beside.is_empty()))
    });
    // An arm beside a companion is what was asked about.
    let best = competing.min_by(|(a, a_is_alone), (b, b_is_alone)| {
        let order = a_is_alone.cmp(b_is_alone);
        order.then(a.ratio.total_cmp(&b.ratio))
    });
    let best = best.map(|(contrast, _)| contrast);
    let best = best.map(|contrast| contrast.arm.as_str());
    record.best.as_deref().or(best)
}

/// Reads the recommended arm: the baseline if the verdict is that placements do not matter.
pub(in crate::cli) fn answer_from_comparison(
    record: &Comparison,
    choice: &ArmChoice,
) -> anyhow::Result<Answer> {
    let id = &record.id;
    if record.joint.is_some() {
        bail!(
            "record {id} places several programs: pinwise apply {id} --as systemd, or kubernetes"
        );
    }
    let named = choice.find(id, &record.arms, |arm| &arm.name)?;
    let kind = record.verdict.kind;
    let is_idle = matches!(kind, VerdictKind::Same | VerdictKind::LeaveAlone) && named.is_none();
    let Some(arm) = named.or_else(|| record.recommended_arm()) else {
        let valid = record.arms.iter().filter(|arm| arm.invalid.is_none());
        let names: Vec<&str> = valid.map(|arm| arm.name.as_str()).collect();
        let hint = choice.suggest_arm(id, find_likely_best(record), &names);
        return Err(match record.verdict.not_recommended {
            Some(_) => not_recommended_error(id, &record.verdict.advice, &hint),
            None => no_best_arm_error(id, &record.verdict.sentence, &hint),
        });
    };
    let is_recipe = arm.workload.recipe.is_some();
    // A verdict without commands that prefers the baseline advises to change nothing.
    let changes_nothing =
        arm.name == record.baseline && record.verdict.commands.is_empty() && named.is_none();
    Ok(Answer {
        placement: arm.placement.name.clone(),
        cpus: arm.cpus.clone(),
        setting: arm.setting.clone(),
        command: if is_recipe {
            Vec::new()
        } else {
            let launcher = arm.setting.launcher_words().into_iter();
            launcher.chain(arm.command.iter().cloned()).collect()
        },
        environment: arm.workload.environment.clone(),
        input: arm.workload.input.clone(),
        nothing_to_apply: (is_idle || changes_nothing).then(|| record.verdict.sentence.clone()),
        ..make_unchanged_answer(&record.id, &record.host)
    })
}

fn answer_from_search(record: &SearchRecord, choice: &ArmChoice) -> anyhow::Result<Answer> {
    let id = &record.id;
    let named = choice.find(id, &record.arms, |arm| &arm.name)?;
    let kind = record.verdict.kind;
    let is_idle =
        matches!(kind, SearchAnswer::LeaveAlone | SearchAnswer::DoesNotMatter) && named.is_none();
    let Some(arm) = named.or_else(|| record.recommended_arm()) else {
        let names: Vec<&str> = record.arms.iter().map(|arm| arm.name.as_str()).collect();
        let names = &names[..names.len().min(MAX_LISTED_ARMS)];
        let hint = choice.suggest_arm(id, record.best.as_deref(), names);
        return Err(match record.verdict.not_recommended {
            Some(_) => not_recommended_error(id, &record.verdict.advice, &hint),
            None => no_best_arm_error(id, &record.verdict.sentence, &hint),
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
        ..make_unchanged_answer(&record.id, &record.host)
    })
}

/// Reads the fastest cell; an error if the bench has several kernels, or the cell may be no faster.
fn answer_from_bench(record: &Bench, choice: &ArmChoice) -> anyhow::Result<Answer> {
    let id = &record.id;
    let [kernel] = &record.kernels[..] else {
        bail!(
            "record {id} is a bench of {} comparisons, each with a best arm of its own: apply one of \
             them (pinwise record history lists them)",
            record.kernels.len()
        );
    };
    let speed = |cell: &&BenchCell| cell.speed_up.map_or(1.0, |speed_up| speed_up.value);
    let usable = kernel.cells.iter().filter(|cell| cell.invalid.is_none());
    let named = choice.find(id, &kernel.cells, |cell| &cell.name)?;
    let fastest = usable.clone().max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let Some(cell) = named.or(fastest) else {
        return Err(no_best_arm_error(id, "no cell could be measured", ""));
    };
    let speed_up = cell.speed_up.as_ref().filter(|_| named.is_none());
    if speed_up.is_some_and(|speed_up| speed_up.low.is_none_or(|low| low <= 1.0)) {
        let why = format!(
            "{} is fastest, but may be no faster than the baseline",
            cell.name
        );
        let names: Vec<&str> = usable.map(|cell| cell.name.as_str()).collect();
        let hint = choice.suggest_arm(id, Some(&cell.name), &names);
        return Err(no_best_arm_error(id, &why, &hint));
    }
    Ok(Answer {
        placement: cell.placement.clone(),
        cpus: cell.cpus.clone(),
        command: ["pinwise", "bench", "kernel", &kernel.kernel]
            .map(str::to_owned)
            .to_vec(),
        threads: Some(cell.threads),
        ..make_unchanged_answer(&record.id, &record.host)
    })
}
