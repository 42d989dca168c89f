//! `bench recipes` and `--recipe`: real programs with prepared input as workloads.

mod ready;

use std::path::Path;

use anyhow::{Context, bail};

use super::Exit;
use super::args::{Global, RecipesArgs};
use super::input::read_text;
use super::terminal::Terminal;
use pinwise_machine::linux::find_program;
use pinwise_record::{RecipeEntry, RecipeList, RecipeMissing, RecipeParameter};
use pinwise_workload::{Program, Recipe};

pub(super) use ready::{ReadyRecipe, open};

/// The built-in recipes: name and text.
const BUILT_IN: [(&str, &str); 14] = [
    ("7z", include_str!("../../recipes/7z.toml")),
    ("compile", include_str!("../../recipes/compile.toml")),
    (
        "data-loader",
        include_str!("../../recipes/data-loader.toml"),
    ),
    (
        "imagemagick-blur",
        include_str!("../../recipes/imagemagick-blur.toml"),
    ),
    (
        "imagemagick-rotate",
        include_str!("../../recipes/imagemagick-rotate.toml"),
    ),
    ("llm-decode", include_str!("../../recipes/llm-decode.toml")),
    ("openssl", include_str!("../../recipes/openssl.toml")),
    ("postgres", include_str!("../../recipes/postgres.toml")),
    (
        "python-nbody",
        include_str!("../../recipes/python-nbody.toml"),
    ),
    ("redis", include_str!("../../recipes/redis.toml")),
    ("redis-net", include_str!("../../recipes/redis-net.toml")),
    ("sqlite", include_str!("../../recipes/sqlite.toml")),
    ("x264", include_str!("../../recipes/x264.toml")),
    ("xz", include_str!("../../recipes/xz.toml")),
];

/// The names of the built-in recipes.
pub(super) fn list_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// The largest recipe file that is read, in bytes.
const MAX_RECIPE_BYTES: u64 = 1 << 20;

pub(super) fn run_recipes(
    global: &Global,
    args: &RecipesArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!("bench recipes looks for programs on this machine; it needs --machine local");
    }
    match &args.name {
        Some(name) => print_recipe(name, terminal)?,
        None => list_recipes(terminal)?,
    }
    Ok(Exit::Done)
}

/// Prints the text of a recipe, after checking it.
fn print_recipe(name: &str, terminal: &Terminal) -> anyhow::Result<()> {
    let text = read_recipe(name)?;
    parse_recipe(name, &text)?;
    if terminal.is_json() {
        return terminal.print_json(&serde_json::json!({ "name": name, "text": text }));
    }
    terminal.print(&text)
}

fn list_recipes(terminal: &Terminal) -> anyhow::Result<()> {
    let mut recipes = Vec::new();
    for (name, text) in BUILT_IN {
        recipes.push(to_entry(&parse_recipe(name, text)?));
    }
    let list = RecipeList { recipes };
    terminal.show(&list, pinwise_report::render_recipes)
}

fn to_entry(recipe: &Recipe) -> RecipeEntry {
    let missing: Vec<RecipeMissing> = recipe
        .programs
        .iter()
        .filter(|program| find_program(&program.names, &program.folders).is_none())
        .map(|program| RecipeMissing {
            program: program.names.join(" or "),
            package: program.package.clone(),
        })
        .collect();
    let unit = match recipe.metric.unit() {
        "" => recipe.unit.clone(),
        own => own.to_owned(),
    };
    let parameters = recipe.parameters.iter().map(|parameter| RecipeParameter {
        name: parameter.name.clone(),
        default: parameter.default.clone(),
        values: parameter.values.clone(),
        about: parameter.about.clone(),
    });
    RecipeEntry {
        name: recipe.name.clone(),
        about: recipe.about.clone(),
        threads: recipe.threads.clone(),
        metric: recipe.metric.to_string(),
        unit,
        parameters: parameters.collect(),
        available: missing.is_empty(),
        missing,
    }
}

/// Finds a recipe's programs: their keys and paths, or an error that says how to install the first
/// missing one.
fn find_programs(recipe: &Recipe) -> anyhow::Result<Vec<(String, String)>> {
    let found = recipe.programs.iter().map(|program: &Program| {
        let path = find_program(&program.names, &program.folders).with_context(|| {
            format!(
                "--recipe {}: {} is not installed (on Debian: apt-get install {})",
                recipe.name,
                program.names.join(" or "),
                program.package
            )
        })?;
        Ok((program.key.clone(), path))
    });
    found.collect()
}

/// Reads the text of a built-in recipe, or of a file.
fn read_recipe(name: &str) -> anyhow::Result<String> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    let is_path = name.contains('/') || name.ends_with(".toml");
    if !is_path {
        let likeness = |known: &str| strsim::jaro_winkler(name, known);
        let best = BUILT_IN
            .iter()
            .map(|(known, _)| *known)
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
            .filter(|known| likeness(known) > 0.7);
        let hint = best.map_or(String::new(), |known| format!("; did you mean {known}?"));
        bail!(
            "no such recipe: '{name}'{hint} (pinwise bench recipes lists them; write a file as ./FILE.toml)"
        );
    }
    read_text(Path::new(name), MAX_RECIPE_BYTES).with_context(|| format!("the recipe {name}"))
}

fn parse_recipe(name: &str, text: &str) -> anyhow::Result<Recipe> {
    Recipe::parse(text).map_err(|error| anyhow::anyhow!("{name}:{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_recipes_are_valid() {
        for (name, text) in BUILT_IN {
            let recipe = parse_recipe(name, text).unwrap();
            assert_eq!(recipe.name, name);
            assert!(!recipe.about.is_empty() && !recipe.threads.is_empty());
            assert!(recipe.choices(&[]).unwrap().len() == 1);
        }
    }
}
