//! Quotas of the cgroups that a traced process is in, also of those that it enters while
//! it runs.

use std::path::Path;

use super::super::capture::read_file;
use super::super::usage::Throttle;
use crate::Throttling;
use pinwise_sched::Tid;

/// What holds a process back.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    process: Option<Tid>,
    /// The lines of `/proc/PID/cgroup` that were read last.
    cgroups: Vec<u8>,
    watched: Vec<Throttle>,
}

impl Quotas {
    pub(super) fn of(process: Tid) -> Self {
        let mut quotas = Self::default();
        quotas.follow(process);
        quotas
    }

    /// Looks at this process from now on. Where it is a child of the one before, it
    /// begins in the same cgroups.
    pub(super) fn follow(&mut self, process: Tid) {
        self.process = Some(process);
        self.look();
    }

    /// Watches the cgroups that it has entered.
    pub(super) fn look(&mut self) {
        let Some(process) = self.process else { return };
        let path = format!("/proc/{process}/cgroup");
        let Some(cgroups) = read_file(Path::new(&path)).filter(|now| *now != self.cgroups) else {
            return;
        };
        // Those that it is still in are watched twice, and the first counts more.
        self.watched.extend(Throttle::of_process(process));
        self.cgroups = cgroups;
    }

    /// Of the cgroup that held it back most.
    pub(super) fn most(&mut self) -> Option<Throttling> {
        let watched = self.watched.iter_mut();
        watched
            .filter_map(Throttle::since_last)
            .max_by_key(|since| since.held)
    }
}
