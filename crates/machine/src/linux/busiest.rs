//! Which processes use the CPUs, from two samples of all processes. It does not say which CPUs they
//! use.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::capture::list_names;
use super::daemon;
use super::process_stat::{ProcessStat, read_line};
use super::sys;
use crate::BusyProcess;

/// Time between the two samples: with ticks of 10 ms, a tenth of a CPU is two ticks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Finds processes that use CPUs now, the busiest first. It takes 0.2 s.
#[must_use]
pub fn find_busiest() -> Vec<BusyProcess> {
    let (before, began) = (read_ticks(), sys::monotonic());
    sys::poll([], Some(INTERVAL));
    let time = sys::monotonic().saturating_sub(began);
    rank_by_cpu_time(&before, &read_ticks(), time)
}

/// By process: its name and the ticks it has used so far.
type Ticks = BTreeMap<i32, (String, u64)>;

/// Reads the ticks of all processes except pinwise's own.
fn read_ticks() -> Ticks {
    // This `/proc` may belong to another PID namespace, in which this process has another number.
    let own = std::fs::read_link(Path::new("/proc/self"));
    let own = own.ok().and_then(|own| own.to_str()?.parse().ok());
    let numbers = list_names(Path::new("/proc")).into_iter();
    let processes = numbers.filter_map(|name| name.parse().ok());
    let read = |process: i32| {
        let line = read_line(process)?;
        let stat = ProcessStat::parse(&line)?;
        let (user, system) = stat.ticks()?;
        Some((process, (stat.name.to_owned(), user + system)))
    };
    processes
        .filter(|process| Some(*process) != own)
        .filter_map(read)
        .filter(|(_, (name, _))| !daemon::is_daemon_name(name.as_bytes()))
        .collect()
}

/// The processes that used CPU time between two samples, the busiest first.
fn rank_by_cpu_time(before: &Ticks, after: &Ticks, time: Duration) -> Vec<BusyProcess> {
    let ticks_per_cpu = time.as_secs_f64() * sys::ticks_per_second() as f64;
    let used = after.iter().filter_map(|(&process, (name, ticks))| {
        let (_, earlier) = before.get(&process)?;
        let used = ticks.checked_sub(*earlier).filter(|used| *used > 0)?;
        Some(BusyProcess {
            process,
            name: name.clone(),
            cpus: used as f64 / ticks_per_cpu,
        })
    });
    let mut busy: Vec<BusyProcess> = used.collect();
    busy.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.process.cmp(&b.process)));
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_comes_first_and_idle_ones_are_left_out() {
        let ticks = |all: &[(i32, u64)]| -> Ticks {
            let named = |&(process, ticks)| (process, (format!("p{process}"), ticks));
            all.iter().map(named).collect()
        };
        let second = sys::ticks_per_second();
        let before = ticks(&[(1, 5), (2, 7), (3, 9)]);
        let after = ticks(&[(1, 5 + second / 4), (2, 7), (3, 9 + second), (4, 99)]);
        let busy = rank_by_cpu_time(&before, &after, Duration::from_secs(1));
        let shown: Vec<(i32, &str)> = busy.iter().map(|b| (b.process, b.name.as_str())).collect();
        assert_eq!(shown, [(3, "p3"), (1, "p1")]);
        assert!((busy[0].cpus - 1.0).abs() < 1e-9);
    }

    #[test]
    fn processes_of_this_machine_are_read_without_this_one_and_its_helpers() {
        let found = read_ticks();
        assert!(found.contains_key(&1));
        assert!(!found.contains_key(&std::process::id().cast_signed()));
        // A helper is known by its name.
        let mut helper = std::process::Command::new("sh")
            .args(["-c", "printf pinwise-guard > /proc/$$/comm; read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = helper.id().cast_signed();
        let is_named = || super::super::tree::process_name(pid).unwrap() == "pinwise-guard";
        while !is_named() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!read_ticks().contains_key(&pid));
        drop(helper.stdin.take());
        helper.wait().unwrap();
    }
}
