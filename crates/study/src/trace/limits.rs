//! Limits of cgroups that held a program back, on CPU time and on memory, and the commands that raise
//! them.

use super::shares::{blocked_s, describe_time, severity_of};
use super::waiters;
use pinwise_format::{count_of, cpu_limit, percent, round_bytes, seconds, shell};
use pinwise_machine::TraceResult;
use pinwise_record::{
    BlockedIn, BlockedPart, CpuQuotaRecord, Finding, MemoryLimitRecord, Severity, TraceFigures,
    TraceRecord, WaitCauses,
};

/// A program waited for memory for this part of its time if a limit holds it up.
const HELD_UP: f64 = 0.25;
/// With fewer pages read again, a second, it does not need what the limit took.
const REFAULTS: f64 = 100.0;
/// Endings of systemd's units that are cgroups.
const UNITS: [&str; 3] = [".service", ".scope", ".slice"];
/// Part of a CPU that is not worth another whole one in a quota.
const NO_WHOLE_CPU: f64 = 0.05;

/// Records which limits were hit.
pub(super) fn record(figures: &mut TraceFigures, traced: &TraceResult) {
    if let Some(throttled) = &mut figures.throttled {
        throttled.quota = traced.quota.as_ref().map(|quota| CpuQuotaRecord {
            file: quota.file.clone(),
            cpus: quota.quota.as_secs_f64() / quota.period.as_secs_f64(),
            period_s: quota.period.as_secs_f64(),
        });
    }
    let limit = traced.memory_limit.as_ref();
    figures.memory_limit = limit.map(|limit| MemoryLimitRecord {
        file: limit.file.clone(),
        bytes: limit.bytes,
        hits: limit.hits,
        refaults: limit.refaults,
        stalled_s: limit.stalled.map(|time| time.as_secs_f64()),
    });
}

pub(super) fn find_throttling(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let quota = figures.throttled.as_ref().filter(|quota| quota.times > 0)?;
    let (waited_s, waited) = match figures.waits.because {
        Some(WaitCauses { throttled_s, .. }) => {
            let waited = describe_time(figures, throttled_s);
            (
                throttled_s,
                format!("threads waited {waited} because of it"),
            )
        }
        None => {
            let held = seconds(quota.seconds);
            (quota.seconds, format!("{held} of CPU time throttled"))
        }
    };
    let sentence = format!(
        "A cgroup's CPU quota{} was used up in {} of {} periods: {waited}.",
        name_quota(record),
        quota.times,
        quota.periods
    );
    let advice = match &quota.quota {
        Some(quota) => format!("Use fewer threads, or raise it: {}", raise_quota(record, quota)),
        None => "Raise the quota (cpu.max; in version 1 of cgroups cpu.cfs_quota_us), or use fewer threads.".to_owned(),
    };
    let severity = severity_of(figures, waited_s).unwrap_or(Severity::Note);
    let finding = Finding::new("throttled", severity, sentence, advice);
    Some(
        finding
            .with_weight(9)
            .with_evidence("times", quota.times)
            .with_evidence("periods", quota.periods)
            .with_evidence("seconds", quota.seconds)
            .with_evidence("share", figures.share_of_threads(waited_s)),
    )
}

/// Which quota it is: ` of 0.5 CPUs (web.service)`; empty if that is not known.
pub(super) fn name_quota(record: &TraceRecord) -> String {
    let throttled = record.figures.throttled.as_ref();
    let quota = throttled.and_then(|throttled| throttled.quota.as_ref());
    quota.map_or_else(String::new, |quota| {
        let limit = cpu_limit(quota.cpus);
        format!(" of {limit} ({})", name_cgroup(&quota.file))
    })
}

/// The command that gives as many CPUs as threads of the program were ready for on average, and one
/// more than now at least.
fn raise_quota(record: &TraceRecord, quota: &CpuQuotaRecord) -> String {
    let figures = &record.figures;
    let ready_s = figures.totals.cpu_s + figures.waits.total_s.unwrap_or(0.0);
    let ready = (ready_s / record.elapsed_s - NO_WHOLE_CPU).ceil();
    let most = record.host.counts.cpus as f64;
    let cpus = ready.max(quota.cpus.floor() + 1.0).min(most);
    let micros = |seconds: f64| (seconds * 1e6).round();
    let value = match (micros(cpus * quota.period_s), micros(quota.period_s)) {
        (value, period) if quota.file.ends_with("cpu.max") => format!("{value} {period}"),
        (value, _) => value.to_string(),
    };
    write_limit(&quota.file, &format!("CPUQuota={}%", 100.0 * cpus), &value)
}

