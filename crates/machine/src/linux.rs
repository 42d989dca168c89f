//! The Linux host.
//!
//! One command at a time, in a process group of its own, started with its
//! mask in place, watched until the last process of its tree has ended. No
//! thread of pinwise runs beside it: pinwise sleeps in one `ppoll`.

mod accounts;
mod bind;
mod busiest;
mod capture;
mod companion;
mod counters;
mod counts;
mod daemon;
mod execute_bound;
mod file_limit;
mod guardian;
mod host;
mod hypervisor;
mod interrupts;
mod isolation;
mod jitter;
mod ledger;
mod links;
pub mod live;
mod netlink;
mod numa_maps;
mod output;
mod peers;
mod perf_record;
mod pins;
mod probe;
mod process_stat;
mod processes;
mod program_paths;
mod ranks;
mod replay;
mod ring;
mod round;
mod run;
mod sample;
mod scheduling;
mod signals;
mod spawn;
mod stack;
mod start;
mod supervise;
mod sys;
mod trace;
mod tree;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

pub use accounts::{effective_user, group_id, user_id};
pub use bind::coverage::own_setting;
pub use busiest::find_busiest;
pub use capture::{CaptureReadError, capture_folder, capture_host, name_models};
pub use counters::{CycleCounting, perf_refusal};
pub use execute_bound::{BoundPlace, execute_bound};
pub use file_limit::fail_writes_beyond_file_limit;
pub use host::{HostFacts, is_pod, own_niceness, read_host_facts, read_tuners};
pub use interrupts::read_interrupts;
pub use isolation::read_isolation;
pub use ledger::{
    Change, ChangeId, ChangeJournal, Entry, FAULT_POINTS, Fault, Ledger, LedgerError,
    LedgerOptions, Leftover, LeftoverState, MovedMemory, PageRange, RulesJournal, SetQueue,
    UndoOutcome, cpusets_exclude_others, find_leftovers, journal_folders,
};
pub use links::{capture_links, read_links};
pub use peers::owner_of_peer;
pub use pins::{Pins, thread_settings};
pub use probe::available_memory_bytes;
pub use processes::{
    LinuxProcesses, ProcessWatch, may_set_any_nice, own_user_is_root, writable_by_others,
};
pub use program_paths::find_program;
pub use ranks::{RankCommand, run_side_by_side};
pub use round::run_round;
pub use sample::{
    Chain as SampleChain, Record as SampleRecord, Records as SampleRecords,
    Registers as SampleRegisters,
};
pub use start::{check_memory_policy, execute};
pub use tree::{find_processes, process_name};
pub use usage::watch_usage;

use bind::ptrace::Orphans;
use bind::{Binder, refusal};
use companion::RunningCompanion;
use counters::Counters;
use guardian::{Guardian, MARK};
use ledger::{JoinedGroup, check_undone};
use output::Streams;
use signals::Signals;
use spawn::{Child, ChildPlan, Spawner, Step};
use start::{CommandPurpose, Programs, c_arguments, explain_start_error, policy_mode};
use supervise::NoAttendant;
use usage::{Meter, OwnPeak, Throttle};

use super::{
    Binding, BusyProcess, CommandRunner, End, Host, MachineError, Output, Request, Run, Usage,
};
use pinwise_placement::MemoryBinding;
use pinwise_topology::{CpuSet, Devices, Topology, Warning};
use pinwise_workload::{Command, Workload};

/// Environment variable whose length varies from run to run.
const PADDING: &str = "PINWISE_PADDING";

