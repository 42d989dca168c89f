//! Says what more time or runs would achieve for an undecided comparison.

use super::{
    MAX_OFFERED_TIME, ROOM, Setting, find_widest_open, relative_change, scale, wanted_half_width,
};
use crate::diagnose::work_factor;
use crate::look::Look;
use pinwise_format::{duration, percent};

/// Half-widths that may be offered, as relative changes.
const WIDTHS: [f64; 7] = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
/// Further blocks after which a claim that was too early has usually become one.
const BLOCKS_WHEN_EARLY: f64 = 16.0;
/// Most half-widths in an offer.
const MAX_OFFERS: usize = 2;

/// What more time would achieve.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The offer in words.
    pub text: String,
    /// The narrowest half-width offered, `ln(ratio)`; `None` if there is no interval yet, and the
    /// offer is a first one.
    pub half_width: Option<f64>,
    /// The further effort for that, as a multiple of what was spent so far.
    pub factor: f64,
}

/// The unit in which more effort is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Time: `about 20 s more for ±5.0 %, 2 min for ±2.0 %`.
    Time,
    /// Runs of each arm in total: `--max-runs 40 for ±5.0 %`.
    Runs,
}

impl Effort {
    /// Describes further effort, `factor` times what was spent so far.
    fn describe_more(
        self,
        look: &Look,
        setting: &Setting<'_>,
        factor: f64,
        is_first: bool,
    ) -> String {
        let time = duration(scale(setting.spent, factor));
        match self {
            Self::Time if is_first => format!("about {time} more"),
            Self::Time => time,
            Self::Runs => {
                let runs = (look.blocks as f64 * (1.0 + factor)).ceil();
                format!("--max-runs {runs:.0} ({time} more)")
            }
        }
    }
}

/// What more time would achieve for an undecided comparison: `about 20 s more for ±5.0 %, 2 min for
/// ±2.0 %`. It is about the contrast that is farthest from a decision. `None` if nothing within an
/// hour helps.
#[must_use]
pub fn offer_more(look: &Look, setting: &Setting<'_>, effort: Effort) -> Option<Offer> {
    let is_affordable = |factor: f64| scale(setting.spent, factor) <= MAX_OFFERED_TIME;
    let offer_verdict = |factor: f64, what: &str| {
        is_affordable(factor).then(|| Offer {
            text: format!(
                "{} for {what}",
                effort.describe_more(look, setting, factor, true)
            ),
            half_width: None,
            factor,
        })
    };
    let Some(open) = find_widest_open(look) else {
        let factor = factor_to_first_claim(look.blocks, setting);
        return offer_verdict(factor, "a first verdict");
    };
    if open.caveats.is_early {
        return offer_verdict(BLOCKS_WHEN_EARLY / look.blocks as f64, "a verdict");
    }
    let width = open.interval.half_width();
    let target = wanted_half_width(open, setting.delta);
    let wanted = WIDTHS.into_iter().map(f64::ln_1p);
    // A width that is hardly narrower than the present one is not offered.
    let wanted = wanted.filter(|wanted| (target * 1.1..width * 0.8).contains(wanted));
    let offers = wanted
        .chain([target])
        .map(|wanted| (wanted, ROOM * work_factor(width, wanted) - 1.0));
    let offers: Vec<_> = offers
        .filter(|(_, factor)| is_affordable(*factor))
        .collect();
    let skipped = offers.len().saturating_sub(MAX_OFFERS);
    let texts = offers.iter().skip(skipped).enumerate();
    let texts = texts.map(|(at, (wanted, factor))| {
        let more = effort.describe_more(look, setting, *factor, at == 0);
        format!("{more} for ±{}", percent(relative_change(*wanted)))
    });
    let texts: Vec<String> = texts.collect();
    let (half_width, factor) = *offers.last()?;
    Some(Offer {
        text: texts.join(", "),
        half_width: Some(half_width),
        factor,
    })
}

/// The blocks that a first claim still needs, as a multiple of those so far. If there are enough
/// blocks, but too few of them are usable, twice the minimum is assumed.
fn factor_to_first_claim(blocks: usize, setting: &Setting<'_>) -> f64 {
    let missing = match setting.least.saturating_sub(blocks) {
        0 => 2 * crate::sequential::MIN_PAIRS,
        missing => missing,
    };
    missing as f64 / blocks.max(1) as f64
}
