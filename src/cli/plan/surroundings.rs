//! How the commands run: environment, helpers, time-out, threads.

use anyhow::{Context, bail};

use super::candidates::parse_line;
use crate::cli::args::WorkloadArgs;
use crate::cli::values::parse_variable;
use pinwise_machine::{Busy, CommandRunner, Output, Request};
use pinwise_study::compare::RunFailure;
use pinwise_topology::Topology;
use pinwise_workload::{Command, SuccessRule, Workload, thread_variables};

pub(in crate::cli) fn workload(command: &Command, args: &WorkloadArgs) -> anyhow::Result<Workload> {
    let helper = |option: &str, line: &Option<String>| -> anyhow::Result<Option<Command>> {
        let parse = |line: &String| parse_line(line, args).with_context(|| option.to_owned());
        line.as_ref().map(parse).transpose()
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
        cleanup: helper("--cleanup", &args.cleanup)?,
        input: args.input.clone(),
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
pub(in crate::cli) fn busy(
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<(usize, String)> {
    if let Some(prepare) = &workload.prepare {
        machine.run_helper("prepare", prepare)?;
    }
    let run = machine.run(&Request {
        workload,
        cpus: &topology.allowed,
        memory: None,
        output: Output::Discard,
        environment_padding: 0,
        count_threads_closely: true,
        bound: None,
        host: None,
    })?;
    if let Some(cleanup) = &workload.cleanup {
        machine.run_helper("cleanup", cleanup)?;
    }
    if let Some(failure) = RunFailure::of(&run, workload) {
        bail!("{failure}");
    }
    Ok(match Busy::of(&run) {
        Some(busy) => (busy.threads(), busy.words()),
        None => (
            1,
            "does not show its CPU time; taken as 1 thread".to_owned(),
        ),
    })
}
