//! How the commands run: environment, helpers, time-out, threads.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::candidates::parse_line;
use crate::cli::args::WorkloadArgs;
use crate::cli::subject;
use crate::cli::values::parse_variable;
use pinwise_machine::{BusyThreads, CommandRunner, Output, Request};
use pinwise_study::compare::RunFailure;
use pinwise_topology::Topology;
use pinwise_workload::{Command, Metric, SuccessRule, Sweep, Workload, thread_variables};

/// What `--output` says; the metric may need the output itself.
pub(in crate::cli) fn output(text: &str, metric: &Metric) -> anyhow::Result<Output> {
    let wanted = match text {
        "pipe" => Output::Keep,
        text => subject::output(text).unwrap_or_else(|_| Output::Files(PathBuf::from(text))),
    };
    if let Output::Files(folder) = &wanted {
        if Sweep::fill(text, &[]).is_err() {
            bail!("--output {text}: parameters have no place in it; files are named after arms");
        }
        if !folder.is_dir() && !text.ends_with('/') {
            bail!(
                "--output {text}: each run gets two files in a folder; write {text}/ to make one"
            );
        }
    }
    if metric.needs_output() {
        if !matches!(wanted, Output::Discard | Output::Keep) {
            bail!("--output {text}: the metric reads the output; omit --output");
        }
        return Ok(Output::Keep);
    }
    Ok(wanted)
}

pub(in crate::cli) fn workload(command: &Command, args: &WorkloadArgs) -> anyhow::Result<Workload> {
    let helper = |option: &'static str, lines: &[String]| match lines {
        [] => Ok(None),
        [line] => parse_line(line, args).context(option).map(Some),
        _ => bail!("{option} is given {} times for 1 command", lines.len()),
    };
    let mut environment = Vec::new();
    for text in &args.environment {
        let variable =
            parse_variable(text).with_context(|| format!("--env '{text}' is not NAME=VALUE"))?;
        environment.push(variable);
    }
    if let Some(threads) = args.threads_env {
        environment.extend(thread_variables(threads));
    }
    Ok(Workload {
        prepare: helper("--prepare", &args.prepare)?,
        conclude: helper("--conclude", &args.conclude)?,
        input: args.input_file().cloned(),
        environment,
        timeout: args.timeout,
        success: if args.ignore_failure {
            SuccessRule::AnyStatus
        } else {
            SuccessRule::Zero
        },
        ..Workload::new(command.clone())
    })
}

/// A recipe's workload, to which the command line adds.
pub(super) fn with_options(recipe: &Workload, args: &WorkloadArgs) -> anyhow::Result<Workload> {
    let wished = workload(&recipe.command, args)?;
    let mut environment = recipe.environment.clone();
    environment.retain(|(name, _)| !wished.environment.iter().any(|(other, _)| other == name));
    environment.extend(wished.environment);
    Ok(Workload {
        environment,
        timeout: wished.timeout.or(recipe.timeout),
        success: wished.success,
        ..recipe.clone()
    })
}

/// Runs the command once to see how many threads it keeps busy; and the same in
/// words, after the program.
pub(in crate::cli) fn measure_busy_threads(
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<(usize, String)> {
    if let Some(prepare) = &workload.prepare {
        machine.run_helper("prepare", prepare)?;
    }
    let run = machine.run(&Request {
        count_threads_closely: true,
        ..Request::new(workload, &topology.allowed)
    })?;
    if let Some(conclude) = &workload.conclude {
        machine.run_helper("conclude", conclude)?;
    }
    if let Some(failure) = RunFailure::from_run(&run, workload) {
        bail!("{failure}");
    }
    Ok(match BusyThreads::from_run(&run) {
        Some(busy) => (busy.threads(), busy.describe()),
        None => (
            1,
            "does not show its CPU time; taken as 1 thread".to_owned(),
        ),
    })
}
