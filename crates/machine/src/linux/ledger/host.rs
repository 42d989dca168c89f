//! Makes temporary settings: switches CPUs of the host off, moves interrupts.
//!
//! The kernel drops some state while CPUs are off: a thread whose CPUs are all off gets the mask of
//! all CPUs, and cpusets of version 1 lose the CPUs for good. So masks and cpusets of the whole
//! host are recorded before, and restored after the CPUs are on again.

use std::path::{Path, PathBuf};

use super::act::{self, System};
use super::entry::{Change, Entry};
use super::{ChangeId, Ledger, LedgerError, UndoOutcome};
use crate::linux::capture::{list_names, read_mounts};
use crate::linux::process_stat::{self, PF_NO_SETAFFINITY, ProcessStat};
use crate::linux::{sys, tree};
use crate::{MachineError, RunSetting};
use pinwise_placement::InterruptCpus;
use pinwise_topology::CpuSet;

/// Depth to which cgroups are searched.
const MAX_CGROUP_DEPTH: usize = 16;
/// Most cgroups that are found.
const MAX_GROUPS: usize = 20_000;

impl Ledger {
    /// Checks that a setting can be made. For a cgroup, one is made and removed.
    ///
    /// # Errors
    /// [`LedgerError`] says why it cannot.
    pub fn check_setting(&mut self, setting: &RunSetting) -> Result<(), LedgerError> {
        match setting {
            RunSetting::Offline(cpus) => self.check_switch_off(cpus),
            RunSetting::Interrupts(moved) => self.check_interrupts(moved),
            RunSetting::Companion(_)
            | RunSetting::Policy(_)
            | RunSetting::Nice(_)
            | RunSetting::CoreScheduling => Ok(()),
            RunSetting::Group(_) => {
                let changes = self.apply_settings(std::slice::from_ref(setting))?;
                self.undo_these(&changes);
                Ok(())
            }
        }
    }

    /// Makes the settings. Returns the changes, which [`Ledger::undo_these`] undoes.
    ///
    /// # Errors
    /// [`LedgerError`]; everything is then unchanged.
    pub fn apply_settings(
        &mut self,
        settings: &[RunSetting],
    ) -> Result<Vec<ChangeId>, LedgerError> {
        let first = self.next;
        let outcome = settings.iter().try_for_each(|setting| match setting {
            RunSetting::Offline(cpus) => self
                .check_switch_off(cpus)
                .and_then(|()| self.switch_off(cpus)),
            RunSetting::Interrupts(moved) => self
                .check_interrupts(moved)
                .and_then(|()| self.move_interrupts(moved)),
            RunSetting::Group(group) => self.make_group(group),
            RunSetting::Companion(_)
            | RunSetting::Policy(_)
            | RunSetting::Nice(_)
            | RunSetting::CoreScheduling => Ok(()),
        });
        let changes: Vec<ChangeId> = (first..self.next).map(ChangeId).collect();
        if let Err(error) = outcome {
            self.undo_these(&changes);
            return Err(error);
        }
        Ok(changes)
    }

    /// Checks that these interrupts and queues can be moved.
    fn check_interrupts(&self, moved: &InterruptCpus) -> Result<(), LedgerError> {
        self.check_host_lock()?;
        let interrupts = moved.interrupts.keys();
        let interrupts = interrupts.map(|number| self.system.interrupt_file(*number));
        let queues = moved.queues.keys();
        let queues = queues.map(|queue| self.system.queue_file(queue));
        for file in interrupts.chain(queues) {
            // Opening changes nothing; only writing does.
            let opened = std::fs::OpenOptions::new().write(true).open(&file);
            opened.map_err(|error| LedgerError::System(file.display().to_string(), error))?;
        }
        Ok(())
    }

    fn move_interrupts(&mut self, moved: &InterruptCpus) -> Result<(), LedgerError> {
        let interrupts = moved.interrupts.iter().map(|(&number, cpus)| {
            let cpus = cpus.clone();
            Change::Interrupt { number, cpus }
        });
        let queues = moved.queues.iter().map(|(queue, cpus)| Change::Queue {
            queue: queue.clone(),
            cpus: cpus.clone(),
        });
        for change in interrupts.chain(queues) {
            self.change(&change)?;
            self.reach("after-interrupt");
        }
        Ok(())
    }

