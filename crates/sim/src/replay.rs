//! Replays of spin loops on a simulated machine: what the theory predicts, plus noise of hints and
//! wake-ups.
//!
//! Nothing is executed, so this cannot confirm the theory. It serves to test the code above on
//! machines of any shape. Contention is refused, since no theory predicts it.

use super::SimulatedMachine;
use super::noise::draw_normal;
use pinwise_machine::{
    ContendOrder, ContentionResult, HandOver, HandOverOrder, HandOverResult, HintKind, HintSummary,
    MachineError, Replayer,
};
use pinwise_spin::lateness::Costs;

/// Relative standard deviation of a hint's latency from item to item.
const HINT_SD: f64 = 0.001;
/// Relative standard deviation of a wake-up's latency.
const WAKE_SD: f64 = 0.2;
/// A `sched_yield` with no other thread to run, ns.
const YIELD_NS: f64 = 500.0;

impl Replayer for SimulatedMachine {
    fn hand_over(&mut self, order: &HandOverOrder<'_>) -> Result<HandOverResult, MachineError> {
        let (own_ns, wake_ns) = self.description.wiring.hint_and_wake_ns();
        let hint_ns = order.waiter.hint_ns.unwrap_or(own_ns);
        let free_after_ns = order.hold.saturating_sub(order.delay).as_nanos() as f64;
        let limit_s = self.now_s + order.limit.as_secs_f64();
        let mut items = Vec::new();
        while items.len() < order.items && self.now_s < limit_s {
            let mut noisy =
                |value: f64, sd: f64| value * (sd * draw_normal(&mut self.chance)).exp();
            let costs = Costs {
                hint_ns: noisy(hint_ns, HINT_SD),
                wake_ns: Some(noisy(wake_ns, WAKE_SD)),
                yield_ns: Some(YIELD_NS),
            };
            let waiter = &order.waiter;
            let found = waiter
                .wait
                .compute_lateness(waiter.ending, &costs, free_after_ns);
            let late_ns = found.late_ns.unwrap_or(0.0);
            let item = HandOver {
                item_ns: order.hold.as_nanos() as f64 + late_ns,
                late_ns,
                seen: found.seen,
                hints: found.hints,
                cpu_ns: found.hints as f64 * costs.hint_ns,
            };
            self.now_s += item.item_ns * 1e-9;
            items.push(item);
        }
        let kind = match order.waiter.hint_ns {
            None => HintKind::Own,
            Some(ns) if ns < own_ns => HintKind::Shortened,
            Some(_) => HintKind::Stretched,
        };
        let hint = (!items.is_empty()).then_some(HintSummary {
            kind,
            before_ns: hint_ns,
            achieved_ns: hint_ns,
        });
        Ok(HandOverResult {
            items,
            switched: 0,
            stopped: 0,
            hint,
            yield_ns: Some(YIELD_NS),
        })
    }

    fn contend(&mut self, _order: &ContendOrder<'_>) -> Result<ContentionResult, MachineError> {
        Err(MachineError::System {
            action: "letting threads contend".to_owned(),
            reason:
                "a simulated machine executes no instructions, and contention cannot be predicted; \
                     use --machine local"
                    .to_owned(),
        })
    }
}
