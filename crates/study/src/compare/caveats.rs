//! Caveats on verdicts, as findings: load, order, time, tails, and figures that come in coarse
//! steps.

use super::load::LoadChange;
use super::results::Results;
use pinwise_format::percent;
use pinwise_record::{
    Comparison, ContrastRecord, ContrastVerdict, Finding, JudgedRecord, LoadLevelRecord,
    MetricRecord, Severity, SplitRecord,
};
use pinwise_stats::verdict::{describe_by_loads, relative_change};

/// Warns if the figure's resolution is coarser than the smallest effect of interest.
pub(super) fn warn_of_coarse_figure(record: &Comparison, results: &Results) -> Option<Finding> {
    let resolution = results.look.as_ref()?.resolution?;
    let is_coarse = resolution.relative > record.plan.min_effect.ln_1p();
    is_coarse.then(|| {
        let (name, unit) = (record.metric.short_name(), &record.metric.unit);
        let step = round_step(resolution.step);
        let sentence = match resolution.is_unknown() {
            true => format!(
                "{name} is {step} {unit} in every run: its resolution is unknown, so no arms are called the same."
            ),
            false => format!(
                "{name} comes in steps of {step} {unit}, {} of a typical run: smaller differences may be hidden, so no arms are called the same.",
                percent(relative_change(resolution.relative))
            ),
        };
        Finding::new(
            "coarse_figure",
            Severity::Warning,
            sentence.replace(" ,", ",").replace("  ", " "),
            "Give the command more work per run, or measure it with a finer clock.",
        )
        .with_evidence("step", resolution.step)
        .with_evidence("step_ratio", resolution.relative.exp())
    })
}

/// Seven digits: the step between rounded values is not exact.
fn round_step(step: f64) -> f64 {
    format!("{step:.6e}").parse().unwrap_or(step)
}

