//! Spin-waiting of a program: how much of its CPU time, and in which loops.

use pinwise_format::{capitalise, count_of, grouped, nanoseconds, percent, seconds, shell};
use serde::{Deserialize, Serialize};

use crate::named::open_enum;
use crate::{
    Answer, Entry, Header, HostRecord, SampleEvent, StoredRecord, TraceSource, check_sampled_time,
};
use pinwise_spin::identify::Strength;
use pinwise_spin::loops::LoopKind;

/// How much of a program's CPU time is spinning, and where. Unknown figures are `null`, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.spin-attach/1")]
pub struct SpinAttachRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// The command or process.
    pub source: TraceSource,
    /// The event that triggered samples.
    pub event: SampleEvent,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// Duration of sampling, s.
    pub wall_s: f64,
    /// Number of samples.
    pub samples: u64,
    /// CPU time that they represent, s; with `proc` as the kernel counted it.
    pub cpu_s: f64,
    /// CPU time of the command as the kernel counted it, s; `null` for a process that was already
    /// running.
    pub counted_cpu_s: Option<f64>,
    /// Samples that the kernel had to drop.
    pub lost: u64,
    /// CPU time that pinwise itself used while sampling, s.
    pub own_cpu_s: f64,
    /// CPU time by activity; `null` with `proc`.
    pub shares: Option<SpinShares>,
    /// All kinds of spinning together as a share of the CPU time, 0 to 1.
    pub spin_share: Option<f64>,
    /// Standard error of `spin_share`, from the number of samples.
    pub spin_share_error: Option<f64>,
    /// What one PAUSE costs on this machine, measured afterwards, ns.
    pub pause_ns: Option<f64>,
    /// PAUSEs per second of wall-clock time, all threads together; an estimate
    /// from the time spent in them.
    pub pauses_per_s: Option<f64>,
    /// Loops that spin, the hottest first.
    pub places: Vec<SpinPlace>,
    /// Threads, the busiest first.
    pub threads: Vec<SpinThread>,
    /// How the command ended: exit status, or 128 + signal; `null` if `--for` ended it.
    pub exit: Option<i32>,
    /// How much is spinning and where, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

/// CPU time by activity, s. To look is to read the memory that another thread changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpinShares {
    /// Loops that look and hint.
    pub polling_s: f64,
    /// Loops that hint without looking.
    pub blind_delay_s: f64,
    /// Loops that look without a hint.
    pub bare_load_s: f64,
    /// Calls of `sched_yield`, the kernel's work for them included.
    pub yielding_s: f64,
    /// Repeated system calls that return nothing (`epoll_wait` with time-out 0), the kernel's work
    /// for them included.
    pub asking_s: f64,
    /// Everything else.
    pub work_s: f64,
}

impl SpinShares {
    /// All kinds of spinning, s.
    #[must_use]
    pub fn spinning_s(&self) -> f64 {
        self.polling_s + self.blind_delay_s + self.bare_load_s + self.yielding_s + self.asking_s
    }
}

open_enum! {
    /// What a loop does.
    SpinKind from LoopKind {
        /// It looks and hints.
        Polling = "polling",
        /// It hints without looking.
        BlindDelay = "blind_delay",
        /// It looks without a hint.
        BareLoad = "bare_load",
        /// It yields the CPU between looks.
        Yielding = "yielding",
        /// It repeats system calls that return nothing.
        Asking = "asking",
        /// Anything else.
        Work = "work",
    }
}

open_enum! {
    /// How certain it is that a loop belongs to an algorithm.
    MatchStrength from Strength {
        /// Other algorithms have the same shape.
        Possible = "possible",
        /// Shape and constants match, or the file does.
        Likely = "likely",
        /// The name of a function matches.
        Certain = "certain",
    }
}

/// A loop that spins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpinPlace {
    /// How it spins.
    pub kind: SpinKind,
    /// Function, if it has a name.
    pub function: Option<String>,
    /// The file of its code; `null` for code generated at run time.
    pub module: Option<String>,
    /// Address of the loop: in its file if it has one, else in the process.
    pub address: u64,
    /// CPU time, s.
    pub cpu_s: f64,
    /// Share of all CPU time, 0 to 1.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// Threads that were seen there.
    pub threads: usize,
    /// Number of hints per iteration.
    pub hints: u32,
    /// Number of hints between two looks; `null` if the code does not show it.
    pub gap_hints: Option<u64>,
    /// Duration of one hint, ns, from loop counters in registers of neighbouring samples; `null` if
    /// unknown.
    pub hint_ns_seen: Option<f64>,
    /// Pairs of neighbouring samples that it is based on.
    pub hint_ns_pairs: usize,
    /// Constants in and before the loop.
    pub constants: Vec<u64>,
    /// The most frequent stacks that wait there.
    pub callers: Vec<SpinCaller>,
    /// Known algorithms that it may be, the likeliest first.
    pub algorithms: Vec<SpinMatch>,
    /// The loop, disassembled.
    pub code: Vec<String>,
}

