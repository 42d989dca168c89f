//! The host's processes, read from `/proc` for rules.
//!
//! Processes choose their names, paths and command lines: these are read as bytes of limited
//! length, and prove nothing about a process.

mod connector;
mod cpuset;
mod ownership;
mod watch;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

pub use ownership::writable_by_others;
pub use watch::ProcessWatch;

use super::capture::read_file;
use super::process_stat::{self, PF_KTHREAD, ProcessStat};
use super::sys;
use crate::processes::{Identity, Processes, Refused};
use pinwise_topology::CpuSet;
use pinwise_workload::rules;

/// Most bytes of a command line that are read.
const MAX_COMMAND_LINE_BYTES: u64 = 4096;
/// Number of this capability in `linux/capability.h`.
const CAP_SYS_NICE: u32 = 23;

/// The processes of this host.
#[derive(Debug)]
pub struct LinuxProcesses {
    cpusets: cpuset::Cpusets,
}

impl LinuxProcesses {
    /// Finds the mounts of cpusets.
    #[must_use]
    pub fn open() -> Self {
        Self {
            cpusets: cpuset::Cpusets::find(),
        }
    }
}

/// May this process set any nice value of any process? Otherwise it could not restore a nice value
/// that it raised.
#[must_use]
pub fn may_set_any_nice() -> bool {
    let status = read_file(Path::new("/proc/self/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << CAP_SYS_NICE) != 0)
}

/// Does this process have the rights of root?
#[must_use]
pub fn own_user_is_root() -> bool {
    sys::is_root()
}

/// Facts about a process for rules, each read on demand. The outer `None`: not read yet; the inner
/// one: the process has none, or it cannot be read.
#[derive(Debug)]
pub struct Facts {
    process: i32,
    executable: Option<Option<Vec<u8>>>,
    cgroup: Option<Option<Vec<u8>>>,
    user: Option<Option<u32>>,
    command_line: Option<Option<Vec<u8>>>,
}

impl Facts {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.process))
    }
}

impl rules::Process for Facts {
    fn executable(&mut self) -> Option<&[u8]> {
        if self.executable.is_none() {
            let link = std::fs::read_link(self.path("exe")).ok();
            self.executable = Some(link.map(|path| path.into_os_string().into_vec()));
        }
        self.executable.as_ref()?.as_deref()
    }

    fn cgroup(&mut self) -> Option<&[u8]> {
        if self.cgroup.is_none() {
            let file = read_file(&self.path("cgroup"));
            self.cgroup = Some(file.and_then(|file| parse_cgroup(&file)));
        }
        self.cgroup.as_ref()?.as_deref()
    }

    fn user(&mut self) -> Option<u32> {
        if self.user.is_none() {
            let file = read_file(&self.path("status"));
            self.user = Some(file.and_then(|file| parse_user(&String::from_utf8_lossy(&file))));
        }
        self.user.flatten()
    }

    fn command_line(&mut self) -> Option<&[u8]> {
        if self.command_line.is_none() {
            self.command_line = Some(read_command_line(&self.path("cmdline")));
        }
        self.command_line.as_ref()?.as_deref()
    }
}

/// Reads the arguments, joined by blanks; `None` if the process has none, as kernel threads.
fn read_command_line(path: &Path) -> Option<Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    let file = File::open(path).ok()?;
    let mut line = Vec::new();
    file.take(MAX_COMMAND_LINE_BYTES)
        .read_to_end(&mut line)
        .ok()?;
    while line.last() == Some(&0) {
        line.pop();
    }
    for byte in &mut line {
        if *byte == 0 {
            *byte = b' ';
        }
    }
    (!line.is_empty()).then_some(line)
}

/// Parses a process's path in the cgroup tree of version 2; if that is the root, as on hybrid
/// systems, the path in the tree of systemd, the cpuset or the CPU controller.
fn parse_cgroup(file: &[u8]) -> Option<Vec<u8>> {
    let lines = file.split(|&byte| byte == b'\n');
    let entries = lines.filter_map(|line| {
        let mut parts = line.splitn(3, |&byte| byte == b':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, path))
    });
    let rank = |controllers: &[u8]| match controllers {
        b"" => Some(0),
        b"name=systemd" => Some(1),
        list => {
            let mut names = list.split(|&byte| byte == b',');
            names.find_map(|name| match name {
                b"cpuset" => Some(2),
                b"cpu" => Some(3),
                _ => None,
            })
        }
    };
    let mut ranked: Vec<(bool, i32, &[u8])> = entries
        .filter_map(|(controllers, path)| Some((path == b"/", rank(controllers)?, path)))
        .collect();
    ranked.sort_unstable_by_key(|&(is_root, rank, _)| (is_root, rank));
    ranked.first().map(|(_, _, path)| path.to_vec())
}

/// Parses the effective user, the second number of `Uid:` in `proc_pid_status(5)`.
fn parse_user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Parses a line of `proc_pid_stat(5)`; `None` for a kernel thread or a process that has ended.
fn parse_identity(line: &str) -> Option<Identity> {
    let stat = ProcessStat::parse(line)?;
    let is_program = !stat.has_ended() && !stat.has_flag(PF_KTHREAD)?;
    let (start, parent) = (stat.start()?, stat.parent()?);
    is_program.then(|| Identity {
        start,
        parent,
        name: stat.name.to_owned(),
    })
}

/// Lists the names in a folder that are numbers, ascending.
fn list_numbers(folder: &str) -> Vec<i32> {
    #[expect(clippy::disallowed_methods, reason = "the Edge lists /proc")]
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    found
}

fn explain_refusal(error: &io::Error) -> Refused {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Refused::Gone,
        Some(libc::EPERM | libc::EACCES) => Refused::NotPermitted,
        Some(libc::EINVAL) => {
            Refused::System("the kernel forbids it these CPUs (its cpuset)".to_owned())
        }
        _ => Refused::System(error.to_string()),
    }
}

