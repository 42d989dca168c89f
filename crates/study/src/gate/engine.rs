//! Runs a gate: rounds over the undecided benchmarks, until all are decided or the budget is spent.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::assemble;
use super::measured::{BASE, HEAD, Measured, Pair};
use super::{GatePlan, GateProgress, Observer};
use crate::compare::{Moment, PADDING, Trial};
use crate::load;
use pinwise_format::{count, duration, whole_usize};
use pinwise_machine::{CommandRunner, MachineError, Output};
use pinwise_record::{GateOutcome, GateRecord, Phase, RunRecord, Stopped};
use pinwise_stats::fixed_width::FixedWidth;
use pinwise_stats::regression::{Regression, Standing};
use pinwise_stats::verdict::ROOM;

/// Smallest interval at which the growing record is shown.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Runs a gate.
///
/// # Errors
/// [`MachineError`] if nothing can be run at all. Failed benchmarks and interruptions are not
/// errors: the record says so.
pub fn run(
    plan: &GatePlan,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<GateRecord, MachineError> {
    let (topology, _) = machine.topology()?;
    let host = crate::host::host_record(machine, &topology);
    let mut record = assemble::open_record(plan, host);
    observer.begin(&record);
    let mut engine = Engine::new(plan, machine, observer);
    let stopped = engine.run_rounds(&mut record)?;
    for (state, &further_pairs) in engine.states.iter_mut().zip(&engine.further_pairs) {
        if let Some(state) = state {
            state.close(stopped, further_pairs);
        }
    }
    let elapsed = engine.machine.now().saturating_sub(engine.started);
    assemble::update_benchmarks(&mut record, plan, &engine.states, elapsed);
    assemble::complete_record(&mut record, plan, &engine.states, stopped);
    load::name_busiest(&mut record.findings, || engine.machine.busiest());
    Ok(record)
}

struct Engine<'a> {
    plan: &'a GatePlan,
    machine: &'a mut dyn CommandRunner,
    observer: &'a mut dyn Observer,
    order: ChaCha8Rng,
    started: Duration,
    /// By benchmark; `None` if only one build has it.
    states: Vec<Option<Measured>>,
    /// By benchmark: at most this many pairs may follow.
    further_pairs: Vec<usize>,
    /// Benchmarks of the current round, which share the remaining time.
    round: Vec<usize>,
    /// The benchmark and the build that ran last.
    last: Option<(usize, usize)>,
    /// When the record was last shown, since the start of the gate.
    shown_at: Option<Duration>,
}

/// How a benchmark's turn in a round ended.
enum Turn {
    /// The benchmark is decided now, or has failed.
    Finished,
    /// The benchmark needs more pairs.
    Unfinished,
    /// The user stopped the gate.
    Interrupted,
}

impl<'a> Engine<'a> {
    fn new(
        plan: &'a GatePlan,
        machine: &'a mut dyn CommandRunner,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let started = machine.now();
        let both = || {
            let benchmarks = plan.benchmarks.iter();
            benchmarks.filter(|benchmark| benchmark.workloads().is_some())
        };
        let judged = both().count() + both().filter(|benchmark| benchmark.with_cpu).count();
        let states = plan.benchmarks.iter().map(|benchmark| {
            let question = benchmark.question(plan);
            let regression = Regression::new(question, judged);
            let cpu = benchmark.with_cpu.then(|| regression.clone());
            let width = FixedWidth::new(question);
            let both = benchmark.workloads();
            both.map(|_| Measured::new(regression, cpu, width, plan.is_chained))
        });
        Self {
            states: states.collect(),
            further_pairs: vec![0; plan.benchmarks.len()],
            order: ChaCha8Rng::seed_from_u64(plan.seed),
            round: Vec::new(),
            last: None,
            shown_at: None,
            plan,
            machine,
            observer,
            started,
        }
    }

