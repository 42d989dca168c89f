//! The metric that is compared.

use anyhow::Context;

use crate::cli::args::CompareArgs;
use crate::cli::recipes::ReadyRecipe;
use pinwise_study::bench::METRIC;
use pinwise_study::compare::ArmPlan;
use pinwise_workload::Metric;

/// Are these two commands in one placement? Then CPU time is judged beside wall-clock time.
pub(super) fn are_builds(arms: &[ArmPlan]) -> bool {
    let [one, other] = arms else { return false };
    let is_same_command = one.workload.command == other.workload.command;
    !is_same_command
        && one.place == other.place
        && one.binding == other.binding
        && one.settings == other.settings
}

/// The metric of `--metric`, else that of the recipe or kernel, else wall-clock time.
pub(super) fn choose_metric(
    args: &CompareArgs,
    recipe: Option<&ReadyRecipe>,
    is_kernel: bool,
) -> anyhow::Result<Metric> {
    Ok(match (&args.metric, recipe) {
        (Some(text), _) => text.parse().context("--metric")?,
        (None, Some(recipe)) => recipe.metric.clone(),
        (None, None) if is_kernel => METRIC.parse()?,
        (None, None) => Metric::wall(),
    })
}

/// The unit of the recipe's metric, if that is compared; else empty.
pub(super) fn find_recipe_unit(args: &CompareArgs, recipe: Option<&ReadyRecipe>) -> String {
    let recipe = recipe.filter(|_| args.metric.is_none());
    recipe.map_or(String::new(), |recipe| recipe.unit.clone())
}