/// The memory limit that held a program up: all tasks of its cgroup waited for memory, or its own
/// threads for pages that the kernel had freed.
pub(super) fn find_tight_memory(record: &TraceRecord) -> Option<&MemoryLimitRecord> {
    let limit = record.figures.memory_limit.as_ref()?;
    let stalled = limit.stalled_s.unwrap_or(0.0) / record.elapsed_s;
    let refaults = limit.refaults as f64 / record.elapsed_s;
    let is_thrashing = refaults >= REFAULTS && share_at_pages(record) >= HELD_UP;
    (stalled >= HELD_UP || is_thrashing).then_some(limit)
}

/// The part of the threads' time in which they waited for pages or for a disk. Short page faults end
/// before a look can tell them from calls.
fn share_at_pages(record: &TraceRecord) -> f64 {
    let parts = waiters::sum_active(&record.blocked);
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    let at_pages =
        |part: &&BlockedPart| matches!(part.what, BlockedIn::PageFault | BlockedIn::Disk);
    let looks: u64 = parts.iter().filter(at_pages).map(|part| part.looks).sum();
    let blocked_s = blocked_s(&record.figures).unwrap_or(0.0);
    let waited_s = blocked_s * looks as f64 / all.max(1) as f64;
    record.figures.share_of_threads(waited_s)
}

/// `memory.high 256 MiB of web.service`.
pub(super) fn name_memory_limit(limit: &MemoryLimitRecord) -> String {
    let setting = limit.file.rsplit('/').next().unwrap_or_default();
    format!(
        "{setting} {} of {}",
        round_bytes(limit.bytes),
        name_cgroup(&limit.file)
    )
}

pub(super) fn find_memory_limit(record: &TraceRecord) -> Option<Finding> {
    let limit = find_tight_memory(record)?;
    let share = share_at_pages(record);
    let stalled = limit.stalled_s.map_or_else(String::new, |stalled_s| {
        format!(
            "; all tasks of the cgroup waited for memory at once for {}",
            seconds(stalled_s)
        )
    });
    let sentence = format!(
        "The memory limit ({}) was hit {}: threads waited {} of their time for pages or a disk, and {} were read again soon after they had been freed{stalled}.",
        name_memory_limit(limit),
        count_of(limit.hits, "time", "times"),
        percent(share),
        count_of(limit.refaults, "page", "pages"),
    );
    let value = format!("{}M", limit.bytes.div_ceil(1 << 20).saturating_mul(2));
    let property = match limit.file.ends_with("memory.high") {
        true => "MemoryHigh",
        false => "MemoryMax",
    };
    let command = write_limit(&limit.file, &format!("{property}={value}"), &value);
    let stalled = limit.stalled_s.unwrap_or(0.0) / record.elapsed_s;
    let finding = Finding::new(
        "memory_limit",
        Severity::Warning,
        sentence,
        format!("Raise it: {command}"),
    );
    Some(
        finding
            .with_weight(9)
            .with_evidence("hits", limit.hits)
            .with_evidence("share", share.max(stalled)),
    )
}

/// Whose limit a file sets: a unit of systemd, or the cgroup's folder.
fn name_cgroup(file: &str) -> &str {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    find_unit(folder).unwrap_or(folder)
}

/// The unit of systemd whose cgroup this is.
fn find_unit(folder: &str) -> Option<&str> {
    let name = folder.rsplit('/').next()?;
    let is_unit = UNITS.iter().any(|ending| name.ends_with(ending));
    is_unit.then_some(name)
}

/// The command that changes a limit: systemd's property of a unit, else the value in its file.
fn write_limit(file: &str, property: &str, value: &str) -> String {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    match find_unit(folder) {
        Some(unit) => {
            let user = if folder.contains("/user@") {
                " --user"
            } else {
                ""
            };
            let unit = shell::word(unit);
            format!("systemctl{user} set-property {unit} {property}")
        }
        None => format!("echo {} > {}", shell::word(value), shell::word(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_unit_is_changed_by_systemd_and_others_by_their_file() {
        let write = |folder: &str| {
            let file = format!("/sys/fs/cgroup/{folder}/cpu.max");
            write_limit(&file, "CPUQuota=400%", "400000 100000")
        };
        assert_eq!(
            write("system.slice/web.service"),
            "systemctl set-property web.service CPUQuota=400%"
        );
        assert_eq!(
            write("user.slice/user@7.service/app.slice/a b.scope"),
            "systemctl --user set-property 'a b.scope' CPUQuota=400%"
        );
        assert_eq!(
            write("docker/4f2a"),
            "echo '400000 100000' > /sys/fs/cgroup/docker/4f2a/cpu.max"
        );
        // Below a unit that manages its own cgroups.
        assert_eq!(
            write("system.slice/web.service/worker"),
            "echo '400000 100000' > /sys/fs/cgroup/system.slice/web.service/worker/cpu.max"
        );
    }
}