/// The host that this process runs on.
pub struct LinuxMachine {
    topology: Topology,
    warnings: Vec<Warning>,
    spawner: Spawner,
    guardian: Guardian,
    signals: Signals,
    environment: BTreeMap<String, CString>,
    programs: Programs,
    streams: Streams,
    counters: Counters,
    has_run: bool,
    meter: Meter,
    own_peak: OwnPeak,
    throttle: Option<Throttle>,
    disturbance: Option<usage::Disturbance>,
    /// Processes that `--prepare` left running on purpose.
    helpers: BTreeSet<libc::pid_t>,
    /// Children that are not ended: older ones, companions, and those that commands left running.
    spared: BTreeSet<libc::pid_t>,
    mark: String,
    /// Binds the threads of the running command.
    binder: Option<Binder>,
    /// Probing threads; stopped before a command runs.
    probing: Option<probe::ProbeSession>,
    /// Records the changes that runs make to the host.
    ledger: Option<Ledger>,
    /// Own cgroups that the next command joins.
    groups: Vec<JoinedGroup>,
    /// Commands that run during the measured one.
    companions: Vec<RunningCompanion>,
}

impl std::fmt::Debug for LinuxMachine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("LinuxMachine").finish_non_exhaustive()
    }
}

impl LinuxMachine {
    /// Until the result is dropped, signals are read from a descriptor, this process is the parent
    /// of orphans, and a guardian process cleans up if pinwise is killed.
    ///
    /// # Errors
    /// [`MachineError`] if the system refuses something needed.
    pub fn open(cycles: CycleCounting) -> Result<Self, MachineError> {
        let system = |action: &str| {
            let action = action.to_owned();
            move |error: io::Error| MachineError::System {
                action,
                reason: error.to_string(),
            }
        };
        let (topology, warnings) = discover()?;
        let mark = guardian::make_mark();
        let guardian = Guardian::start(&mark).map_err(system("starting the guardian process"))?;
        sys::become_subreaper().map_err(system("becoming the parent of orphans"))?;
        let handled = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
        let signals = Signals::take(&handled).map_err(system("taking signals"))?;
        let counters = Counters::open(cycles);
        let throttle = topology
            .quota
            .as_ref()
            .and_then(|quota| Throttle::watch_beside(&quota.source));
        let meter = Meter::limited_to(&topology.allowed);
        Ok(Self {
            topology,
            warnings,
            spawner: Spawner::new().map_err(system("allocating a stack"))?,
            guardian,
            signals,
            environment: inherited_environment(),
            programs: Programs::new(),
            streams: Streams::new().map_err(system("making pipes"))?,
            counters,
            has_run: false,
            meter,
            own_peak: OwnPeak::new(),
            throttle,
            disturbance: None,
            helpers: BTreeSet::new(),
            // This process may have inherited children, and as the first process of a container it
            // is the guardian's parent.
            spared: tree::own_children(&BTreeSet::new()).into_iter().collect(),
            mark,
            binder: None,
            probing: None,
            ledger: None,
            groups: Vec::new(),
            companions: Vec::new(),
        })
    }

    /// Adds a ledger for changes of the host by runs. It was opened before the machine was.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Builds a command's variables: the inherited ones, the workload's own, mark and padding.
    fn build_environment(
        &self,
        workload: Option<&Workload>,
        mark: &str,
        padding: usize,
    ) -> Vec<CString> {
        let added = workload.map_or(&[][..], |w| &w.environment);
        let is_replaced = |name: &str| added.iter().any(|(other, _)| other == name);
        let inherited = self.environment.iter();
        let kept = inherited.filter(|(name, _)| added.is_empty() || !is_replaced(name));
        let mut environment: Vec<CString> = kept.map(|(_, entry)| entry.clone()).collect();
        let own = added.iter().map(|(name, value)| format!("{name}={value}"));
        let ours = [
            format!("{MARK}={mark}"),
            format!("{PADDING}={}", "x".repeat(padding)),
        ];
        environment.extend(own.chain(ours).filter_map(|entry| CString::new(entry).ok()));
        environment
    }

