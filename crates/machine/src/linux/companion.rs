//! Commands that keep running during a measured one.
//!
//! A companion's processes must not be taken for those of the measured command. So it is a
//! subreaper itself, and its orphans stay below it. It carries its own mark below this machine's
//! mark; pinwise and the guardian end it by that mark.

use std::time::Duration;

use super::guardian::{self, MARK};
use super::live::{READING_TIMEOUT, take_output};
use super::supervise::NoAttendant;
use super::{CommandPurpose, LinuxMachine, sys, tree};
use crate::{
    CommandRunner, Companion, FigureSource, Host, MachineError, Output, Request, RunSetting,
};
use pinwise_workload::Workload;

/// Longest time until a companion is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Interval between checks whether it is ready.
const READY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time to end after SIGTERM: a `sched_ext` scheduler unloads itself.
const GRACE: Duration = Duration::from_secs(2);
/// Interval between checks whether it has ended.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A running companion.
#[derive(Debug)]
pub(super) struct RunningCompanion {
    pid: libc::pid_t,
    name: String,
    mark: String,
}

/// What is known of companions after they were ended.
pub(super) struct EndedCompanions {
    /// The name of one that had ended before the run did.
    pub(super) ended_early: Option<String>,
    /// The output that was kept: many print their figures when they end.
    pub(super) output: Option<Vec<u8>>,
}

impl LinuxMachine {
    /// Starts the companions of a run, one after the other, and waits until each is ready.
    /// [`Self::end_companions`] ends them even after a failure.
    pub(super) fn start_companions(&mut self, settings: &[RunSetting]) -> Result<(), MachineError> {
        for setting in settings {
            if let RunSetting::Companion(companion) = setting {
                self.start_companion(companion)?;
            }
        }
        // What they printed until they were ready belongs to no run.
        self.streams.restart_companion_output();
        Ok(())
    }

    fn start_companion(&mut self, companion: &Companion) -> Result<(), MachineError> {
        let cpus = self.topology.allowed.clone();
        let mark = format!("{}.{:x}", self.mark, self.companions.len());
        let descriptors = match companion.figure {
            Some(FigureSource::Itself) => {
                let stream = self.streams.open_companion_output();
                stream.map_err(|error| MachineError::System {
                    action: "making pipes".to_owned(),
                    reason: error.to_string(),
                })?
            }
            _ => self.streams.null_descriptors(),
        };
        let purpose = CommandPurpose::Companion { mark: &mark };
        let command = &companion.command;
        let started = self.start_command(command, purpose, &cpus, None, None, descriptors);
        self.guardian.note_command_end();
        let (child, _) = started?;
        self.spared.insert(child.pid);
        self.companions.push(RunningCompanion {
            pid: child.pid,
            name: companion.name.clone(),
            mark,
        });
        let Some(ready) = &companion.ready else {
            return Ok(());
        };
        let until = sys::monotonic() + READY_WITHIN;
        loop {
            let reason = match self.run_helper("beside-ready", ready) {
                Ok(()) => return Ok(()),
                Err(MachineError::Helper { reason, .. }) => reason,
                Err(error) => return Err(error),
            };
            let failed = |reason: String| MachineError::System {
                action: format!("--beside {}='{}'", companion.name, companion.command),
                reason,
            };
            if !self.spared.contains(&child.pid) {
                return Err(failed("it ended before it was ready".to_owned()));
            }
            if sys::monotonic() > until {
                return Err(failed(format!(
                    "not ready after {} s (--beside-ready '{ready}': {reason})",
                    READY_WITHIN.as_secs()
                )));
            }
            self.wait(READY_CHECK_INTERVAL)?;
        }
    }

    /// Runs the command that reads a companion's figure. Returns its output, or why that is not
    /// usable; `None` if no companion has such a command.
    pub(super) fn read_companion_figure(
        &mut self,
        settings: &[RunSetting],
    ) -> Result<Option<Result<Vec<u8>, String>>, MachineError> {
        let command = settings.iter().find_map(|setting| match setting {
            RunSetting::Companion(companion) => match &companion.figure {
                Some(FigureSource::Command(command)) => Some(command),
                _ => None,
            },
            _ => None,
        });
        let Some(command) = command else {
            return Ok(None);
        };
        let workload = Workload {
            timeout: Some(READING_TIMEOUT),
            ..Workload::new(command.clone())
        };
        let cpus = self.topology.allowed.clone();
        let request = Request {
            output: Output::Keep,
            ..Request::new(&workload, &cpus)
        };
        let run = self.run_beside(&request, None, &mut NoAttendant)?;
        Ok(Some(take_output(run, "--beside-metric-command", command)))
    }

    /// Ends all companions with everything they started.
    pub(super) fn end_companions(&mut self) -> EndedCompanions {
        let mut ended_early = None;
        self.reap_spared();
        for companion in std::mem::take(&mut self.companions) {
            let pid = companion.pid;
            if !self.spared.contains(&pid) {
                ended_early = ended_early.or(Some(companion.name));
            }
            // The whole tree gets SIGTERM, as from systemd: what a shell has started may print
            // figures, too.
            for process in tree::descendants(pid).into_iter().chain([pid]) {
                sys::kill(process, libc::SIGTERM);
            }
            let is_over = |machine: &Self| {
                let others = machine.helpers.union(&machine.spared).copied();
                !machine.spared.contains(&pid) && tree::own_children(&others.collect()).is_empty()
            };
            self.reap_until(GRACE, is_over);
            for descendant in tree::descendants(pid) {
                sys::kill(descendant, libc::SIGKILL);
            }
            sys::kill(-pid, libc::SIGKILL);
            guardian::kill_marked(&format!("{MARK}={}", companion.mark));
            self.reap_until(tree::KILL_TIMEOUT, is_over);
        }
        EndedCompanions {
            ended_early,
            output: self.streams.take_companion_output(),
        }
    }

    fn reap_until(&mut self, longest: Duration, is_over: impl Fn(&Self) -> bool) {
        let until = sys::monotonic() + longest;
        loop {
            self.reap_spared();
            self.streams.drain();
            if is_over(self) || sys::monotonic() > until {
                return;
            }
            std::thread::sleep(END_CHECK_INTERVAL);
        }
    }

    /// Reaps processes that end while no command runs.
    fn reap_spared(&mut self) {
        while let Ok(Some(reaped)) = sys::reap() {
            self.spared.remove(&reaped.pid);
            self.helpers.remove(&reaped.pid);
        }
    }
}