    /// Checks that these CPUs can be switched off.
    fn check_switch_off(&self, cpus: &CpuSet) -> Result<(), LedgerError> {
        self.check_host_lock()?;
        let online = self.system.read_online().unwrap_or_default();
        let off = cpus.difference(&online);
        if !off.is_empty() {
            let what = format!("CPU {off}");
            return Err(LedgerError::Value(what, "off already".to_owned()));
        }
        if online.is_subset(cpus) {
            let what = format!("switching CPUs {cpus} off");
            return Err(LedgerError::Value(what, "no CPU would be left".to_owned()));
        }
        for cpu in cpus.iter() {
            let file = self.system.cpu_file(&format!("cpu{cpu}/online"));
            if !file.exists() {
                return Err(LedgerError::Fixed(cpu));
            }
            // Opening changes nothing; only writing does.
            std::fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .map_err(|error| LedgerError::System(file.display().to_string(), error))?;
        }
        for group in find_cpuset_groups() {
            group.check_loss(cpus)?;
        }
        Ok(())
    }

    /// Switches CPUs off, after recording what the kernel will not restore.
    fn switch_off(&mut self, cpus: &CpuSet) -> Result<(), LedgerError> {
        for (file, before) in find_shrinking_cpusets(cpus) {
            let requested = before.difference(cpus);
            self.save(Entry::Cpuset {
                file,
                before,
                asked: requested,
            })?;
        }
        let online = self.system.read_online().unwrap_or_default();
        for thread in list_all_threads() {
            if let Some(entry) = entry_for_own_mask(thread, cpus, &online) {
                self.save(entry)?;
            }
        }
        if self.are_exactly_siblings(cpus, &online) {
            self.change(&Change::SmtOff)?;
            self.reach("after-offline");
        } else {
            for cpu in cpus.iter() {
                self.change(&Change::Online { cpu, is_on: false })?;
                self.reach("after-offline");
            }
        }
        let is_on = |cpu: &usize| {
            let file = self.system.cpu_file(&format!("cpu{cpu}/online"));
            System::read(&file).as_deref() != Some("0")
        };
        let still_on: CpuSet = cpus.iter().filter(is_on).collect();
        match still_on.is_empty() {
            true => Ok(()),
            false => Err(LedgerError::Value(
                format!("CPU {still_on}"),
                "the kernel did not switch it off".to_owned(),
            )),
        }
    }

    /// Can the kernel's switch for SMT be used? It can if these are all CPUs except the first of
    /// each core, all CPUs are online, and SMT is on.
    fn are_exactly_siblings(&self, cpus: &CpuSet, online: &CpuSet) -> bool {
        let is_on = System::read(&self.system.cpu_file("smt/control")).as_deref() == Some("on");
        let present = System::read(&self.system.cpu_file("present"));
        let are_all_online = present
            .and_then(|list| CpuSet::parse_list(&list).ok())
            .as_ref()
            == Some(online);
        is_on && are_all_online && {
            let is_further = |cpu: &usize| {
                let name = format!("cpu{cpu}/topology/thread_siblings_list");
                let list = System::read(&self.system.cpu_file(&name)).unwrap_or_default();
                CpuSet::parse_list(&list).is_ok_and(|core| core.first() != Some(*cpu))
            };
            online.iter().filter(is_further).collect::<CpuSet>() == *cpus
        }
    }
}

/// Checks that nothing failed to be restored.
pub(in crate::linux) fn check_undone(
    outcomes: &[(Entry, UndoOutcome)],
) -> Result<(), MachineError> {
    let mut outcomes = outcomes.iter();
    let failed = outcomes.find(|(_, outcome)| matches!(outcome, UndoOutcome::Failed(_)));
    failed.map_or(Ok(()), |(entry, outcome)| {
        Err(MachineError::System {
            action: format!("{entry} {outcome}"),
            reason: "pinwise apply restore tries again".to_owned(),
        })
    })
}

/// A cgroup that restricts its tasks to some CPUs.
struct CpusetGroup {
    folder: PathBuf,
    is_v1: bool,
}

/// Finds the cgroups with a cpuset, without the roots, which have all CPUs.
fn find_cpuset_groups() -> Vec<CpusetGroup> {
    let mut found = Vec::new();
    for mount in read_mounts() {
        if mount.is_unified() || mount.has("cpuset") {
            let is_v1 = !mount.is_unified();
            find_groups_below(Path::new(&mount.point), is_v1, MAX_CGROUP_DEPTH, &mut found);
        }
    }
    found
}

