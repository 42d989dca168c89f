//! The list of recipes, as `recipes --format json` prints it; not stored.

use serde::{Deserialize, Serialize};

/// All built-in recipes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeList {
    /// The recipes, sorted by name.
    pub recipes: Vec<RecipeEntry>,
}

/// One recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeEntry {
    /// Its name for `--recipe`.
    pub name: String,
    /// What it does.
    pub about: String,
    /// How the program takes its number of threads.
    pub threads: String,
    /// The figure that is compared, as `--metric` takes it.
    pub metric: String,
    /// Unit of the figure.
    pub unit: String,
    /// Its parameters for `--parameter`.
    pub parameters: Vec<RecipeParameter>,
    /// Are all of its programs installed?
    pub available: bool,
    /// The programs that are not installed.
    pub missing: Vec<RecipeMissing>,
}

/// A parameter of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeParameter {
    /// Its name.
    pub name: String,
    /// Its default value.
    pub default: String,
    /// The allowed values; empty if any value is.
    pub values: Vec<String>,
    /// What it means.
    pub about: String,
}

/// A program that is not installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeMissing {
    /// The program.
    pub program: String,
    /// The Debian package that has it.
    pub package: String,
}
