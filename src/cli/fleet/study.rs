//! Reads study files into the steps that every node will run, and checks them before anything is
//! submitted.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Parser;

use super::launch::read_text;
use crate::cli::Cli;
use crate::cli::args::{BenchAction, Command, Format, SpinAction};
use crate::cli::values::MachineSpec;
use pinwise_record::FleetStep;
use pinwise_sim::SimulatedMachine;
use pinwise_workload::study_file::{MAX_STEPS, StudyStep, parse};

/// Options that pinwise sets itself on nodes.
const RESERVED_OPTIONS: [&str; 4] = ["--store", "--format", "--quiet", "--color"];

/// The steps of nodes, and the files that they need.
#[derive(Debug, Default)]
pub(super) struct Studies {
    pub(super) steps: Vec<FleetStep>,
    /// Name in the fleet's folder, and content.
    pub(super) files: Vec<(String, String)>,
}

/// Reads study files.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Studies> {
    let mut studies = Studies::default();
    for path in paths {
        let shown = path.display();
        let text = read_text(path).with_context(|| format!("{shown}"))?;
        let steps = parse(&text).map_err(|error| anyhow::anyhow!("{shown}:{error}"))?;
        for step in steps {
            let place = format!("{shown}:{}", step.position);
            if studies.steps.iter().any(|other| other.name == step.name) {
                bail!("{place}: another file has a step '{}' already", step.name);
            }
            let step = check_step(step, &mut studies.files).with_context(|| place.clone())?;
            studies.steps.push(step);
        }
    }
    if studies.steps.len() > MAX_STEPS {
        bail!("STUDY: more than {MAX_STEPS} steps");
    }
    Ok(studies)
}

/// Checks that a node can run a step; adds files of simulated machines to `files`.
fn check_step(step: StudyStep, files: &mut Vec<(String, String)>) -> anyhow::Result<FleetStep> {
    let own_words = step.run.iter().take_while(|word| *word != "--");
    for word in own_words {
        let option = word.split('=').next().unwrap_or_default();
        if RESERVED_OPTIONS.contains(&option) || word == "-q" {
            bail!("run: {option} is chosen by the fleet; omit it");
        }
    }
    let words = std::iter::once("pinwise").chain(step.run.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| match error.use_stderr() {
        true => anyhow::anyhow!("run: {}", crate::cli::parser_words::to_one_line(&error)),
        false => anyhow::anyhow!("run: help and version are not studies"),
    })?;
    if cli.global.format != Format::Text || cli.global.quiet {
        bail!("run: --format and --quiet are chosen by the fleet; omit them");
    }
    check_makes_record(&cli.command)?;
    let mut arguments = step.run;
    if let MachineSpec::Simulated(description) = &cli.global.machine {
        // A description that cannot be read is reported here once, not by every node.
        SimulatedMachine::open(description, 0).context("run: --machine")?;
        if Path::new(description).is_file() {
            let name = carry_description(description, files)?;
            for word in &mut arguments {
                *word = word.replace(&format!("sim:{description}"), &name);
            }
        }
    }
    Ok(FleetStep {
        name: step.name,
        arguments,
        timeout_s: step.timeout.map(|time| time.as_secs_f64()),
    })
}

/// Adds the file of a simulated machine; returns the `sim:` name by which nodes open it, with a
/// placeholder for the fleet's folder.
fn carry_description(
    description: &str,
    files: &mut Vec<(String, String)>,
) -> anyhow::Result<String> {
    let text = read_text(Path::new(description)).context("run: --machine")?;
    let known = files.iter().position(|(_, other)| *other == text);
    let number = known.unwrap_or(files.len());
    let name = format!("machine-{number}.toml");
    if known.is_none() {
        files.push((name.clone(), text));
    }
    Ok(format!("sim:{FOLDER_PLACEHOLDER}/files/{name}"))
}

/// Placeholder for the fleet's folder, which is chosen later.
pub(super) const FOLDER_PLACEHOLDER: &str = "{folder}";

/// Refuses commands that make no record: only records can be collected.
fn check_makes_record(command: &Command) -> anyhow::Result<()> {
    let name = match command {
        Command::Compare(_) | Command::Trace(_) | Command::Profile(_) => return Ok(()),
        Command::Search(args) if args.action.is_none() => return Ok(()),
        Command::Bench(args) => match &args.action {
            None | Some(BenchAction::Jitter(_)) => return Ok(()),
            Some(BenchAction::Kernel(_)) => {
                bail!("run: bench kernel makes no record; bench NAME measures a kernel")
            }
            Some(BenchAction::Recipes(_)) => "bench recipes",
        },
        Command::Topology(args) if args.measure => return Ok(()),
        Command::Topology(_) => {
            bail!("run: topology makes a record with --measure only; add it")
        }
        Command::Spin(args) => match &args.action {
            SpinAction::Pause(_) | SpinAction::Replay(_) => return Ok(()),
            _ => "this spin command",
        },
        _ => "this command",
    };
    bail!(
        "run: {name} makes no record that nodes could deliver (topology --measure, compare, search, bench, trace, profile, spin pause and spin replay do)"
    );
}