fn find_groups_below(folder: &Path, is_v1: bool, depth: usize, found: &mut Vec<CpusetGroup>) {
    for name in list_names(folder) {
        let child = folder.join(name);
        if found.len() >= MAX_GROUPS || depth == 0 || !child.is_dir() {
            continue;
        }
        if child.join("cpuset.cpus").is_file() {
            found.push(CpusetGroup {
                folder: child.clone(),
                is_v1,
            });
        }
        find_groups_below(&child, is_v1, depth - 1, found);
    }
}

impl CpusetGroup {
    /// Checks that it would neither lose all its CPUs nor CPUs of its own partition.
    fn check_loss(&self, cpus: &CpuSet) -> Result<(), LedgerError> {
        let name = self.folder.display();
        let own = |file| act::read_cpu_list(&self.folder.join(file)).unwrap_or_default();
        if self.is_v1 {
            let own = own("cpuset.cpus");
            if !own.is_empty() && own.is_subset(cpus) {
                return Err(LedgerError::Needed(format!(
                    "cgroup {name} has no other CPUs than {own}: its tasks would lose their place"
                )));
            }
            return Ok(());
        }
        let partition = System::read(&self.folder.join("cpuset.cpus.partition"));
        if matches!(partition.as_deref(), Some("root" | "isolated")) {
            let overlap = own("cpuset.cpus.effective").intersection(cpus);
            if !overlap.is_empty() {
                return Err(LedgerError::Needed(format!(
                    "CPU {overlap} belongs to the cpuset partition of cgroup {name}, which would break"
                )));
            }
        }
        Ok(())
    }
}

/// Finds cpusets of version 1 that would lose some of these CPUs, with their present CPUs.
fn find_shrinking_cpusets(cpus: &CpuSet) -> Vec<(PathBuf, CpuSet)> {
    let groups = find_cpuset_groups().into_iter().filter(|group| group.is_v1);
    let read = groups.filter_map(|group| {
        let file = group.folder.join("cpuset.cpus");
        let before = act::read_cpu_list(&file).ok()?;
        before.intersects(cpus).then_some((file, before))
    });
    // A group's CPUs must be among its parent's. They are restored from the last to the first, so
    // the parents must come last here.
    let mut found: Vec<_> = read.collect();
    found.reverse();
    found
}

/// Lists all threads of the host.
fn list_all_threads() -> Vec<i32> {
    let processes = list_names(Path::new("/proc"));
    let processes = processes.iter().filter_map(|name| name.parse::<i32>().ok());
    processes
        .flat_map(|pid| list_names(Path::new(&format!("/proc/{pid}/task"))))
        .filter_map(|name| name.parse().ok())
        .collect()
}

/// Lists the threads of a process.
pub(super) fn list_threads(process: i32) -> Vec<i32> {
    let names = list_names(Path::new(&format!("/proc/{process}/task")));
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Lists the threads in the cgroup of this `cpuset.cpus`.
pub(super) fn list_group_threads(file: &Path) -> Vec<i32> {
    let group = file.parent().unwrap_or(file);
    let read = |name: &str| System::read(&group.join(name));
    let list = read("cgroup.threads").or_else(|| read("tasks"));
    let list = list.unwrap_or_default();
    list.split_ascii_whitespace()
        .filter_map(|thread| thread.parse().ok())
        .collect()
}

/// Makes an entry with a thread's mask; `None` if the thread has ended, or if the kernel itself
/// binds it.
pub(super) fn saved_mask_entry(thread: i32) -> Option<Entry> {
    let start = tree::read_start(thread)?;
    let before = sys::affinity_of(thread).ok()?;
    (!is_bound_by_the_kernel(thread)).then_some(Entry::Saved {
        thread,
        start,
        before,
    })
}

/// Makes an entry with a thread's mask if it is narrower than all CPUs and has one of these.
fn entry_for_own_mask(thread: i32, cpus: &CpuSet, online: &CpuSet) -> Option<Entry> {
    let before = sys::affinity_of(thread).ok()?;
    let is_own = before.intersects(cpus) && !online.is_subset(&before);
    saved_mask_entry(thread).filter(|_| is_own)
}

fn is_bound_by_the_kernel(thread: i32) -> bool {
    let line = process_stat::read_line(thread).unwrap_or_default();
    let stat = ProcessStat::parse(&line);
    stat.and_then(|stat| stat.has_flag(PF_NO_SETAFFINITY))
        .unwrap_or(true)
}
