//! One frame of the live view, as a record. It is printed, never stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Answer;
use super::named::open_enum;
use super::tier::TraceTier;
use pinwise_format::{count, count_of, percent, trimmed};
use pinwise_sched::Tid;
use pinwise_sched::live::{CpuFrame, Doing, Frame, Occupant, Sharing, SharingBasis, ThreadFrame};
use pinwise_topology::Topology;

/// Threads and CPUs at one moment, with rates over the interval before it.
/// What the source does not report is `null`, never 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.top/1")]
pub struct TopRecord {
    /// Name of the machine.
    pub host: String,
    /// Is every figure simulated?
    pub simulated: bool,
    /// How it is watched.
    pub tier: TraceTier,
    /// Overhead per context switch while it is watched, ns of CPU time; `null` if it was not
    /// measured.
    pub cost_ns_per_switch: Option<f64>,
    /// The watched process; `null` for all processes.
    pub pid: Option<i32>,
    /// Length of the interval, seconds.
    pub interval_s: f64,
    /// Number of watched threads.
    pub threads_total: u64,
    /// How many of them are running or, if polled, runnable at this moment.
    pub threads_running: u64,
    /// Moves between CPUs per second, by the outermost boundary crossed.
    pub migrations_per_s: MoveRates,
    /// Cores with several busy CPUs; `null` if no core has several CPUs, or the source does not
    /// report it.
    pub smt_sharing: Option<TopSharing>,
    /// Records lost since the beginning.
    pub lost: u64,
    /// CPUs, by number.
    pub cpus: Vec<TopCpu>,
    /// Threads, in the order that was requested.
    pub threads: Vec<TopThread>,
    /// Threads left out of `threads`.
    pub threads_left_out: u64,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
    /// The process that uses the most CPU time, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

/// Moves per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MoveRates {
    /// To an SMT sibling.
    pub smt: f64,
    /// To another core of the same last-level cache.
    pub core: f64,
    /// To another last-level cache of the same NUMA node.
    pub llc: f64,
    /// To another NUMA node of the same package.
    pub numa: f64,
    /// To another package.
    pub package: f64,
    /// Unknown.
    pub unknown: f64,
}

impl MoveRates {
    /// All moves together.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.smt + self.core + self.llc + self.numa + self.package + self.unknown
    }
}

/// Cores with several busy CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopSharing {
    /// Cores in total.
    pub cores: u64,
    /// Cores with two or more busy CPUs at this moment.
    pub shared_now: Option<u64>,
    /// Cores that idle entirely at this moment.
    pub idle_now: Option<u64>,
    /// CPUs in an unknown state.
    pub unknown_cpus: u64,
    /// Cores shared, on average over the interval.
    pub shared: f64,
    /// Cores that idled entirely, on average.
    pub idle: f64,
    /// The smaller of `shared` and `idle` at each moment, on average.
    pub avoidable: Option<f64>,
    /// `shared` and `idle` are at least this much, from busy times of CPUs.
    pub is_lower_bound: bool,
}

open_enum! {
    /// What a CPU does.
    CpuState {
        /// The CPU is idle.
        Idle = "idle",
        /// It runs a thread.
        Busy = "busy",
    }
}

/// A CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopCpu {
    /// Its number.
    pub cpu: u32,
    /// Its core, as in the topology's record.
    pub core: Option<usize>,
    /// Its last-level cache.
    pub llc: Option<usize>,
    /// Its NUMA node.
    pub numa_node: Option<usize>,
    /// Its package.
    pub package: Option<usize>,
    /// Its state; `null` if unknown.
    pub state: Option<CpuState>,
    /// The thread on it at this moment.
    pub thread: Option<i32>,
    /// The thread that used most of it in the interval.
    pub busiest: Option<Busiest>,
    /// Share of the interval that it was busy, per cent.
    pub busy_percent: Option<f64>,
    /// Share of the watched threads, per cent.
    pub own_percent: Option<f64>,
    /// Switches per second.
    pub switches_per_s: Option<f64>,
}

