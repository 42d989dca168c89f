//! Concludes from a trace why a program is slow: one sentence says how its threads spent their
//! time, and names the largest cause. Its judgements are those of the findings.

use super::blocking::{advise_spin_attach, split_blocked};
use super::waiters;
use pinwise_format::{percent, shell};
use pinwise_record::{
    BlockedIn, Finding, LowerBound, Severity, TraceAnswer, TraceFigures, TraceRecord, TraceSource,
    TraceTier, WaitCauses,
};

/// A smaller share of the time is not listed.
const MIN_LISTED_SHARE: f64 = 0.005;
/// A cause of more than this share of the queued time is its main cause.
const MIN_MAIN_SHARE: f64 = 0.5;

/// The main cause of the time that threads were queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedBy {
    OwnThreads,
    Others,
    Quota,
    Mask,
    Scheduler,
    Class,
    /// Several, or unknown.
    Mixed,
}

impl QueuedBy {
    fn from_causes(causes: Option<WaitCauses>) -> Self {
        let Some(causes) = causes else {
            return Self::Mixed;
        };
        let all = [
            (causes.own_threads_s, Self::OwnThreads),
            (causes.other_processes_s, Self::Others),
            (causes.throttled_s, Self::Quota),
            (causes.mask_s, Self::Mask),
            (causes.scheduler_s + causes.starting_s, Self::Scheduler),
            (causes.scheduling_class_s, Self::Class),
        ];
        let total: f64 = all.iter().map(|(part, _)| part).sum();
        let main = all
            .into_iter()
            .find(|(part, _)| *part > MIN_MAIN_SHARE * total);
        main.map_or(Self::Mixed, |(_, cause)| cause)
    }

    const fn headline(self) -> &'static str {
        match self {
            Self::OwnThreads => "Short of CPUs for its own threads",
            Self::Others => "Held up by other programs on its CPUs",
            Self::Quota => "Held back by a CPU quota",
            Self::Mask => "Held back by its affinity mask",
            Self::Scheduler => "Held up by the scheduler, which left CPUs idle",
            Self::Class => "Held back by its scheduling class",
            Self::Mixed => "Short of CPUs",
        }
    }

    /// The check whose finding has the advice.
    const fn check(self) -> &'static str {
        match self {
            Self::OwnThreads | Self::Mixed => "own_threads",
            Self::Others => "other_processes",
            Self::Quota => "throttled",
            Self::Mask => "mask",
            Self::Scheduler => "idle_while_waiting",
            Self::Class => "scheduling_class",
        }
    }
}

/// How threads spent a part of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Ran,
    Queued,
    Locked,
    Blocked,
}

/// Writes the answer of a record that already has all its findings. The trace of a whole machine has
/// none, as it is about no program.
pub(super) fn write(record: &mut TraceRecord) {
    record.answer = match record.source {
        TraceSource::Machine | TraceSource::Import { pid: None, .. } => None,
        _ => conclude(record),
    };
}

