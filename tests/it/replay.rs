//! Counts of how often comparisons on simulated machines make false claims, find true effects, and
//! give intervals that contain the truth. Used by the tests and by `lab`.

use pinwise_machine::Host;
use pinwise_placement::Placement;
use pinwise_record::{Comparison, ContrastVerdict, VerdictKind};
use pinwise_sim::SimulatedMachine;
use pinwise_stats::confirm::Score;
use pinwise_stats::judge::Judge;
use pinwise_study::compare::{self, ComparePlan, NoObserver, Tuning};
use pinwise_workload::Command;

use crate::support::root;

/// One kind of experiment: `os-default` and `arms − 1` single CPUs. On the last of them runs take
/// `effect` times as long as on all others.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The `[noise]` table of the machine's description.
    pub(crate) noise: String,
    pub(crate) arms: usize,
    pub(crate) effect: f64,
    /// Keys of `[behaviour]` of the planted arm, on lines or separated by `; `.
    pub(crate) behaviour: &'static str,
    /// Runs per arm.
    pub(crate) max_runs: usize,
    /// Whether it continues until the answer is known, within these runs.
    pub(crate) is_open_ended: bool,
    pub(crate) judge: Judge,
    pub(crate) score: Score,
    /// Whether CPU time is judged, too, as for two commands in one place.
    pub(crate) with_cpu: bool,
}

/// The results of many experiments.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) replays: usize,
    /// Experiments with at least one claim about arms that are the same.
    pub(crate) false_claims: usize,
    /// Experiments that found the planted effect.
    pub(crate) found: usize,
    /// Experiments that claimed its opposite.
    pub(crate) wrong_direction: usize,
    /// Experiments that named the planted arm as the best.
    pub(crate) named_best: usize,
    /// Contrasts, and those whose interval contains the truth.
    pub(crate) contrasts: usize,
    pub(crate) covered: usize,
    /// Undecided contrasts that report neither an interval nor the time that a verdict would take.
    pub(crate) mute: usize,
    /// Experiments with at least one claim, always false, that the spread of an arm differs from
    /// that of the baseline.
    pub(crate) spread_claims: usize,
    /// Contrasts with an interval for the ratio of spreads, and those whose interval contains 1.
    pub(crate) spreads: usize,
    pub(crate) spreads_covered: usize,
    /// Experiments in which the planted arm was called faster, slower, the same.
    pub(crate) faster: usize,
    pub(crate) slower: usize,
    pub(crate) same: usize,
    /// Experiments that found that the planted effect depends on order, time, load, tails.
    pub(crate) by_order: usize,
    pub(crate) by_time: usize,
    pub(crate) by_load: usize,
    pub(crate) by_tail: usize,
    /// Experiments that recommend a command.
    pub(crate) recommended: usize,
    pub(crate) runs: usize,
}

/// The `[noise]` of a recorded series of `tests/data/series`.
pub(crate) fn read_series(name: &str) -> String {
    let folder = root().join("tests/data/series");
    format!("series = \"{}\"", folder.join(name).display())
}

/// Independent log-normal noise.
pub(crate) fn independent_noise(sd: f64) -> String {
    format!("kind = \"lognormal\"\nsd = {sd}")
}

/// Runs a cell `replays` times, from `first_seed` on.
pub(crate) fn replay(cell: &Cell, replays: usize, first_seed: u64) -> Tally {
    let mut tally = Tally::default();
    replay_each(cell, replays, first_seed, |record| {
        tally.count(cell, record);
    });
    tally
}

/// Runs a cell `replays` times, from `first_seed` on, and passes each record on.
pub(crate) fn replay_each(
    cell: &Cell,
    replays: usize,
    first_seed: u64,
    mut take: impl FnMut(&Comparison),
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, describe_machine(cell)).expect("a writable folder");
    let path = path.to_str().expect("a UTF-8 path");
    for seed in first_seed..first_seed + replays as u64 {
        let mut machine = SimulatedMachine::open(path, seed).expect("a description");
        let plan = build_plan(&mut machine, cell, seed);
        let record = compare::run(&plan, &mut machine, &mut NoObserver).expect("a record");
        take(&record);
    }
}

fn describe_machine(cell: &Cell) -> String {
    let planted = cell.planted_arm();
    format!(
        "topology = \"core:{} pu:1\"\n[workload.default]\nbase_s = 0.066\n[effects]\n\"{planted}\" = {}\n{}[noise]\n{}\n",
        cell.arms.max(3) - 1,
        cell.effect,
        match cell.behaviour {
            "" => String::new(),
            keys => format!("[behaviour.\"{planted}\"]\n{}\n", keys.replace("; ", "\n")),
        },
        cell.noise
    )
}

fn build_plan(machine: &mut SimulatedMachine, cell: &Cell, seed: u64) -> ComparePlan {
    let (topology, _) = machine.topology().expect("a topology");
    let names = std::iter::once("os-default".to_owned())
        .chain((0..cell.arms - 1).map(|cpu| format!("cpu:{cpu}")));
    let placements: Vec<Placement> = names
        .map(|name| name.parse().expect("a placement"))
        .collect();
    let command = Command::from_line("prog").expect("a command");
    let plan = ComparePlan::compare_placements(command, &topology, &placements).expect("a plan");
    ComparePlan {
        tuning: Tuning {
            budget: None,
            max_runs: Some(cell.max_runs),
            is_open_ended: cell.is_open_ended,
            judge: cell.judge,
            score: cell.score,
            ..Tuning::default()
        },
        with_cpu: cell.with_cpu,
        seed,
        ..plan
    }
}