/// The thread that used most of a CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Busiest {
    /// Its number.
    pub thread: i32,
    /// Its name.
    pub name: Option<String>,
    /// Share of the interval, per cent.
    pub percent: f64,
}

open_enum! {
    /// What a thread does.
    ThreadState {
        /// It is on a CPU.
        Running = "running",
        /// It waits for a CPU.
        Queued = "queued",
        /// It is on a CPU or waits for one.
        Runnable = "runnable",
        /// It waits for something else.
        Waiting = "waiting",
        /// It ended.
        Ended = "ended",
    }
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopThread {
    /// Its number.
    pub thread: i32,
    /// Its process.
    pub process: Option<i32>,
    /// Its name.
    pub name: Option<String>,
    /// Its state; `null` if unknown.
    pub state: Option<ThreadState>,
    /// The CPU it is on, or was on last.
    pub cpu: Option<u32>,
    /// Share of the interval on CPUs, per cent.
    pub cpu_percent: Option<f64>,
    /// Share of the interval in run queues, per cent.
    pub wait_percent: Option<f64>,
    /// Moves between CPUs per second.
    pub migrations_per_s: Option<f64>,
    /// Times it left its CPU, per second.
    pub switches_per_s: Option<f64>,
    /// CPUs that it used in the interval, by number.
    pub used: Vec<UsedCpu>,
    /// CPUs that it may use, as a list.
    pub allowed: Option<String>,
    /// Its scheduling policy: `other`, `batch`, `idle`, `fifo`, `rr`,
    /// `deadline`, `ext`.
    pub policy: Option<String>,
}

/// A CPU that a thread used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UsedCpu {
    /// The CPU.
    pub cpu: u32,
    /// Share of the interval, per cent.
    pub percent: f64,
}

/// A process that uses fewer CPUs is not worth a profile.
const MIN_PROFILE_CPUS: f64 = 0.05;
/// A thread that uses less of a CPU, in per cent, is idle.
const MIN_ACTIVE_PERCENT: f64 = 0.005;
/// Fewer threads that wait for a CPU on average are not mentioned.
const MIN_QUEUED: f64 = 0.1;

/// CPUs' worth of a share that is known of some threads.
fn sum_cpus(threads: &[&TopThread], percent: fn(&TopThread) -> Option<f64>) -> f64 {
    let known = threads.iter().filter_map(|one| percent(one));
    known.sum::<f64>() / 100.0
}

impl TopRecord {
    /// The record of a frame on this machine. The caller adds what is watched and how.
    #[must_use]
    pub fn new(frame: &Frame, topology: &Topology, tier: TraceTier) -> Self {
        let threads: Vec<TopThread> = frame.threads.iter().map(to_top_thread).collect();
        let is_on =
            |t: &&TopThread| matches!(t.state, Some(ThreadState::Running | ThreadState::Runnable));
        Self {
            host: topology.identity.hostname.clone().unwrap_or_default(),
            simulated: false,
            tier,
            cost_ns_per_switch: None,
            pid: None,
            interval_s: frame.span_ns as f64 * 1e-9,
            threads_total: threads.len() as u64,
            threads_running: threads.iter().filter(is_on).count() as u64,
            migrations_per_s: to_move_rates(frame),
            smt_sharing: frame.sharing.as_ref().map(to_top_sharing),
            lost: frame.lost,
            cpus: frame
                .cpus
                .iter()
                .map(|cpu| to_top_cpu(cpu, topology))
                .collect(),
            threads,
            threads_left_out: 0,
            notes: Vec::new(),
            answer: Answer::default(),
        }
    }

