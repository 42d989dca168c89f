//! The 2005 report: a scheduler that uses both CPUs of one core while another core idles.

use anyhow::Result;

use super::claim::{Claim, ClaimResult, Judge, experiment, signed};
use super::stage::{Arm, Stage};
use super::{Here, Simulation};
use pinwise_record::{ClaimRecord, ExperimentRecord};
use pinwise_topology::Level;

pub(super) const MACHINE: &str = include_str!("../../field-reports/hyperthread-fill.toml");

/// Changes within this many percentage points count as reproduced.
const MAX_POINTS: f64 = 3.0;

// Questions of the experiments.
const ENCODE: &str = "video encoding on 1 CPU and 2, with HT off and on";
const SELF: &str = "an encoder that sets its own affinity";
const PLACED: &str = "whetstone on siblings, on two cores, on 1 to 4 CPUs";

/// Arms of the encoders: name and placement. HT off is simulated by one CPU of each core.
const PLACES: [(&str, &str); 4] = [
    ("1 CPU", "cpu:0"),
    ("1 CPU, HT", "cpu:0-1"),
    ("2 CPUs", "cpu:0,2"),
    ("2 CPUs, HT", "os-default"),
];

/// Runs the experiments on the report's machine, simulated.
pub(super) fn simulate(simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let core_first = MACHINE.replace("random-idle", "core-first");
    let mut blind = simulation
        .stage("hyperthread-fill", MACHINE)?
        .with_all_runs();
    let wme = Gains::simulate(&mut blind, "encode-wme")?;
    let divx = Gains::simulate(&mut blind, "encode-divx")?;
    let own = Gains::simulate(&mut blind, "encode-tmpgenc")?;
    let placed = run_whetstone(&mut blind)?;
    drop(blind);
    let mut aware = simulation
        .stage("hyperthread-fill", &core_first)?
        .with_all_runs();
    let wme_aware = Gains::simulate(&mut aware, "encode-wme")?;
    Ok(vec![
        experiment("encode-wme", ENCODE, judge_wme(&wme, &wme_aware)),
        experiment("encode-divx", ENCODE, judge_divx(&divx)),
        experiment("whetstone-placement", PLACED, placed),
        experiment("encode-self-affinity", SELF, judge_self_affinity(&own)),
    ])
}

/// Gains in speed of an encoder, per cent.
struct Gains {
    /// From HT with one CPU.
    ht_on_one: ClaimResult,
    /// From a second CPU, without HT.
    second: ClaimResult,
    /// From HT with two CPUs.
    ht_on_two: ClaimResult,
}

impl Gains {
    fn simulate(stage: &mut Stage<'_>, encoder: &str) -> Result<Self> {
        let arm = |(name, place)| Arm::new(name, encoder, place);
        let from_one = stage.compare(&PLACES.map(arm)[..3])?;
        let from_two = stage.compare(&PLACES.map(arm)[2..])?;
        Ok(Self {
            ht_on_one: from_one.speed("1 CPU, HT")?,
            second: from_one.speed("2 CPUs")?,
            ht_on_two: from_two.speed("2 CPUs, HT")?,
        })
    }
}

fn judge_wme(blind: &Gains, aware: &Gains) -> Vec<ClaimRecord> {
    let aware_gain = aware.ht_on_two;
    vec![
        Claim::change("HT on one CPU", 20.0)
            .show_given(Some(blind.ht_on_one), "sets what two siblings do"),
        Claim::change("from one CPU to two", 65.0)
            .show_given(Some(blind.second), "sets how long threads wait"),
        Claim::change("HT on two CPUs", -3.5)
            .judge_figure(blind.ht_on_two, Judge::Size(MAX_POINTS)),
        Claim::new(
            "every core before any second CPU: then HT costs nothing",
            "the rule found",
        )
        .judge_condition(
            signed(aware_gain.value),
            aware_gain.value > -0.5 && aware_gain.value > blind.ht_on_two.value,
            "the same machine with a scheduler that takes idle cores first",
        ),
    ]
}

fn judge_divx(gains: &Gains) -> Vec<ClaimRecord> {
    vec![
        Claim::new("HT on one CPU: a clear gain", "gain")
            .in_percent()
            .show_given(
                Some(gains.ht_on_one),
                "no figure of its own: that of encode-wme",
            ),
        Claim::new("HT on two CPUs: a slight loss", "loss").judge_condition(
            signed(gains.ht_on_two.value),
            gains.ht_on_two.value < -0.5 && gains.ht_on_two.value > -10.0,
            "a loss, and below a tenth",
        ),
    ]
}

