//! CPU time of the whole machine and of the cgroup's quota.
//!
//! `/proc/stat` counts in ticks, usually 10 ms, and takes long to print on large machines, so reads
//! are at least [`MIN_INTERVAL`] apart.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sys;
use crate::{Throttling, Usage};
use pinwise_topology::{Capture, CpuSet, list_cgroup_folders};

/// Shortest interval whose CPU time is known well enough at this resolution.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// A file of `/proc` or of a cgroup that is kept open and read again and again.
#[derive(Debug)]
pub(super) struct RereadFile {
    file: File,
    buffer: Vec<u8>,
}

impl RereadFile {
    pub(super) fn open(path: &Path) -> Option<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the Edge reads /proc and cgroups"
        )]
        let file = File::open(path).ok()?;
        Some(Self {
            file,
            buffer: vec![0; 16 * 1024],
        })
    }

    /// The file's content from its start.
    pub(super) fn read(&mut self) -> Option<&str> {
        let mut filled = 0;
        loop {
            let read = self
                .file
                .read_at(&mut self.buffer[filled..], filled as u64)
                .ok()?;
            filled += read;
            if read == 0 {
                break;
            }
            if filled == self.buffer.len() {
                self.buffer.resize(2 * filled, 0);
            }
        }
        std::str::from_utf8(&self.buffer[..filled]).ok()
    }
}

/// Reads the `cpu` lines of `/proc/stat`.
pub(super) fn parse_stat(text: &str, at: Duration, ticks_per_second: u64) -> Usage {
    let mut usage = Usage {
        at,
        ..Usage::default()
    };
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64);
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(number) = fields.next().and_then(|name| name.strip_prefix("cpu")) else {
            break;
        };
        let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user, nice, system, idle, iowait, irq, softirq, steal
        let busy = [0, 1, 2, 5, 6].into_iter().map(tick);
        let busy = busy.fold(0, u64::saturating_add);
        match number.parse::<usize>() {
            Ok(cpu) => usage.busy.push((cpu, time(busy))),
            Err(_) => usage.steal = time(tick(7)),
        }
    }
    usage
}

/// Stolen time so far, by CPU, from the `cpu` lines of `/proc/stat`.
pub(super) fn parse_steal(text: &str, ticks_per_second: u64) -> BTreeMap<usize, Duration> {
    let steal = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = fields.next()?.parse().ok()?;
        let ticks: u64 = fields.nth(7)?.parse().ok()?;
        Some((
            cpu,
            Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64),
        ))
    };
    // The first line is the sum of all CPUs.
    text.lines().skip(1).map_while(steal).collect()
}

/// Busy time of these CPUs since `before`; `None`: of all.
pub(super) fn busy_since(now: &Usage, before: &Usage, cpus: Option<&CpuSet>) -> Duration {
    let counts = |cpu: usize| cpus.is_none_or(|cpus| cpus.contains(cpu));
    let total = |usage: &Usage| {
        let times = usage.busy.iter().filter(|(cpu, _)| counts(*cpu));
        let times = times.map(|(_, time)| *time);
        times.fold(Duration::ZERO, Duration::saturating_add)
    };
    total(now).saturating_sub(total(before))
}

/// Measures the CPU time of the machine at the start and the end of a wait; `None` if unknown.
#[must_use]
pub fn watch_usage(wait: Duration) -> Option<(Usage, Usage)> {
    let mut meter = Meter::new();
    let before = meter.usage()?;
    std::thread::sleep(wait);
    Some((before, meter.usage()?))
}

/// CPU time of other processes and of the hypervisor in the latest interval, as a share of
/// wall-clock time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Disturbance {
    pub(super) foreign: f64,
    pub(super) steal: f64,
}

