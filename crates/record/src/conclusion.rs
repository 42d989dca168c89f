//! Draws the conclusions from a comparison's figures, in the words of its metric: the effect of
//! each contrast, the standing of each arm, the headline, the commands. They are stored in the
//! record, once, when the comparison ends. An unfinished one adopts the runs that were stored.

use super::command_line::{CommandRecord, PlacedCommand};
use super::contrast::LoadLevelsRecord;
use super::metric::HeadlineRecord;
use super::{
    Arm, Comparison, ComparisonStudy, ContrastRecord, ContrastVerdict, Phase, PlacementKind,
    PlacementMemory, RunRecord, ServiceRecord, VerdictKind,
};
use pinwise_format::{round_percent, shell};

impl Comparison {
    /// Adds the runs that were stored one by one to an unfinished record: runs of whole blocks
    /// count, others become `other_runs`.
    pub fn adopt_runs(&mut self, runs: Vec<(usize, RunRecord)>) {
        let mut good_runs = std::collections::BTreeMap::new();
        for (_, run) in runs.iter().filter(|(_, run)| run.metric.cost.is_some()) {
            *good_runs.entry((run.phase, run.block)).or_insert(0usize) += 1;
        }
        for (arm, mut run) in runs {
            let Some(target) = self.arms.get_mut(arm) else {
                continue;
            };
            let is_whole = good_runs.get(&(run.phase, run.block)) == Some(&run.block_runs);
            if run.phase != Phase::Warmup && !is_whole {
                run.phase = Phase::Dropped;
            }
            match run.phase {
                Phase::Screening | Phase::Confirmation => target.runs.push(run),
                Phase::Warmup | Phase::Dropped => target.other_runs.push(run),
            }
        }
        self.verdict.sentence =
            "Undecided: the experiment runs, or was cut off; its finished runs are kept."
                .to_owned();
    }

    /// Fills in the conclusions from its figures.
    pub fn conclude(&mut self) {
        let metric = &self.metric;
        for contrast in &mut self.contrasts {
            contrast.effect = metric.effect(contrast.ratio, contrast.low, contrast.high);
            for other in &mut contrast.others {
                other.effect = metric.effect(other.ratio, other.low, other.high);
            }
            if let Some(totals) = &mut contrast.totals {
                totals.mean = metric.effect(totals.mean_ratio, None, None).text;
                totals.p90 = metric.effect(totals.p90_ratio, None, None).text;
            }
            for level in contrast
                .load_levels
                .iter_mut()
                .flat_map(LoadLevelsRecord::all_mut)
            {
                level.change = metric.effect(level.ratio, None, None).text;
            }
            contrast.beside = contrast.describe_components().filter(|_| metric.is_wall());
        }
        let standings: Vec<String> = self
            .arms
            .iter()
            .map(|arm| self.find_standing(arm))
            .collect();
        for (arm, standing) in self.arms.iter_mut().zip(standings) {
            arm.standing = standing;
        }
        self.verdict.headline = self.write_headline();
    }

    fn find_standing(&self, arm: &Arm) -> String {
        let contrast = self.contrasts.iter().find(|c| c.arm == arm.name);
        let is_coarse = self.findings.iter().any(|f| f.check == "coarse_figure");
        if let Some(reason) = contrast.and_then(|c| c.find_withholding_reason(is_coarse)) {
            return format!("withheld: {reason}");
        }
        if let Some(cpu_time) = contrast.and_then(ContrastRecord::deciding_cpu_time) {
            let word = match (&self.verdict.kind, cpu_time.ratio > 1.0) {
                (VerdictKind::Same, _) => "same",
                (_, true) => "more",
                (_, false) => "less",
            };
            return format!("{word} CPU time");
        }
        let word = match contrast.map(|c| &c.verdict) {
            Some(ContrastVerdict::Faster) => &self.metric.better_word,
            Some(ContrastVerdict::Slower) => &self.metric.worse_word,
            Some(other) => other.as_str(),
            None if arm.invalid.is_some() => "failed",
            None if arm.timed_out.is_some() => &self.metric.worse_word,
            None if arm.name == self.baseline => "baseline",
            None if arm.eliminated => "eliminated",
            None => "",
        };
        word.to_owned()
    }

