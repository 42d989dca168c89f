//! A command's scheduling: its policy and niceness, set before its first instruction; and the
//! active `sched_ext` scheduler.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::capture::read_text;
use super::sys;
use crate::{End, MachineError, RunSetting};
use pinwise_workload::SchedulingPolicy;

/// `struct sched_attr` of `sched_setattr(2)` in its first version, which all kernels read.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Size of [`SchedulingAttributes`], bytes.
const SIZE: u32 = 48;
const _: () = assert!(size_of::<SchedulingAttributes>() == 48);
/// `SCHED_FLAG_RESET_ON_FORK`, without which a deadline thread cannot fork.
const RESET_ON_FORK: u64 = 1;
/// `SCHED_DEADLINE`, which libc does not have everywhere.
const DEADLINE: u32 = 6;

impl SchedulingAttributes {
    /// The requested time slice, ns; 0: the kernel's default.
    pub(super) const fn slice_ns(&self) -> u64 {
        if self.policy == 0 { self.runtime_ns } else { 0 }
    }

    /// The default policy, with time slices of this length.
    pub(super) fn with_slice(nice: i32, slice: Duration) -> Self {
        Self {
            size: SIZE,
            nice,
            runtime_ns: u64::try_from(slice.as_nanos()).unwrap_or(0),
            ..Self::default()
        }
    }
}

/// Builds the attributes for the policy and niceness among the settings; `None` if there are none.
pub(super) fn build_attributes(settings: &[RunSetting]) -> Option<SchedulingAttributes> {
    let (mut policy, mut nice) = (None, None);
    for setting in settings {
        match setting {
            RunSetting::Policy(wanted) => policy = Some(*wanted),
            RunSetting::Nice(wanted) => nice = Some(*wanted),
            _ => {}
        }
    }
    (policy.is_some() || nice.is_some()).then(|| {
        let inherited = || sys::nice_of(0).unwrap_or(0);
        SchedulingAttributes {
            size: SIZE,
            nice: nice.unwrap_or_else(inherited),
            ..build_policy_attributes(policy.unwrap_or(SchedulingPolicy::Other))
        }
    })
}

fn build_policy_attributes(policy: SchedulingPolicy) -> SchedulingAttributes {
    let (number, priority) = match policy {
        SchedulingPolicy::Other => (libc::SCHED_OTHER, 0),
        SchedulingPolicy::OtherWithSlice(slice) => {
            return SchedulingAttributes::with_slice(0, slice);
        }
        SchedulingPolicy::Batch => (libc::SCHED_BATCH, 0),
        SchedulingPolicy::Idle => (libc::SCHED_IDLE, 0),
        SchedulingPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        SchedulingPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        SchedulingPolicy::Deadline {
            runtime,
            deadline,
            period,
        } => {
            let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            return SchedulingAttributes {
                policy: DEADLINE,
                flags: RESET_ON_FORK,
                runtime_ns: ns(runtime),
                deadline_ns: ns(deadline),
                period_ns: ns(period),
                ..SchedulingAttributes::default()
            };
        }
    };
    SchedulingAttributes {
        policy: u32::try_from(number).unwrap_or(0),
        priority,
        ..SchedulingAttributes::default()
    }
}

/// The error for settings that the kernel refused.
pub(super) fn explain_refusal(settings: &[RunSetting], error: &io::Error) -> MachineError {
    let is_of_scheduler =
        |setting: &&RunSetting| matches!(setting, RunSetting::Policy(_) | RunSetting::Nice(_));
    let wanted = settings
        .iter()
        .filter(is_of_scheduler)
        .map(RunSetting::action);
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => {
            " (it needs CAP_SYS_NICE; deadlines also all CPUs, and real time in a cgroup of version 1 cpu.rt_runtime_us)"
        }
        Some(libc::EBUSY) => " (the CPUs have not as much time left for deadlines)",
        Some(libc::EOPNOTSUPP) => " (slices need Linux 6.12)",
        _ => "",
    };
    MachineError::Refused {
        what: wanted.collect::<Vec<_>>().join(", "),
        reason: format!("{error}{hint}"),
    }
}

