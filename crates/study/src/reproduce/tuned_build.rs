//! The 2001 report: a kernel built for one processor, compared with a generic one.

use anyhow::Result;

use super::claim::{Claim, Judge};
use super::{Here, Simulation};
use pinwise_record::{ClaimRecord, ExperimentRecord};

/// A test of the report. Each time is the mean with the standard deviation of ten runs, in seconds.
struct Test {
    name: &'static str,
    generic: (f64, f64),
    /// Built for the Athlon.
    tuned: (f64, f64),
    /// The built-in kernel that does the same.
    kernel: Option<&'static str>,
}

const fn test(
    name: &'static str,
    generic: (f64, f64),
    tuned: (f64, f64),
    kernel: Option<&'static str>,
) -> Test {
    Test {
        name,
        generic,
        tuned,
        kernel,
    }
}

const TESTS: [Test; 8] = [
    test("copy a tree of 34 MB", (2.67, 0.785), (0.88, 0.067), None),
    test(
        "TIFF rotate 90°",
        (4.50, 1.10),
        (3.68, 0.86),
        Some("tiff-rotate90"),
    ),
    test(
        "TIFF rotate by an angle",
        (10.57, 0.18),
        (10.46, 0.89),
        Some("tiff-rotate"),
    ),
    test(
        "TIFF Gaussian blur",
        (10.13, 0.56),
        (10.76, 0.31),
        Some("tiff-blur"),
    ),
    test(
        "PNG rotate 90°",
        (2.78, 0.08),
        (2.51, 0.07),
        Some("png-rotate90"),
    ),
    test(
        "PNG rotate by an angle",
        (7.71, 0.45),
        (7.44, 0.14),
        Some("png-rotate"),
    ),
    test(
        "PNG Gaussian blur",
        (9.31, 0.72),
        (8.08, 0.72),
        Some("png-blur"),
    ),
    test(
        "compile the kernel",
        (284.0, f64::NAN),
        (340.0, f64::NAN),
        None,
    ),
];

const QUESTION: &str = "a build for this processor against a generic one";

/// Reported change of time, per cent.
fn reported_change(test: &Test) -> f64 {
    100.0 * (test.tuned.0 / test.generic.0 - 1.0)
}

fn experiment(name: &str, claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: name.to_owned(),
        question: QUESTION.to_owned(),
        claims,
    }
}

/// Lists the claims as given: no mechanism here predicts what a compiler gains on a processor of
/// 2001.
pub(super) fn simulate(_simulation: &mut Simulation<'_>) -> Result<Vec<ExperimentRecord>> {
    let why = "no mechanism here predicts what a compiler gains";
    let times = TESTS
        .iter()
        .map(|test| {
            Claim::change(format!("{}: time", test.name), reported_change(test))
                .show_given(None, why)
        })
        .collect();
    let words = [
        "the gain depends on whether the working set fits the caches",
        "rotation by an angle and TIFF blur are equal within their deviations",
    ];
    let claims = words.map(|words| Claim::new(words, "in words").show_given(None, why));
    Ok(vec![
        experiment("times", times),
        experiment("working-set", claims.into()),
    ])
}

/// Runs the experiments on this machine: hot loops compiled for x86-64-v1 and for this processor.
pub(super) fn run_here(here: &mut Here<'_>) -> Result<Vec<ExperimentRecord>> {
    let mut claims = Vec::new();
    for test in &TESTS {
        let claim = Claim::change(format!("{}: time", test.name), reported_change(test));
        let Some(kernel) = test.kernel else {
            claims.push(claim.mark_untestable(
                "another build of the system's kernel; a program cannot choose it",
            ));
            continue;
        };
        let command = |isa| format!("pinwise bench kernel {kernel} --work 8 --isa {isa}");
        let answer = here.compare(&[
            here.arm("generic", &command("v1"), "os-default"),
            here.arm("native", &command("native"), "os-default"),
        ])?;
        let time = answer.time("native")?;
        claims.push(match answer.is_undecided("native") {
            true => claim.mark_untestable("undecided in this time"),
            false => claim.judge_figure(time, Judge::Direction),
        });
    }
    Ok(vec![experiment("times", claims)])
}