/// Measures the machine's CPU time from run to run.
#[derive(Debug)]
pub(super) struct Meter {
    stat: Option<RereadFile>,
    ticks_per_second: u64,
    /// CPUs on which commands may run: the load of others does not disturb them. `None`: all.
    cpus: Option<CpuSet>,
    last: Option<Usage>,
    /// CPU time of measured commands since `last`.
    commands: Duration,
    /// CPU time of pinwise itself up to `last`.
    own_process: Duration,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            stat: RereadFile::open(Path::new("/proc/stat")),
            ticks_per_second: sys::ticks_per_second(),
            cpus: None,
            last: None,
            commands: Duration::ZERO,
            own_process: Duration::ZERO,
        }
    }

    /// Counts only the load of these CPUs, and of those that commands are placed on.
    pub(super) fn limited_to(cpus: &CpuSet) -> Self {
        Self {
            cpus: Some(cpus.clone()),
            ..Self::new()
        }
    }

    pub(super) fn usage(&mut self) -> Option<Usage> {
        let text = self.stat.as_mut()?.read()?;
        Some(parse_stat(text, sys::monotonic(), self.ticks_per_second))
    }

    /// Returns what disturbed the run that has just ended and used `cpu_time` on these CPUs; `None`
    /// if too little time has passed to know.
    pub(super) fn disturbance_of_run(
        &mut self,
        cpu_time: Duration,
        cpus: &CpuSet,
    ) -> Option<Disturbance> {
        self.commands += cpu_time;
        // A placement may leave pinwise's own mask.
        if let Some(own) = &mut self.cpus {
            *own = own.union(cpus);
        }
        let now = sys::monotonic();
        if let Some(last) = &self.last
            && now.saturating_sub(last.at) < MIN_INTERVAL
        {
            return None;
        }
        let usage = self.usage()?;
        let process = sys::own_cpu_time();
        let own = self.commands + process.saturating_sub(self.own_process);
        let disturbance = self.last.as_ref().map(|last| {
            let interval = usage.at.saturating_sub(last.at).as_secs_f64();
            let foreign = busy_since(&usage, last, self.cpus.as_ref()).saturating_sub(own);
            Disturbance {
                foreign: foreign.as_secs_f64() / interval,
                steal: usage.steal.saturating_sub(last.steal).as_secs_f64() / interval,
            }
        });
        self.last = Some(usage);
        self.commands = Duration::ZERO;
        self.own_process = process;
        disturbance
    }
}

/// Separates a command's peak memory from pinwise's own.
///
/// The kernel counts a process's memory before it executes a program as well. So the reported peak
/// of a command is at least pinwise's, and the own peak of a smaller command is unknown. For the
/// same reason `getrusage` reports for pinwise at least the peak of the program that started it,
/// which may be far larger than any command.
#[derive(Debug)]
pub(super) struct OwnPeak {
    /// Peak of pinwise alone, as last read; `None` if `getrusage` reports it, too.
    resident_bytes: Option<u64>,
}

impl OwnPeak {
    pub(super) fn new() -> Self {
        let has_larger_launcher = |own: &u64| exceeds(sys::own_peak_bytes(), *own);
        Self {
            resident_bytes: read_resident_peak().filter(has_larger_launcher),
        }
    }

    /// A command's reported peak; `None` if it may be pinwise's own.
    pub(super) fn command_peak(&mut self, peak_bytes: u64) -> Option<u64> {
        if peak_bytes > sys::own_peak_bytes() {
            return Some(peak_bytes);
        }
        // pinwise only grows: a value below the last reading need not be read again.
        if exceeds(peak_bytes, self.resident_bytes?) {
            self.resident_bytes = read_resident_peak();
        }
        exceeds(peak_bytes, self.resident_bytes?).then_some(peak_bytes)
    }
}

/// Is a peak clearly larger than pinwise's own? The kernel adds counts of CPUs with a delay, so
/// peaks are inexact.
const fn exceeds(peak_bytes: u64, own_bytes: u64) -> bool {
    peak_bytes > own_bytes + own_bytes / 8
}

