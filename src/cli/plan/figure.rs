//! The figure that is compared.

use anyhow::Context;

use crate::cli::args::CompareArgs;
use crate::cli::recipes::Ready;
use pinwise_study::bench::METRIC;
use pinwise_study::compare::ArmPlan;
use pinwise_workload::Metric;

/// Are these two commands in one place? Then CPU time is judged beside wall-clock time.
pub(super) fn are_builds(arms: &[ArmPlan]) -> bool {
    let [one, other] = arms else { return false };
    let is_same_command = one.workload.command == other.workload.command;
    !is_same_command
        && one.place == other.place
        && one.binding == other.binding
        && one.settings == other.settings
}

/// What is compared: what was requested, else the figure of the recipe or kernel.
pub(super) fn metric(
    args: &CompareArgs,
    recipe: Option<&Ready>,
    is_kernel: bool,
) -> anyhow::Result<Metric> {
    Ok(match (&args.metric, recipe) {
        (Some(text), _) => text.parse().context("--metric")?,
        (None, Some(recipe)) => recipe.metric.clone(),
        (None, None) if is_kernel => METRIC.parse()?,
        (None, None) => Metric::wall(),
    })
}

/// The unit of the recipe's figure, if that is compared.
pub(super) fn unit(args: &CompareArgs, recipe: Option<&Ready>) -> String {
    let recipe = recipe.filter(|_| args.metric.is_none());
    recipe.map_or(String::new(), |recipe| recipe.unit.clone())
}