/// The error if the kernel refused core scheduling.
pub(super) fn explain_refused_cookie(error: &io::Error) -> MachineError {
    let reason = match error.raw_os_error() {
        Some(libc::ENODEV) => "no core here has two threads".to_owned(),
        Some(libc::EINVAL) => "this kernel lacks it (CONFIG_SCHED_CORE)".to_owned(),
        _ => error.to_string(),
    };
    MachineError::Refused {
        what: RunSetting::CoreScheduling.action(),
        reason,
    }
}

/// Sets the calling thread's scheduling. False on an error, which is in `errno`.
#[expect(unsafe_code, reason = "sched_setattr has no safe form")]
pub(super) fn set_scheduling(attributes: &SchedulingAttributes) -> bool {
    // SAFETY: both structures are as large as they say and outlive the calls.
    unsafe {
        if libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) < 0 {
            return false;
        }
        if attributes.slice_ns() == 0 {
            return true;
        }
        // Kernels before 6.12 ignore a slice without an error.
        let mut set = SchedulingAttributes::default();
        let size = size_of::<SchedulingAttributes>();
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut set, size, 0) < 0 {
            return false;
        }
        if set.slice_ns() != attributes.slice_ns() {
            *libc::__errno_location() = libc::EOPNOTSUPP;
            return false;
        }
    }
    true
}

/// Gives the calling thread, and all that it starts, a cookie for core scheduling: no thread with
/// another cookie, or none, then runs on the same core at the same time. False on an error, which
/// is in `errno`.
#[expect(unsafe_code, reason = "prctl has no safe form")]
pub(super) fn take_own_cookie() -> bool {
    // Constants of linux/prctl.h, which libc lacks.
    const PR_SCHED_CORE: libc::c_int = 62;
    const PR_SCHED_CORE_CREATE: libc::c_ulong = 1;
    const PIDTYPE_PID: libc::c_ulong = 0;
    let none: libc::c_ulong = 0;
    // SAFETY: plain integers; thread 0 is the calling one.
    unsafe { libc::prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, none, PIDTYPE_PID, none) == 0 }
}

/// Longest time to wait while a `sched_ext` scheduler is being loaded or unloaded.
const LOADING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks of its state.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// The active `sched_ext` scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchedExt {
    /// The name of the active one, if any.
    pub(super) scheduler: Option<String>,
    /// Differs if another scheduler was loaded meanwhile: the inode of the active one's folder, or,
    /// if none is active, the number of schedulers loaded so far. The kernel raises that number
    /// only after a scheduler became active.
    loaded: Option<String>,
}

impl SchedExt {
    /// Reads it below `root` (`/` except in tests). A scheduler that is being loaded has its name
    /// already, but no threads yet: this waits until loading or unloading has finished.
    pub(super) fn read(root: &Path) -> Self {
        let text = |name: &str| {
            let text = read_text(&root.join("sys/kernel/sched_ext").join(name));
            text.filter(|text| !text.is_empty())
        };
        let until = sys::monotonic() + LOADING_TIMEOUT;
        let mut state = text("state");
        while matches!(state.as_deref(), Some("enabling" | "disabling")) && sys::monotonic() < until
        {
            std::thread::sleep(CHECK_INTERVAL);
            state = text("state");
        }
        let is_on = state.is_some_and(|state| state == "enabled");
        let inode = || {
            let folder = root.join("sys/kernel/sched_ext/root");
            Some(folder.metadata().ok()?.ino().to_string())
        };
        Self {
            scheduler: is_on.then(|| text("root/ops").unwrap_or_else(|| "unnamed".to_owned())),
            loaded: if is_on { inode() } else { text("enable_seq") },
        }
    }