/// Reads the largest resident size of pinwise since it was executed, bytes. This takes many times
/// as long as `getrusage`.
fn read_resident_peak() -> Option<u64> {
    let status = super::capture::read_file(Path::new("/proc/self/status"))?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Tracks throttling by the cgroup's quota.
#[derive(Debug)]
pub(super) struct Throttle {
    file: RereadFile,
    last: Throttling,
}

impl Throttle {
    /// Watches the `cpu.stat` next to the file that sets the quota.
    pub(super) fn watch_beside(quota_file: &str) -> Option<Self> {
        Self::watch_folder(Path::new(quota_file).parent()?, None)
    }

    /// Watches a cgroup's throttling, counted from `before`; `None`: from now on.
    pub(super) fn watch_folder(folder: &Path, before: Option<Throttling>) -> Option<Self> {
        let mut file = RereadFile::open(&folder.join("cpu.stat"))?;
        let now = parse_throttling(file.read()?)?;
        let last = before.unwrap_or(now);
        Some(Self { file, last })
    }

    /// The throttling since the last call.
    pub(super) fn since_last(&mut self) -> Option<Throttling> {
        let now = parse_throttling(self.file.read()?)?;
        let added = Throttling {
            periods: now.periods.saturating_sub(self.last.periods),
            times: now.times.saturating_sub(self.last.times),
            held: now.held.saturating_sub(self.last.held),
        };
        self.last = now;
        Some(added)
    }
}

/// Finds the folders of the cgroups of a controller that a process is in, the innermost first, from
/// `/proc/mounts` and the process's `/proc/PID/cgroup`.
pub(super) fn find_cgroups(mounts: &[u8], cgroups: &[u8], controller: &str) -> Vec<PathBuf> {
    let mut capture = Capture::new();
    capture.insert("proc/mounts", mounts.trim_ascii());
    capture.insert("proc/self/cgroup", cgroups.trim_ascii());
    let folders = list_cgroup_folders(&capture, controller).into_iter();
    folders.map(|folder| Path::new("/").join(folder)).collect()
}

/// Reads how much the quota of a cgroup has throttled so far; `None` if it cannot have a quota.
pub(super) fn read_throttling(folder: &Path) -> Option<Throttling> {
    let text = super::capture::read_file(&folder.join("cpu.stat"))?;
    parse_throttling(&String::from_utf8_lossy(&text))
}

/// Parses `cpu.stat`, which has microseconds in version 2 of cgroups and nanoseconds in version 1.
fn parse_throttling(text: &str) -> Option<Throttling> {
    let number = |name: &str| find_number(text, name);
    Some(Throttling {
        periods: number("nr_periods").unwrap_or(0),
        times: number("nr_throttled")?,
        held: number("throttled_usec")
            .map(Duration::from_micros)
            .or_else(|| number("throttled_time").map(Duration::from_nanos))
            .unwrap_or_default(),
    })
}

/// The number of this name in a file with a line for each, such as `cpu.stat`.
pub(super) fn find_number(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stat_is_read_per_cpu() {
        let text = "cpu  10 0 5 100 3 1 1 7 0 0\ncpu0 4 0 2 50 1 1 0 3 0 0\ncpu12 6 0 3 50 2 0 1 4 0 0\nintr 5\n";
        let usage = parse_stat(text, Duration::ZERO, 100);
        assert_eq!(usage.steal, Duration::from_millis(70));
        assert_eq!(
            usage.busy,
            [
                (0, Duration::from_millis(70)),
                (12, Duration::from_millis(100))
            ]
        );
    }

    #[test]
    fn the_load_of_cpus_that_are_not_allowed_is_not_counted() {
        let at = |first, second| {
            let text = format!("cpu 0\ncpu0 {first} 0 0\ncpu1 {second} 0 0\n");
            parse_stat(&text, Duration::ZERO, 100)
        };
        let (before, now) = (at(0, 0), at(30, 70));
        let ms = Duration::from_millis;
        let one = CpuSet::single(0);
        assert_eq!(busy_since(&now, &before, Some(&one)), ms(300));
        assert_eq!(busy_since(&now, &before, None), ms(1000));
    }

    #[test]
    fn throttling_is_read() {
        let throttling = Throttling {
            periods: 5,
            times: 3,
            held: Duration::from_micros(17),
        };
        for text in [
            "nr_periods 5\nnr_throttled 3\nthrottled_usec 17\n",
            "nr_periods 5\nnr_throttled 3\nthrottled_time 17000\n",
        ] {
            assert_eq!(parse_throttling(text), Some(throttling));
        }
        assert_eq!(parse_throttling(""), None);
    }

    #[test]
    fn overflowing_ticks_saturate() {
        // Some kernels let steal and guest time wrap below zero.
        let most = u64::MAX;
        let text = format!("cpu 0 0 0 0 0 0 0 {most}\ncpu0 {most} 1 0\ncpu1 {most} 0 0\n");
        let usage = parse_stat(&text, Duration::ZERO, 100);
        assert_eq!(usage.busy[0].1, usage.busy[1].1);
        let before = parse_stat("", Duration::ZERO, 1);
        assert!(busy_since(&usage, &before, None) > usage.busy[0].1);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cpu[0-9]{0,3} ([0-9]{1,20} ?){0,9}\n|\\PC{0,20}\n|nr_throttled \\PC{0,9}\n){0,4}") {
            let usage = parse_stat(&text, Duration::ZERO, 100);
            let _ = (busy_since(&usage, &usage, None), parse_throttling(&text));
        }

        #[test]
        fn printed_ticks_are_read(ticks in prop::collection::vec(0u32..1_000_000, 8)) {
            let fields: Vec<String> = ticks.iter().map(u32::to_string).collect();
            let usage = parse_stat(&format!("cpu3 {}\n", fields.join(" ")), Duration::ZERO, 100);
            let busy: u32 = [0, 1, 2, 5, 6].iter().map(|&index| ticks[index]).sum();
            prop_assert_eq!(usage.busy, [(3, Duration::from_millis(u64::from(busy) * 10))]);
        }
    }
}