    fn run_rounds(&mut self, record: &mut GateRecord) -> Result<Stopped, MachineError> {
        let mut is_first_round = true;
        loop {
            let active = self.active_benchmarks();
            if active.is_empty() {
                return Ok(Stopped::Precision);
            }
            let mut round = self.choose_benchmarks(&active);
            round.retain(|&index| self.may_begin(index));
            if round.is_empty() {
                return Ok(self.stop_reason(&active));
            }
            self.round.clone_from(&round);
            round.shuffle(&mut self.order);
            for index in round {
                if !self.may_begin(index) {
                    continue;
                }
                match self.run_pair(index)? {
                    Turn::Unfinished => {}
                    Turn::Interrupted => return Ok(Stopped::Interrupted),
                    Turn::Finished => {
                        assemble::update_benchmarks(
                            record,
                            self.plan,
                            &self.states,
                            self.elapsed(),
                        );
                        self.observer.decided(&record.benchmarks[index]);
                    }
                }
            }
            self.report(record);
            if std::mem::take(&mut is_first_round) {
                // Whatever the others do, the gate cannot pass.
                if record
                    .benchmarks_with(&GateOutcome::Failed)
                    .next()
                    .is_some()
                {
                    return Ok(Stopped::Failed);
                }
                self.warn_if_budget_is_short();
            }
        }
    }

    /// Why none of the active benchmarks gets another pair.
    fn stop_reason(&self, active: &[usize]) -> Stopped {
        let state = |index: &usize| self.states[*index].as_ref();
        let is_decided = |index: &usize| state(index).is_some_and(Measured::is_only_measured);
        if active.iter().all(is_decided) {
            return Stopped::Precision;
        }
        match active.iter().all(|&index| self.pairs_left(index) == 0) {
            true => Stopped::Runs,
            false => Stopped::Budget,
        }
    }

    /// Shows the record so far, at most every [`REPORT_EVERY`]: writing it takes time in proportion
    /// to the number of pairs.
    fn report(&mut self, record: &mut GateRecord) {
        let now = self.elapsed();
        let is_due = |last: Duration| now.saturating_sub(last) >= REPORT_EVERY;
        if self.shown_at.is_none_or(is_due) {
            self.shown_at = Some(now);
            assemble::update_benchmarks(record, self.plan, &self.states, now);
            self.observer.round(record);
        }
    }

    /// Warns after the first round if the budget is too short for verdicts.
    fn warn_if_budget_is_short(&mut self) {
        let Some(left) = self.time_left() else {
            return;
        };
        let active = || {
            self.states
                .iter()
                .flatten()
                .filter(|state| state.is_active())
        };
        let round_s: f64 = active().filter_map(Measured::pair_s).sum();
        let least = active().map(Measured::least_pairs).max().unwrap_or(0);
        if left.as_secs_f64() >= least as f64 * round_s {
            return;
        }
        let needed = self.elapsed().as_secs_f64() + ROOM * least as f64 * round_s;
        let needed = Duration::try_from_secs_f64(needed).unwrap_or(Duration::MAX);
        self.observer.warn(&format!(
            "The budget is too short for {}: a verdict needs {least} pairs of runs of each, about {} in all (--budget); or choose some with --filter.",
            count(active().count(), "benchmark"),
            duration(needed)
        ));
    }

    fn elapsed(&self) -> Duration {
        self.machine.now().saturating_sub(self.started)
    }

    fn time_left(&self) -> Option<Duration> {
        let budget = self.plan.budget?;
        Some(budget.saturating_sub(self.elapsed()))
    }

    /// Benchmarks that need more pairs.
    fn active_benchmarks(&self) -> Vec<usize> {
        let states = self.states.iter().enumerate();
        states
            .filter(|(_, state)| state.as_ref().is_some_and(Measured::is_active))
            .map(|(index, _)| index)
            .collect()
    }

    fn pairs_left(&self, index: usize) -> usize {
        let done = self.states[index].as_ref().map_or(0, |s| s.pairs.len());
        let most = self.plan.max_pairs.unwrap_or(usize::MAX);
        most.saturating_sub(done)
    }

    /// May another pair begin? Not if it would not end within the budget.
    fn may_begin(&self, index: usize) -> bool {
        let state = self.states[index].as_ref();
        let Some(state) = state.filter(|state| state.is_active()) else {
            return false;
        };
        let pair_s = state.pair_s().unwrap_or(0.0);
        let left = self.time_left();
        let is_left = left.is_none_or(|left| !left.is_zero() && left.as_secs_f64() >= pair_s);
        is_left && self.pairs_left(index) > 0
    }