    /// Fills in the answer from its threads.
    pub fn conclude(&mut self) {
        let mut processes: BTreeMap<i32, Vec<&TopThread>> = BTreeMap::new();
        for thread in self.threads.iter().filter(|one| one.cpu_percent.is_some()) {
            let process = thread.process.unwrap_or(thread.thread);
            processes.entry(process).or_default().push(thread);
        }
        let used = |threads: &[&TopThread]| sum_cpus(threads, |one| one.cpu_percent);
        let most = processes
            .iter()
            .max_by(|a, b| used(a.1).total_cmp(&used(b.1)));
        let Some((process, threads)) = most else {
            self.answer = Answer {
                sentence: format!(
                    "{}: how much they use is unknown.",
                    count_of(self.threads_total, "thread", "threads")
                ),
                advice: String::new(),
            };
            return;
        };
        let advice = match used(threads) < MIN_PROFILE_CPUS {
            true => "Nothing uses much of a CPU: there is nothing to profile.".to_owned(),
            false => format!("See what it spends its time on: pinwise profile --pid {process}"),
        };
        self.answer = Answer {
            sentence: self.describe_process(*process, threads),
            advice,
        };
    }

    /// What a process uses, and how many of its threads wait for a CPU.
    fn describe_process(&self, process: i32, threads: &[&TopThread]) -> String {
        let used = sum_cpus(threads, |one| one.cpu_percent);
        let queued = sum_cpus(threads, |one| one.wait_percent);
        let is_active = |one: &&&TopThread| {
            let shares = [one.cpu_percent, one.wait_percent];
            shares
                .iter()
                .flatten()
                .any(|share| *share >= MIN_ACTIVE_PERCENT)
        };
        let active = threads.iter().filter(is_active).count();
        let main = threads.iter().find(|one| one.thread == process);
        let name = main.or(threads.first()).and_then(|one| one.name.as_deref());
        let of = match self.cpus.len() {
            0 => format!("{} CPUs", trimmed(used)),
            all => format!("{} of {}", trimmed(used), count(all, "CPU")),
        };
        let uses = if active == 1 { "uses" } else { "use" };
        let waits = match queued < MIN_QUEUED {
            true => String::new(),
            false if active == 1 => format!(", and waits for one {} of the time", percent(queued)),
            false => format!(", with {} queued for one on average", trimmed(queued)),
        };
        format!(
            "{} (PID {process}): {} {uses} {of}{waits}.",
            name.unwrap_or("process"),
            count(active, "thread"),
        )
    }

    /// Adds the allowed CPUs and the scheduling policy of each thread.
    pub fn add_settings(&mut self, settings: &BTreeMap<Tid, (String, String)>) {
        for thread in &mut self.threads {
            if let Some((allowed, policy)) = settings.get(&thread.thread) {
                thread.allowed = Some(allowed.clone());
                thread.policy = Some(policy.clone());
            }
        }
    }
}

fn to_move_rates(frame: &Frame) -> MoveRates {
    let per_s = |count: u64| count as f64 * 1e9 / frame.span_ns.max(1) as f64;
    let moves = frame.moves;
    MoveRates {
        smt: per_s(moves.smt),
        core: per_s(moves.core),
        llc: per_s(moves.llc),
        numa: per_s(moves.numa),
        package: per_s(moves.package),
        unknown: per_s(moves.unknown),
    }
}

fn to_top_sharing(sharing: &Sharing) -> TopSharing {
    TopSharing {
        cores: sharing.cores as u64,
        shared_now: sharing.shared_now.map(|n| n as u64),
        idle_now: sharing.idle_now.map(|n| n as u64),
        unknown_cpus: sharing.unknown_cpus as u64,
        shared: sharing.shared,
        idle: sharing.idle,
        avoidable: sharing.avoidable,
        is_lower_bound: sharing.basis == SharingBasis::BusyTimes,
    }
}

