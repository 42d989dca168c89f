//! How the kernel is configured to keep CPUs free of interrupts and other threads.
//!
//! Reads only; the root folder is a parameter.

use std::path::Path;

use super::capture::{list_names, read_text};
use crate::jitter::Isolation;
use pinwise_topology::{CpuSet, read_isolated};

/// Reads the settings below `root` (`/` for this host).
#[must_use]
pub fn read_isolation(root: &Path) -> Isolation {
    let text = |path: &str| read_text(&root.join(path));
    let list = |path: &str| CpuSet::parse_list(&text(path)?).ok();
    let cpu = "sys/devices/system/cpu";
    let command_line = text("proc/cmdline").unwrap_or_default();
    let option = |name: &str| {
        let mut words = command_line.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let nohz_full = option("nohz_full").and_then(|list| CpuSet::parse_list(list).ok());
    let nohz_full = list(&format!("{cpu}/nohz_full")).or(nohz_full);
    let rcu_nocbs = match option("rcu_nocbs") {
        Some("all") => list(&format!("{cpu}/possible")),
        Some(cpus) => CpuSet::parse_list(cpus).ok(),
        // CPUs of nohz_full imply it.
        None => None,
    };
    let nohz_full = nohz_full.unwrap_or_default();
    let irq = "proc/irq";
    let numbers = list_names(&root.join(irq));
    let numbers = numbers.iter().filter_map(|name| name.parse::<u32>().ok());
    let irq_cpus = numbers.filter_map(|number| {
        let cpus = list(&format!("{irq}/{number}/smp_affinity_list"))?;
        Some((number, cpus))
    });
    let mask = text(&format!("{irq}/default_smp_affinity"));
    let workers = text("sys/devices/virtual/workqueue/cpumask");
    let workers = workers.and_then(|mask| CpuSet::parse_mask(&mask).ok());
    // Kernel threads have their parent's mask; in a container, its number is another process's.
    let parent = text("proc/2/status").filter(|text| text.starts_with("Name:\tkthreadd\n"));
    let threads = parent.and_then(|text| {
        let mut lines = text.lines();
        let cpus = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        CpuSet::parse_list(cpus.trim()).ok()
    });
    Isolation {
        isolated: read_isolated(list),
        rcu_nocbs: rcu_nocbs.unwrap_or_default().union(&nohz_full),
        nohz_full,
        kernel_threads: workers
            .unwrap_or_default()
            .union(&threads.unwrap_or_default()),
        has_managed_irq: option("isolcpus")
            .is_some_and(|words| words.split(',').any(|word| word == "managed_irq")),
        irq_default: mask.and_then(|mask| CpuSet::parse_mask(&mask).ok()),
        irq_cpus: irq_cpus.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::write_test_file;

    #[test]
    fn settings_are_read_from_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write_test_file(&folder.path().join(path), text);
        put("sys/devices/system/cpu/isolated", "2\n");
        put("sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
        put("sys/devices/system/cpu/nohz_full", "3\n");
        put("proc/irq/default_smp_affinity", "3\n");
        put("proc/irq/38/smp_affinity_list", "0-3\n");
        put("sys/devices/virtual/workqueue/cpumask", "9\n");
        put(
            "proc/2/status",
            "Name:\tkthreadd\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n",
        );
        put(
            "proc/cmdline",
            "root=/dev/vda isolcpus=managed_irq,domain,2-3 nohz_full=3 rcu_nocbs=2\n",
        );
        let list = |text: &str| CpuSet::parse_list(text).unwrap();
        assert_eq!(
            read_isolation(folder.path()),
            Isolation {
                isolated: list("2-3"),
                nohz_full: list("3"),
                rcu_nocbs: list("2-3"),
                kernel_threads: list("0-1,3"),
                has_managed_irq: true,
                irq_default: Some(list("0-1")),
                irq_cpus: vec![(38, list("0-3"))],
            }
        );
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(read_isolation(nothing.path()), Isolation::default());
    }
}
