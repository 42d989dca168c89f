//! The list of recipes as text.

use super::style::{Palette, paragraph, visible};
use crate::record::{RecipeEntry, RecipeList, RecipeParameter};

/// The list for a terminal: what each does, and what is missing here.
#[must_use]
pub fn recipes(list: &RecipeList, palette: Palette) -> String {
    let mut text = String::new();
    for recipe in &list.recipes {
        text.push_str(&palette.strong(&visible(&recipe.name)));
        text.push_str(&format!("{}\n", absence(recipe)));
        let mut lines = vec![recipe.about.clone()];
        if !recipe.threads.is_empty() {
            lines.push(recipe.threads.clone());
        }
        for line in lines {
            text.push_str(&format!("{}\n", paragraph("  ", "  ", &line)));
        }
        for parameter in &recipe.parameters {
            text.push_str(&format!("{}\n", described(parameter)));
        }
    }
    text.push_str(&format!(
        "\n{}\n",
        paragraph(
            "",
            "",
            "pinwise compare --recipe NAME runs one; pinwise recipes NAME shows it whole, to begin one of your own with."
        )
    ));
    text
}

fn absence(recipe: &RecipeEntry) -> String {
    if recipe.available {
        return String::new();
    }
    let programs: Vec<&str> = recipe.missing.iter().map(|m| m.program.as_str()).collect();
    let mut packages: Vec<&str> = recipe.missing.iter().map(|m| m.package.as_str()).collect();
    packages.dedup();
    let line = format!(
        " (not here: no {}; apt-get install {})",
        programs.join(", "),
        packages.join(" ")
    );
    visible(&line)
}

fn described(parameter: &RecipeParameter) -> String {
    let values = match parameter.values.is_empty() {
        true => String::new(),
        false => format!(", of {}", parameter.values.join(", ")),
    };
    let line = format!(
        "--parameter {}={}{values}: {}",
        parameter.name, parameter.default, parameter.about
    );
    paragraph("    ", "      ", &line)
}