    /// Starts a command; returns it with the time of its start.
    fn start_command(
        &mut self,
        command: &Command,
        purpose: CommandPurpose<'_>,
        cpus: &CpuSet,
        memory: Option<&MemoryBinding>,
        bound: Option<(&Binding, Orphans)>,
        descriptors: [i32; 3],
    ) -> Result<(Child, Duration), MachineError> {
        let (workload, settings, padding) = match purpose {
            CommandPurpose::Measured(workload, settings, padding) => {
                (Some(workload), settings, padding)
            }
            CommandPurpose::Helper | CommandPurpose::Companion { .. } => (None, &[][..], 0),
        };
        let folder = workload.and_then(|workload| workload.folder.as_deref());
        let program = self.programs.resolve_program(folder, command)?;
        let folder = folder.and_then(|folder| CString::new(folder.as_os_str().as_bytes()).ok());
        if bound.is_some() {
            refusal::check_program(&program, command)?;
        }
        let arguments = c_arguments(command);
        let environment = self.build_environment(workload, purpose.mark(&self.mark), padding);
        let nodes: CpuSet = memory
            .map(|memory| memory.nodes.iter().copied().collect())
            .unwrap_or_default();
        let groups: Vec<RawFd> = match workload {
            Some(_) => self.groups.iter().map(JoinedGroup::descriptor).collect(),
            None => Vec::new(),
        };
        let plan = ChildPlan {
            groups: &groups,
            program: &program,
            arguments: &arguments,
            environment: &environment,
            folder: folder.as_ref(),
            descriptors,
            cpus,
            memory: memory.map(|memory| policy_mode(memory, &nodes)),
            signals: self.signals.before(),
            slot: self.guardian.slot(),
            is_traced: bound.is_some(),
            is_subreaper: matches!(purpose, CommandPurpose::Companion { .. }),
            scheduling: scheduling::build_attributes(settings),
            has_own_cookie: settings.contains(&crate::RunSetting::CoreScheduling),
        };
        let blocked = Signals::block();
        let started = sys::monotonic();
        let child = self.spawner.spawn(&plan);
        drop(blocked);
        let child = child.map_err(|(step, error)| match step {
            Step::Scheduling => scheduling::explain_refusal(settings, &error),
            Step::Cookie => scheduling::explain_refused_cookie(&error),
            step => explain_start_error(step, &error, command, cpus, memory),
        })?;
        let started = child.joined.unwrap_or(started);
        self.binder =
            bound.map(|(binding, orphans)| Binder::new(binding, child.pid, started, orphans));
        Ok((child, started))
    }

    fn take_pending_interrupt(&self) -> bool {
        let mut is_interrupted = false;
        while let Some(signal) = self.signals.next_pending() {
            is_interrupted |= signal != libc::SIGCHLD;
        }
        is_interrupted
    }
}

impl Host for LinuxMachine {
    fn label(&self) -> String {
        "local".to_owned()
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        Ok((self.topology.clone(), self.warnings.clone()))
    }

    fn now(&self) -> Duration {
        sys::monotonic()
    }

    fn program(&self, workload: &Workload) -> Option<String> {
        self.programs.digest(workload)
    }

    fn usage(&mut self) -> Option<Usage> {
        self.meter.usage()
    }

    fn busiest(&mut self) -> Vec<BusyProcess> {
        find_busiest()
    }

    fn wait(&mut self, time: Duration) -> Result<(), MachineError> {
        let end = sys::monotonic() + time;
        loop {
            if self.take_pending_interrupt() {
                return Err(MachineError::Interrupted);
            }
            let left = end.saturating_sub(sys::monotonic());
            if left.is_zero() {
                return Ok(());
            }
            sys::poll([self.signals.as_raw_fd()], Some(left));
        }
    }
}

