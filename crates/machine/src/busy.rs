//! How many threads a run kept busy, from its CPU time.
//!
//! The number of live threads does not show it: `gcc -c` is a driver that waits for the compiler,
//! and a JVM starts a dozen threads that hardly ever run. CPU time over wall-clock time counts what
//! ran. Time spent ready but without a CPU is added, which the kernel counts: otherwise, on a busy
//! machine, a program that computes would look like one that waits.

use super::Run;
use pinwise_format::{count, whole_usize};

/// If this share of the live threads was busy on average, all of them work and the rest is waiting
/// at barriers and serial stretches: 16 threads of an `OpenMP` loop keep 14 CPUs busy.
const ALL_AT_WORK: f64 = 0.75;
/// A program that uses less of one CPU than this keeps none busy.
const MOSTLY_WAITING: f64 = 0.5;

/// Time in the run queue is reported if it exceeds this share of the CPU demand.
const MUCH_QUEUED: f64 = 0.2;

/// How busy the threads of a run were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyThreads {
    /// CPU time of the whole tree over wall-clock time.
    pub cpus: f64,
    /// Time its threads were ready but had no CPU, likewise; `None` if unknown.
    pub queued: Option<f64>,
    /// Largest number of threads seen at once, over the whole tree; `None` if the run was too short
    /// to look.
    pub alive: Option<u32>,
    /// As `alive`, but without threads that hardly ran.
    pub at_work: Option<u32>,
}

impl BusyThreads {
    /// The figures of a run; `None` if its CPU time is unknown.
    #[must_use]
    pub fn from_run(run: &Run) -> Option<Self> {
        let cpu = run.user?.checked_add(run.system?)?;
        let cpus = cpu.as_secs_f64() / run.wall.as_secs_f64();
        let queued = run
            .queued
            .map(|queued| queued.as_secs_f64() / run.wall.as_secs_f64());
        let alive = run.threads;
        let at_work = run.threads_at_work.or(alive);
        cpus.is_finite().then_some(Self {
            cpus,
            queued,
            alive,
            at_work,
        })
    }

    /// The CPUs that the run would have kept busy on an idle machine.
    fn cpu_demand(&self) -> f64 {
        self.cpus + self.queued.unwrap_or(0.0)
    }

    /// The number of busy threads: the CPU demand, rounded, and at least 1. If nearly all threads
    /// at work were busy, all of them count.
    #[must_use]
    pub fn threads(&self) -> usize {
        let nearest = whole_usize(self.cpu_demand()).max(1);
        let at_work = self.at_work.unwrap_or(0);
        if self.cpu_demand() >= ALL_AT_WORK * f64::from(at_work) {
            return nearest.max(usize::try_from(at_work).unwrap_or(nearest));
        }
        nearest
    }

    /// A predicate about the program, such as `keeps 1 CPU busy with 16 threads (1.12 CPUs on average
    /// in one run)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let threads = self.threads();
        let alive = self.alive.and_then(|alive| usize::try_from(alive).ok());
        let with = alive
            .filter(|&alive| alive > threads)
            .map_or_else(String::new, |alive| {
                format!(" with {}", count(alive, "thread"))
            });
        let cpu_demand = self.cpu_demand();
        let cpus = count(threads, "CPU");
        let used = format!("{:.2} CPUs on average in one run", self.cpus);
        match self.queued {
            None if cpu_demand < MOSTLY_WAITING => {
                format!("waits most of the time, or others have its CPUs{with} (used {used})")
            }
            _ if cpu_demand < MOSTLY_WAITING => {
                format!("waits most of the time{with} (used {used})")
            }
            Some(queued) if queued >= MUCH_QUEUED * cpu_demand => format!(
                "has work for {cpus}{with}, but others use them, too (it used {used}, and waited \
                 for {queued:.2} more)"
            ),
            _ => format!("keeps {cpus} busy{with} ({used})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::End;

    #[track_caller]
    fn check(cpus: f64, alive: Option<u32>, threads: usize) {
        check_working(cpus, alive, alive, threads);
    }

    #[track_caller]
    fn check_working(cpus: f64, alive: Option<u32>, at_work: Option<u32>, threads: usize) {
        let busy = BusyThreads {
            cpus,
            queued: Some(0.0),
            alive,
            at_work,
        };
        assert_eq!(busy.threads(), threads, "{busy:?}");
    }

    #[test]
    fn threads_that_wait_do_not_count() {
        check(0.98, Some(2), 1); // gcc -c: the driver waits for cc1.
        check(1.31, Some(16), 1); // java -version.
        check(1.93, Some(3), 2); // Two workers and the thread that started them.
        check(0.001, Some(1), 1); // sleep.
        check(0.8, None, 1);
        check(3.6, None, 4);
    }

    #[test]
    fn a_thread_that_only_waits_for_the_others_does_not_count() {
        check_working(3.9, Some(5), Some(4), 4);
        check_working(3.2, Some(5), Some(4), 4);
        check_working(3.9, Some(5), None, 4);
    }

    #[test]
    fn barriers_hide_no_thread() {
        check(14.1, Some(16), 16);
        check(1.6, Some(2), 2);
        check(6.9, Some(8), 8);
    }

    #[test]
    fn the_busy_threads_of_a_run_are_computed_and_described() {
        let run = |cpu_ms, threads| Run {
            user: Some(Duration::from_millis(cpu_ms)),
            system: Some(Duration::from_millis(20)),
            threads,
            queued: Some(Duration::ZERO),
            ..Run::ended(Duration::from_secs(1), End::Status(0))
        };
        let describe = |cpu_ms, threads| {
            BusyThreads::from_run(&run(cpu_ms, threads))
                .unwrap()
                .describe()
        };
        assert_eq!(
            describe(1, Some(1)),
            "waits most of the time (used 0.02 CPUs on average in one run)"
        );
        assert_eq!(
            describe(1_100, Some(16)),
            "keeps 1 CPU busy with 16 threads (1.12 CPUs on average in one run)"
        );
        assert_eq!(
            describe(1_960, Some(2)),
            "keeps 2 CPUs busy (1.98 CPUs on average in one run)"
        );
        let beside_others = Run {
            queued: Some(Duration::from_millis(1_100)),
            ..run(800, Some(2))
        };
        let busy = BusyThreads::from_run(&beside_others).unwrap();
        assert_eq!(busy.threads(), 2);
        assert_eq!(
            busy.describe(),
            "has work for 2 CPUs, but others use them, too (it used 0.82 CPUs on average in one run, \
             and waited for 1.10 more)"
        );
        let unknown = Run {
            queued: None,
            ..run(300, Some(1))
        };
        let text = BusyThreads::from_run(&unknown).unwrap().describe();
        assert!(text.starts_with("waits most of the time, or others have its CPUs ("));
        let unknown = Run::ended(Duration::from_secs(1), End::Status(0));
        assert_eq!(BusyThreads::from_run(&unknown), None);
        let empty = Run::ended(Duration::ZERO, End::Status(0));
        assert_eq!(
            BusyThreads::from_run(&Run {
                user: Some(Duration::ZERO),
                system: Some(Duration::ZERO),
                ..empty
            }),
            None
        );
    }
}
