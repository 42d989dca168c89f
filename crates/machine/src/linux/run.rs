//! One run of a command, from its input to its cost.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::bind::ptrace::Orphans;
use super::counters::SHORT_RUN;
use super::ledger::{JoinedGroup, LedgerError, check_undone};
use super::scheduling::SchedExt;
use super::supervise::{Attendant, NoAttendant};
use super::{CommandPurpose, LinuxMachine};
use crate::{End, Host, MachineError, Request, Run, RunSetting, Throttling};
use pinwise_workload::Workload;

/// Wait after CPUs were switched: the kernel rebuilds its scheduling domains, and other threads
/// take a moment to spread out again.
const SETTLE_TIME: Duration = Duration::from_millis(100);

impl LinuxMachine {
    /// Runs a command with its settings, which are made outside the timed interval.
    pub(super) fn run_with_settings(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let settings = request.settings;
        let refused = |error: LedgerError| MachineError::Refused {
            what: settings
                .iter()
                .map(RunSetting::action)
                .collect::<Vec<_>>()
                .join(", "),
            reason: error.to_string(),
        };
        let joined = match &mut self.ledger {
            Some(ledger) => {
                ledger.apply_settings(settings).map_err(refused)?;
                ledger.open_groups().map_err(refused)
            }
            None if settings.iter().any(RunSetting::needs_ledger) => {
                return Err(refused(LedgerError::NotForHost));
            }
            None => Ok(Vec::new()),
        };
        let switches = |setting: &RunSetting| matches!(setting, RunSetting::Offline(_));
        let settle = match settings.iter().any(switches) {
            true => SETTLE_TIME,
            false => Duration::ZERO,
        };
        let settled = joined.and_then(|groups| {
            self.groups = groups;
            self.wait(settle)?;
            self.start_companions(settings)
        });
        if let Some(ledger) = &mut self.ledger {
            ledger.note_running();
        }
        let run = settled.and_then(|()| self.run_beside(request, None, &mut NoAttendant));
        // The command that reads a companion's figure must not run in the measured command's
        // cgroups.
        let groups = std::mem::take(&mut self.groups);
        let run = run.and_then(|run| Ok((self.read_companion_figure(settings)?, run)));
        let companions = self.end_companions();
        let throttled = groups.iter().filter_map(JoinedGroup::throttling);
        let throttled = throttled.reduce(Throttling::merge_nested);
        let outcomes = match &mut self.ledger {
            Some(ledger) => ledger.undo_all(),
            None => Vec::new(),
        };
        check_undone(&outcomes)?;
        let (companion_figure, run) = run?;
        self.wait(settle)?;
        let (companion_output, unread) = match companion_figure {
            Some(Ok(text)) => (Some(text), None),
            Some(Err(why)) => (None, Some(why)),
            None => (companions.output, None),
        };
        let end = companions
            .ended_early
            .map(|name| format!("{name} ended during the run"));
        let end = end.or(unread).map(End::NoFigure);
        Ok(Run {
            end: end.unwrap_or(run.end),
            companion_output,
            throttled: run
                .throttled
                .into_iter()
                .chain(throttled)
                .reduce(Throttling::merge_nested),
            ..run
        })
    }

    /// Runs a command to its end or for `limit`; the attendant works whenever the supervision wakes
    /// up.
    pub(super) fn run_beside(
        &mut self,
        request: &Request<'_>,
        limit: Option<Duration>,
        attendant: &mut dyn Attendant,
    ) -> Result<Run, MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        self.probing = None;
        let workload = request.workload;
        let input = open_input(workload)?;
        let descriptors =
            self.streams
                .prepare(input, &request.output)
                .map_err(|(path, error)| MachineError::System {
                    action: format!("creating {}", path.display()),
                    reason: error.to_string(),
                })?;
        let sched_ext = SchedExt::read(Path::new("/"));
        // Discarded: throttling between runs belongs to no run.
        let _between = self.take_own_throttling();
        let before = self.counters.totals();
        let (child, started) = self.start_command(
            &workload.command,
            CommandPurpose::Measured(workload, request.settings, request.environment_padding),
            request.cpus,
            request.memory,
            request.bound.map(|bound| (bound, choose_fate(attendant))),
            descriptors.numbers,
        )?;
        let granted = child.granted.clone();
        attendant.started(child.pid, started);
        let timeout = workload.timeout.into_iter().chain(limit).min();
        let closely = request.count_threads_closely;
        let ended = self.supervise(child.pid, started, timeout, closely, attendant);
        self.guardian.note_command_end();
        let coverage = self.binder.take().map(|binder| binder.coverage());
        let (output, stderr_tail) = self.streams.collect(&request.output, &descriptors);
        let ended = ended?;
        if !ended.left_running.is_empty() {
            self.streams.keep_drained_after_exit();
        }
        let counts = self.counters.totals().since(before);
        // Only the first run decides, for all runs: compared runs must have the same counters.
        if !std::mem::replace(&mut self.has_run, true) && ended.wall < SHORT_RUN {
            self.counters.close_unless_requested();
        }
        let throttled = self.take_own_throttling();
        let end = sched_ext.end_of_run(ended.end);
        let cpu_time = ended.user + ended.system;
        if let Some(disturbance) = self.meter.disturbance_of_run(cpu_time, &granted) {
            self.disturbance = Some(disturbance);
        }
        let disturbance = self.disturbance;
        Ok(Run {
            user: Some(ended.user),
            system: Some(ended.system),
            max_rss_bytes: self.own_peak.command_peak(ended.max_rss_bytes),
            minor_faults: Some(ended.minor_faults),
            major_faults: Some(ended.major_faults),
            voluntary_switches: Some(ended.voluntary_switches),
            involuntary_switches: Some(ended.involuntary_switches),
            counts,
            threads: ended.threads,
            threads_at_work: ended.threads_at_work,
            queued: ended.queued_s.map(Duration::from_secs_f64),
            granted,
            coverage,
            foreign_cpu: disturbance.map(|d| ended.wall.mul_f64(d.foreign)),
            steal: disturbance.map(|d| ended.wall.mul_f64(d.steal)),
            throttled,
            output,
            stderr_tail,
            left_running: ended.left_running,
            sched_ext: sched_ext.scheduler,
            ..Run::ended(ended.wall, end)
        })
    }

    /// Throttling by pinwise's own cgroup since the last call.
    fn take_own_throttling(&mut self) -> Option<Throttling> {
        match &mut self.throttle {
            Some(throttle) => throttle.since_last(),
            None => (self.topology.quota.is_none()).then(Throttling::default),
        }
    }
}

/// What becomes of bound threads that still run when pinwise ends.
fn choose_fate(attendant: &dyn Attendant) -> Orphans {
    if attendant.leaves_daemons() {
        Orphans::GoOn
    } else {
        Orphans::Die
    }
}

fn open_input(workload: &Workload) -> Result<Option<File>, MachineError> {
    let Some(path) = &workload.input else {
        return Ok(None);
    };
    open_regular(path)
        .map(Some)
        .map_err(|error| MachineError::Input {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
}

fn open_regular(path: &Path) -> io::Result<File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the Edge opens the command's input"
    )]
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(file)
}
