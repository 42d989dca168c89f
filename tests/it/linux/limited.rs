//! Under a limit of a cgroup on CPU time.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::trial::{Trial, runs_of, two_cpus};
use crate::support::{PATIENCE, skipped};

/// A cgroup with a limit on CPU time; goes away when dropped.
///
/// Beside many busy processes, an equal share may be less than the limit, which then stops
/// nothing: the group outweighs them.
pub(super) struct Group(pub(super) PathBuf);

impl Group {
    /// `None` if this process may make none.
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
            let is_made = std::fs::create_dir(&group.0).is_ok() && files.iter().all(write);
            if is_made {
                return Some(group);
            }
        }
        None
    }

    pub(super) fn take(&self, process: &Child) -> bool {
        std::fs::write(self.0.join("cgroup.procs"), process.id().to_string()).is_ok()
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
        return skipped("no cgroup can be made");
    };
    let trial = Trial::new();
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let mut command = trial.pinwise_within(&["sh", "-c", &enter, "sh"], &["topology"]);
    let out = command.output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.contains("This pod runs in the shared pool on CPU"),
        "{out}"
    );
    assert!(out.contains("for 1 CPU of time."), "{out}");
    assert!(out.contains("--cpu-manager-policy=static"), "{out}");
}

#[test]
fn a_permanent_limit_is_part_of_the_place() {
    let Some(group) = Group::limited_to(0.3, "permanent") else {
        return skipped("no cgroup can be made");
    };
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let both = format!("for p in $(seq {{processes}}); do ({spin}) & done; wait");
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let outer = ["sh", "-c", &enter, "sh"];
    let arguments = [
        "compare",
        "--parameter",
        "processes=1,4",
        "--max-runs",
        "30",
        "--shell=sh",
    ];
    let mut command = trial.pinwise_within(&outer, &[&arguments[..], &[&both]].concat());
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("processes=1 is best"), "{out}");
    let record = trial.stored();
    let findings = record["findings"].as_array().unwrap();
    let finding = |check: &str| findings.iter().find(|finding| finding["check"] == check);
    assert!(finding("throttled").is_none(), "{out}");
    let limit = finding("cpu_limit").unwrap_or_else(|| panic!("{out}"));
    assert_eq!(limit["evidence"]["limit_cpus"], 0.3);
    assert!(out.contains("Raise the limit to 1 CPU:"), "{out}");
    let held_s = |run: &Value| run["throttled_s"].as_f64().unwrap();
    assert!(
        runs_of(&record).iter().any(|run| held_s(run) > 0.0),
        "{out}"
    );
}

/// What a process of this placement may use, as the kernel says.
const ALLOWED: [&str; 4] = ["--", "grep", "Cpus_allowed_list", "/proc/self/status"];

/// As with `taskset` and `numactl --all`.
#[test]
fn a_placement_may_leave_the_mask_of_its_parent() {
    let Some([first, second]) = two_cpus() else {
        return;
    };
    let trial = Trial::new();
    let place = format!("cpu:{second}");
    let arguments = [&["run", "--place", &place][..], &ALLOWED].concat();
    let output = trial.pinwise_on(first, &arguments).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        format!("Cpus_allowed_list:\t{second}"),
        "{output:?}"
    );
    // What names no CPU stays within.
    let arguments = [&["run", "--place", "os-default"][..], &ALLOWED].concat();
    let output = trial.pinwise_on(first, &arguments).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        format!("Cpus_allowed_list:\t{first}"),
        "{output:?}"
    );
}

/// lxcfs shows a container the first CPUs of as many as it may use, whichever these are.
#[test]
fn a_list_of_cpus_that_a_container_made_up_is_ignored() {
    let Some([first, second]) = two_cpus() else {
        return;
    };
    let trial = Trial::new();
    trial.shell(&format!("echo {first} > online"));
    let mount = "mount --bind online /sys/devices/system/cpu/online";
    let unshared = format!("{mount} && exec taskset -c {second} \"$@\"");
    let outer = ["unshare", "-m", "sh", "-c", &unshared, "sh"];
    let is_possible = trial.shell(&format!("unshare -m sh -c '{mount}' && echo yes || true"));
    if is_possible.trim() != "yes" {
        return skipped("no file system can be mounted");
    }
    let arguments = [&["run"][..], &ALLOWED].concat();
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