/// A stack above a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpinCaller {
    /// Functions, innermost first.
    pub functions: Vec<String>,
    /// CPU time, s.
    pub cpu_s: f64,
}

/// A known algorithm that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpinMatch {
    /// Its id.
    pub algorithm: String,
    /// Its name.
    pub name: String,
    /// How certain the match is.
    pub strength: MatchStrength,
    /// Why, as a sentence.
    pub why: String,
    /// How to change it; empty if unknown.
    pub tunables: Vec<String>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpinThread {
    /// Its process id.
    pub pid: i32,
    /// Its thread id.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// CPU time that its samples represent, s; with `proc` as the kernel counted it.
    pub cpu_s: f64,
    /// Part of it spent spinning, s.
    pub spin_s: Option<f64>,
}

impl StoredRecord for SpinAttachRecord {
    fn entry(&self) -> Entry {
        let target = match &self.source {
            TraceSource::Command { command, .. } => shell::line(command),
            TraceSource::Process { pid, name } => format!("--pid {pid} ({name})"),
            _ => String::new(),
        };
        self.header.to_entry::<Self>(
            self.host.name(),
            format!("spin attach {target}"),
            self.answer.sentence.clone(),
        )
    }
}

/// A smaller share of spinning is called "hardly".
const MIN_SPIN_SHARE: f64 = 0.005;
/// A thread that used less than this part of the CPU time of the busiest is not busy.
const BUSY: f64 = 0.05;
/// A program that used this many CPUs or more, and does not spin, computes.
const COMPUTES: f64 = 0.5;

/// A loop with this part of all spinning is called all of it.
const ALL: f64 = 0.995;
/// Samples that leave room for more spinning than this do not show that a program hardly spins.
const MAX_UNSEEN_SHARE: f64 = 0.05;
/// A share with a wider 95 % interval is given with the interval.
const MAX_INTERVAL: f64 = 0.15;

/// Wilson's 95 % interval of a share of samples (Wilson 1927). It holds if samples are independent;
/// those of a thread that spins for long are not, so it is rather too narrow.
fn share_interval(share: f64, samples: u64) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = samples as f64;
    let middle = (share * n + Z * Z / 2.0) / (n + Z * Z);
    let half = Z / (n + Z * Z) * (n * share * (1.0 - share) + Z * Z / 4.0).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

impl SpinAttachRecord {
    /// Fills in the answer from its figures and findings.
    pub fn conclude(&mut self) {
        let mut advice = self.advise();
        if let (true, Some(finding)) = (advice.is_empty(), self.header.findings.first()) {
            advice.clone_from(&finding.advice);
        }
        self.answer = Answer {
            sentence: format!("{}.", capitalise(&self.describe())),
            advice,
        };
    }

    /// The share of spinning, with its figures.
    fn describe(&self) -> String {
        if self.shares.is_none() {
            return format!("{:.2} s of CPU time, of unknown use", self.cpu_s);
        }
        let share = self.spin_share.unwrap_or(0.0);
        if self.samples == 0 {
            return "it used no CPU time while sampled".to_owned();
        }
        let sampled = match check_sampled_time(self.cpu_s, self.counted_cpu_s) {
            Some(counted_s) => {
                format!(
                    "the sampled {} of {}",
                    seconds(self.cpu_s),
                    seconds(counted_s)
                )
            }
            None => seconds(self.cpu_s),
        };
        let figure = format!("{} of {sampled} of CPU time is spinning", percent(share));
        let (low, high) = share_interval(share, self.samples);
        let n = count_of(self.samples, "sample", "samples");
        match share < MIN_SPIN_SHARE {
            true if high > MAX_UNSEEN_SHARE => {
                let are = if self.samples == 1 { "is" } else { "are" };
                let few = format!("{n} {are} too few to exclude spinning of up to");
                format!("{few} {}: {figure}", percent(high))
            }
            true => format!("it hardly spins: {figure}"),
            false if high - low > MAX_INTERVAL => format!(
                "{figure}{}; {n} {} few: it may be {} to {}",
                self.describe_worst(share),
                if self.samples == 1 { "is" } else { "are" },
                percent(low),
                percent(high)
            ),
            false => format!("{figure}{}", self.describe_worst(share)),
        }
    }

