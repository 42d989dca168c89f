//! Recipes: real programs as ready workloads, described in TOML.
//!
//! A recipe says which programs it needs, how its input is made, what is run, what is measured and
//! how the output is verified. This module only parses it: nothing is looked up, made or started.
//! Unknown keys are errors: a misspelt `verify` must not mean "any output will do".

mod parse;

use std::time::Duration;

pub use parse::RecipeError;

use super::command::{Sweep, SweepError, replace_marks};
use super::{Command, CommandError, Metric, Pattern, Workload};

/// Placeholder of the private folder in commands and scripts: `{folder}`.
const FOLDER: &str = "folder";

/// A program with its input, its figure and the proof of its work.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// How the program takes its number of threads, in a sentence.
    pub threads: String,
    /// The programs that must be installed.
    pub programs: Vec<Program>,
    /// The parameters that may be chosen.
    pub parameters: Vec<Parameter>,
    /// The figure that is compared.
    pub metric: Metric,
    /// Unit of a figure that the program prints; empty if the metric has its own.
    pub unit: String,
    /// Shell script that makes the input, once per experiment.
    generate: Option<String>,
    measured: MeasuredCommand,
    prepare: Option<String>,
    conclude: Option<String>,
    verify: Option<String>,
    expect: Option<Pattern>,
    input: Option<String>,
    environment: Vec<(String, String)>,
    timeout: Duration,
    server: Option<Server>,
}

/// What is measured.
#[derive(Debug, Clone)]
enum MeasuredCommand {
    /// A program with its arguments; no shell is involved.
    Command(Vec<String>),
    /// A shell script, started in the private folder.
    Script(String),
}

/// A program that a recipe needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Written as `{key}` in commands and scripts.
    pub key: String,
    /// Its names, the preferred one first.
    pub names: Vec<String>,
    /// Folders to search before those of `PATH`; a `*` matches any name.
    pub folders: Vec<String>,
    /// The Debian package that has it.
    pub package: String,
}

/// Something that may be chosen with `--parameter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Written as `{name}` in commands and scripts.
    pub name: String,
    /// Its default value.
    pub default: String,
    /// The allowed values; empty if any value is.
    pub values: Vec<String>,
    /// What it means.
    pub about: String,
}

/// A program that serves the measured one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    start: String,
    stop: Option<String>,
    is_per_run: bool,
}

/// Why a choice of parameters is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The sweeps are invalid in themselves.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// No such parameter.
    #[error("the recipe {recipe} has no parameter '{name}' ({known})")]
    Unknown {
        /// The recipe.
        recipe: String,
        /// What was requested.
        name: String,
        /// The recipe's parameters.
        known: String,
    },
    /// Not one of the values.
    #[error("{name}={value}: the recipe {recipe} takes {wanted} there")]
    Value {
        /// The recipe.
        recipe: String,
        /// The parameter.
        name: String,
        /// What was requested.
        value: String,
        /// What is possible.
        wanted: String,
    },
    /// One input serves all arms.
    #[error("the input of the recipe {recipe} depends on {name}: give it one value at a time")]
    Input {
        /// The recipe.
        recipe: String,
        /// The parameter.
        name: String,
    },
}

/// A recipe with everything chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenRecipe {
    /// What was chosen, such as `threads=2`; `None` if nothing was.
    pub label: Option<String>,
    /// Placeholders and their values.
    values: Vec<(String, String)>,
}

impl ChosenRecipe {
    /// All parameters and their values.
    #[must_use]
    pub fn choice(&self) -> Vec<(&str, &str)> {
        borrow_pairs(&self.values)
    }
}