    /// The end of a run that began in this state: [`End::NoFigure`] if the state changed meanwhile.
    pub(super) fn end_of_run(&self, end: End) -> End {
        match self.describe_change(&Self::read(Path::new("/"))) {
            Some(change) => End::NoFigure(change),
            None => end,
        }
    }

    /// Describes the change from this state to a later one; `None` if they are equal.
    fn describe_change(&self, later: &Self) -> Option<String> {
        let name = |state: &Self| state.scheduler.clone().unwrap_or_else(|| "none".to_owned());
        if self.scheduler != later.scheduler {
            let (before, after) = (name(self), name(later));
            return Some(format!(
                "the sched_ext scheduler changed during the run, from {before} to {after}"
            ));
        }
        (self.loaded != later.loaded)
            .then(|| "a sched_ext scheduler was loaded during the run".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_attributes() {
        assert_eq!(build_attributes(&[]), None);
        let batch = RunSetting::Policy(SchedulingPolicy::Batch);
        let both = build_attributes(&[batch, RunSetting::Nice(5)]).unwrap();
        assert_eq!((both.policy, both.nice), (3, 5));
        let inherited = build_attributes(&[RunSetting::Policy(SchedulingPolicy::Idle)]).unwrap();
        assert_eq!(inherited.nice, sys::nice_of(0).unwrap());
        let slice = "other:3ms".parse().unwrap();
        let both = build_attributes(&[RunSetting::Policy(slice), RunSetting::Nice(5)]).unwrap();
        assert_eq!((both.policy, both.nice, both.runtime_ns), (0, 5, 3_000_000));
        let deadline = "deadline:1ms/5ms/10ms".parse().unwrap();
        let deadline = build_attributes(&[RunSetting::Policy(deadline)]).unwrap();
        assert_eq!((deadline.policy, deadline.runtime_ns), (6, 1_000_000));
    }

    #[test]
    fn a_scheduler_that_is_being_loaded_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("sys/kernel/sched_ext");
        std::fs::create_dir_all(state.join("root")).unwrap();
        std::fs::write(state.join("root/ops"), "lavd\n").unwrap();
        std::fs::write(state.join("state"), "enabling\n").unwrap();
        let read = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                std::fs::write(state.join("new"), "enabled\n").unwrap();
                std::fs::rename(state.join("new"), state.join("state")).unwrap();
            });
            SchedExt::read(folder.path())
        });
        assert_eq!(read.scheduler.as_deref(), Some("lavd"));
    }

    #[test]
    fn loading_or_unloading_a_scheduler_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("sys/kernel/sched_ext");
        let read = || SchedExt::read(folder.path());
        let absent = read();
        std::fs::create_dir_all(state.join("root")).unwrap();
        let put = |name: &str, text: &str| std::fs::write(state.join(name), text).unwrap();
        put("state", "disabled\n");
        assert_eq!(absent.describe_change(&read()), None, "{absent:?}");
        put("state", "enabled\n");
        put("root/ops", "lavd\n");
        put("enable_seq", "1\n");
        let lavd = read();
        assert_eq!(lavd.scheduler.as_deref(), Some("lavd"));
        let words = "changed during the run, from none to lavd";
        assert!(absent.describe_change(&lavd).unwrap().ends_with(words));
        // It is counted after it is active.
        put("enable_seq", "2\n");
        assert_eq!(lavd.describe_change(&read()), None);
        std::fs::rename(state.join("root"), state.join("before")).unwrap();
        std::fs::create_dir(state.join("root")).unwrap();
        put("root/ops", "lavd\n");
        assert!(
            lavd.describe_change(&read())
                .unwrap()
                .contains("was loaded during the run")
        );
        put("state", "disabled\n");
        assert!(
            lavd.describe_change(&read())
                .unwrap()
                .ends_with("from lavd to none")
        );
    }
}