    /// The best arm's contrast, or the only one; if all arms are the same, none stands out.
    fn write_headline(&self) -> Option<HeadlineRecord> {
        if self.study == ComparisonStudy::Noise {
            return None;
        }
        let is_best = |c: &&ContrastRecord| self.best.as_ref() == Some(&c.arm);
        let only = match self.contrasts.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        let contrast = self.contrasts.iter().find(is_best).or(only)?;
        let ContrastRecord {
            arm,
            baseline,
            confidence,
            effect,
            ..
        } = contrast;
        let (effect, figure) = match contrast.deciding_cpu_time() {
            Some(cpu_time) => (&cpu_time.effect, "CPU time"),
            None => (effect, self.metric.label.as_str()),
        };
        let headline = HeadlineRecord::new(
            effect,
            format!("{figure} of {arm} against {baseline}"),
            self.describe_level(*confidence),
            "no interval: too few pairs",
        );
        let is_open = self.verdict.kind == VerdictKind::Undecided && !effect.interval.is_empty();
        Some(match is_open {
            // An undecided verdict shows the interval: a single figure would read as the answer.
            true => HeadlineRecord {
                change: effect.interval.clone(),
                interval: String::new(),
                ..headline
            },
            false => headline,
        })
    }

    /// The level of a contrast's interval; claims of several arms hold together at that of the plan.
    fn describe_level(&self, confidence: f64) -> String {
        let level = format!("{} interval over all looks", round_percent(confidence));
        match self.contrasts.len() {
            1 => level,
            _ => format!(
                "{level}; claims of all arms hold together at {}",
                round_percent(1.0 - self.plan.alpha)
            ),
        }
    }

    /// Commands that apply an arm.
    #[must_use]
    pub fn list_apply_commands(&self, arm: &Arm) -> Vec<CommandRecord> {
        if let Some(service) = &self.service {
            return write_apply_command(service, arm).into_iter().collect();
        }
        // Without a cgroup of its own, no command can apply the setting.
        if arm.setting.has_group() {
            return Vec::new();
        }
        let is_recipe = arm.workload.recipe.is_some();
        let launcher = arm.setting.launcher_words();
        if is_recipe && (arm.placement.name == "os-default" || !launcher.is_empty()) {
            return Vec::new();
        }
        let mut commands = use_placed_command(arm, |placed| placed.list_commands());
        if let ([only], [tool, ..]) = (commands.as_mut_slice(), launcher.as_slice()) {
            only.what = format!("with {tool}");
        }
        commands
    }

    /// The program of an arm for a shell, with its environment and input, and with each word
    /// escaped for what starts the program; `None` for a running service.
    #[must_use]
    pub fn write_program(&self, arm: &Arm, escape: impl Fn(&str) -> String) -> Option<String> {
        let is_started = self.service.is_none();
        is_started.then(|| use_placed_command(arm, |placed| placed.write_program_with(escape)))
    }
}

/// Calls `work` with the command of an arm and its placement.
fn use_placed_command<T>(arm: &Arm, work: impl FnOnce(&PlacedCommand<'_>) -> T) -> T {
    let placement = &arm.placement;
    let memory = placement.memory.as_ref().map(PlacementMemory::as_str);
    let mut command = arm.setting.launcher_words();
    command.extend(arm.command.iter().cloned());
    let is_recipe = arm.workload.recipe.is_some();
    work(&PlacedCommand {
        command: (!is_recipe).then_some(command.as_slice()),
        environment: &arm.workload.environment,
        input: arm.workload.input.as_deref(),
        placement: &placement.name,
        is_bound: placement.kind == PlacementKind::Bound,
        cpus: &arm.cpus,
        memory: memory.map(|policy| (policy, placement.memory_nodes.as_slice())),
    })
}

/// The command that applies an arm's placement to a running service.
fn write_apply_command(service: &ServiceRecord, arm: &Arm) -> Option<CommandRecord> {
    let pid = service.pid.map(|pid| pid.to_string());
    let (option, value) = match (&service.unit, &service.cgroup, &pid) {
        (Some(unit), _, _) => ("--unit", unit),
        (None, Some(cgroup), _) => ("--cgroup", cgroup),
        (None, None, Some(pid)) => ("--pid", pid),
        (None, None, None) => return None,
    };
    let words = [
        "pinwise",
        "apply",
        option,
        value,
        "--place",
        &arm.placement.name,
    ];
    Some(CommandRecord {
        what: "with pinwise".to_owned(),
        line: shell::line(&words),
    })
}