fn conclude(record: &TraceRecord) -> Option<TraceAnswer> {
    let figures = &record.figures;
    let (ran_s, queued_s) = (figures.totals.cpu_s, figures.waits.total_s?);
    let blocked_s = (figures.totals.life_s? - ran_s - queued_s).max(0.0);
    let all_s = ran_s + queued_s + blocked_s;
    if all_s <= 0.0 {
        return None;
    }
    let split = split_blocked(record);
    let locked_s = split.as_ref().map_or(0.0, |split| split.lock_share) * blocked_s;
    let mut parts = [
        (ran_s, Part::Ran),
        (queued_s, Part::Queued),
        (locked_s, Part::Locked),
        (blocked_s - locked_s, Part::Blocked),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let place = waiters::name_places(&record.blocked, &BlockedIn::Mutex);
    let rest = split.and_then(|split| split.rest);
    let queued_by = QueuedBy::from_causes(figures.waits.because);
    let is_single = figures.totals.threads == 1;
    let largest = parts[0].1;
    let headline = match (largest, &rest) {
        (Part::Ran, _) => match much_shared(record) {
            Some(share) => format!(
                "Slowed by shared cores, for {} of its CPU time while others idled",
                percent(share)
            ),
            None => "Limited by its own work".to_owned(),
        },
        (Part::Queued, _) => queued_by.headline().to_owned(),
        (Part::Locked, _) => format!("Held up by a lock{place}"),
        (Part::Blocked, Some(reason)) => format!("Held up by waiting for {}", reason.words()),
        (Part::Blocked, None) => "Mostly blocked, not short of CPUs".to_owned(),
    };
    let listed = parts
        .iter()
        .filter(|(part_s, _)| part_s / all_s >= MIN_LISTED_SHARE);
    let listed = listed.enumerate().map(|(at, (part_s, part))| {
        let of_time = match (at, is_single) {
            (0, true) => " of its time",
            (0, false) => " of their time",
            _ => "",
        };
        let doing = match part {
            Part::Ran => "running".to_owned(),
            Part::Queued => "waiting for a CPU".to_owned(),
            Part::Locked if largest == Part::Locked => "waiting for it".to_owned(),
            Part::Locked => format!("waiting for a lock{place}"),
            Part::Blocked if locked_s > 0.0 => "blocked otherwise".to_owned(),
            Part::Blocked => "blocked".to_owned(),
        };
        format!("{}{of_time} {doing}", percent(part_s / all_s))
    });
    let mut listed: Vec<String> = listed.collect();
    let last = listed.pop()?;
    let listed = match listed.is_empty() {
        true => last,
        false => format!("{} and {last}", listed.join(", ")),
    };
    let who = if is_single { "it" } else { "its threads" };
    let sentence = format!(
        "{headline}: {who} spent {}{listed}.",
        hedge_if_partial(figures)
    );
    Some(TraceAnswer {
        sentence,
        advice: advise(record, largest, queued_by),
    })
}

/// The share of the CPU time beside a busy sibling that could have been avoided; `None` if it is
/// small.
fn much_shared(record: &TraceRecord) -> Option<f64> {
    let mut findings = record.findings.iter();
    let is_much = |finding: &&Finding| {
        finding.check == "avoidable_smt_sharing" && finding.severity > Severity::Note
    };
    findings.find(is_much)?;
    let percent = record.figures.avoidable_smt_sharing.percent?;
    Some(percent / 100.0)
}

/// `about ` in front of shares if the trace saw only a part of the time.
fn hedge_if_partial(figures: &TraceFigures) -> &'static str {
    let misses = |bound| figures.lower_bounds.contains(&bound);
    match misses(LowerBound::CpuTime) || misses(LowerBound::Queued) {
        true => "about ",
        false => "",
    }
}

/// What to do about the largest part: the advice of the finding about it, or how to find out more.
fn advise(record: &TraceRecord, largest: Part, queued_by: QueuedBy) -> String {
    let checks: &[&str] = match largest {
        Part::Ran if much_shared(record).is_some() => &["avoidable_smt_sharing"],
        Part::Ran => &["yielding"],
        Part::Queued => &[queued_by.check(), "queued", "other_processes"],
        Part::Locked => &["lock_waits"],
        Part::Blocked => &["blocked", "lock_waits"],
    };
    let advised = checks.iter().find_map(|check| {
        let mut findings = record.findings.iter();
        findings.find(|finding| finding.check == *check && !finding.advice.is_empty())
    });
    let spin = match largest {
        Part::Queued => advise_spin_attach(record),
        Part::Ran if advised.is_none() => advise_spin_attach(record),
        _ => None,
    };
    match (advised, &record.source) {
        (Some(finding), _) => match spin {
            Some(spin) => format!("{} {spin}", finding.advice),
            None => finding.advice.clone(),
        },
        // A simulated program has no code to profile.
        _ if record.tier == TraceTier::Simulated => String::new(),
        (None, _) if spin.is_some() => spin.unwrap_or_default(),
        (None, TraceSource::Command { command, .. }) if largest == Part::Ran => {
            format!("What it runs: pinwise profile -- {}", shell::line(command))
        }
        (None, TraceSource::Process { pid, .. }) if largest == Part::Ran => {
            format!("What it runs: pinwise profile --pid {pid}")
        }
        (None, _) => String::new(),
    }
}
