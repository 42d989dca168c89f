//! `--policy`, `--nice`, `--core-scheduling`, `--beside`: settings with which every arm is
//! repeated.

use anyhow::{Context, bail};

use super::candidates::parse_line;
use super::groups;
use crate::cli::args::CompareArgs;
use crate::cli::values::parse_variable;
use pinwise_format::shell;
use pinwise_machine::{Companion, FigureSource, RunSetting};
use pinwise_study::compare::{ArmPlan, CompanionMetric};
use pinwise_workload::Metric;

/// Parses the commands of `--beside` with their options.
fn parse_companions(args: &CompareArgs) -> anyhow::Result<Vec<Companion>> {
    let (texts, ready) = (&args.companions.companions, &args.companions.ready);
    if ready.len() > 1 && ready.len() != texts.len() {
        bail!(
            "--beside-ready is given {} times for {} of --beside: give it once, or once for each",
            ready.len(),
            texts.len()
        );
    }
    let options = &args.experiment.workload;
    let mut found: Vec<Companion> = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let (name, line) = parse_variable(text).with_context(|| {
            let hint = suggest_name(text);
            format!("--beside '{text}' is not NAME='COMMAND'; for example {hint}")
        })?;
        if found.iter().any(|other| other.name == name) {
            bail!("--beside {name} is given twice: give each command a name of its own");
        }
        let ready = ready.get(at).or(ready.first());
        let ready = ready.map(|line| parse_line(line, options).context("--beside-ready"));
        found.push(Companion {
            command: parse_line(&line, options).with_context(|| format!("--beside {name}"))?,
            ready: ready.transpose()?,
            figure: None,
            name,
        });
    }
    for metric in parse_metrics(args)? {
        let mut all = found.iter_mut();
        match all.find(|companion| companion.name == metric.name) {
            Some(companion) => companion.figure = Some(FigureSource::Itself),
            None => bail!("--beside-metric {0}: there is no --beside {0}", metric.name),
        }
    }
    for text in &args.companions.metric_commands {
        let (name, line) = parse_variable(text)
            .with_context(|| format!("--beside-metric-command '{text}' is not NAME='COMMAND'"))?;
        let named = format!("--beside-metric-command {name}");
        let command = parse_line(&line, options).context(named.clone())?;
        let mut all = found.iter_mut();
        match all
            .find(|companion| companion.name == name)
            .map(|companion| &mut companion.figure)
        {
            Some(Some(FigureSource::Command(_))) => bail!("{named} is given twice"),
            Some(Some(figure)) => *figure = FigureSource::Command(command),
            _ => bail!("{named}: there is no --beside-metric {name}"),
        }
    }
    Ok(found)
}

/// Parses the metrics of `--beside-metric`.
pub(super) fn parse_metrics(args: &CompareArgs) -> anyhow::Result<Vec<CompanionMetric>> {
    let mut found: Vec<CompanionMetric> = Vec::new();
    for text in &args.companions.metrics {
        let (name, metric) = parse_variable(text)
            .with_context(|| format!("--beside-metric '{text}' is not NAME='METRIC'"))?;
        let named = || format!("--beside-metric {name}");
        let metric: Metric = metric.parse().with_context(named)?;
        if !metric.needs_output() || metric.needs_two_readings() {
            bail!(
                "{}: read it from what a command prints, with regex:… or json:…",
                named()
            );
        }
        if found.iter().any(|other| other.name == name) {
            bail!("{} is given twice", named());
        }
        found.push(CompanionMetric { name, metric });
    }
    Ok(found)
}

/// Adds to every arm itself with each policy, each niceness and core scheduling, and to all of
/// these themselves with each companion. If some arms have cgroups, all get one.
pub(super) fn add_settings(
    mut arms: Vec<ArmPlan>,
    args: &CompareArgs,
) -> anyhow::Result<Vec<ArmPlan>> {
    if args.groups.fit_threads {
        arms = groups::add_fitting_threads(arms)?;
    }
    if args.groups.are_given() {
        groups::add_missing_groups(&mut arms);
    }
    let policies = args.scheduling.policies.iter();
    let policies = policies.map(|policy| (format!(", {policy}"), RunSetting::Policy(*policy)));
    let nices = args.scheduling.nices.iter();
    let nices = nices.map(|nice| (format!(", nice {nice}"), RunSetting::Nice(*nice)));
    let cookie = (args.scheduling.with_core_scheduling)
        .then(|| (", core scheduling".to_owned(), RunSetting::CoreScheduling));
    let scheduled: Vec<(String, RunSetting)> = policies.chain(nices).chain(cookie).collect();
    let companions = parse_companions(args)?.into_iter();
    let beside: Vec<(String, RunSetting)> = companions
        .map(|companion| {
            let name = format!(" beside {}", companion.name);
            (name, RunSetting::Companion(companion))
        })
        .collect();
    Ok(repeat_with(repeat_with(arms, &scheduled), &beside))
}

/// Adds after every arm the same with each of these settings; the text is the end of its name.
fn repeat_with(arms: Vec<ArmPlan>, settings: &[(String, RunSetting)]) -> Vec<ArmPlan> {
    let with = |arm: &ArmPlan, (name, setting): &(String, RunSetting)| ArmPlan {
        name: format!("{}{name}", arm.name),
        is_default: false,
        same_as: Vec::new(),
        settings: arm
            .settings
            .iter()
            .cloned()
            .chain([setting.clone()])
            .collect(),
        ..arm.clone()
    };
    let mut all = Vec::new();
    for arm in arms {
        let others: Vec<ArmPlan> = settings.iter().map(|s| with(&arm, s)).collect();
        all.push(arm);
        all.extend(others);
    }
    all
}

/// The option with a name made of the program's: `hog='./hog -t 2'`.
fn suggest_name(command: &str) -> String {
    let program = command.split_whitespace().next().unwrap_or_default();
    let file = program.rsplit('/').next().unwrap_or_default();
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let name: String = file.chars().take_while(is_name).collect();
    let name = match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name,
        false => "noise".to_owned(),
    };
    format!("--beside {name}={}", shell::word(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::Placement;
    use pinwise_topology::Topology;
    use pinwise_workload::{Command, Workload};

    #[test]
    fn every_arm_runs_with_each_setting() {
        let topology = Topology::from_synthetic("package:1 core:4 pu:1").unwrap();
        let arm = |placement: Placement| ArmPlan {
            name: placement.to_string(),
            workload: Workload::new(Command::from_line("prog").unwrap()),
            place: placement.realise(&topology).unwrap(),
            same_as: Vec::new(),
            is_default: placement == Placement::os_default(),
            binding: None,
            settings: Vec::new(),
        };
        let arms = vec![
            arm(Placement::os_default()),
            arm("compact*2".parse().unwrap()),
        ];
        let nice = |nice: i32| (format!(", nice {nice}"), RunSetting::Nice(nice));
        let all = repeat_with(arms, &[nice(5), nice(9)]);
        let names: Vec<&str> = all.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "os-default",
                "os-default, nice 5",
                "os-default, nice 9",
                "compact*2",
                "compact*2, nice 5",
                "compact*2, nice 9",
            ]
        );
        assert_eq!(all[4].settings, [RunSetting::Nice(5)]);
        assert!(all[0].is_default && !all[1].is_default);
    }
}