impl CommandRunner for LinuxMachine {
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        match request.settings {
            [] => self.run_beside(request, None, &mut NoAttendant),
            _ => self.run_with_settings(request),
        }
    }

    fn run_helper(&mut self, role: &'static str, command: &Command) -> Result<(), MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        self.probing = None;
        let descriptors = self
            .streams
            .prepare(None, &Output::Discard)
            .map_err(|(_, error)| MachineError::System {
                action: "making pipes".to_owned(),
                reason: error.to_string(),
            })?;
        let cpus = self.topology.allowed.clone();
        let (child, _) = self.start_command(
            command,
            CommandPurpose::Helper,
            &cpus,
            None,
            None,
            descriptors.numbers,
        )?;
        let end = self.supervise_helper(child.pid);
        self.guardian.note_command_end();
        let end = end?;
        let (_, stderr) = self.streams.collect(&Output::Discard, &descriptors);
        if end == End::Status(0) {
            return Ok(());
        }
        let how = match end {
            End::Signal(signal) => format!("killed by signal {signal}"),
            End::Status(status) => format!("exit status {status}"),
            End::TimedOut | End::Interrupted | End::LeftBehind(_) | End::NoFigure(_) => {
                "it did not end".to_owned()
            }
        };
        let message = String::from_utf8_lossy(&stderr).trim().to_owned();
        Err(MachineError::Helper {
            role,
            command: command.to_string(),
            reason: if message.is_empty() {
                how
            } else {
                format!("{how}: {message}")
            },
        })
    }
}

impl Drop for LinuxMachine {
    fn drop(&mut self) {
        if !self.helpers.is_empty() || !self.companions.is_empty() {
            guardian::kill_marked(&format!("{MARK}={}", self.mark));
        }
    }
}

/// Reads the topology of the host; its devices on first use.
///
/// # Errors
/// [`MachineError::System`] if not even the affinity mask can be read.
pub fn discover() -> Result<(Topology, Vec<Warning>), MachineError> {
    let capture = capture::capture_cpus().map_err(|error| MachineError::System {
        action: error.path,
        reason: error.reason,
    })?;
    let (mut topology, warnings) = Topology::from_capture(&capture);
    topology.devices = Devices::read_later(&topology, capture::capture_devices);
    Ok((topology, warnings))
}

/// Time of day, RFC 3339 in UTC, to the second.
#[must_use]
pub fn time_of_day() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the wall clock is read"
    )]
    let now = SystemTime::now();
    humantime::format_rfc3339_seconds(now).to_string()
}

/// A random number, to seed generators.
#[must_use]
pub fn random_seed() -> u64 {
    sys::random_u64()
}

/// Random bytes that nobody can guess.
///
/// # Errors
/// The system's error if it cannot provide any.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    sys::random_bytes()
}

/// The kernel's random id of this boot; `None` if unknown.
#[must_use]
pub fn boot_id() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "commands are looked for where a shell would"
)]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned())
}

/// Where the store is and its password: measured commands must not inherit them.
const STORE_VARIABLES: [&str; 2] = ["PINWISE_STORE", "PGPASSWORD"];

/// The inherited environment, without the variables that pinwise sets for commands.
fn inherited_environment() -> BTreeMap<String, CString> {
    whole_environment()
        .filter(|(name, _)| ![MARK, PADDING].contains(&name.as_str()))
        .filter(|(name, _)| !STORE_VARIABLES.contains(&name.as_str()))
        .collect()
}

/// Names and `NAME=VALUE` strings of the inherited environment.
fn whole_environment() -> impl Iterator<Item = (String, CString)> {
    use std::os::unix::ffi::OsStrExt;
    std::env::vars_os().filter_map(|(name, value)| {
        let text = name.to_string_lossy().into_owned();
        let mut entry = name.as_bytes().to_vec();
        entry.push(b'=');
        entry.extend_from_slice(value.as_bytes());
        Some((text, CString::new(entry).ok()?))
    })
}

/// Has the terminal on standard input gone away?
#[must_use]
pub fn terminal_is_gone() -> bool {
    sys::is_hung_up(libc::STDIN_FILENO)
}

/// Writes a file for a test, and the folders above it.
#[cfg(test)]
fn write_test_file(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
