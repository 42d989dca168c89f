//! Samples where a program's CPU time goes.
//!
//! Perf interrupts each thread at an interval of its CPU time and records what it executes, with
//! its callers by frame pointers or with a copy of its stack, into buffers that are emptied ten
//! times a second. Code is read from the process soon after it was seen, as code generated at run
//! time exists nowhere else. Nothing is stopped, injected or left behind.

mod choice;
mod collect;
mod event;
mod made;
mod pages;
mod polling;
mod records;
mod source;
mod steps;
mod stubs;
mod symbols;

use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::process_stat::{self, ProcessStat};
use super::supervise::{Attendant, WakeReason};
use super::trace::{Target, check_target};
use super::{LinuxMachine, search_path, sys};
use crate::{
    CountedTime, MachineError, Request, Run, SampleOrder, Sampler, SamplingResult, Subject,
};
use collect::Collector;
use event::SamplingKind;
use made::NameFiles;
use pinwise_profile::{Event, Samples, Stacks};
use pinwise_sched::Refusal;
use polling::Times;
use source::{Failure, Source};

pub use records::{Chain, Record, Records, Registers};

/// Longest time between two reads of the buffers and of new code.
const READ_INTERVAL: Duration = Duration::from_millis(100);

impl Sampler for LinuxMachine {
    fn sample(&mut self, order: &SampleOrder<'_>) -> Result<SamplingResult, MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        self.probing = None;
        let target = match order.subject {
            Subject::Command(_) => Target::Child,
            Subject::Process(pid) => Target::Process(pid),
            Subject::Everything => {
                return Err(MachineError::System {
                    action: "sampling".to_owned(),
                    reason: "sampling needs a command or a process".to_owned(),
                });
            }
        };
        check_target(target)?;
        let cpu_before = sys::own_cpu_time();
        let mut session = Session::open(order, target)?;
        let count = || match order.subject {
            Subject::Process(pid) => read_counted(pid),
            _ => None,
        };
        let counted_before = count();
        let run = match order.subject {
            Subject::Command(request) => Some(self.sample_command(request, order, &mut session)?),
            _ => {
                self.sample_running(order.limit, target, &mut session);
                None
            }
        };
        let counted = counted_before
            .zip(count())
            .map(|(before, after)| CountedTime {
                user: after.user.saturating_sub(before.user),
                system: after.system.saturating_sub(before.system),
            });
        let wall = run.as_ref().map(|run| run.wall);
        let (collected, wall) = session.stop(wall);
        let own_cpu = sys::own_cpu_time().saturating_sub(cpu_before);
        let (samples, notes) = collected.finish(wall);
        Ok(SamplingResult {
            samples,
            run,
            counted,
            own_cpu,
            notes,
        })
    }
}

/// CPU time of a process so far.
fn read_counted(pid: i32) -> Option<CountedTime> {
    let line = process_stat::read_line(pid)?;
    let (user, system) = ProcessStat::parse(&line)?.ticks()?;
    let tick_ns = 1_000_000_000 / sys::ticks_per_second();
    Some(CountedTime {
        user: Duration::from_nanos(user * tick_ns),
        system: Duration::from_nanos(system * tick_ns),
    })
}

impl LinuxMachine {
    fn sample_command(
        &mut self,
        request: &Request<'_>,
        order: &SampleOrder<'_>,
        session: &mut Session,
    ) -> Result<Run, MachineError> {
        // Sampling does not use the counters; open, they would slow the command.
        let closed = self.counters.close_all();
        let has_run = std::mem::replace(&mut self.has_run, true);
        let run = self.run_beside(request, order.limit, session);
        self.has_run = has_run;
        self.counters.open_kinds(&closed);
        run
    }

    /// Sleeps and empties buffers until the limit, the end of the process, or an interrupt.
    fn sample_running(&mut self, limit: Option<Duration>, target: Target, session: &mut Session) {
        let end = limit.map(|limit| session.started.saturating_add(limit));
        loop {
            let now = sys::monotonic();
            if end.is_some_and(|end| now >= end) || check_target(target).is_err() {
                return;
            }
            let wake = end.map_or(session.next, |end| session.next.min(end));
            let mut descriptors = vec![self.signals.as_raw_fd()];
            descriptors.extend(session.descriptors());
            let ready = sys::poll_all(&descriptors, Some(wake.saturating_sub(now)));
            if ready[0] && self.take_pending_interrupt() {
                return;
            }
            session.collect(sys::monotonic());
        }
    }
}

/// Sampling in progress.
struct Session {
    /// `None` if only CPU time is available.
    source: Option<Source>,
    collector: Collector,
    name_files: NameFiles,
    times: Times,
    notes: Vec<String>,
    started: Duration,
    /// When CPU times are read next.
    next: Duration,
}

impl Session {
    fn open(order: &SampleOrder<'_>, target: Target) -> Result<Self, MachineError> {
        let root = match target {
            Target::Process(pid) => Some(pid),
            _ => None,
        };
        let times = Times::new(root);
        let mut notes = Vec::new();
        let (source, collector) = open_best_event(order, target, &mut notes)?;
        let started = sys::monotonic();
        let mut session = Self {
            source,
            collector,
            name_files: NameFiles::default(),
            times,
            notes,
            started,
            next: started,
        };
        session.collect(started);
        Ok(session)
    }

