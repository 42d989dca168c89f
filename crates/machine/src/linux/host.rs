//! The host's settings, for `doctor`.
//!
//! Only reads; every fact may be missing. The root folder is a parameter, so that tests can
//! describe any host.

use std::path::Path;

use super::capture::{list_names, read_text};
use super::isolation::read_isolation;
use super::scheduling::SchedExt;
use super::sys;
use crate::jitter::Isolation;
use pinwise_sched::Refusal;
use pinwise_topology::{Capture, explain_unknown_quota};

/// Settings and state of a host; `None` if the system does not report them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// Does pinwise run as root?
    pub is_root: bool,
    /// Niceness of pinwise, which the programs that it starts inherit.
    pub nice: i32,
    /// Is there no `/proc`, as in some chroots?
    pub lacks_proc: bool,
    /// Is there no `/sys`?
    pub lacks_sys: bool,
    /// Why a cgroup's limit on CPU time could not be read.
    pub quota_refusal: Option<&'static str>,
    /// `on`, `off`, `notsupported` … of SMT control.
    pub smt_control: Option<String>,
    /// Frequency governors in use, each once.
    pub governors: Vec<String>,
    /// May the CPUs exceed their nominal frequency?
    pub turbo: Option<bool>,
    /// The selected mode of transparent huge pages.
    pub huge_pages: Option<String>,
    /// Swap in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Load average over a minute.
    pub load_average: Option<f64>,
    /// Level of address-space randomisation.
    pub aslr: Option<u32>,
    /// `kernel.perf_event_paranoid`.
    pub perf_paranoid: Option<i32>,
    /// Why perf events cannot be opened ([`perf_refusal`](super::perf_refusal), which no file
    /// shows); `None` if they can.
    pub perf_refusal: Option<Refusal>,
    /// Is automatic NUMA balancing on?
    pub numa_balancing: Option<bool>,
    /// Does pinwise run in a pod of Kubernetes?
    pub is_pod: bool,
    /// How CPUs are kept free of interrupts and other threads.
    pub isolation: Isolation,
    /// Names of running programs that move other programs' threads.
    pub tuners: Vec<String>,
    /// The active `sched_ext` scheduler.
    pub sched_ext: Option<String>,
    /// Thermal throttling events since boot, all CPUs together.
    pub thermal_throttles: Option<u64>,
    /// Is the machine on battery?
    pub on_battery: Option<bool>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Share of the last minute in which some task waited for a CPU, from PSI.
    pub cpu_pressure: Option<f64>,
}

/// Daemons that move the threads or memory of other processes.
const TUNERS: [&str; 8] = [
    "irqbalance",
    "numad",
    "tuned",
    "intel_lpmd",
    "ananicy-cpp",
    "auto-cpufreq",
    "gamemoded",
    "power-profiles-daemon",
];

/// Reads the facts below `root` (`/` for this host).
#[must_use]
pub fn read_host_facts(root: &Path) -> HostFacts {
    let host = HostReader { root };
    let cpu = "sys/devices/system/cpu";
    HostFacts {
        is_root: sys::is_root(),
        nice: own_niceness(),
        lacks_proc: list_names(&root.join("proc")).is_empty(),
        lacks_sys: list_names(&root.join("sys")).is_empty(),
        quota_refusal: host.explain_unknown_quota(),
        smt_control: host.read_text(&format!("{cpu}/smt/control")),
        governors: host.read_per_cpu("cpufreq/scaling_governor"),
        turbo: host.turbo(),
        huge_pages: host
            .read_text("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| parse_bracketed(&text)),
        swap_used_bytes: host.swap_used(),
        load_average: host
            .read_text("proc/loadavg")
            .and_then(|t| first_number(&t)),
        aslr: host.read_number("proc/sys/kernel/randomize_va_space"),
        perf_paranoid: host.read_number("proc/sys/kernel/perf_event_paranoid"),
        perf_refusal: None,
        numa_balancing: read_numa_balancing(root),
        is_pod: host.is_pod(),
        isolation: read_isolation(root),
        tuners: host.tuners(),
        sched_ext: SchedExt::read(root).scheduler,
        thermal_throttles: host.thermal_throttles(),
        on_battery: host.runs_on_battery(),
        clock_source: host
            .read_text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        cpu_pressure: host.cpu_pressure(),
    }
}

/// Niceness of pinwise, which the programs that it starts inherit; 0 if unknown.
#[must_use]
pub fn own_niceness() -> i32 {
    sys::nice_of(0).unwrap_or(0)
}

/// Does this process run in a pod of Kubernetes? Read below `root`.
#[must_use]
pub fn is_pod(root: &Path) -> bool {
    HostReader { root }.is_pod()
}

/// Names of running programs that move other programs' threads, below `root`.
#[must_use]
pub fn read_tuners(root: &Path) -> Vec<String> {
    HostReader { root }.tuners()
}

/// Does the kernel move pages to the node that uses them? `None` if it cannot.
pub(super) fn read_numa_balancing(root: &Path) -> Option<bool> {
    let mode = HostReader { root }.read_number::<u32>("proc/sys/kernel/numa_balancing");
    mode.map(|mode| mode > 0)
}

struct HostReader<'a> {
    root: &'a Path,
}

