//! Runs a gate: rounds over the open benchmarks, until all are decided or the budget is spent.

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
use pinwise_record::{GateRecord, Phase, RunRecord, Stopped};
use pinwise_stats::fixed_width::FixedWidth;
use pinwise_stats::regression::{Regression, Standing};
use pinwise_stats::verdict::ROOM;

/// Time between two records that are shown while a gate grows.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Carries a plan out.
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
    let mut record = assemble::opening(plan, host);
    observer.begin(&record);
    let mut engine = Engine::new(plan, machine, observer);
    let stopped = engine.carry_out(&mut record)?;
    for (state, &more) in engine.states.iter_mut().zip(&engine.more) {
        if let Some(state) = state {
            state.close(stopped, more);
        }
    }
    let elapsed = engine.machine.now().saturating_sub(engine.started);
    assemble::fill(&mut record, plan, &engine.states, elapsed);
    assemble::close(&mut record, plan, &engine.states, stopped);
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
    /// Pairs that each might still get.
    more: Vec<usize>,
    /// Benchmarks that share the time that is left.
    sharing: Vec<usize>,
    /// The benchmark and the build that ran last.
    last: Option<(usize, usize)>,
    has_warned: bool,
    /// When the record was last shown, from the start of the gate.
    shown_at: Option<Duration>,
}

