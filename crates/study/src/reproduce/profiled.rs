//! Repeats the profiles of the 2018 report on this machine: a run that spins long, minus one that
//! does not.
//!
//! Both are replays by this program with the processor's own PAUSE. The claims are about what the time
//! is spent on, not about how long it is.

use std::time::Duration;

use anyhow::Result;

use super::claim::{Claim, experiment};
use crate::is_interrupt;
use crate::profile::{ProfilePlan, Units, run};
use pinwise_machine::{Prober, Request, Sampler, Subject};
use pinwise_profile::SAMPLES_PER_S;
use pinwise_record::{
    ChangeRecord, ExperimentRecord, ProfileDiff, ProfileRecord, SampleEvent, SpotRecord,
    TraceSource,
};
use pinwise_workload::{Command, Workload};

/// Time-out of a run.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The claim holds if at least this share of the added time is spent in hints.
const MIN_WAITING_SHARE: f64 = 0.9;
/// With fewer samples in hints, nothing is judged.
const MIN_SAMPLES: u64 = 50;

/// Runs the experiment.
///
/// # Errors
/// An interrupt; the claims report whatever else prevents profiles.
pub(super) fn run_experiments(
    machine: &mut (impl Sampler + Prober + ?Sized),
    program: &str,
) -> Result<Vec<ExperimentRecord>> {
    let claims = [
        Claim::new(
            "what grew is the spinning",
            "AwareLock::Contention and others grew",
        ),
        Claim::new("the hot instruction in it", "the one after pause"),
    ];
    let answers = match measure_difference(machine, program) {
        Ok(Some(answers)) => answers,
        Ok(None) => {
            let why = "instructions cannot be sampled here, or too few were";
            return Ok(to_experiments(
                claims.map(|claim| claim.mark_untestable(why)),
            ));
        }
        Err(error) if is_interrupt(&error) => return Err(error),
        Err(error) => {
            let why = error.to_string();
            return Ok(to_experiments(
                claims.map(|claim| claim.mark_untestable(&why)),
            ));
        }
    };
    let [grew, hot] = claims;
    Ok(to_experiments([
        grew.judge_condition(
            answers.grew,
            answers.is_spinning,
            "CPU time a run, of the function that grew most",
        ),
        hot.judge_condition(
            answers.hot,
            answers.is_after_pause,
            "the instruction at which the spinning run was seen most",
        ),
    ]))
}

fn to_experiments(claims: [pinwise_record::ClaimRecord; 2]) -> Vec<ExperimentRecord> {
    vec![experiment(
        "profile-diff",
        "the slow run's profile less the fast one's",
        claims.to_vec(),
    )]
}

/// What the difference of the profiles shows.
struct Answers {
    /// The function that grew most, as text.
    grew: String,
    /// Is its added time spent in hints?
    is_spinning: bool,
    /// The hottest instruction, as text.
    hot: String,
    is_after_pause: bool,
}

/// `None` if instructions cannot be sampled, or too few samples were taken.
fn measure_difference(
    machine: &mut (impl Sampler + Prober + ?Sized),
    program: &str,
) -> Result<Option<Answers>> {
    let fast = profile_replay(machine, program, "coreclr_monitor")?;
    let slow = profile_replay(machine, program, "netfx_awarelock")?;
    if slow.event == SampleEvent::Proc || slow.figures.waits.samples < MIN_SAMPLES {
        return Ok(None);
    }
    let diff = ProfileDiff::between(&fast, &slow)?;
    let functions = diff.functions.iter();
    let Some(most) = functions.max_by(|a, b| a.own.delta_s.total_cmp(&b.own.delta_s)) else {
        return Ok(None);
    };
    let Some(spot) = slow.figures.instructions.first() else {
        return Ok(None);
    };
    let waiting = share_of_change(&most.waits, &most.own);
    Ok(Some(Answers {
        grew: format!(
            "{} by {:.2} s, {:.0} % of it in spin hints",
            most.function.name,
            most.own.delta_s,
            100.0 * waiting
        ),
        is_spinning: waiting > MIN_WAITING_SHARE && most.own.low_s > 0.0,
        hot: find_hottest(spot).map_or_else(|| "unknown".to_owned(), |line| line.0),
        is_after_pause: find_hottest(spot).is_some_and(|line| line.1),
    }))
}

fn share_of_change(part: &ChangeRecord, whole: &ChangeRecord) -> f64 {
    if whole.delta_s > 0.0 {
        part.delta_s / whole.delta_s
    } else {
        0.0
    }
}

/// The hottest instruction and the one before it as text, and whether its time was spent in a hint.
fn find_hottest(spot: &SpotRecord) -> Option<(String, bool)> {
    let lines = &spot.lines;
    let index = (0..lines.len()).max_by_key(|&index| lines[index].own.samples)?;
    let before = index.checked_sub(1).map(|index| lines[index].text.as_str());
    let text = format!(
        "{} after {}",
        lines[index].text,
        before.unwrap_or("the beginning")
    );
    Some((text, lines[index].waits))
}

/// Profiles a replay in which a waiter comes 2 ms after the lock was taken for 10 ms.
fn profile_replay(
    machine: &mut (impl Sampler + Prober + ?Sized),
    program: &str,
    algorithm: &str,
) -> Result<ProfileRecord> {
    let words = [
        program,
        "--store",
        "none",
        "spin",
        "replay",
        "--algorithm",
        algorithm,
        "--cpu-count",
        "24",
        "--delays",
        "2ms",
        "--items",
        "30",
        "--repeat",
        "1",
    ];
    let command = Command::from_argv(words.map(str::to_owned).to_vec())?;
    let (topology, _) = machine.topology()?;
    let workload = Workload {
        timeout: Some(TIMEOUT),
        ..Workload::new(command.clone())
    };
    let request = Request::new(&workload, &topology.allowed);
    let plan = ProfilePlan {
        subject: Subject::Command(&request),
        source: TraceSource::Command {
            command: command.argv().to_vec(),
            placement: "os-default".to_owned(),
            cpus: topology.allowed.to_string(),
        },
        thread: None,
        event: None,
        hz: SAMPLES_PER_S,
        stacks: pinwise_profile::Stacks::FramePointers,
        limit: None,
        runs: 1,
        units: Units::Runs,
        pause_cpu: None,
        tags: Vec::new(),
    };
    run(&plan, machine)
}