impl HostReader<'_> {
    /// A pod with a cgroup namespace does not show the kubelet's name of its cgroup, and one
    /// without a service account has no folder of secrets.
    fn is_pod(&self) -> bool {
        let cgroups = self.read_text("proc/self/cgroup").unwrap_or_default();
        let secrets = self.root.join("var/run/secrets/kubernetes.io");
        cgroups.contains("kubepods") || secrets.exists()
    }

    fn read_text(&self, path: &str) -> Option<String> {
        read_text(&self.root.join(path)).filter(|text| !text.is_empty())
    }

    fn explain_unknown_quota(&self) -> Option<&'static str> {
        let mut capture = Capture::new();
        for path in ["proc/mounts", "proc/self/cgroup"] {
            capture.insert(path, self.read_text(path).unwrap_or_default());
        }
        let has_processes = |dir: &str| self.root.join(dir).join("cgroup.procs").exists();
        explain_unknown_quota(&capture, has_processes)
    }

    fn read_number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.read_text(path)?.parse().ok()
    }

    fn list_cpu_folders(&self) -> Vec<String> {
        let mut folders = list_names(&self.root.join("sys/devices/system/cpu"));
        folders.retain(|name| {
            name.strip_prefix("cpu")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        });
        folders
    }

    /// The different values of a file of each CPU.
    fn read_per_cpu(&self, file: &str) -> Vec<String> {
        let mut values: Vec<String> = self
            .list_cpu_folders()
            .iter()
            .filter_map(|cpu| self.read_text(&format!("sys/devices/system/cpu/{cpu}/{file}")))
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn turbo(&self) -> Option<bool> {
        let no_turbo = self.read_number::<u32>("sys/devices/system/cpu/intel_pstate/no_turbo");
        let boost = self.read_number::<u32>("sys/devices/system/cpu/cpufreq/boost");
        no_turbo.map(|v| v == 0).or(boost.map(|v| v != 0))
    }

    fn swap_used(&self) -> Option<u64> {
        let text = self.read_text("proc/meminfo")?;
        let kib = |key: &str| -> Option<u64> {
            let line = text.lines().find(|line| line.starts_with(key))?;
            line.split_ascii_whitespace().nth(1)?.parse().ok()
        };
        let used = kib("SwapTotal:")?.saturating_sub(kib("SwapFree:")?);
        used.checked_mul(1024)
    }

    fn tuners(&self) -> Vec<String> {
        let mut found: Vec<String> = list_names(&self.root.join("proc"))
            .iter()
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
            .filter_map(|pid| self.read_text(&format!("proc/{pid}/comm")))
            .filter(|name| TUNERS.contains(&name.as_str()))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn thermal_throttles(&self) -> Option<u64> {
        let counts: Vec<u64> = self
            .list_cpu_folders()
            .iter()
            .filter_map(|cpu| {
                let file = "thermal_throttle/core_throttle_count";
                self.read_number(&format!("sys/devices/system/cpu/{cpu}/{file}"))
            })
            .collect();
        let sum = |sum: u64, &count: &u64| sum.saturating_add(count);
        (!counts.is_empty()).then(|| counts.iter().fold(0, sum))
    }

    fn runs_on_battery(&self) -> Option<bool> {
        let supplies = list_names(&self.root.join("sys/class/power_supply"));
        let online: Vec<u32> = supplies
            .iter()
            .filter_map(|name| self.read_number(&format!("sys/class/power_supply/{name}/online")))
            .collect();
        (!online.is_empty()).then(|| online.iter().all(|&v| v == 0))
    }

    fn cpu_pressure(&self) -> Option<f64> {
        let text = self.read_text("proc/pressure/cpu")?;
        let some = text.lines().find(|line| line.starts_with("some"))?;
        let value = some.split("avg60=").nth(1)?;
        first_number(value).map(|percent| percent / 100.0)
    }
}

/// The word in brackets of `always [madvise] never`.
fn parse_bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

fn first_number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::write_test_file;

    #[test]
    fn facts_are_read_from_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write_test_file(&folder.path().join(path), text);
        put(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave\n",
        );
        put(
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave\n",
        );
        put("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
        put(
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        );
        put(
            "proc/meminfo",
            "MemTotal: 1 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n",
        );
        put("proc/loadavg", "1.50 1.0 0.5 2/100 123\n");
        put("proc/12/comm", "irqbalance\n");
        put(
            "proc/pressure/cpu",
            "some avg10=0.00 avg60=12.50 avg300=0 total=1\n",
        );
        let facts = read_host_facts(folder.path());
        assert_eq!(facts.governors, ["powersave"]);
        assert_eq!(facts.turbo, Some(true));
        assert_eq!(facts.huge_pages.as_deref(), Some("madvise"));
        assert_eq!(facts.swap_used_bytes, Some(40 * 1024));
        assert_eq!(facts.load_average, Some(1.5));
        assert_eq!(facts.tuners, ["irqbalance"]);
        assert_eq!(facts.cpu_pressure, Some(0.125));
        assert_eq!(facts.aslr, None);
    }

    #[test]
    fn a_quota_without_its_files_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write_test_file(&folder.path().join(path), text);
        assert!(read_host_facts(folder.path()).lacks_proc);
        assert!(read_host_facts(folder.path()).lacks_sys);
        put("proc/mounts", "proc /proc proc rw 0 0\n");
        put("sys/kernel/notes", "");
        put("proc/self/cgroup", "2:cpuset:/\n1:cpu,cpuacct:/limited\n");
        let facts = read_host_facts(folder.path());
        assert!(!facts.lacks_proc && !facts.lacks_sys);
        assert_eq!(facts.quota_refusal, Some("no cgroup files"));
        put(
            "proc/mounts",
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n",
        );
        put("sys/fs/cgroup/cpu/limited/cgroup.procs", "1\n");
        assert_eq!(read_host_facts(folder.path()).quota_refusal, None);
        // Without cgroups there is no limit either.
        put("proc/self/cgroup", "");
        put("proc/mounts", "proc /proc proc rw 0 0\n");
        assert_eq!(read_host_facts(folder.path()).quota_refusal, None);
    }
}