fn judge_self_affinity(gains: &Gains) -> Vec<ClaimRecord> {
    let (one, two) = (gains.ht_on_one.value, gains.ht_on_two.value);
    vec![
        Claim::new("HT's gain on two CPUs is nearly that on one", "the same").judge_condition(
            format!("{} and {}", signed(one), signed(two)),
            (one - two).abs() <= MAX_POINTS && two > MIN_GAIN_PERCENT,
            "threads of its own on every CPU leave the scheduler no choice",
        ),
    ]
}

/// Smaller gains count as none.
const MIN_GAIN_PERCENT: f64 = 1.0;

/// Whetstone's work per run, units.
const WORK: usize = 100;

fn whetstone_command(threads: usize) -> String {
    format!("pinwise bench kernel whetstone --threads {threads} --work {WORK} --format json")
}

fn run_whetstone(stage: &mut Stage<'_>) -> Result<Vec<ClaimRecord>> {
    let answer = stage.compare(&[
        Arm::new("1 thread", &whetstone_command(1), "cpu:0"),
        Arm::new("siblings", &whetstone_command(2), "cpu:0-1"),
        Arm::new("two cores", &whetstone_command(2), "cpu:0,2"),
        Arm::new("2 threads", &whetstone_command(2), "os-default"),
        Arm::new("3 threads", &whetstone_command(3), "os-default"),
        Arm::new("4 threads", &whetstone_command(4), "os-default"),
    ])?;
    let speed = |arm: &str| answer.speed(arm);
    let (siblings, cores) = (speed("siblings")?, speed("two cores")?);
    let (two, three, four) = (
        speed("2 threads")?,
        speed("3 threads")?,
        speed("4 threads")?,
    );
    Ok(vec![
        Claim::new(
            "on siblings the gain is HT's alone, a core idles",
            "HT's gain",
        )
        .judge_condition(
            signed(siblings.value),
            (siblings.value - 20.0).abs() <= MAX_POINTS,
            "that of HT on one CPU, +20 %",
        ),
        Claim::vague("on two cores about double", "about double").judge_condition(
            signed(cores.value),
            (cores.value - 100.0).abs() <= 10.0,
            "within a tenth of double",
        ),
        Claim::new("1, 2, 3, 4 threads: each adds", "each adds").judge_condition(
            format!(
                "{}, {}, {}",
                signed(two.value),
                signed(three.value),
                signed(four.value)
            ),
            0.0 < two.value && two.value < three.value && three.value <= four.value,
            "over one thread",
        ),
    ])
}

/// Runs the experiments on this machine, as far as it has cores and siblings.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let cores = here.topology().allowed_units(Level::Core);
    let smt = cores
        .iter()
        .map(pinwise_topology::CpuSet::len)
        .max()
        .unwrap_or(1);
    let mut claims = Vec::new();
    let (siblings, double) = (
        Claim::new(
            "on siblings the gain is HT's alone, a core idles",
            "HT's gain",
        ),
        Claim::vague("on two cores about double", "about double"),
    );
    let no_smt = "this machine reports one CPU for each core";
    let one = "pinwise bench kernel whetstone --threads 1";
    let two = "pinwise bench kernel whetstone --threads 2";
    let mut arms = vec![here.arm("1 thread", one, "os-default")];
    if smt > 1 {
        arms.push(here.arm("siblings", two, "one-core"));
    }
    if cores.len() > 1 {
        arms.push(here.arm("two cores", two, "one-per-core*2"));
    }
    if arms.len() < 2 {
        let only = "there is one CPU";
        claims.extend([
            siblings.mark_untestable(no_smt),
            double.mark_untestable(only),
        ]);
    } else {
        let answer = here.compare(&arms)?;
        claims.push(if smt > 1 {
            let gain = answer.speed("siblings")?;
            siblings.judge_condition(
                signed(gain.value),
                gain.value < 60.0,
                "two threads on one core, over one thread",
            )
        } else {
            siblings.mark_untestable(no_smt)
        });
        claims.push(if cores.len() > 1 {
            let gain = answer.speed("two cores")?;
            double.judge_condition(
                signed(gain.value),
                (gain.value - 100.0).abs() <= 15.0,
                "two threads on two cores, over one thread",
            )
        } else {
            double.mark_untestable("there is one core")
        });
    }
    let encoder = "the encoders run on Windows; compare --recipe x264 asks the same here";
    let not_here = |name: &str, question: &str, claim: &str, reported: &str| {
        let claim = Claim::new(claim, reported).mark_untestable(encoder);
        experiment(name, question, vec![claim])
    };
    Ok(vec![
        not_here("encode-wme", ENCODE, "HT on two CPUs", "−3.5 %"),
        not_here("encode-divx", ENCODE, "HT on two CPUs", "a slight loss"),
        experiment("whetstone-placement", PLACED, claims),
        not_here(
            "encode-self-affinity",
            SELF,
            "HT's gain on two CPUs",
            "as on one",
        ),
    ])
}
