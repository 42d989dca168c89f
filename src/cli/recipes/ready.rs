//! Prepares a recipe for a comparison: finds its programs, makes its input in a private folder and
//! starts its server; removes all of that afterwards.

use anyhow::Context;

use super::{find_programs, parse_recipe, read_recipe};
use crate::cli::args::CompareArgs;
use crate::cli::surroundings::find_temporary_folder;
use crate::cli::terminal::Terminal;
use pinwise_kernels::Scratch;
use pinwise_machine::{CommandRunner, MachineError};
use pinwise_workload::{ChosenRecipe, Command, Metric, Recipe, Workload};

/// A prepared recipe.
pub(in crate::cli) struct ReadyRecipe {
    /// The workload of each combination of parameters; at least one.
    pub(in crate::cli) workloads: Vec<(ChosenRecipe, Workload)>,
    /// The recipe's metric.
    pub(in crate::cli) metric: Metric,
    /// The unit of the figures, if the metric has none.
    pub(in crate::cli) unit: String,
    stop: Option<Command>,
    folder: Option<Scratch>,
}

/// Prepares the recipe of `--recipe`; `None` without one. Leaves nothing behind if that fails.
pub(in crate::cli) fn open(
    args: &CompareArgs,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<Option<ReadyRecipe>> {
    let Some(name) = &args.recipe else {
        return Ok(None);
    };
    let recipe = parse_recipe(name, &read_recipe(name)?)?;
    let choices = recipe.choices(&args.sweeps()?).context("--parameter")?;
    if machine.is_simulated() {
        return open_simulated(&recipe, &choices).map(Some);
    }
    let programs = find_programs(&recipe)?;
    let folder = Scratch::create(&find_temporary_folder(), "pinwise-recipe-")
        .context("a folder for the recipe's input")?;
    let path = folder
        .path()
        .to_str()
        .context("the folder's name is not UTF-8")?;
    let workloads = choices.iter().map(|chosen| {
        let workload = recipe.build_workload(chosen, path, &programs)?;
        Ok((chosen.clone(), workload))
    });
    let workloads = workloads.collect::<anyhow::Result<_>>()?;
    // The input is made with the first value of each parameter.
    let (start, stop) = recipe.build_server(&choices[0], path, &programs)?;
    let generation = recipe.build_generation(&choices[0], path, &programs)?;
    if generation.is_some() {
        terminal.note(&format!("Making the input of {} …", recipe.name));
    }
    let mut ready = ReadyRecipe {
        workloads,
        metric: recipe.metric.clone(),
        unit: recipe.unit.clone(),
        stop: None,
        folder: Some(folder),
    };
    run_helper(&recipe, "generate", generation.as_ref(), machine)?;
    ready.stop = stop;
    if let Err(error) = run_helper(&recipe, "server.start", start.as_ref(), machine) {
        drop(ready.close(machine));
        return Err(error);
    }
    Ok(Some(ready))
}

/// On a simulated machine nothing runs: the recipe's name selects the simulated workload.
fn open_simulated(recipe: &Recipe, choices: &[ChosenRecipe]) -> anyhow::Result<ReadyRecipe> {
    let workloads = choices.iter().map(|chosen| {
        let command = Command::from_argv(vec![recipe.name.clone()])?;
        let workload = Workload {
            recipe: Some(recipe.name.clone()),
            ..Workload::new(command)
        };
        Ok((chosen.clone(), workload))
    });
    Ok(ReadyRecipe {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        metric: Metric::wall(),
        unit: String::new(),
        stop: None,
        folder: None,
    })
}

fn run_helper(
    recipe: &Recipe,
    key: &str,
    command: Option<&Command>,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<()> {
    let Some(command) = command else {
        return Ok(());
    };
    machine
        .run_helper("recipe", command)
        .map_err(|error| match error {
            MachineError::Helper { reason, .. } => {
                anyhow::anyhow!("--recipe {}: its {key} failed: {reason}", recipe.name)
            }
            other => other.into(),
        })
}

impl ReadyRecipe {
    /// Stops the server. Returns the folder, which must outlive what may still run.
    #[must_use]
    pub(in crate::cli) fn close(self, machine: &mut dyn CommandRunner) -> Option<Scratch> {
        if let Some(stop) = &self.stop {
            // A server that does not stop is killed when the machine is closed.
            let _ = machine.run_helper("recipe", stop);
        }
        self.folder
    }
}
