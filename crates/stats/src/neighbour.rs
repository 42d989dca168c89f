//! What runs beside a companion are to runs without it, in words.

use super::confirm::{Contrast, Decision};
use super::setting::{Setting, relative_change};
use pinwise_format::percent;

/// `Beside noise, a is slower by 70–105 % and b is slower by 76–105 % in the typical run.` Each arm
/// has its name without the companion's, and what it is beside it to what it is without. `more` arms
/// are not named. `None` if nothing is known yet of those that are.
#[must_use]
pub fn describe_beside(
    companion: &str,
    arms: &[(&str, &Contrast)],
    more: usize,
    setting: &Setting<'_>,
) -> Option<String> {
    let known = |contrast: &Contrast| {
        contrast.decision != Decision::Undecided || contrast.interval.half_width().is_finite()
    };
    let arms = arms.iter().filter(|(_, contrast)| known(contrast));
    let arms: Vec<String> = arms
        .map(|(arm, contrast)| format!("{arm} {}", describe_change(contrast, setting)))
        .collect();
    let more = match more {
        0 => String::new(),
        more => format!("; {more} more in the findings"),
    };
    (!arms.is_empty()).then(|| {
        format!(
            "Beside {companion}, {} {}{more}.",
            arms.join(" and "),
            setting.describe_judge()
        )
    })
}

fn describe_change(contrast: &Contrast, setting: &Setting<'_>) -> String {
    let (low, high) = (contrast.interval.low, contrast.interval.high);
    match contrast.decision {
        Decision::Faster => format!(
            "is {} {}",
            setting.words.better,
            setting.format_by_sizes(low, high)
        ),
        Decision::Slower => format!(
            "is {} {}",
            setting.words.worse,
            setting.format_by_sizes(low, high)
        ),
        Decision::Same => format!(
            "is the same within ±{}",
            percent(relative_change(setting.delta))
        ),
        Decision::Undecided => {
            let (low, high) = setting.format_ends(low, high);
            format!("may change by {low} to {high}")
        }
    }
}