    /// Empties the buffers, and reads new code, names and, if due, CPU times.
    fn collect(&mut self, now: Duration) {
        if let Some(source) = &mut self.source {
            source.drain(&mut self.collector);
            self.collector.pages.read_memory();
            self.name_files
                .open_new(self.collector.makers(), self.collector.dumps());
        }
        if now >= self.next {
            self.times.poll();
            self.next = now + READ_INTERVAL;
        }
    }

    /// Ends the sampling; also returns its duration: `wall` if given.
    fn stop(mut self, wall: Option<Duration>) -> (Collected, Duration) {
        let wall = wall.unwrap_or_else(|| sys::monotonic().saturating_sub(self.started));
        if let Some(source) = &self.source {
            source.stop();
        }
        self.next = Duration::ZERO;
        self.collect(sys::monotonic());
        self.source = None;
        let collected = Collected {
            collector: self.collector,
            name_files: self.name_files,
            times: self.times,
            notes: self.notes,
        };
        (collected, wall)
    }
}

impl Attendant for Session {
    fn started(&mut self, pid: libc::pid_t, started: Duration) {
        self.started = started;
        self.next = started + READ_INTERVAL;
        self.times.set_root(pid);
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.source
            .as_ref()
            .map_or_else(Vec::new, Source::descriptors)
    }

    fn next_wake(&self) -> Duration {
        self.next
    }

    fn leaves_daemons(&self) -> bool {
        true
    }

    fn keeps_interrupted(&self) -> bool {
        true
    }

    fn attend(&mut self, now: Duration, reason: WakeReason) -> bool {
        if reason.has_ended {
            // CPU times can no longer be read once the process is reaped.
            self.times.poll();
        }
        if reason.has_filled || now >= self.next {
            self.collect(now);
        }
        true
    }
}

/// Samples whose code has no names yet.
struct Collected {
    collector: Collector,
    name_files: NameFiles,
    times: Times,
    notes: Vec<String>,
}

impl Collected {
    /// Names the code, and adds CPU times; also returns notes for the user.
    fn finish(mut self, wall: Duration) -> (Samples, Vec<String>) {
        let (mut samples, offsets, pages) = self.collector.finish(wall.as_secs_f64());
        if samples.event == Event::Proc {
            samples.threads = self.times.threads();
        }
        let mut sampled_ns = vec![0; samples.threads.len()];
        for stack in &samples.stacks {
            sampled_ns[stack.thread] += stack.weight_ns;
        }
        for (thread, sampled_ns) in samples.threads.iter_mut().zip(sampled_ns) {
            thread.cpu_s = self.times.cpu_s(thread.tid, sampled_ns);
        }
        samples.code = pages.finish();
        let unread = symbols::name_frames(&mut samples, &offsets, &self.name_files);
        self.notes.extend(unread);
        if samples.lost > 0 {
            self.notes.push(format!(
                "{} records were lost because the buffers were full: shares are of the rest.",
                samples.lost
            ));
        }
        (samples, self.notes)
    }
}

/// Opens the requested event, or the best one available.
fn open_best_event(
    order: &SampleOrder<'_>,
    target: Target,
    notes: &mut Vec<String>,
) -> Result<(Option<Source>, Collector), MachineError> {
    let wanted = match order.event {
        Some(event) => vec![event],
        None => vec![Event::Cycles, Event::CpuClock, Event::Proc],
    };
    let stacks = choice::choose_stacks(order.stacks, &order.subject, &search_path());
    let mut reason = String::new();
    for event in wanted {
        if event == Event::Proc {
            let collector = Collector::new(SamplingKind {
                event,
                hz: order.hz,
                has_kernel: false,
                stacks: Stacks::None,
            });
            return Ok((None, collector));
        }
        let kind = SamplingKind {
            event,
            hz: order.hz,
            has_kernel: true,
            stacks,
        };
        match open_event(kind, target, notes) {
            Ok((source, collector)) => return Ok((Some(source), collector)),
            Err(failure) => {
                reason = explain_failure(event, failure);
                notes.push(format!(
                    "Samples by {} are not available here: {reason}.",
                    event.name()
                ));
            }
        }
    }
    Err(MachineError::System {
        action: format!("sampling by {}", order.event.map_or("perf", Event::name)),
        reason,
    })
}

/// Opens an event, with kernel time if that is permitted.
fn open_event(
    wanted: SamplingKind,
    target: Target,
    notes: &mut Vec<String>,
) -> Result<(Source, Collector), Failure> {
    let mut first = None;
    for has_kernel in [true, false] {
        let kind = SamplingKind {
            has_kernel,
            ..wanted
        };
        let mut collector = Collector::new(kind);
        match Source::open(kind, target, &mut collector) {
            Ok(source) => {
                if !has_kernel {
                    notes.push(
                        "Kernel time is not sampled: kernel.perf_event_paranoid above 1 hides it from users without CAP_PERFMON (permit it with: sudo sysctl kernel.perf_event_paranoid=1)."
                            .to_owned(),
                    );
                }
                return Ok((source, collector));
            }
            Err(failure @ Failure::Missing(_)) => return Err(failure),
            Err(failure) => {
                first.get_or_insert(failure);
            }
        }
    }
    Err(first.unwrap_or_else(|| Failure::Missing("not there".to_owned())))
}

fn explain_failure(event: Event, failure: Failure) -> String {
    match failure {
        Failure::Missing(message) if event == Event::Cycles => {
            format!("no hardware counters available ({message}; virtual machines often have none)")
        }
        Failure::Missing(message) => message,
        Failure::Refused(Refusal { reason, remedy }) => match remedy {
            Some(command) => format!("{reason} (permit it with: {command})"),
            None => reason,
        },
    }
}
