use super::*;
use crate::chain::{Change, find_changes};
use crate::confirm::Score;
use crate::judge::Judge;
use crate::normal;
use crate::regression::{Regression, Standing};
use crate::resolution::Figure;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn question() -> Question {
    Question {
        judge: Judge::Typical,
        score: Score::Weighted,
        alpha: 0.05,
        delta: 0.01f64.ln_1p(),
        figure: Figure::Measured,
        is_rate: false,
        is_open_ended: false,
    }
}

/// A gate on one benchmark and two commits.
struct Gate {
    /// The estimate with which it was decided.
    decided: f64,
    link: Link,
}

/// Simulates a gate with this true effect and this spread of runs.
fn simulate_gate(effect: f64, spread: f64, chance: &mut ChaCha8Rng) -> Gate {
    let most = 1500;
    let mut regression = Regression::new(question(), 1);
    let mut width = FixedWidth::new(question());
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    let (mut decided, mut link) = (None, None);
    while (decided.is_none() || link.is_none()) && data.blocks() < most {
        let mut noise = || normal::upper_quantile(chance.random_range(1e-9..1.0));
        let level = 0.02 * noise();
        let row = [0.0, effect].map(|shift| level + shift + spread * noise());
        assert!(data.push(&row));
        let slot = usize::from(chance.random::<bool>());
        around.slots.push(vec![slot, 1 - slot]);
        around.before.push(vec![None, None]);
        around.load.push(None);
        if link.is_none() && data.blocks() >= width.pairs() {
            let now = width.estimate_link(&data, &around);
            let is_enough = width.is_enough(now.as_slice());
            link = now.filter(|_| is_enough);
        }
        if decided.is_none() {
            let look = regression.look_if_due(&data, &around, most);
            decided = look
                .filter(|look| look.standing != Standing::Undecided)
                .map(|look| look.shared.estimate);
        }
    }
    let link = link
        .or_else(|| width.estimate_link(&data, &around))
        .unwrap();
    Gate {
        decided: decided.unwrap_or(link.estimate),
        link,
    }
}

#[test]
fn chained_estimates_do_not_depend_on_when_the_gate_was_decided() {
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let gates: Vec<Gate> = (0..150)
        .map(|_| simulate_gate(0.0, 0.01, &mut chance))
        .collect();
    let links: Vec<Link> = gates.iter().map(|gate| gate.link).collect();
    let whole = Link::sum(&links);
    let decided: f64 = gates.iter().map(|gate| gate.decided).sum();
    assert!(whole.estimate.abs() < 2.5 * whole.error, "{whole:?}");
    assert!(decided < -2.5 * whole.error, "{decided} {whole:?}");
}

#[test]
fn a_step_in_a_chain_of_gates_is_located() {
    let mut chance = ChaCha8Rng::seed_from_u64(2);
    let mut within_one = 0;
    for _ in 0..10 {
        let effect = |step: usize| if step == 6 { 0.03 } else { 0.0 };
        let links = (0..12).map(|step| simulate_gate(effect(step), 0.01, &mut chance).link);
        let found = find_changes(&links.collect::<Vec<_>>(), 0.05);
        let holds_it = |change: &Change| (change.first..=change.last).contains(&6);
        assert!(found.iter().any(holds_it), "{found:?}");
        let is_near =
            |change: &Change| (5..=6).contains(&change.first) && (6..=7).contains(&change.last);
        within_one += usize::from(found.iter().any(is_near));
    }
    // 37 of 40.
    assert!(within_one >= 8, "{within_one}");
}

#[test]
fn pairs_end_if_the_interval_is_narrow_or_never_will_be() {
    let question = Question {
        delta: 0.01,
        ..question()
    };
    let planned = |links: &[Link]| {
        let mut width = FixedWidth::new(question);
        assert_eq!(width.pairs(), FIRST_PAIRS);
        (
            width.is_enough(links),
            width.pairs(),
            width.is_enough(links),
        )
    };
    assert_eq!(planned(&[]), (false, MAX_PAIRS, true));
    // ±1.33 % by the one, ±2.67 % by the other: four times the pairs.
    let links = [1.0, 2.0].map(|size| Link::exact(0.5, size * 0.006_802));
    assert_eq!(planned(&links), (false, 4 * FIRST_PAIRS, true));
    assert_eq!(
        planned(&[Link::exact(-0.5, 0.003)]),
        (true, FIRST_PAIRS, true)
    );
}