    /// The active benchmarks on which to spend the remaining time: those that are closest to a
    /// verdict and fit into it together; all if none fits, or if needs are not known yet. The choice
    /// does not depend on which build is faster.
    fn choose_benchmarks(&self, active: &[usize]) -> Vec<usize> {
        let Some(left) = self.time_left() else {
            return active.to_vec();
        };
        let needed = |&index: &usize| {
            let state = self.states[index].as_ref()?;
            let delta = self.plan.benchmarks[index].min_effect.ln_1p();
            Some((index, state.needed_s(delta)?, state.is_only_measured()))
        };
        let Some(mut needed) = active.iter().map(needed).collect::<Option<Vec<_>>>() else {
            return active.to_vec();
        };
        // Benchmarks that are decided and only measured further come last.
        needed.sort_by(|a, b| a.2.cmp(&b.2).then(a.1.total_cmp(&b.1)));
        let mut sum_s = 0.0;
        let fits = |(_, needed_s, _): &&(usize, f64, bool)| {
            sum_s += needed_s;
            sum_s <= left.as_secs_f64()
        };
        let chosen: Vec<usize> = needed.iter().take_while(fits).map(|one| one.0).collect();
        match chosen.is_empty() {
            true => active.to_vec(),
            false => chosen,
        }
    }

    /// The number of pairs that a benchmark may still get in the remaining time.
    fn max_further_pairs(&self, index: usize) -> usize {
        let pairs_left = self.pairs_left(index);
        let Some(left) = self.time_left() else {
            return pairs_left;
        };
        let round = self.round.iter();
        let states = round.filter_map(|&index| self.states[index].as_ref());
        let round_s: f64 = states
            .filter(|state| state.is_active())
            .filter_map(Measured::pair_s)
            .sum();
        pairs_left.min(whole_usize(
            (left.as_secs_f64() / round_s.max(1e-9)).floor(),
        ))
    }