    /// What to do next; empty if nothing is known.
    fn advise(&self) -> String {
        if self.shares.is_none() || self.samples == 0 {
            return String::new();
        }
        if self.spin_share.unwrap_or(0.0) >= MIN_SPIN_SHARE {
            return self.advise_on_spinning();
        }
        let Some(target) = self.source.target() else {
            return String::new();
        };
        match self.cpu_s >= COMPUTES * self.wall_s {
            true => format!("It computes; where: pinwise profile {target}"),
            false => format!("What it waits for: pinwise trace {target}"),
        }
    }

    /// What would end the most spinning, by its kind.
    fn advise_on_spinning(&self) -> String {
        const SLEEP: &str =
            "let waiters sleep after a short spin (a futex, as mutexes of libraries do)";
        let worst = self.find_worst();
        let place = worst.and_then(|worst| worst.function.as_ref());
        let place = place.map_or_else(
            || "the loop".to_owned(),
            |name| format!("the loop in {name}"),
        );
        let busy = self.count_busy_threads();
        if busy == 1 {
            return format!(
                "Only one thread ran much: {place} waits for one that hardly runs, another process, a signal or a device, or, if nothing else changes what it reads, it is work."
            );
        }
        let mut advice = match worst.map(|worst| &worst.kind) {
            Some(SpinKind::BareLoad) => {
                format!("Add a PAUSE (std::hint::spin_loop, _mm_pause) to {place}, and {SLEEP}")
            }
            Some(SpinKind::BlindDelay) => {
                let gap = worst.map_or_else(String::new, |worst| self.describe_gap(worst));
                format!("Look more often in {place}{gap}; or {SLEEP}")
            }
            Some(SpinKind::Yielding) => format!(
                "a sched_yield ends a wait only if the thread that is waited for is queued on the same CPU: {SLEEP}"
            ),
            Some(SpinKind::Asking) => {
                format!("{place} asks again and again: wait in poll, epoll or a blocking read")
            }
            _ => String::new(),
        };
        let is_crowded = busy > self.host.counts.cpus;
        if advice.is_empty() {
            let crowded = if is_crowded {
                ", or run no more threads than CPUs"
            } else {
                ""
            };
            let has_setting = |one: &SpinMatch| !one.tunables.is_empty();
            let change = match worst.is_some_and(|worst| worst.algorithms.iter().any(has_setting)) {
                true => "Change for how long it spins",
                false => "Let waiters sleep after a short spin",
            };
            return format!("{change}{crowded}; suggested values: pinwise spin advise");
        }
        if is_crowded {
            advice += ", or run no more threads than CPUs: one that spins keeps its CPU from the thread that it waits for";
        }
        format!("{}.", capitalise(&advice))
    }

    /// How long a blind delay does not look, if that is known, as the end of a clause.
    fn describe_gap(&self, worst: &SpinPlace) -> String {
        let Some(hints) = worst.gap_hints else {
            return String::new();
        };
        let time = self.pause_ns.map_or_else(String::new, |ns| {
            format!(", {} here,", nanoseconds(ns * hints as f64))
        });
        format!(": {} hints{time} pass between two looks", grouped(hints))
    }

    /// Threads that used CPUs: one that waits for others to end does not count.
    fn count_busy_threads(&self) -> usize {
        let times = || self.threads.iter().map(|thread| thread.cpu_s);
        let most = times().fold(0.0, f64::max);
        times().filter(|cpu_s| *cpu_s >= BUSY * most).count()
    }

    /// The loop with the most spinning.
    fn find_worst(&self) -> Option<&SpinPlace> {
        let is_spinning = |place: &&SpinPlace| place.kind != SpinKind::Work;
        self.places.iter().find(is_spinning)
    }

