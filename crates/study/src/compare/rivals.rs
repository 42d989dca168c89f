//! Which arms are compared with each other.
//!
//! An arm beside a companion competes only with arms beside the same companion: against an arm
//! without one it would be judged by the companion. What the companion changes is a comparison of
//! its own, of an arm beside it with the same arm without.

use super::plan::{ArmPlan, ComparePlan};
use pinwise_machine::RunSetting;
use pinwise_stats::confirm::Pair;

/// What is compared, by column.
pub(super) struct Pairing {
    /// The first pair of an arm gives its contrast; a second is with the same arm without its
    /// companion.
    pub(super) pairs: Vec<Pair>,
    /// Columns that compete with each other, the baseline of each group first: those beside a
    /// companion, then those without.
    pub(super) rivals: Vec<Vec<usize>>,
}

/// What is compared if these arms are the columns of the data.
pub(super) fn pair_columns(plan: &ComparePlan, columns: &[usize]) -> Pairing {
    let arms: Vec<&ArmPlan> = columns.iter().map(|&arm| &plan.arms[arm]).collect();
    let own = columns.iter().position(|&arm| arm == plan.baseline);
    let baseline = own.unwrap_or(0);
    let mut companions: Vec<Option<&str>> = Vec::new();
    for arm in &arms {
        if !companions.contains(&arm.companion_name()) {
            companions.push(arm.companion_name());
        }
    }
    companions.sort_by_key(Option::is_none);
    let group = |companion: Option<&str>| -> Vec<usize> {
        let all = 0..arms.len();
        let is_beside = |&column: &usize| arms[column].companion_name() == companion;
        let mut group: Vec<usize> = all.filter(is_beside).collect();
        let is_first = |&column: &usize| column == baseline;
        let is_twin = |&column: &usize| is_twin(arms[column], &plan.arms[plan.baseline]);
        let first = group.iter().position(is_first);
        let first = first.or_else(|| group.iter().position(is_twin));
        group[..=first.unwrap_or(0)].rotate_right(1);
        group
    };
    let rivals: Vec<Vec<usize>> = companions.into_iter().map(group).collect();
    let mut pairs = Vec::new();
    let pair = |arm: usize, baseline: usize| Pair { arm, baseline };
    for column in (0..arms.len()).filter(|&column| column != baseline) {
        let mut groups = rivals.iter().filter(|group| group.contains(&column));
        let first = groups.next().map_or(baseline, |group| group[0]);
        let alone = without(&arms, arms[column]);
        if column != first {
            pairs.push(pair(column, first));
        }
        match alone {
            Some(alone) => pairs.push(pair(column, alone)),
            None if column == first => pairs.push(pair(column, baseline)),
            None => {}
        }
    }
    Pairing { pairs, rivals }
}

/// Do two arms differ by their companion alone, if at all?
pub(super) fn is_twin(arm: &ArmPlan, other: &ArmPlan) -> bool {
    fn own(arm: &ArmPlan) -> impl Iterator<Item = &RunSetting> {
        let is_own = |setting: &&RunSetting| !matches!(setting, RunSetting::Companion(_));
        arm.settings.iter().filter(is_own)
    }
    arm.workload == other.workload && arm.place == other.place && own(arm).eq(own(other))
}

/// The column of the same arm without its companion; `None` of an arm that has none.
pub(super) fn without(arms: &[&ArmPlan], arm: &ArmPlan) -> Option<usize> {
    arm.companion()?;
    let is_alone = |other: &&ArmPlan| other.companion().is_none() && is_twin(arm, other);
    arms.iter().position(is_alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_machine::Companion;
    use pinwise_placement::Placement;
    use pinwise_topology::Topology;
    use pinwise_workload::Command;

    /// Two placements, each without a companion, beside `a` and beside `b`.
    fn make_plan(baseline: usize) -> ComparePlan {
        let topology = Topology::from_synthetic("package:1 core:4 pu:1").unwrap();
        let placements: [Placement; 2] = ["os-default", "compact*1"].map(|p| p.parse().unwrap());
        let command = Command::from_line("prog").unwrap();
        let plan = ComparePlan::compare_placements(command.clone(), &topology, &placements);
        let mut plan = plan.unwrap();
        let beside = |arm: &ArmPlan, name: &str| ArmPlan {
            name: format!("{} beside {name}", arm.name),
            settings: vec![RunSetting::Companion(Companion {
                name: name.to_owned(),
                command: command.clone(),
                ready: None,
                figure: None,
            })],
            is_default: false,
            ..arm.clone()
        };
        let arms = plan.arms.iter();
        let arms = arms.flat_map(|arm| [arm.clone(), beside(arm, "a"), beside(arm, "b")]);
        plan.arms = arms.collect();
        plan.baseline = baseline;
        plan
    }

    #[track_caller]
    fn check(baseline: usize, columns: &[usize], pairs: &[(usize, usize)], rivals: &[&[usize]]) {
        let found = pair_columns(&make_plan(baseline), columns);
        let of = |pair: &Pair| (pair.arm, pair.baseline);
        let found_pairs: Vec<(usize, usize)> = found.pairs.iter().map(of).collect();
        assert_eq!(found_pairs, pairs);
        assert_eq!(found.rivals, rivals);
    }

    #[test]
    fn an_arm_competes_with_those_beside_the_same_companion() {
        let all = [0, 1, 2, 3, 4, 5];
        let pairs = [(1, 0), (2, 0), (3, 0), (4, 1), (4, 3), (5, 2), (5, 3)];
        check(0, &all, &pairs, &[&[1, 4], &[2, 5], &[0, 3]]);
        // Beside a companion, the other placement's baseline is the same placement.
        let pairs = [(0, 3), (1, 4), (1, 0), (2, 5), (2, 0), (4, 3), (5, 3)];
        check(3, &all, &pairs, &[&[4, 1], &[5, 2], &[3, 0]]);
    }

    #[test]
    fn a_baseline_with_a_companion_is_compared_without_it() {
        let pairs = [(0, 1), (2, 0), (3, 1), (3, 2)];
        check(1, &[0, 1, 3, 4], &pairs, &[&[1, 3], &[0, 2]]);
    }
}