    /// Runs both builds of a benchmark once, in random order.
    fn run_pair(&mut self, index: usize) -> Result<Turn, MachineError> {
        let mut order = [BASE, HEAD];
        order.shuffle(&mut self.order);
        let previous = self.last.filter(|(other, _)| *other == index);
        let began = self.machine.now();
        let mut runs: [Option<RunRecord>; 2] = [None, None];
        let mut is_absent = [false; 2];
        for (slot, &build) in order.iter().enumerate() {
            self.show_progress(index);
            let run = match self.run_build(index, build, slot) {
                Ok(run) => run,
                Err(MachineError::Interrupted) => return Ok(Turn::Interrupted),
                Err(error @ MachineError::NotFound { .. }) => {
                    is_absent[build] = true;
                    Err(error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            self.last = Some((index, build));
            match run {
                Ok(run) => {
                    if let Some(state) = &mut self.states[index] {
                        state.ended_s[build].push(run.wall_s);
                    }
                    runs[build] = Some(run);
                }
                Err(why) => {
                    let name = &[&self.plan.base, &self.plan.head][build].name;
                    let mut timed_out = false;
                    if let Some(state) = &mut self.states[index] {
                        state.failed = Some(format!("it fails in {name}: {why}"));
                        timed_out = state.has_timed_out[build];
                    }
                    // The other build still runs: to learn whether only that one has the program, or
                    // how much slower than that this one is at least.
                    if !((is_absent[build] || timed_out) && slot == 0) {
                        break;
                    }
                }
            }
        }
        if let Some(state) = &mut self.states[index]
            && state.failed.is_some()
        {
            let has_run = [BASE, HEAD].map(|build| runs[build].is_some() || state.is_warm);
            state.only_in = match (is_absent, has_run) {
                ([true, false], [_, true]) => Some(HEAD),
                ([false, true], [true, _]) => Some(BASE),
                _ => None,
            };
            return Ok(Turn::Finished);
        }
        let duration = self.machine.now().saturating_sub(began);
        let is_disturbed = self.states[index].as_mut().is_some_and(|state| {
            let runs = runs.iter().flatten().zip(&mut state.stops);
            runs.fold(false, |any, (run, stops)| stops.add(run.throttled) | any)
        });
        let pair = runs_to_pair(&runs).filter(|_| !is_disturbed);
        let pair = pair.map(|pair| Pair {
            order,
            before: previous.map(|(_, build)| build),
            at: began.saturating_sub(self.started),
            ..pair
        });
        if let Some(state) = &mut self.states[index] {
            state.spend(duration);
        }
        let Some(pair) = pair else {
            return Ok(Turn::Unfinished);
        };
        let further_pairs = self.max_further_pairs(index);
        self.further_pairs[index] = further_pairs;
        let state = self.states[index].as_mut();
        let is_finished = state.is_some_and(|state| state.add_pair(&pair, further_pairs));
        Ok(if is_finished {
            Turn::Finished
        } else {
            Turn::Unfinished
        })
    }

    fn run_build(
        &mut self,
        index: usize,
        build: usize,
        slot: usize,
    ) -> Result<Result<RunRecord, String>, MachineError> {
        let benchmark = &self.plan.benchmarks[index];
        let Some(workloads) = benchmark.workloads() else {
            return Ok(Err("only one build has it".to_owned()));
        };
        let state = self.states[index].as_ref();
        let is_warm = state.is_some_and(|state| state.is_warm);
        let moment = Moment {
            phase: match is_warm {
                true => Phase::Confirmation,
                false => Phase::Warmup,
            },
            block: state.map_or(0, |state| state.pairs.len()),
            order: slot,
            block_runs: 2,
            at: Duration::ZERO,
        };
        let trial = Trial {
            workload: workloads[build],
            place: &self.plan.place,
            binding: None,
            settings: &[],
            companion: None,
            metric: &benchmark.metric,
            output: match benchmark.metric.needs_output() {
                true => Output::Keep,
                false => Output::Discard,
            },
            padding: self.order.random_range(0..PADDING),
        };
        let (record, failure) = trial.run(self.machine, moment, self.started)?;
        if let Some(state) = &mut self.states[index] {
            state.has_timed_out[build] |= record.timed_out;
        }
        Ok(match failure {
            Some(failure) => Err(join_lines(&failure.without_hint().to_string())),
            None => Ok(record),
        })
    }

    fn show_progress(&mut self, index: usize) {
        let states = || self.states.iter().flatten();
        let fraction = self.plan.budget.map_or(0.0, |budget| {
            self.elapsed().as_secs_f64() / budget.as_secs_f64().max(1e-9)
        });
        let progress = GateProgress {
            fraction: fraction.min(1.0),
            left_s: self
                .time_left()
                .map_or(f64::INFINITY, |left| left.as_secs_f64()),
            benchmark: &self.plan.benchmarks[index].name,
            decided: states()
                .filter(|state| !state.is_active() || state.is_only_measured())
                .count(),
            benchmarks: self.states.len(),
            slower: states()
                .filter(|state| state.standing() == Standing::Slower)
                .count(),
        };
        self.observer.progress(&progress);
    }
}

/// The lines of a program's error output as one line.
fn join_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The runs of both builds, base first, as a pair; `None` unless both have figures.
fn runs_to_pair(runs: &[Option<RunRecord>; 2]) -> Option<Pair> {
    let [Some(base), Some(head)] = runs else {
        return None;
    };
    let share = |run: &RunRecord| Some(run.foreign_cpu_s? / run.wall_s);
    let load = share(base).zip(share(head)).map(|(a, b)| (a + b) / 2.0);
    Some(Pair {
        figures: [base.metric.value?, head.metric.value?],
        costs: [base.metric.cost?, head.metric.cost?],
        order: [BASE, HEAD],
        before: None,
        load: load.filter(|load| load.is_finite()),
        at: Duration::ZERO,
        cpu_s: base.cpu_s().zip(head.cpu_s()).map(<[f64; 2]>::from),
        cpu_share: cpu_share(base).max(cpu_share(head)),
        ready: base
            .ready_threads()
            .zip(head.ready_threads())
            .map(<[f64; 2]>::from),
    })
}

/// CPU time over wall time; 0 if unknown.
fn cpu_share(run: &RunRecord) -> f64 {
    run.cpu_s().map_or(0.0, |cpu_s| cpu_s / run.wall_s)
}