    /// The loop with the most spinning, as the end of a sentence; `share` is the share of all
    /// spinning.
    fn describe_worst(&self, share: f64) -> String {
        let Some(worst) = self.find_worst() else {
            return String::new();
        };
        let part = match worst.share {
            all if all >= ALL * share => "all of it",
            most if 2.0 * most >= share => "most of it",
            _ => "the largest part",
        };
        let how = match worst.kind {
            SpinKind::Polling => "polling",
            SpinKind::BlindDelay => "blind delay",
            SpinKind::BareLoad => "polling without a hint",
            SpinKind::Yielding => "yielding",
            SpinKind::Asking => "system calls that get nothing",
            _ => "waiting",
        };
        match &worst.function {
            Some(function) => format!(", {part} {how} in {function}"),
            None => format!(", {part} {how} at {:#x}", worst.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, Severity};

    #[test]
    fn verdict_names_the_loop_that_spins_most() {
        let text = include_str!("../../../../tests/data/records/spin-attach.json");
        let mut record: SpinAttachRecord = serde_json::from_str(text).unwrap();
        let spins = |place: &&mut SpinPlace| place.kind != SpinKind::Work;
        let worst = record.places.iter_mut().find(spins).unwrap();
        worst.function = Some("wait_for_turn".to_owned());
        worst.share = 0.3;
        for (share, end) in [
            (0.3, " is spinning, all of it polling in wait_for_turn"),
            (0.4, ", most of it polling in wait_for_turn"),
            (0.9, ", the largest part polling in wait_for_turn"),
        ] {
            record.spin_share = Some(share);
            assert!(record.describe().contains(end), "{}", record.describe());
        }
        record.spin_share = Some(0.001);
        let said = record.describe();
        assert!(said.starts_with("it hardly spins: 0.1 % of"), "{said}");
        for (cpus, advised) in [
            (0.9, "It computes; where: pinwise profile "),
            (0.1, "What it waits for: pinwise trace "),
        ] {
            record.cpu_s = cpus * record.wall_s;
            assert!(record.advise().starts_with(advised), "{}", record.advise());
        }
        record.spin_share = Some(0.4);
        for (kind, advised) in [
            (SpinKind::Polling, "Let waiters sleep"),
            (SpinKind::BareLoad, "Add a PAUSE"),
            (
                SpinKind::BlindDelay,
                "Look more often in the loop in wait_for_turn",
            ),
            (SpinKind::Yielding, "A sched_yield"),
            (SpinKind::Asking, "The loop in wait_for_turn asks"),
        ] {
            let spins = |place: &&mut SpinPlace| place.kind != SpinKind::Work;
            let worst = record.places.iter_mut().find(spins).unwrap();
            worst.kind = kind;
            record.threads.resize(2, record.threads[0].clone());
            assert!(record.advise().starts_with(advised), "{}", record.advise());
            // Somebody else must change what a single thread waits for.
            record.threads.truncate(1);
            assert!(record.advise().starts_with("Only one thread ran"));
        }
        record.shares = None;
        assert_eq!(record.advise(), "");
    }

    #[test]
    fn a_share_of_few_samples_comes_with_its_uncertainty() {
        let text = include_str!("../../../../tests/data/records/spin-attach.json");
        let mut record: SpinAttachRecord = serde_json::from_str(text).unwrap();
        let mut verdict_of = |share: f64, samples: u64| {
            (record.spin_share, record.samples) = (Some(share), samples);
            record.describe()
        };
        let few = verdict_of(3.0 / 14.0, 14);
        assert!(
            few.ends_with("; 14 samples are few: it may be 7.6 % to 47.6 %"),
            "{few}"
        );
        let none = verdict_of(0.0, 14);
        let start = "14 samples are too few to exclude spinning of up to 21.5 %: 0 % of";
        assert!(none.starts_with(start), "{none}");
        assert!(verdict_of(0.0, 1000).starts_with("it hardly spins: "));
        assert!(!verdict_of(0.4, 1000).contains("few"));
    }

    #[test]
    fn advice_against_polling_ends_with_a_command_and_the_answer_is_a_sentence() {
        let text = include_str!("../../../../tests/data/records/spin-attach.json");
        let mut record: SpinAttachRecord = serde_json::from_str(text).unwrap();
        record.samples = 1000;
        for crowded in ["", ", or run no more threads than CPUs"] {
            record.conclude();
            assert_eq!(
                record.answer.advice,
                format!(
                    "Let waiters sleep after a short spin{crowded}; suggested values: pinwise spin advise"
                )
            );
            record.host.counts.cpus = 1;
        }
        let end = " of CPU time is spinning, all of it polling in wait_for.";
        let sentence = &record.answer.sentence;
        assert!(sentence.ends_with(end), "{sentence}");
        record.shares = None;
        let finding = Finding::new("unseen", Severity::Warning, "", "Permit perf events.");
        record.header.findings.push(finding);
        record.conclude();
        assert_eq!(record.answer.advice, "Permit perf events.");
    }
}
