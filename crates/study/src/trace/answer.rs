//! Where the time of a program's threads went, and the largest cause of that, in one sentence: what
//! somebody with a slow program wants to know. It judges nothing that the findings do not.

use super::blocking::{advise_spin_attach, split_blocked};
use super::waiters;
use pinwise_format::{percent, shell};
use pinwise_record::{
    BlockedIn, Finding, LowerBound, Severity, TraceAnswer, TraceFigures, TraceRecord, TraceSource,
    TraceTier, WaitCauses,
};

/// A smaller share is not named.
const NAMED: f64 = 0.005;
/// A cause of this part of a time is the cause of it.
const MOST: f64 = 0.5;

/// Why threads were mostly queued.
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
    fn main_cause(causes: Option<WaitCauses>) -> Self {
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
        let most = all.into_iter().find(|(part, _)| *part > MOST * total);
        most.map_or(Self::Mixed, |(_, cause)| cause)
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

    /// The finding that has the advice.
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

/// What a part of the threads' time was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Ran,
    Queued,
    Locked,
    Blocked,
}

/// Fills in the answer of a record with all its findings; of a whole machine, which is no program,
/// there is none.
pub(super) fn fill(record: &mut TraceRecord) {
    record.answer = match record.source {
        TraceSource::Machine | TraceSource::Import { pid: None, .. } => None,
        _ => write(record),
    };
}

fn write(record: &TraceRecord) -> Option<TraceAnswer> {
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
    let by = QueuedBy::main_cause(figures.waits.because);
    let is_single = figures.totals.threads == 1;
    let largest = parts[0].1;
    let headline = match (largest, &rest) {
        (Part::Ran, _) => match shared(record) {
            Some(share) => format!(
                "Slowed by shared cores, for {} of its CPU time while others idled",
                percent(share)
            ),
            None => "Limited by its own work".to_owned(),
        },
        (Part::Queued, _) => by.headline().to_owned(),
        (Part::Locked, _) => format!("Held up by a lock{place}"),
        (Part::Blocked, Some(what)) => format!("Held up by waiting for {}", what.words()),
        (Part::Blocked, None) => "Mostly blocked, not short of CPUs".to_owned(),
    };
    let named = parts.iter().filter(|(part_s, _)| part_s / all_s >= NAMED);
    let listed = named.enumerate().map(|(at, (part_s, part))| {
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
    let sentence = format!("{headline}: {who} spent {}{listed}.", about(figures));
    Some(TraceAnswer {
        sentence,
        advice: advice(record, largest, by),
    })
}

/// The share of the CPU time beside a busy sibling that could have been avoided, if it is much.
fn shared(record: &TraceRecord) -> Option<f64> {
    let mut findings = record.findings.iter();
    let is_much = |finding: &&Finding| {
        finding.check == "avoidable_smt_sharing" && finding.severity > Severity::Note
    };
    findings.find(is_much)?;
    let percent = record.figures.avoidable_smt_sharing.percent?;
    Some(percent / 100.0)
}

/// In front of shares of what the trace saw in part.
fn about(figures: &TraceFigures) -> &'static str {
    let misses = |bound| figures.lower_bounds.contains(&bound);
    match misses(LowerBound::CpuTime) || misses(LowerBound::Queued) {
        true => "about ",
        false => "",
    }
}

/// What to do about the largest part: the advice of the finding on it.
fn advice(record: &TraceRecord, largest: Part, by: QueuedBy) -> String {
    let checks: &[&str] = match largest {
        Part::Ran if shared(record).is_some() => &["avoidable_smt_sharing"],
        Part::Ran => &["yielding"],
        Part::Queued => &[by.check(), "queued", "other_processes"],
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
        // What does not exist has no functions.
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
