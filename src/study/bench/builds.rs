//! What "a build for this processor" is worth, from a comparison of one kernel
//! under several instruction sets.
//!
//! It repeats the verdict of the contrast and judges nothing anew.

use crate::record::{Arm, Comparison, Finding, Severity};

/// Adds the finding where the arms are builds of one kernel.
pub fn tell(record: &mut Comparison) {
    let found = worth(record);
    record.findings.extend(found);
}

fn worth(record: &Comparison) -> Option<Finding> {
    let baseline = record.arms.iter().find(|arm| arm.name == record.baseline)?;
    let (oldest, place) = (isa(baseline)?, &baseline.placement.name);
    let newest = record
        .arms
        .iter()
        .rfind(|arm| arm.placement.name == *place && isa(arm).is_some_and(|isa| isa != oldest))?;
    let contrast = record.contrasts.iter().find(|c| c.arm == newest.name)?;
    let build = match isa(newest)? {
        "native" => "a build for this processor".to_owned(),
        level => format!("a build for {level}"),
    };
    Some(
        Finding::new(
            "build",
            Severity::Note,
            format!("What {build} is worth: {}", contrast.sentence),
            "",
        )
        .with("ratio", contrast.ratio)
        .with("verdict", contrast.verdict.clone()),
    )
}

/// The instruction set of a kernel's command line.
fn isa(arm: &Arm) -> Option<&str> {
    let is_kernel = arm.command.get(1).is_some_and(|word| word == "kernel");
    let at = arm.command.iter().position(|word| word == "--isa")?;
    arm.command
        .get(at + 1)
        .filter(|_| is_kernel)
        .map(String::as_str)
}