fn to_top_cpu(frame: &CpuFrame, topology: &Topology) -> TopCpu {
    let place = usize::try_from(frame.cpu)
        .ok()
        .and_then(|id| topology.cpu(id));
    let (state, thread) = match frame.now {
        Occupant::Unknown => (None, None),
        Occupant::Idle => (Some(CpuState::Idle), None),
        Occupant::Thread(tid) => (Some(CpuState::Busy), Some(tid)),
    };
    TopCpu {
        cpu: frame.cpu,
        core: place.and_then(|p| p.core),
        llc: place.and_then(|p| p.llc),
        numa_node: place.and_then(|p| p.numa_node),
        package: place.and_then(|p| p.package),
        state,
        thread,
        busiest: frame.busiest.as_ref().map(|(thread, name, share)| Busiest {
            thread: *thread,
            name: name.as_deref().map(str::to_owned),
            percent: 100.0 * share,
        }),
        busy_percent: frame.busy.map(to_percent),
        own_percent: frame.own.map(to_percent),
        switches_per_s: frame.switches_per_s,
    }
}

fn to_top_thread(frame: &ThreadFrame) -> TopThread {
    let state = match frame.doing {
        Doing::Running => Some(ThreadState::Running),
        Doing::Queued => Some(ThreadState::Queued),
        Doing::Runnable => Some(ThreadState::Runnable),
        Doing::Waiting => Some(ThreadState::Waiting),
        Doing::Ended => Some(ThreadState::Ended),
        Doing::Unreported => None,
    };
    TopThread {
        thread: frame.thread,
        process: frame.process,
        name: frame.name.as_deref().map(str::to_owned),
        state,
        cpu: frame.cpu,
        cpu_percent: frame.busy.map(to_percent),
        wait_percent: frame.wait.map(to_percent),
        migrations_per_s: frame.migrations_per_s,
        switches_per_s: frame.switches_per_s,
        used: frame
            .used
            .iter()
            .map(|&(cpu, share)| UsedCpu {
                cpu,
                percent: to_percent(share),
            })
            .collect(),
        allowed: frame.allowed.as_ref().map(ToString::to_string),
        policy: None,
    }
}

fn to_percent(share: f64) -> f64 {
    100.0 * share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(process: i32, thread: i32, cpu: f64, wait: f64) -> TopThread {
        TopThread {
            thread,
            process: Some(process),
            name: Some(format!("t{process}")),
            cpu_percent: Some(cpu),
            wait_percent: Some(wait),
            ..TopThread::default()
        }
    }

    #[track_caller]
    fn check(threads: Vec<TopThread>, sentence: &str, command: &str) {
        let mut record = TopRecord {
            cpus: vec![TopCpu::default(); 2],
            threads,
            ..TopRecord::default()
        };
        record.conclude();
        assert_eq!(record.answer.sentence, sentence);
        assert!(
            record.answer.advice.ends_with(command),
            "{}",
            record.answer.advice
        );
    }

    #[test]
    fn the_answer_is_about_the_process_that_uses_most_not_about_a_thread() {
        let mut threads = vec![
            thread(7, 7, 0.0, 0.0),
            thread(7, 8, 60.0, 20.0),
            thread(7, 9, 55.0, 30.0),
            thread(4, 4, 70.0, 0.0),
        ];
        check(
            threads.clone(),
            "t7 (PID 7): 2 threads use 1.15 of 2 CPUs, with 0.5 queued for one on average.",
            ": pinwise profile --pid 7",
        );
        threads.drain(..2);
        check(
            threads.clone(),
            "t4 (PID 4): 1 thread uses 0.7 of 2 CPUs.",
            ": pinwise profile --pid 4",
        );
        threads.pop();
        check(
            threads,
            "t7 (PID 7): 1 thread uses 0.55 of 2 CPUs, and waits for one 30.0 % of the time.",
            ": pinwise profile --pid 7",
        );
        let idle = "Nothing uses much of a CPU: there is nothing to profile.";
        check(
            vec![thread(7, 7, 2.0, 0.0)],
            "t7 (PID 7): 1 thread uses 0.02 of 2 CPUs.",
            idle,
        );
        check(Vec::new(), "0 threads: how much they use is unknown.", "");
    }
}
