//! The 2008 report: a single-threaded program, left to the scheduler or pinned.

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, signed};
use super::stage::Arm;
use super::{Here, Simulation};
use pinwise_record::{ClaimRecord, ExperimentRecord};

pub(super) const INTEL: &str = include_str!("../../field-reports/pinned-core-2-quad.toml");
pub(super) const AMD: &str = include_str!("../../field-reports/pinned-phenom.toml");

const QUESTION: &str = "SuperPi 1M, default scheduler against affinity to one CPU";

/// A pinned program compared with the default.
struct PinningEffect {
    /// Time that pinning saves, per cent of the default's.
    gain: ClaimResult,
    /// Coefficients of variation: default, pinned.
    spread: (f64, f64),
}

fn compare_pinning(
    simulation: &mut Simulation<'_>,
    label: &str,
    text: &str,
) -> Result<PinningEffect> {
    let mut stage = simulation.stage(label, text)?.with_all_runs();
    let answer = stage.compare(&[
        Arm::new("default", "superpi", "os-default"),
        Arm::new("pinned", "superpi", "cpu:0"),
    ])?;
    let spread = |arm| answer.variation(arm).unwrap_or(f64::NAN);
    Ok(PinningEffect {
        gain: answer.saving("pinned")?,
        spread: (spread("default"), spread("pinned")),
    })
}

/// Runs the experiments on the report's machines, simulated.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let intel = compare_pinning(simulation, "pinned-core-2-quad", INTEL)?;
    let amd = compare_pinning(simulation, "pinned-phenom", AMD)?;
    let claims = vec![
        Claim::change("Core 2 Quad: pinning saves", 7.4).judge_figure(intel.gain, Judge::Direction),
        Claim::change("Phenom: pinning saves", 5.0).judge_figure(amd.gain, Judge::Direction),
        Claim::new(
            "the Core 2 Quad gains more",
            "7.4 and 5.0 %; its text says the reverse of its table",
        )
        .judge_condition(
            format!(
                "{} and {}",
                signed(intel.gain.value),
                signed(amd.gain.value)
            ),
            intel.gain.value > amd.gain.value,
            "a move between its dies leaves 4 MB behind, on the Phenom 512 KB",
        ),
        judge_spread("Core 2 Quad: pinned runs spread much less", intel.spread),
        judge_spread("Phenom: pinned runs spread less", amd.spread),
        Claim::new(
            "core to core within a shared L2 and between dies",
            "14, 50 to 60 cycles",
        )
        .show_given(None, "measured latencies: nothing predicts them"),
    ];
    Ok(vec![experiment(claims)])
}

fn experiment(claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: "superpi".to_owned(),
        question: QUESTION.to_owned(),
        claims,
    }
}

fn judge_spread(claim: &str, (default, pinned): (f64, f64)) -> ClaimRecord {
    Claim::new(claim, "lower standard deviation").judge_condition(
        format!(
            "{:.3} % pinned, {:.3} % default",
            100.0 * pinned,
            100.0 * default
        ),
        pinned < default,
        "coefficients of variation; the moves of a run are a matter of chance",
    )
}

/// Digits in a run on this machine, about half a second; the report's run takes half a minute.
const DIGITS: u32 = 131_072;

/// Runs the experiment on this machine.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let allowed = here.topology().allowed.clone();
    let saves = Claim::change("pinning saves", 7.4);
    let Some(cpu) = allowed.iter().last().filter(|_| allowed.len() > 1) else {
        let claim = saves.mark_untestable("there is one CPU only");
        return Ok(vec![experiment(vec![claim])]);
    };
    let command = format!("pinwise bench kernel pi --work 1 --size {DIGITS}");
    let answer = here.compare(&[
        here.arm("default", &command, "os-default"),
        here.arm("pinned", &command, &format!("cpu:{cpu}")),
    ])?;
    let gain = answer.saving("pinned")?;
    let saves = match answer.is_undecided("pinned") {
        true => saves.mark_untestable(&format!(
            "undecided in this time: between {} and {}",
            signed(gain.low),
            signed(gain.high)
        )),
        false => saves.judge_figure(gain, Judge::Direction),
    };
    let spread = judge_spread_here(answer.spread("pinned"));
    Ok(vec![experiment(vec![saves, spread])])
}

/// Judges the claim by the interval of the ratio of spreads, since two measured spreads always differ.
fn judge_spread_here(spread: Option<ClaimResult>) -> ClaimRecord {
    let claim = Claim::new("pinned runs spread less", "lower standard deviation");
    let Some(ClaimResult { value, low, high }) = spread else {
        return claim.mark_untestable("too few runs to estimate their spread");
    };
    let measured = format!("{value:.2} times as much ({low:.2} to {high:.2})");
    if low <= 1.0 && high >= 1.0 {
        return claim.mark_untestable(&format!("undecided: {measured}"));
    }
    claim.judge_condition(measured, high < 1.0, "spread against the default's")
}
