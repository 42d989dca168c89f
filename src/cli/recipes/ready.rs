//! A recipe made ready to be compared: programs found, input made in a private
//! folder, its server running; and everything gone again afterwards.

use anyhow::Context;

use super::{locate, parse, read_recipe};
use crate::cli::args::CompareArgs;
use crate::cli::surroundings::temporary_folder;
use crate::cli::terminal::Terminal;
use pinwise_kernels::Scratch;
use pinwise_machine::{CommandRunner, MachineError};
use pinwise_workload::{ChosenRecipe, Command, Metric, Recipe, Workload};

/// A recipe that can be run.
pub(in crate::cli) struct Ready {
    /// What is run, by what was chosen; one at least.
    pub(in crate::cli) workloads: Vec<(ChosenRecipe, Workload)>,
    /// The recipe's figure.
    pub(in crate::cli) metric: Metric,
    /// The unit of that figure, if its metric has none.
    pub(in crate::cli) unit: String,
    stop: Option<Command>,
    folder: Option<Scratch>,
}

/// Makes the recipe of `--recipe` ready; `None` without one. Nothing is left behind if that fails.
pub(in crate::cli) fn open(
    args: &CompareArgs,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<Option<Ready>> {
    let Some(name) = &args.recipe else {
        return Ok(None);
    };
    let recipe = parse(name, &read_recipe(name)?)?;
    let choices = recipe.choices(&args.sweeps()?).context("--parameter")?;
    if machine.is_simulated() {
        return open_simulated(&recipe, &choices).map(Some);
    }
    let programs = locate(&recipe)?;
    let folder = Scratch::create(&temporary_folder(), "pinwise-recipe-")
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
    // What makes the input takes one value of each parameter.
    let (start, stop) = recipe.build_server(&choices[0], path, &programs)?;
    let generation = recipe.build_generation(&choices[0], path, &programs)?;
    if generation.is_some() {
        terminal.note(&format!("Making the input of {} …", recipe.name));
    }
    let mut ready = Ready {
        workloads,
        metric: recipe.metric.clone(),
        unit: recipe.unit.clone(),
        stop: None,
        folder: Some(folder),
    };
    check_helper(&recipe, "generate", generation.as_ref(), machine)?;
    ready.stop = stop;
    if let Err(error) = check_helper(&recipe, "server.start", start.as_ref(), machine) {
        drop(ready.close(machine));
        return Err(error);
    }
    Ok(Some(ready))
}

/// On a simulated machine nothing runs: the recipe's name says which workload
/// is meant.
fn open_simulated(recipe: &Recipe, choices: &[ChosenRecipe]) -> anyhow::Result<Ready> {
    let workloads = choices.iter().map(|chosen| {
        let command = Command::from_argv(vec![recipe.name.clone()])?;
        let workload = Workload {
            recipe: Some(recipe.name.clone()),
            ..Workload::new(command)
        };
        Ok((chosen.clone(), workload))
    });
    Ok(Ready {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        metric: Metric::wall(),
        unit: String::new(),
        stop: None,
        folder: None,
    })
}

fn check_helper(
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

impl Ready {
    /// Stops the server. The folder is handed over: it has to outlive what may
    /// still run.
    #[must_use]
    pub(in crate::cli) fn close(self, machine: &mut dyn CommandRunner) -> Option<Scratch> {
        if let Some(stop) = &self.stop {
            // What does not stop is killed when the machine is closed.
            let _ = machine.run_helper("recipe", stop);
        }
        self.folder
    }
}
