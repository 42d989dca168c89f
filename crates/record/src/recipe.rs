//! The list of recipes, as `recipes --format json` prints it; not stored.

use serde::{Deserialize, Serialize};

/// All recipes that pinwise brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeList {
    /// By name.
    pub recipes: Vec<RecipeEntry>,
}

/// One recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeEntry {
    /// What `--recipe` takes.
    pub name: String,
    /// What it does.
    pub about: String,
    /// How the program takes its number of threads.
    pub threads: String,
    /// The figure that is compared, as `--metric` takes it.
    pub metric: String,
    /// Unit of the figure.
    pub unit: String,
    /// What `--parameter` takes.
    pub parameters: Vec<RecipeParameter>,
    /// Are all of its programs there?
    pub available: bool,
    /// Those that are not.
    pub missing: Vec<RecipeMissing>,
}

/// What may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeParameter {
    /// Its name.
    pub name: String,
    /// What it is unless chosen.
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