impl Cell {
    /// Arms on a recorded or synthetic noise.
    pub(crate) fn new(noise: &str, arms: usize, effect: f64, max_runs: usize) -> Self {
        Self {
            noise: noise.to_owned(),
            arms,
            effect,
            behaviour: "",
            max_runs,
            is_open_ended: false,
            judge: Judge::Typical,
            score: Score::Weighted,
            with_cpu: false,
        }
    }

    /// Two arms, of which the second has this behaviour.
    pub(crate) fn with_behaviour(noise: &str, behaviour: &'static str, max_runs: usize) -> Self {
        Self {
            behaviour,
            ..Self::new(noise, 2, 1.0, max_runs)
        }
    }

    /// The name of the arm with the effect.
    fn planted_arm(&self) -> String {
        format!("cpu:{}", self.arms - 2)
    }

    fn is_null(&self) -> bool {
        (self.effect - 1.0).abs() < 1e-12
    }
}

impl Tally {
    fn count(&mut self, cell: &Cell, record: &Comparison) {
        let (mut is_false, mut is_found, mut is_wrong) = (false, false, false);
        let mut is_spread = false;
        for contrast in &record.contrasts {
            let is_planted = contrast.arm == cell.planted_arm() && !cell.is_null();
            let truth = if is_planted { cell.effect } else { 1.0 };
            let low = contrast.low.unwrap_or(0.0);
            let high = contrast.high.unwrap_or(f64::INFINITY);
            self.contrasts += 1;
            self.covered += usize::from(low <= truth && truth <= high);
            if contrast.arm == cell.planted_arm() {
                self.faster += usize::from(contrast.verdict == ContrastVerdict::Faster);
                self.slower += usize::from(contrast.verdict == ContrastVerdict::Slower);
                self.same += usize::from(contrast.verdict == ContrastVerdict::Same);
                self.by_order += usize::from(contrast.by_order.is_some());
                self.by_time += usize::from(contrast.by_time.is_some());
                self.by_load += usize::from(contrast.by_load.is_some());
                self.by_tail += usize::from(contrast.depends_on_tail);
            }
            let by_cpu = contrast.cpu_time.as_ref().filter(|cpu| cpu.decides);
            // The same CPU time claims that nothing changed.
            let is_same = by_cpu.is_some() && record.verdict.kind == VerdictKind::Same;
            let by_cpu_change = by_cpu.filter(|_| !is_same);
            let claim = match (contrast.verdict.as_str(), by_cpu_change) {
                ("faster", _) => -1,
                ("slower", _) => 1,
                (_, Some(cpu)) if cpu.ratio < 1.0 => -1,
                (_, Some(_)) => 1,
                _ => 0,
            };
            let right = if truth < 1.0 { -1 } else { 1 };
            is_false |= !is_planted && claim != 0;
            is_found |= is_planted && claim == right;
            is_wrong |= is_planted && (claim == -right || is_same);
            let has_words = |words: &str| contrast.sentence.contains(words);
            let is_silent = contrast.low.is_none()
                || !has_words(" more.") && !has_words(", but ") && !has_words("(dropped after ");
            let is_mute = is_silent && by_cpu.is_none();
            if contrast.spread_ratio.is_some() {
                let low = contrast.spread_low.unwrap_or(0.0);
                let high = contrast.spread_high.unwrap_or(f64::INFINITY);
                let is_covered = low <= 1.0 && 1.0 <= high;
                self.spreads += 1;
                self.spreads_covered += usize::from(is_covered);
                is_spread |= !is_covered;
            }
            self.mute += usize::from(contrast.verdict == ContrastVerdict::Undecided && is_mute);
        }
        self.false_claims += usize::from(is_false);
        self.spread_claims += usize::from(is_spread);
        self.found += usize::from(is_found);
        self.wrong_direction += usize::from(is_wrong);
        self.named_best += usize::from(record.best.as_deref() == Some(&cell.planted_arm()));
        self.recommended += usize::from(!record.verdict.commands.is_empty());
        self.runs += record.arms.iter().map(|arm| arm.runs.len()).sum::<usize>();
        self.replays += 1;
    }

    /// A count as a share of the experiments.
    pub(crate) fn share(&self, count: usize) -> f64 {
        count as f64 / self.replays.max(1) as f64
    }

    /// Share of intervals that contain the truth.
    pub(crate) fn coverage(&self) -> f64 {
        self.covered as f64 / self.contrasts.max(1) as f64
    }

    /// Adds the counts of another half of the same cell.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            replays: self.replays + other.replays,
            false_claims: self.false_claims + other.false_claims,
            found: self.found + other.found,
            wrong_direction: self.wrong_direction + other.wrong_direction,
            named_best: self.named_best + other.named_best,
            contrasts: self.contrasts + other.contrasts,
            covered: self.covered + other.covered,
            mute: self.mute + other.mute,
            spread_claims: self.spread_claims + other.spread_claims,
            spreads: self.spreads + other.spreads,
            spreads_covered: self.spreads_covered + other.spreads_covered,
            faster: self.faster + other.faster,
            slower: self.slower + other.slower,
            same: self.same + other.same,
            by_order: self.by_order + other.by_order,
            by_time: self.by_time + other.by_time,
            by_load: self.by_load + other.by_load,
            by_tail: self.by_tail + other.by_tail,
            recommended: self.recommended + other.recommended,
            runs: self.runs + other.runs,
        }
    }
}
