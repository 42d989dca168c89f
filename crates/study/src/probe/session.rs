//! A measurement in progress: the machine, the remaining time, and what was discarded or left out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::{Effort, Sample, estimate};
use super::{Observer, Step};
use pinwise_format::count;
use pinwise_machine::{MachineError, Probe, Prober};
use pinwise_record::{EffortRecord, Median};
use pinwise_topology::Topology;

/// The state that all parts of a measurement share.
pub(super) struct Session<'a> {
    pub(super) machine: &'a mut dyn Prober,
    pub(super) topology: Topology,
    observer: &'a mut dyn Observer,
    started: Duration,
    budget: Duration,
    /// Time stolen from all CPUs until the measurement began.
    stolen_before: Option<Duration>,
    part: &'static str,
    part_end: Duration,
    /// Batches and pairs so far, and what was left out.
    pub(super) effort: EffortRecord,
    /// Was a thread found on another CPU than it was pinned to?
    pub(super) is_displaced: bool,
    /// By part: number of probes without a single good batch.
    unfinished: BTreeMap<&'static str, usize>,
    /// Why probes are not available here, each reason once.
    unavailable: Vec<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        machine: &'a mut dyn Prober,
        topology: Topology,
        observer: &'a mut dyn Observer,
        budget: Duration,
    ) -> Self {
        let started = machine.now();
        let stolen_before = machine.usage().map(|usage| usage.steal);
        Self {
            stolen_before,
            machine,
            topology,
            observer,
            started,
            budget,
            part: "",
            part_end: started + budget,
            effort: EffortRecord {
                budget_s: budget.as_secs_f64(),
                parallel_pairs: 1,
                ..EffortRecord::default()
            },
            is_displaced: false,
            unfinished: BTreeMap::new(),
            unavailable: Vec::new(),
        }
    }

    /// Time since the measurement began.
    pub(super) fn elapsed(&self) -> Duration {
        self.machine.now().saturating_sub(self.started)
    }

    /// Begins a part that may take this share of the remaining budget.
    pub(super) fn begin(&mut self, part: &'static str, share: f64) {
        let left = self.budget.saturating_sub(self.elapsed());
        self.part = part;
        self.part_end = self.machine.now() + left.mul_f64(share.clamp(0.0, 1.0));
        self.report_progress(0.0);
    }

    /// Begins a part that has time beyond the budget.
    pub(super) fn begin_beyond_budget(&mut self, part: &'static str, time: Duration) {
        self.budget = self.elapsed() + time;
        self.begin(part, 1.0);
    }

    /// Time left for this part.
    pub(super) fn time_left(&self) -> Duration {
        self.part_end.saturating_sub(self.machine.now())
    }

    /// Reports the done share of the part, 0 to 1.
    pub(super) fn report_progress(&mut self, fraction: f64) {
        let left = self.budget.saturating_sub(self.elapsed());
        self.observer.progress(&Step {
            part: self.part,
            fraction,
            left,
        });
    }

    /// Runs these probes in parallel, within the part's time.
    pub(super) fn estimate(
        &mut self,
        probes: &[Probe],
        effort: Effort,
    ) -> Result<Vec<Sample>, MachineError> {
        let limit = effort.limit.min(self.time_left());
        let samples = estimate(self.machine, probes, &Effort { limit, ..effort })?;
        for sample in &samples {
            self.effort.batches += sample.values.len();
            self.effort.batches_switched += sample.switched;
            self.effort.batches_stolen += sample.stolen;
            self.is_displaced |= sample.is_displaced;
            if sample.values.is_empty() && sample.unavailable.is_none() {
                *self.unfinished.entry(self.part).or_default() += 1;
            }
            if let Some(reason) = &sample.unavailable
                && !self.unavailable.contains(reason)
            {
                self.unavailable.push(reason.clone());
            }
        }
        Ok(samples)
    }

    /// Runs one probe and returns its median; `None` without a good batch.
    pub(super) fn median(
        &mut self,
        probe: Probe,
        effort: Effort,
    ) -> Result<Option<Median>, MachineError> {
        Ok(self
            .estimate(&[probe], effort)?
            .first()
            .and_then(Sample::median))
    }

    /// Notes, as a full sentence, what was not measured.
    pub(super) fn leave_out(&mut self, sentence: impl Into<String>) {
        self.effort.left_out.push(sentence.into());
    }

    /// Ends the measurement; returns the effort spent.
    pub(super) fn close(mut self) -> EffortRecord {
        self.effort.spent_s = self.elapsed().as_secs_f64();
        let stolen = self.machine.usage().map(|usage| usage.steal);
        let cpus = self.topology.online.len() as f64;
        self.effort.steal_share = stolen.zip(self.stolen_before).map(|(now, before)| {
            now.saturating_sub(before).as_secs_f64() / (cpus * self.effort.spent_s).max(1e-9)
        });
        let unfinished = std::mem::take(&mut self.unfinished);
        for (part, missed) in unfinished {
            let probes = count(missed, "probe");
            self.leave_out(format!("{probes} of {part}: no undisturbed batch in time."));
        }
        self.effort.left_out.append(&mut self.unavailable);
        self.effort
    }
}