impl Processes for LinuxProcesses {
    type Facts = Facts;

    fn all(&mut self) -> Vec<i32> {
        list_numbers("/proc")
    }

    fn facts(&mut self, process: i32) -> Facts {
        Facts {
            process,
            executable: None,
            cgroup: None,
            user: None,
            command_line: None,
        }
    }

    fn identity(&mut self, process: i32) -> Option<Identity> {
        parse_identity(&process_stat::read_line(process)?)
    }

    fn threads(&mut self, process: i32) -> Vec<i32> {
        list_numbers(&format!("/proc/{process}/task"))
    }

    fn mask(&mut self, thread: i32) -> Option<CpuSet> {
        // For the kernel, 0 means the calling thread.
        (thread > 0).then(|| sys::affinity_of(thread).ok())?
    }

    fn set_mask(&mut self, thread: i32, cpus: &CpuSet) -> Result<(), Refused> {
        if thread <= 0 {
            return Err(Refused::Gone);
        }
        sys::set_affinity_of(thread, cpus).map_err(|error| explain_refusal(&error))
    }

    fn nice(&mut self, thread: i32) -> Option<i32> {
        (thread > 0).then(|| sys::nice_of(thread).ok())?
    }

    fn set_nice(&mut self, thread: i32, nice: i32) -> Result<(), Refused> {
        if thread <= 0 {
            return Err(Refused::Gone);
        }
        sys::set_nice_of(thread, nice).map_err(|error| explain_refusal(&error))
    }

    fn default_mask(&mut self, process: i32) -> Option<CpuSet> {
        self.cpusets.read(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identities_of_processes_with_odd_names_are_parsed() {
        let fields = "S 7 2 3 4 5 4194560 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let identity = parse_identity(&format!("12 (a) R 1 (b) {fields}\n")).unwrap();
        assert_eq!((identity.start, identity.parent), (4711, 7));
        assert_eq!(identity.name, "a) R 1 (b");
        let kernel = fields.replace("4194560", "2097216");
        for bad in [
            "",
            "12 (x) S",
            ")(",
            &format!("2 (kthreadd) {kernel}"),
            &format!("2 (x) {}", fields.replace('S', "Z")),
        ] {
            assert_eq!(parse_identity(bad), None, "{bad}");
        }
    }

    #[test]
    fn cgroups_of_both_versions_are_found() {
        #[track_caller]
        fn check(file: &str, path: Option<&str>) {
            let found = parse_cgroup(file.as_bytes());
            assert_eq!(found.as_deref(), path.map(str::as_bytes), "{file}");
        }
        check(
            "0::/system.slice/a.service\n",
            Some("/system.slice/a.service"),
        );
        check("9:name=systemd:/x\n3:cpuset:/y\n0::/\n", Some("/x"));
        check("4:memory:/m\n3:cpu,cpuset:/y:z\n0::/\n", Some("/y:z"));
        check("4:memory:/m\n0::/\n", Some("/"));
        check("4:memory:/m\n", None);
        check("", None);
    }

    #[test]
    fn this_process_is_listed() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut host = LinuxProcesses::open();
        assert!(host.all().contains(&own));
        assert!(host.threads(own).contains(&own));
        let identity = host.identity(own).unwrap();
        assert!(identity.start > 0 && identity.parent > 0);
        let mut facts = host.facts(own);
        let path = rules::Process::executable(&mut facts).unwrap().to_vec();
        assert_eq!(
            path,
            std::env::current_exe().unwrap().into_os_string().into_vec()
        );
        assert_eq!(
            rules::Process::user(&mut facts),
            Some(sys::effective_user())
        );
        assert!(rules::Process::command_line(&mut facts).is_some());
        let mask = host.mask(own).unwrap();
        assert!(mask.is_subset(&host.default_mask(own).unwrap()));
        // A kernel thread, and an impossible id.
        assert_eq!((host.identity(2), host.identity(-1)), (None, None));
        assert_eq!((host.mask(0), host.nice(0)), (None, None));
        assert_eq!(host.set_mask(0, &mask), Err(Refused::Gone));
    }

    proptest! {
        #[test]
        fn any_file_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_cgroup(&bytes);
            let text = String::from_utf8_lossy(&bytes);
            let _ = (parse_identity(&text), parse_user(&text));
        }
    }
}
