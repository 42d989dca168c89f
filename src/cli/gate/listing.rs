//! Lists the benchmarks that a suite has in each build.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::builds::Tree;
use super::refuse_without_shared;
use crate::cli::args::GateArgs;
use pinwise_study::gate::PlannedBenchmark;
use pinwise_workload::Framework;
use pinwise_workload::suite::{MAX_BENCHMARKS, Suite, SuiteContent, SuiteEntry};
use pinwise_workload::{Command as Program, Metric, Pattern, Workload};

/// Lists the benchmarks of the suite that match `--filter`, from both builds.
pub(super) fn list_benchmarks(
    args: &GateArgs,
    suite: &Suite,
    base: &Tree,
    head: &Tree,
) -> anyhow::Result<Vec<PlannedBenchmark>> {
    let filter = match &args.filter {
        None => None,
        Some(text) => {
            Some(Pattern::parse(text).map_err(|why| anyhow::anyhow!("--filter '{text}': {why}"))?)
        }
    };
    let mut benchmarks: Vec<PlannedBenchmark> = Vec::new();
    for entry in &suite.benchmarks {
        let at = format!("--suite {}:{}", args.suite.display(), entry.position);
        let entry_benchmarks = match &entry.content {
            SuiteContent::Single { name, metric } => {
                vec![plan_single(entry, name, metric.as_ref(), base, head)]
            }
            SuiteContent::Framework {
                framework,
                filter,
                prefix,
            } => {
                let [in_base, in_head] = [base, head]
                    .map(|tree| list_in_build(entry, *framework, tree).with_context(|| at.clone()));
                list_framework_benchmarks(
                    entry,
                    *framework,
                    filter.as_ref(),
                    prefix,
                    [in_base?, in_head?],
                    [base, head],
                )?
            }
        };
        if entry_benchmarks.is_empty() {
            bail!("{at}: filter: it matches none of the benchmarks that the framework lists");
        }
        for benchmark in entry_benchmarks {
            let is_wanted = |pattern: &Pattern| pattern.is_in(benchmark.name.as_bytes());
            if !filter.as_ref().is_none_or(is_wanted) {
                continue;
            }
            if benchmarks.iter().any(|other| other.name == benchmark.name) {
                bail!(
                    "{at}: there is a benchmark '{}' already; give one of the entries another name",
                    benchmark.name
                );
            }
            benchmarks.push(benchmark);
        }
    }
    if benchmarks.len() > MAX_BENCHMARKS {
        bail!("the suite has more than {MAX_BENCHMARKS} benchmarks: choose some with --filter");
    }
    if let Some(min_effect) = args.min_effect {
        for benchmark in &mut benchmarks {
            benchmark.min_effect = min_effect;
        }
    }
    refuse_without_shared(&benchmarks)?;
    Ok(benchmarks)
}

fn plan_single(
    entry: &SuiteEntry,
    name: &str,
    metric: Option<&Metric>,
    base: &Tree,
    head: &Tree,
) -> PlannedBenchmark {
    PlannedBenchmark {
        name: name.to_owned(),
        base: Some(new_workload(entry, entry.command.clone(), base)),
        head: Some(new_workload(entry, entry.command.clone(), head)),
        metric: metric.cloned().unwrap_or_else(Metric::wall),
        with_cpu: metric.is_none(),
        min_effect: entry.min_effect,
    }
}

fn new_workload(entry: &SuiteEntry, command: Program, tree: &Tree) -> Workload {
    Workload {
        folder: Some(tree.folder.clone()),
        timeout: entry.timeout,
        environment: entry.environment.clone(),
        ..Workload::new(command)
    }
}

/// Plans the benchmarks that a framework lists in either build, in the order of the base.
fn list_framework_benchmarks(
    entry: &SuiteEntry,
    framework: Framework,
    filter: Option<&Pattern>,
    prefix: &str,
    [base_has, head_has]: [Vec<String>; 2],
    [base, head]: [&Tree; 2],
) -> anyhow::Result<Vec<PlannedBenchmark>> {
    let only_in_head = head_has.iter().filter(|name| !base_has.contains(name));
    let names = base_has.iter().chain(only_in_head);
    let is_wanted = |name: &&String| filter.is_none_or(|filter| filter.is_in(name.as_bytes()));
    names
        .filter(is_wanted)
        .map(|name| {
            let argv = framework.command(entry.command.argv(), name);
            let command = Program::from_argv(argv)?;
            let workload_in = |has: &[String], tree: &Tree| {
                let is_listed = has.contains(name);
                is_listed.then(|| new_workload(entry, command.clone(), tree))
            };
            Ok(PlannedBenchmark {
                name: match prefix {
                    "" => name.clone(),
                    prefix => format!("{prefix}/{name}"),
                },
                base: workload_in(&base_has, base),
                head: workload_in(&head_has, head),
                metric: Metric::Framework(framework, name.clone()),
                with_cpu: false,
                min_effect: entry.min_effect,
            })
        })
        .collect()
}

/// Runs a build's framework to list its benchmarks.
#[expect(clippy::disallowed_methods, reason = "listing measures nothing")]
fn list_in_build(
    entry: &SuiteEntry,
    framework: Framework,
    tree: &Tree,
) -> anyhow::Result<Vec<String>> {
    if !tree.is_real {
        bail!("adapter: benchmarks of a framework need --machine local");
    }
    let argv = entry.command.argv();
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .args(framework.list_arguments())
        .envs(entry.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&tree.folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("'{}' in {}", entry.command, tree.record.name))?;
    if let Ok(names) = framework.parse_list(&String::from_utf8_lossy(&output.stdout)) {
        return Ok(names);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rev().find(|line| !line.trim().is_empty());
    bail!(
        "'{}' lists no {framework} benchmark in {}: it ended with {}{}",
        entry.command,
        tree.record.name,
        output.status,
        last.map_or_else(String::new, |line| format!(" and said '{}'", line.trim()))
    )
}
