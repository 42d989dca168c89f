//! Recipes: parsed, or refused with a line of the text and one line of explanation; a parsed recipe
//! makes commands, with and without the requested values.

use pinwise_workload::{Recipe, Sweep};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let recipe = match Recipe::parse(text) {
        Ok(recipe) => recipe,
        Err(error) => {
            assert!((1..=text.split('\n').count()).contains(&error.line));
            assert!(!error.reason.is_empty() && !error.to_string().contains('\n'));
            return;
        }
    };
    assert!(!recipe.name.is_empty() && !recipe.about.trim().is_empty());
    let programs: Vec<(String, String)> = recipe
        .programs
        .iter()
        .map(|program| (program.key.clone(), format!("/bin/{}", program.names[0])))
        .collect();
    let sweeps: Vec<Sweep> = recipe
        .parameters
        .iter()
        .map(|parameter| Sweep {
            name: parameter.name.clone(),
            values: vec![parameter.default.clone()],
        })
        .collect();
    for sweeps in [&[][..], &sweeps] {
        let choices = recipe.choices(sweeps).expect("defaults can be chosen");
        for chosen in &choices {
            let workload = recipe
                .build_workload(chosen, "/tmp/a b", &programs)
                .expect("what was read can be run");
            assert!(!workload.command.program().is_empty());
            assert!(workload.verify.is_some() || workload.expect.is_some());
            let generation = recipe.build_generation(chosen, "/tmp/a b", &programs);
            assert!(generation.is_ok());
            assert!(recipe.build_server(chosen, "/tmp/a b", &programs).is_ok());
        }
    }
}
