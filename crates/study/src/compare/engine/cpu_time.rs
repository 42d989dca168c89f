//! CPU time, judged beside wall-clock time when two commands run in one place.

use super::confirmation::ConfirmationRun;
use super::{Engine, WholeBlock};
use pinwise_stats::Responses;
use pinwise_stats::beside::{self, CpuUse};
use pinwise_stats::confirm::{Confirmation, Contrast, Decision, Look, Question};
use pinwise_stats::resolution::Figure;
use pinwise_stats::sequential::Depth;

/// CPU time of both arms.
pub(super) struct CpuTime {
    data: Responses,
    used: CpuUse,
    /// `None` before the first look.
    statistics: Option<Confirmation>,
    look: Option<Look>,
}

impl CpuTime {
    pub(super) fn new() -> Self {
        Self {
            data: Responses::new(2),
            used: CpuUse::default(),
            statistics: None,
            look: None,
        }
    }

    /// The same CPU time means the same wall-clock time only if the commands are as parallel.
    fn withhold_sameness(&self, look: &mut Look, delta: f64) {
        let contrasts = look.contrasts.iter_mut();
        for contrast in contrasts.filter(|contrast| contrast.decision == Decision::Same) {
            if !self.used.is_as_parallel(delta) {
                contrast.decision = Decision::Undecided;
            }
        }
    }

    /// The last look, if both commands are bound by their CPU time, and as parallel as each other.
    pub(super) fn look(&self) -> Option<&Look> {
        self.look.as_ref().filter(|_| self.used.is_comparable())
    }
}

impl Engine<'_> {
    /// Adds the CPU time of a block; if a run has none, CPU time is not judged any more.
    pub(super) fn add_cpu_time(&mut self, block: &WholeBlock) {
        let columns = self.columns.iter();
        let row: Option<Vec<f64>> = columns.map(|&arm| Some(block.cpu_s[arm]?.ln())).collect();
        let ready: Option<Vec<f64>> = self.columns.iter().map(|&arm| block.ready[arm]).collect();
        let ready = ready.and_then(|ready| ready.try_into().ok());
        self.cpu = self.cpu.take().and_then(|mut cpu| {
            cpu.used.add(block.cpu_share, ready);
            cpu.data.push(&row?).then_some(cpu)
        });
    }

    /// Before the first look, gives CPU time a share of the error rate if it can decide more than it
    /// costs, and if wall-clock time can still claim something with the rest.
    fn share_error(&mut self, run: &mut ConfirmationRun, most: usize) {
        let baseline = self.baseline_column();
        let Some(cpu) = self.cpu.take_if(|cpu| cpu.statistics.is_none()) else {
            return;
        };
        let differences = |data: &Responses| data.differences(1 - baseline, baseline);
        let [cpu_alpha, wall_alpha] = beside::split_error(self.question.alpha);
        let wall = Question {
            alpha: wall_alpha,
            ..self.question
        };
        if most < wall.least_blocks(1)
            || !beside::is_worth_testing(&differences(&cpu.data), &differences(&self.data))
        {
            return;
        }
        self.question = wall;
        run.statistics = self.new_confirmation(self.question);
        let question = Question {
            alpha: cpu_alpha,
            figure: Figure::Measured,
            ..self.question
        };
        self.cpu = Some(CpuTime {
            statistics: Some(self.new_confirmation(question)),
            ..cpu
        });
    }

    /// Takes a look at CPU time; true if it was for claims only and made one.
    pub(super) fn look_at_cpu_time(
        &mut self,
        run: &mut ConfirmationRun,
        most: usize,
        depth: Depth,
    ) -> bool {
        self.share_error(run, most);
        let Some(cpu) = &mut self.cpu else {
            return false;
        };
        let statistics = cpu.statistics.as_mut();
        let mut look = statistics.and_then(|statistics| {
            statistics.look(&cpu.data, &self.circumstances, most as f64, depth)
        });
        if let Some(look) = &mut look {
            cpu.withhold_sameness(look, self.question.delta);
        }
        let is_claim = look.is_some() && depth == Depth::Claims;
        cpu.look = look.or(cpu.look.take());
        is_claim
    }

    /// Does CPU time decide what wall-clock time leaves undecided?
    pub(super) fn is_decided_by_cpu_time(&self) -> bool {
        self.holds_for_looks(|wall, cpu| match self.plan.tuning.log_limit() {
            Some(limit) => beside::exceeds(wall, cpu, limit),
            None => beside::decides(wall, cpu),
        })
    }

    /// Does CPU time decide, and does wall-clock time not contradict or blur it?
    pub(super) fn is_ended_by_cpu_time(&self) -> bool {
        self.is_decided_by_cpu_time() && self.holds_for_looks(beside::is_wall_narrow)
    }

    /// Does this hold for the last looks at wall-clock time and CPU time, if there are both?
    fn holds_for_looks(&self, is_true: impl Fn(&Contrast, &Contrast) -> bool) -> bool {
        let cpu = self.cpu.as_ref().and_then(CpuTime::look);
        let looks = self.look.as_ref().zip(cpu);
        looks.is_some_and(|(wall, cpu)| is_true(&wall.contrasts[0], &cpu.contrasts[0]))
    }
}
