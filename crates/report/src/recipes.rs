//! The list of recipes as text.

use super::style::{Palette, paragraph, visible};
use pinwise_record::{RecipeEntry, RecipeList, RecipeParameter};

/// The list for a terminal: what each does, and what is missing here.
#[must_use]
pub fn render_recipes(list: &RecipeList, palette: Palette) -> String {
    let mut text = String::new();
    for recipe in &list.recipes {
        text.push_str(&format!("{}\n", palette.strong(&visible(&recipe.name))));
        let mut lines = list_missing(recipe);
        lines.push(recipe.about.clone());
        if !recipe.threads.is_empty() {
            lines.push(recipe.threads.clone());
        }
        for line in lines {
            text.push_str(&format!("{}\n", paragraph("  ", "  ", &line)));
        }
        for parameter in &recipe.parameters {
            text.push_str(&format!("{}\n", describe_parameter(parameter)));
        }
    }
    text.push_str(&format!(
        "\n{}\n",
        paragraph(
            "",
            "",
            "pinwise compare --recipe NAME runs one; pinwise bench recipes NAME prints it in full, as a template."
        )
    ));
    text
}

/// Lists what must be installed first; empty if nothing is missing.
fn list_missing(recipe: &RecipeEntry) -> Vec<String> {
    if recipe.available {
        return Vec::new();
    }
    let programs: Vec<&str> = recipe.missing.iter().map(|m| m.program.as_str()).collect();
    let mut packages: Vec<&str> = recipe.missing.iter().map(|m| m.package.as_str()).collect();
    packages.dedup();
    vec![format!(
        "Not installed: {}; apt-get install {}",
        programs.join(", "),
        packages.join(" ")
    )]
}

fn describe_parameter(parameter: &RecipeParameter) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use pinwise_record::RecipeMissing;

    #[test]
    fn many_missing_programs_fit_the_width() {
        let missing = |n: usize| RecipeMissing {
            program: format!("program-{n} or another-{n}"),
            package: format!("package-{n}"),
        };
        let recipe = RecipeEntry {
            name: "servers".to_owned(),
            about: String::new(),
            threads: String::new(),
            metric: "time".to_owned(),
            unit: "s".to_owned(),
            parameters: Vec::new(),
            available: false,
            missing: (0..4).map(missing).collect(),
        };
        let list = RecipeList {
            recipes: vec![recipe],
        };
        let text = render_recipes(&list, Palette::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(
            text.replace(['\n', ' '], "")
                .contains("apt-getinstallpackage-0package-1")
        );
    }
}
