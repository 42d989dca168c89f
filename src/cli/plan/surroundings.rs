//! How commands run: output, environment, helpers, timeout, threads.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::candidates::{parse_line, refuse_shell_syntax};
use crate::cli::args::WorkloadArgs;
use crate::cli::subject;
use crate::cli::values::parse_variable;
use pinwise_machine::{BusyThreads, CommandRunner, Output, Request};
use pinwise_study::compare::RunFailure;
use pinwise_topology::Topology;
use pinwise_workload::{Command, Metric, SuccessRule, Sweep, Workload, thread_variables};

/// Parses `--output`, which must be free if the metric reads the output.
pub(in crate::cli) fn parse_output(text: &str, metric: &Metric) -> anyhow::Result<Output> {
    let output = match text {
        "pipe" => Output::Keep,
        text => subject::parse_output(text).unwrap_or_else(|_| Output::Files(PathBuf::from(text))),
    };
    if let Output::Files(folder) = &output {
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
        if !matches!(output, Output::Discard | Output::Keep) {
            bail!("--output {text}: the metric reads the output; omit --output");
        }
        return Ok(Output::Keep);
    }
    Ok(output)
}

/// Builds the workload of a command with these options.
pub(in crate::cli) fn build_workload(
    command: &Command,
    args: &WorkloadArgs,
) -> anyhow::Result<Workload> {
    let helper = |option: &'static str, lines: &[String]| match lines {
        [] => Ok(None),
        [line] => {
            let command = parse_line(line, args).context(option)?;
            refuse_shell_syntax(&command, line, args).context(option)?;
            Ok(Some(command))
        }
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

/// Adds the options of the command line to a recipe's workload.
pub(super) fn add_options(recipe: &Workload, args: &WorkloadArgs) -> anyhow::Result<Workload> {
    let added = build_workload(&recipe.command, args)?;
    let mut environment = recipe.environment.clone();
    environment.retain(|(name, _)| !added.environment.iter().any(|(other, _)| other == name));
    environment.extend(added.environment);
    Ok(Workload {
        environment,
        timeout: added.timeout.or(recipe.timeout),
        success: added.success,
        ..recipe.clone()
    })
}

/// Runs the command once to count the threads that it keeps busy; the text is the predicate of a
/// sentence about the program.
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