/// Findings on what the verdict of an arm depends on.
pub(super) fn list_contrast_caveats(
    contrast: &ContrastRecord,
    record: &Comparison,
) -> Vec<Finding> {
    let labelled = LabelledContrast {
        contrast,
        metric: &record.metric,
    };
    [
        labelled.depends_on_order(),
        labelled.depends_on_time(record),
        labelled.depends_on_load(),
        labelled.depends_on_tail(),
        labelled
            .typical_and_mean_differ()
            .filter(|_| record.judges_typical_run()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Advice if more effort does not help: that of the first warning on an undecided contrast.
pub(super) fn advise_on_undecided(record: &Comparison) -> String {
    let contrasts = record.contrasts.iter();
    let undecided = contrasts.filter(|contrast| contrast.verdict == ContrastVerdict::Undecided);
    undecided
        .flat_map(|contrast| list_contrast_caveats(contrast, record))
        .find(|finding| finding.severity == Severity::Warning)
        .map_or_else(
            || "See the findings for how to decide it.".to_owned(),
            |finding| finding.advice,
        )
}

/// A warning if it withholds the verdict, else a note.
const fn severity(withholds: bool) -> Severity {
    if withholds {
        Severity::Warning
    } else {
        Severity::Note
    }
}

/// A contrast with the metric that it compares.
struct LabelledContrast<'a> {
    contrast: &'a ContrastRecord,
    metric: &'a MetricRecord,
}

impl LabelledContrast<'_> {
    fn describe_change(&self, ratio: f64) -> String {
        self.metric.effect(ratio, None, None).text
    }

    fn split_finding(
        &self,
        code: &str,
        split: SplitRecord,
        withholds: bool,
        what: &str,
        advice: &str,
    ) -> Finding {
        let sentence = format!("{}: {what}.", self.describe_comparison());
        Finding::new(code, severity(withholds), sentence, advice)
            .with_evidence("first_ratio", split.first)
            .with_evidence("second_ratio", split.second)
    }

    fn depends_on_order(&self) -> Option<Finding> {
        let split = self.contrast.by_order?;
        let (even, uneven) = (
            self.describe_change(split.first),
            self.describe_change(split.second),
        );
        Some(self.split_finding(
        "depends_on_order",
        split,
        self.contrast.depends_on_order,
        &format!(
            "a run depends on which arm ran before it ({even} where both ran after the same arm, {uneven} elsewhere)"
        ),
        "Bring everything back to the same state before every run with --prepare.",
    ))
    }

    fn depends_on_time(&self, record: &Comparison) -> Option<Finding> {
        let split = self.contrast.by_time?;
        let (early, late) = (
            self.describe_change(split.first),
            self.describe_change(split.second),
        );
        let (cause, advice) = match LoadChange::from_record(record) {
            Some(load) => (
                format!(", as the load of other processes does: {}", load.describe()),
                "Compare again on a quiet machine or under a steady load; CPU time hardly notices it (--metric cpu).",
            ),
            None => (
                String::new(),
                "If one arm warms up, discard more blocks with --warmup; if it slows down, look for what its runs leave behind.",
            ),
        };
        Some(self.split_finding(
            "depends_on_time",
            split,
            self.contrast.depends_on_time,
            &format!(
                "the difference changes over the experiment ({early} in the first third, {late} in the last){cause}"
            ),
            advice,
        ))
    }

    fn depends_on_load(&self) -> Option<Finding> {
        let split = self.contrast.by_load?;
        let levels = self.contrast.load_levels.as_ref()?;
        let change =
            |level: &LoadLevelRecord| (self.describe_change(level.ratio), level.foreign_cpus);
        let medium = levels.medium.as_ref();
        let changes = describe_by_loads(levels.all().map(change));
        let finding = self.split_finding(
            "depends_on_load",
            split,
            self.contrast.depends_on_load,
            &format!("the difference depends on what else runs ({changes})"),
            "Compare under the load that matters to you, or on a quiet machine.",
        );
        Some(match medium {
            Some(medium) => finding.with_evidence("medium_ratio", medium.ratio),
            None => finding,
        })
    }

    fn depends_on_tail(&self) -> Option<Finding> {
        if !self.contrast.depends_on_tail {
            return None;
        }
        let contrast = self.contrast;
        let judged = self
            .metric
            .effect(contrast.ratio, contrast.low, contrast.high);
        let others: Vec<String> = contrast
            .others
            .iter()
            .map(|other| self.describe_judgement(other))
            .collect();
        Some(Finding::new(
            "depends_on_tail",
            Severity::Warning,
            format!(
                "{}: typical run, mean and tail may disagree: {} as judged, {}.",
                self.describe_comparison(),
                judged.describe_with_interval(),
                others.join(", ")
            ),
            "Choose what matters: --judge mean for totals, --judge p90 for the tail.",
        ))
    }

    /// Warns if the intervals of the typical run and of the mean do not overlap.
    fn typical_and_mean_differ(&self) -> Option<Finding> {
        let mean = self
            .contrast
            .others
            .iter()
            .find(|other| other.judge == "mean")?;
        let (low, high) = (mean.low?, mean.high?);
        let is_apart = low > self.contrast.high? || high < self.contrast.low?;
        (is_apart && !self.contrast.depends_on_tail).then(|| {
            Finding::new(
                "typical_and_mean_differ",
                Severity::Warning,
                format!(
                    "{}: {} in the typical run, but {} on average ({} to {}).",
                    self.describe_comparison(),
                    self.describe_change(self.contrast.ratio),
                    self.describe_change(mean.ratio),
                    self.describe_change(low),
                    self.describe_change(high)
                ),
                "If total time matters more to you than the typical run, use --judge mean.",
            )
            .with_evidence("mean_ratio", mean.ratio)
        })
    }

    fn describe_judgement(&self, other: &JudgedRecord) -> String {
        let effect = self.metric.effect(other.ratio, other.low, other.high);
        format!("{} {}", other.judge, effect.describe_with_interval())
    }

    fn describe_comparison(&self) -> String {
        format!("{} against {}", self.contrast.arm, self.contrast.baseline)
    }
}