/// What became of a turn.
enum Turn {
    /// The benchmark is decided now, or has failed.
    Over,
    /// It is not.
    Open,
    /// The user stopped it.
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
            benchmarks.filter(|benchmark| benchmark.both().is_some())
        };
        let judged = both().count() + both().filter(|benchmark| benchmark.with_cpu).count();
        let states = plan.benchmarks.iter().map(|benchmark| {
            let question = benchmark.question(plan);
            let regression = Regression::new(question, judged);
            let cpu = benchmark.with_cpu.then(|| regression.clone());
            let width = FixedWidth::new(question);
            let both = benchmark.both();
            both.map(|_| Measured::new(regression, cpu, width, plan.is_chained))
        });
        Self {
            states: states.collect(),
            more: vec![0; plan.benchmarks.len()],
            order: ChaCha8Rng::seed_from_u64(plan.seed),
            sharing: Vec::new(),
            last: None,
            has_warned: false,
            shown_at: None,
            plan,
            machine,
            observer,
            started,
        }
    }

    fn carry_out(&mut self, record: &mut GateRecord) -> Result<Stopped, MachineError> {
        loop {
            let open = self.open();
            if open.is_empty() {
                return Ok(Stopped::Precision);
            }
            let mut turn = self.worth_running(&open);
            turn.retain(|&index| self.may_begin(index));
            if turn.is_empty() {
                return Ok(self.reason_to_stop(&open));
            }
            self.sharing.clone_from(&turn);
            turn.shuffle(&mut self.order);
            for index in turn {
                if !self.may_begin(index) {
                    continue;
                }
                match self.turn(index)? {
                    Turn::Open => {}
                    Turn::Interrupted => return Ok(Stopped::Interrupted),
                    Turn::Over => {
                        assemble::fill(record, self.plan, &self.states, self.elapsed());
                        self.observer.decided(&record.benchmarks[index]);
                    }
                }
            }
            self.report(record);
            self.warn_of_little();
        }
    }

    /// Why no other pair may begin.
    fn reason_to_stop(&self, open: &[usize]) -> Stopped {
        let state = |index: &usize| self.states[*index].as_ref();
        let is_decided = |index: &usize| state(index).is_some_and(Measured::is_only_measured);
        if open.iter().all(is_decided) {
            return Stopped::Precision;
        }
        match open.iter().all(|&index| self.pairs_left(index) == 0) {
            true => Stopped::Runs,
            false => Stopped::Budget,
        }
    }

    /// Shows the record so far, after the first round and then now and then: assembling it takes
    /// time in proportion to all pairs.
    fn report(&mut self, record: &mut GateRecord) {
        let now = self.elapsed();
        let is_due = |last: Duration| now.saturating_sub(last) >= REPORT_EVERY;
        if self.shown_at.is_none_or(is_due) {
            self.shown_at = Some(now);
            assemble::fill(record, self.plan, &self.states, now);
            self.observer.round(record);
        }
    }

    /// Says after the first round whether the budget allows verdicts at all.
    fn warn_of_little(&mut self) {
        let Some(left) = self.time_left().filter(|_| !self.has_warned) else {
            return;
        };
        self.has_warned = true;
        let open = || self.states.iter().flatten().filter(|state| state.is_open());
        let round_s: f64 = open().filter_map(Measured::pair_s).sum();
        let least = open().map(Measured::least_pairs).max().unwrap_or(0);
        if left.as_secs_f64() >= least as f64 * round_s {
            return;
        }
        let needed = self.elapsed().as_secs_f64() + ROOM * least as f64 * round_s;
        let needed = Duration::try_from_secs_f64(needed).unwrap_or(Duration::MAX);
        self.observer.warn(&format!(
            "The budget is too short for {}: a verdict needs {least} pairs of runs of each, about {} in all (--budget); or choose some with --filter.",
            count(open().count(), "benchmark"),
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

    /// Benchmarks that are not decided.
    fn open(&self) -> Vec<usize> {
        let states = self.states.iter().enumerate();
        let is_open = |state: &Measured| state.is_open();
        states
            .filter(|(_, state)| state.as_ref().is_some_and(is_open))
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
        let Some(state) = state.filter(|state| state.is_open()) else {
            return false;
        };
        let pair_s = state.pair_s().unwrap_or(0.0);
        let left = self.time_left();
        let is_left = left.is_none_or(|left| !left.is_zero() && left.as_secs_f64() >= pair_s);
        is_left && self.pairs_left(index) > 0
    }

    /// The open benchmarks on which the remaining time is spent: all of them while it may suffice
    /// for all; else those nearest to a verdict. This does not depend on which build was which.
    fn worth_running(&self, open: &[usize]) -> Vec<usize> {
        let Some(left) = self.time_left() else {
            return open.to_vec();
        };
        let needed = |&index: &usize| {
            let state = self.states[index].as_ref()?;
            let delta = self.plan.benchmarks[index].min_effect.ln_1p();
            Some((index, state.needed_s(delta)?, state.is_only_measured()))
        };
        let Some(mut needed) = open.iter().map(needed).collect::<Option<Vec<_>>>() else {
            return open.to_vec();
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
            true => open.to_vec(),
            false => chosen,
        }
    }

    /// Pairs that a benchmark may still get of the time that is left.
    fn pairs_to_come(&self, index: usize) -> usize {
        let by_runs = self.pairs_left(index);
        let Some(left) = self.time_left() else {
            return by_runs;
        };
        let sharing = self.sharing.iter();
        let states = sharing.filter_map(|&index| self.states[index].as_ref());
        let round_s: f64 = states
            .filter(|state| state.is_open())
            .filter_map(Measured::pair_s)
            .sum();
        by_runs.min(floor(left.as_secs_f64() / round_s.max(1e-9)))
    }

    /// Both builds once, in random order.
    fn turn(&mut self, index: usize) -> Result<Turn, MachineError> {
        let mut order = [BASE, HEAD];
        order.shuffle(&mut self.order);
        let before = self.last.filter(|(other, _)| *other == index);
        let began = self.machine.now();
        let mut runs: [Option<RunRecord>; 2] = [None, None];
        let mut is_absent = [false; 2];
        for (slot, &build) in order.iter().enumerate() {
            self.show_progress(index);
            let run = match self.one_run(index, build, slot) {
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
                    let mut is_late = false;
                    if let Some(state) = &mut self.states[index] {
                        state.failed = Some(format!("it fails in {name}: {why}"));
                        is_late = state.is_late[build];
                    }
                    // Does only the other build have it? How much slower than that is it?
                    if !((is_absent[build] || is_late) && slot == 0) {
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
            return Ok(Turn::Over);
        }
        let duration = self.machine.now().saturating_sub(began);
        let is_disturbed = self.states[index].as_mut().is_some_and(|state| {
            let both = runs.iter().flatten().zip(&mut state.stops);
            both.fold(false, |any, (run, stops)| stops.count(run.throttled) | any)
        });
        let whole = runs_to_pair(&runs).filter(|_| !is_disturbed);
        let pair = whole.map(|pair| Pair {
            order,
            before: before.map(|(_, build)| build),
            at: began.saturating_sub(self.started),
            ..pair
        });
        if let Some(state) = &mut self.states[index] {
            state.spend(duration);
        }
        let Some(pair) = pair else {
            return Ok(Turn::Open);
        };
        let more = self.pairs_to_come(index);
        self.more[index] = more;
        let state = self.states[index].as_mut();
        let is_over = state.is_some_and(|state| state.take(&pair, more));
        Ok(if is_over { Turn::Over } else { Turn::Open })
    }

    fn one_run(
        &mut self,
        index: usize,
        build: usize,
        slot: usize,
    ) -> Result<Result<RunRecord, String>, MachineError> {
        let benchmark = &self.plan.benchmarks[index];
        let Some(workloads) = benchmark.both() else {
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
            state.is_late[build] |= record.timed_out;
        }
        Ok(match failure {
            Some(failure) => Err(one_line(&failure.without_hint().to_string())),
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
                .filter(|state| !state.is_open() || state.is_only_measured())
                .count(),
            benchmarks: self.states.len(),
            slower: states()
                .filter(|state| state.standing() == Standing::Slower)
                .count(),
        };
        self.observer.progress(&progress);
    }
}

/// What a program said when it failed, in one line.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The runs of both builds, base first, as a pair.
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
    })
}

/// CPU time over wall time; 0 if unknown.
fn cpu_share(run: &RunRecord) -> f64 {
    run.cpu_s().map_or(0.0, |cpu_s| cpu_s / run.wall_s)
}

fn floor(value: f64) -> usize {
    whole_usize(value.floor())
}
