//! The gain from building for this processor, from a comparison of one kernel
//! under several instruction sets.
//!
//! The finding repeats the contrast's verdict; nothing is judged here.

use pinwise_record::{Arm, Comparison, Finding, Severity};

/// Adds the finding if the arms are builds of one kernel.
pub fn add_gain(record: &mut Comparison) {
    let finding = gain_from_newest_build(record);
    record.header.findings.extend(finding);
}

fn gain_from_newest_build(record: &Comparison) -> Option<Finding> {
    let baseline = record.arms.iter().find(|arm| arm.name == record.baseline)?;
    let (oldest, place) = (isa_of_kernel(baseline)?, &baseline.placement.name);
    let newest = record.arms.iter().rfind(|arm| {
        arm.placement.name == *place && isa_of_kernel(arm).is_some_and(|isa| isa != oldest)
    })?;
    let contrast = record.contrasts.iter().find(|c| c.arm == newest.name)?;
    let build = match isa_of_kernel(newest)? {
        "native" => "a build for this processor".to_owned(),
        level => format!("a build for {level}"),
    };
    Some(
        Finding::new(
            "build",
            Severity::Note,
            format!("Gain from {build}: {}", contrast.sentence),
            "",
        )
        .with_evidence("ratio", contrast.ratio)
        .with_evidence("verdict", contrast.verdict.as_str()),
    )
}

/// The instruction set in the arm's command line; `None` if it does not run a kernel.
fn isa_of_kernel(arm: &Arm) -> Option<&str> {
    let is_kernel = arm.command.get(2).is_some_and(|word| word == "kernel");
    let at = arm.command.iter().position(|word| word == "--isa")?;
    arm.command
        .get(at + 1)
        .filter(|_| is_kernel)
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::METRIC;
    use crate::compare::{self, ArmPlan, ComparePlan, NoObserver, Tuning};
    use pinwise_machine::{Host, Output};
    use pinwise_placement::Placement;
    use pinwise_sim::SimulatedMachine;
    use pinwise_workload::{Command, Workload};

    /// The findings on builds of a comparison of these commands.
    fn build_findings(lines: &[&str]) -> Vec<String> {
        let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
        let (topology, _) = machine.topology().unwrap();
        let arm = |line: &&str| ArmPlan {
            name: (*line).to_owned(),
            workload: Workload::new(Command::from_line(line).unwrap()),
            place: Placement::os_default().realise(&topology).unwrap(),
            same_as: Vec::new(),
            is_default: false,
            binding: None,
            settings: Vec::new(),
        };
        let plan = ComparePlan {
            arms: lines.iter().map(arm).collect(),
            metric: METRIC.parse().unwrap(),
            output: Output::Keep,
            tuning: Tuning {
                budget: None,
                max_runs: Some(12),
                ..Tuning::default()
            },
            ..ComparePlan::default()
        };
        let mut record = compare::run(&plan, &mut machine, &mut NoObserver).unwrap();
        add_gain(&mut record);
        let findings = record.findings.iter();
        let builds = findings.filter(|finding| finding.check == "build");
        builds.map(|finding| finding.sentence.clone()).collect()
    }

    #[test]
    fn the_newest_build_is_reported_in_the_words_of_its_contrast() {
        let found = build_findings(&[
            "pinwise bench kernel fft --work 10 --isa v1",
            "pinwise bench kernel fft --work 10 --isa v3",
            "pinwise bench kernel fft --work 10 --isa native",
        ]);
        assert_eq!(found.len(), 1);
        let start = "Gain from a build for this processor: pinwise bench kernel fft --work 10 --isa native ";
        assert!(found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn arms_with_one_instruction_set_are_not_builds() {
        let same = "pinwise bench kernel fft --work 10 --isa v1";
        assert!(build_findings(&[same, "pinwise bench kernel fft --work 9 --isa v1"]).is_empty());
    }
}
