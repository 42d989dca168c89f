//! Limits of a cgroup on CPU time, and confined CPUs.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::trial::{Ended, Trial, find_two_cpus, finish, list_runs};
use crate::support::{PATIENCE, find_finding, report_skip, split_words};

/// A cgroup with a limit on CPU time, which is removed when it is dropped.
///
/// Its weight is high: beside many busy processes, an equal share may be less than the limit,
/// which then stops nothing.
pub(super) struct Group(pub(super) PathBuf);

impl Group {
    /// `None` if this process may create none.
    pub(super) fn limited_to(cpus: f64, name: &str) -> Option<Self> {
        let name = name.replace("::", "-");
        let name = format!("pinwise-{name}-{}", std::process::id());
        let quota = format!("{:.0}", 100_000.0 * cpus);
        let v1 = [
            ("cpu.cfs_quota_us", quota.clone()),
            ("cpu.shares", "262144".to_owned()),
        ];
        let v2 = [
            ("cpu.max", format!("{quota} 100000")),
            ("cpu.weight", "10000".to_owned()),
        ];
        for (root, files) in [("/sys/fs/cgroup/cpu", v1), ("/sys/fs/cgroup", v2)] {
            let group = Self(Path::new(root).join(&name));
            let write = |(file, value): &(&str, String)| {
                let file = group.0.join(file);
                file.exists() && std::fs::write(file, value).is_ok()
            };
            if std::fs::create_dir(&group.0).is_ok() && files.iter().all(write) {
                return Some(group);
            }
        }
        None
    }

    /// Moves a process into the group; false if that fails.
    pub(super) fn take(&self, process: &Child) -> bool {
        std::fs::write(self.0.join("cgroup.procs"), process.id().to_string()).is_ok()
    }

    /// Runs pinwise within the group.
    pub(super) fn run(&self, trial: &Trial, arguments: &[&str]) -> Ended {
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.0.display());
        let mut command = trial.pinwise_within(&["sh", "-c", &enter, "sh"], arguments);
        finish(command.spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.0.exists() && std::fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn topology_shows_the_limit_of_a_pod() {
    let Some(group) = Group::limited_to(1.0, "kubepods") else {
        return report_skip("no cgroup can be made");
    };
    let out = group.run(&Trial::new(), &["topology"]).out;
    assert!(
        out.contains("This pod runs in the shared pool on CPU"),
        "{out}"
    );
    assert!(out.contains("for 1 CPU of time."), "{out}");
    assert!(out.contains("--cpu-manager-policy=static"), "{out}");
}

#[test]
fn a_limit_on_pinwise_itself_is_a_condition_and_no_disturbance() {
    let Some(group) = Group::limited_to(0.3, "permanent") else {
        return report_skip("no cgroup can be made");
    };
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let line = format!("for p in $(seq {{processes}}); do ({spin}) & done; wait");
    let options = split_words("compare --parameter processes=1,4 --max-runs 30 --shell=sh");
    let ended = group.run(&trial, &[&options[..], &[&line]].concat());
    ended.check_success();
    let out = ended.out;
    assert!(out.contains("processes=1 is best"), "{out}");
    let record = trial.read_record();
    assert!(find_finding(&record, "throttled").is_none(), "{out}");
    let limit = find_finding(&record, "cpu_limit").unwrap_or_else(|| panic!("{out}"));
    assert_eq!(limit["evidence"]["limit_cpus"], 0.3);
    assert!(out.contains("Raise the limit to 1 CPU:"), "{out}");
    let held_s = |run: &Value| run["throttled_s"].as_f64().unwrap();
    assert!(
        list_runs(&record).iter().any(|run| held_s(run) > 0.0),
        "{out}"
    );
}

/// A command that prints which CPUs it may use.
const PRINT_ALLOWED: [&str; 4] = ["--", "grep", "Cpus_allowed_list", "/proc/self/status"];

/// As with `taskset` and `numactl --all`.
#[test]
fn a_placement_that_names_cpus_may_leave_the_mask_of_its_parent() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let place = format!("cpu:{second}");
    let arguments = [&["run", "--place", &place][..], &PRINT_ALLOWED].concat();
    let output = trial.pinwise_on_cpu(first, &arguments).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        format!("Cpus_allowed_list:\t{second}"),
        "{output:?}"
    );
    // Other placements stay within it.
    let arguments = [&["run", "--place", "os-default"][..], &PRINT_ALLOWED].concat();
    let output = trial.pinwise_on_cpu(first, &arguments).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        format!("Cpus_allowed_list:\t{first}"),
        "{output:?}"
    );
}

/// lxcfs shows a container that may use N CPUs the first N CPUs, whichever it may use.
#[test]
fn a_list_of_online_cpus_that_contradicts_the_mask_is_ignored() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    let trial = Trial::new();
    trial.run_shell(&format!("echo {first} > online"));
    let mount = "mount --bind online /sys/devices/system/cpu/online";
    let unshared = format!("{mount} && exec taskset -c {second} \"$@\"");
    let outer = ["unshare", "-m", "sh", "-c", &unshared, "sh"];
    let is_possible = trial.run_shell(&format!("unshare -m sh -c '{mount}' && echo yes || true"));
    if is_possible.trim() != "yes" {
        return report_skip("no file system can be mounted");
    }
    let arguments = [&["run"][..], &PRINT_ALLOWED].concat();
    let output = trial.pinwise_within(&outer, &arguments).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        format!("Cpus_allowed_list:\t{second}"),
        "{output:?}"
    );
    let output = trial
        .pinwise_within(&outer, &["topology"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("\n1 CPU, 1 core"), "{out}");
    let warning = format!("/sys/devices/system/cpu/online says {first}, but this process may use");
    assert!(out.contains(&warning), "{out}");
}