impl Recipe {
    /// Reads a recipe.
    ///
    /// # Errors
    /// [`RecipeError`] names line and key.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        parse::parse(text)
    }

    /// All combinations of the requested values, defaults for the rest.
    ///
    /// # Errors
    /// [`ChoiceError`] says what is not possible.
    pub fn choices(&self, sweeps: &[Sweep]) -> Result<Vec<ChosenRecipe>, ChoiceError> {
        for sweep in sweeps {
            self.check_sweep(sweep)?;
        }
        let add_defaults = |choice: &[(&str, &str)]| -> Vec<(String, String)> {
            let find_chosen = |name: &str| choice.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
            let all = self.parameters.iter();
            all.map(|p| {
                let value = find_chosen(&p.name).unwrap_or(&p.default);
                (p.name.clone(), value.to_owned())
            })
            .collect()
        };
        let combinations = Sweep::combinations(sweeps)?;
        let chosen = combinations.iter().map(|choice| ChosenRecipe {
            label: (!choice.is_empty()).then(|| Sweep::label(choice)),
            values: add_defaults(choice),
        });
        Ok(chosen.collect())
    }

    fn check_sweep(&self, sweep: &Sweep) -> Result<(), ChoiceError> {
        let parameter = self.parameters.iter().find(|p| p.name == sweep.name);
        let Some(parameter) = parameter else {
            let names: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
            return Err(ChoiceError::Unknown {
                recipe: self.name.clone(),
                name: sweep.name.clone(),
                known: match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has: {}", names.join(", ")),
                },
            });
        };
        let placeholder = format!("{{{}}}", sweep.name);
        let affects_input = [&self.generate, &self.experiment_server_start()]
            .into_iter()
            .flatten()
            .any(|script| script.contains(&placeholder));
        if affects_input && sweep.values.len() > 1 {
            return Err(ChoiceError::Input {
                recipe: self.name.clone(),
                name: sweep.name.clone(),
            });
        }
        match sweep.values.iter().find(|value| !parameter.accepts(value)) {
            None => Ok(()),
            Some(value) => Err(ChoiceError::Value {
                recipe: self.name.clone(),
                name: sweep.name.clone(),
                value: value.clone(),
                wanted: parameter.describe_values(),
            }),
        }
    }

    fn experiment_server_start(&self) -> Option<String> {
        let server = self.server.as_ref().filter(|server| !server.is_per_run)?;
        Some(server.start.clone())
    }

    /// The command that makes the input, to be run once, before anything else. `programs` are
    /// paths by key.
    ///
    /// # Errors
    /// [`CommandError`] if a value holds NUL.
    pub fn build_generation(
        &self,
        chosen: &ChosenRecipe,
        folder: &str,
        programs: &[(String, String)],
    ) -> Result<Option<Command>, CommandError> {
        PlaceholderValues::new(chosen, folder, programs).join_scripts([&self.generate])
    }

    /// The commands that start and stop a server that runs for the whole experiment.
    ///
    /// # Errors
    /// [`CommandError`] if a value holds NUL.
    pub fn build_server(
        &self,
        chosen: &ChosenRecipe,
        folder: &str,
        programs: &[(String, String)],
    ) -> Result<(Option<Command>, Option<Command>), CommandError> {
        let values = PlaceholderValues::new(chosen, folder, programs);
        let server = self.server.as_ref().filter(|server| !server.is_per_run);
        let stop = server.and_then(|server| server.stop.clone());
        Ok((
            values.join_scripts([&self.experiment_server_start()])?,
            values.join_scripts([&stop])?,
        ))
    }

    /// The measured command, with everything that belongs to every run.
    ///
    /// # Errors
    /// [`CommandError`] if a value holds NUL.
    pub fn build_workload(
        &self,
        chosen: &ChosenRecipe,
        folder: &str,
        programs: &[(String, String)],
    ) -> Result<Workload, CommandError> {
        let values = PlaceholderValues::new(chosen, folder, programs);
        let command = match &self.measured {
            MeasuredCommand::Command(argv) => {
                Command::from_argv(argv.iter().map(|a| values.fill_plain(a)).collect())?
            }
            MeasuredCommand::Script(script) => {
                Command::wrap_in_shell("sh", &values.fill_script(script))?
            }
        };
        let each_run = self.server.as_ref().filter(|server| server.is_per_run);
        let start = each_run.map(|server| server.start.clone());
        let stop = each_run.and_then(|server| server.stop.clone());
        let environment = self.environment.iter();
        Ok(Workload {
            prepare: values.join_scripts([&self.prepare, &start])?,
            conclude: values.join_scripts([&stop, &self.conclude])?,
            verify: values.join_scripts([&self.verify])?,
            expect: self.expect.clone(),
            input: self
                .input
                .as_ref()
                .map(|path| values.fill_plain(path).into()),
            environment: environment
                .map(|(name, value)| (name.clone(), values.fill_plain(value)))
                .collect(),
            timeout: Some(self.timeout),
            recipe: Some(self.name.clone()),
            ..Workload::new(command)
        })
    }
}

impl Parameter {
    /// Accepts any text unless the values are listed, and only whole numbers if the default is one.
    fn accepts(&self, value: &str) -> bool {
        if !self.values.is_empty() {
            return self.values.iter().any(|known| known == value);
        }
        let is_whole = |text: &str| text.parse::<u64>().is_ok();
        !is_whole(&self.default) || is_whole(value)
    }

    fn describe_values(&self) -> String {
        match self.values.is_empty() {
            true => "a whole number".to_owned(),
            false => self.values.join(", "),
        }
    }
}

/// The values of placeholders.
struct PlaceholderValues {
    plain: Vec<(String, String)>,
    /// The same, quoted for scripts.
    quoted: Vec<(String, String)>,
}

impl PlaceholderValues {
    fn new(chosen: &ChosenRecipe, folder: &str, programs: &[(String, String)]) -> Self {
        let folder = [(FOLDER.to_owned(), folder.to_owned())];
        let all = chosen.values.iter().chain(programs).chain(&folder);
        let plain: Vec<(String, String)> = all.cloned().collect();
        let quote = |(name, value): &(String, String)| {
            (name.clone(), shell_words::quote(value).into_owned())
        };
        Self {
            quoted: plain.iter().map(quote).collect(),
            plain,
        }
    }

    fn fill_plain(&self, text: &str) -> String {
        replace_marks(text, &borrow_pairs(&self.plain))
    }

    /// A script that starts in the private folder and ends at its first
    /// failure.
    fn fill_script(&self, text: &str) -> String {
        let whole = format!("set -e\ncd {{{FOLDER}}}\n{}", text.trim());
        replace_marks(&whole, &borrow_pairs(&self.quoted))
    }

    /// Joins the present scripts into one command, in order.
    fn join_scripts<const N: usize>(
        &self,
        scripts: [&Option<String>; N],
    ) -> Result<Option<Command>, CommandError> {
        let present: Vec<&str> = scripts.into_iter().flatten().map(String::as_str).collect();
        if present.is_empty() {
            return Ok(None);
        }
        Command::wrap_in_shell("sh", &self.fill_script(&present.join("\n"))).map(Some)
    }
}

fn borrow_pairs(values: &[(String, String)]) -> Vec<(&str, &str)> {
    let all = values.iter();
    all.map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
