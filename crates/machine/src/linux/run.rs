//! One run of a command, from its input to what it cost.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::LinuxMachine;
use super::bind::ptrace::Orphans;
use super::counters::SHORT;
use super::ledger::{LedgerError, check_undone};
use super::supervise::{Alone, Attendant};
use crate::{Host, HostSetting, MachineError, Request, Run};
use pinwise_workload::Workload;

/// The kernel builds its scheduling domains anew after CPUs went or came; what
/// else runs takes a moment to spread out again.
const SETTLE: Duration = Duration::from_millis(100);

impl LinuxMachine {
    /// Runs a command while the whole host is set otherwise. It is set outside of
    /// what is timed.
    pub(super) fn run_with(
        &mut self,
        setting: &HostSetting,
        request: &Request<'_>,
    ) -> Result<Run, MachineError> {
        let refused = |reason: String| MachineError::Refused {
            what: match setting {
                HostSetting::Offline(cpus) => format!("to switch CPUs {cpus} off"),
                HostSetting::Interrupts(_) => "to move interrupts".to_owned(),
            },
            reason,
        };
        let Some(ledger) = &mut self.ledger else {
            return Err(refused(LedgerError::NotForHost.to_string()));
        };
        ledger
            .set(setting)
            .map_err(|error| refused(error.to_string()))?;
        let settle = match setting {
            HostSetting::Offline(_) => SETTLE,
            HostSetting::Interrupts(_) => Duration::ZERO,
        };
        let settled = self.wait(settle);
        if let Some(ledger) = &mut self.ledger {
            ledger.running();
        }
        let run = settled.and_then(|()| self.run_beside(request, None, &mut Alone));
        let outcomes = match &mut self.ledger {
            Some(ledger) => ledger.undo_all(),
            None => Vec::new(),
        };
        check_undone(&outcomes)?;
        let run = run?;
        self.wait(settle)?;
        Ok(run)
    }

    /// Runs a command to its end, for at most `limit`, while the attendant does
    /// its own work in the pauses of the supervision.
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
        let before = self.counters.totals();
        let (child, started) = self.start(
            &workload.command,
            Some(workload),
            request.environment_padding,
            (request.cpus, request.memory),
            request.bound.map(|bound| (bound, orphans(attendant))),
            descriptors.numbers,
        )?;
        let granted = child.granted.clone();
        attendant.started(child.pid, started);
        let timeout = workload.timeout.into_iter().chain(limit).min();
        let closely = request.count_threads_closely;
        let ended = self.supervise(child.pid, started, timeout, closely, attendant);
        self.guardian.command_ended();
        let coverage = self.binder.take().map(|binder| binder.coverage());
        let (output, stderr_tail) = self.streams.collect(&request.output, &descriptors);
        let ended = ended?;
        if !ended.left.is_empty() {
            self.streams.outlive();
        }
        let counted = self.counters.totals().since(before);
        // The first run decides for all: what is counted must not differ
        // between the runs that are compared.
        if !std::mem::replace(&mut self.has_run, true) && ended.wall < SHORT {
            self.counters.give_up();
        }
        let throttled = match &mut self.throttle {
            Some(throttle) => throttle.since_last().map(|since| since.times),
            None => self.topology.quota.is_none().then_some(0),
        };
        let cpu_time = ended.user + ended.system;
        if let Some(disturbance) = self.meter.after_run(cpu_time) {
            self.disturbance = Some(disturbance);
        }
        let disturbance = self.disturbance;
        Ok(Run {
            user: Some(ended.user),
            system: Some(ended.system),
            max_rss_bytes: self.own_peak.exceeded_by(ended.max_rss_bytes),
            minor_faults: Some(ended.minor_faults),
            major_faults: Some(ended.major_faults),
            voluntary_switches: Some(ended.voluntary_switches),
            involuntary_switches: Some(ended.involuntary_switches),
            migrations: counted.migrations,
            cycles: counted.cycles,
            instructions: counted.instructions,
            threads: ended.threads,
            granted,
            coverage,
            foreign_cpu: disturbance.map(|d| ended.wall.mul_f64(d.foreign)),
            steal: disturbance.map(|d| ended.wall.mul_f64(d.steal)),
            throttled,
            output,
            stderr_tail,
            left_running: ended.left,
            ..Run::of(ended.wall, ended.end)
        })
    }
}

/// What becomes of the bound threads that pinwise leaves.
fn orphans(attendant: &dyn Attendant) -> Orphans {
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
