//! Scheduling policies of a command.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// How the scheduler treats a command's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// The default policy.
    Other,
    /// The default policy, with time slices of this length instead of the kernel's. A woken thread
    /// with a shorter slice runs before one with a longer (Linux 6.12).
    OtherWithSlice(Duration),
    /// For batch work: a woken thread does not preempt others.
    Batch,
    /// Runs only while no other thread wants the CPU.
    Idle,
    /// Real-time, first in, first out, with this priority.
    Fifo(u32),
    /// Real-time, round robin, with this priority.
    RoundRobin(u32),
    /// Earliest deadline first: some CPU time is guaranteed before each deadline.
    Deadline {
        /// CPU time in each period.
        runtime: Duration,
        /// The deadline, counted from the start of a period.
        deadline: Duration,
        /// The period.
        period: Duration,
    },
}

/// Why a text is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No such policy.
    #[error(
        "write other, other:SLICE, batch, idle, fifo:N, rr:N or deadline:RUNTIME/DEADLINE/PERIOD"
    )]
    Unknown,
    /// A priority that the kernel does not have.
    #[error("a real-time priority lies between 1 and 99")]
    Priority,
    /// A slice that the kernel would round to its limits.
    #[error("write other:SLICE with a time between 100us and 100ms")]
    Slice,
    /// Times that the kernel does not accept.
    #[error(
        "write deadline:RUNTIME/DEADLINE/PERIOD with times such as 5ms, the first at least 1us, none longer than the next"
    )]
    Deadline,
}

/// The slices that the kernel accepts unchanged; `__setparam_fair` clamps others.
const SLICES: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_millis(100);

impl FromStr for SchedulingPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let parse_priority = |text: &str| match text.parse() {
            Ok(priority @ 1..=99) => Ok(priority),
            _ => Err(PolicyError::Priority),
        };
        Ok(match text.split_once(':') {
            None => match text {
                "other" => Self::Other,
                "batch" => Self::Batch,
                "idle" => Self::Idle,
                _ => return Err(PolicyError::Unknown),
            },
            Some(("other", text)) => {
                let slice = parse_time(text).filter(|slice| SLICES.contains(slice));
                Self::OtherWithSlice(slice.ok_or(PolicyError::Slice)?)
            }
            Some(("fifo", text)) => Self::Fifo(parse_priority(text)?),
            Some(("rr", text)) => Self::RoundRobin(parse_priority(text)?),
            Some(("deadline", text)) => parse_deadline(text).ok_or(PolicyError::Deadline)?,
            Some(_) => return Err(PolicyError::Unknown),
        })
    }
}

fn parse_deadline(text: &str) -> Option<SchedulingPolicy> {
    let times: Vec<Duration> = text.split('/').map(parse_time).collect::<Option<_>>()?;
    let [runtime, deadline, period] = *times.as_slice() else {
        return None;
    };
    let is_ordered = runtime <= deadline && deadline <= period;
    (is_ordered && runtime >= Duration::from_micros(1)).then_some(SchedulingPolicy::Deadline {
        runtime,
        deadline,
        period,
    })
}

/// Parses `5ms`, `500us` or `1s`; whole numbers only.
fn parse_time(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().ok()?;
    let unit = match unit {
        "s" => Duration::from_secs(1),
        "ms" => Duration::from_millis(1),
        "us" => Duration::from_micros(1),
        _ => return None,
    };
    Some(unit * number)
}

/// The inverse of [`parse_time`].
fn format_time(time: Duration) -> String {
    match time.subsec_nanos() % 1_000_000 {
        0 => format!("{}ms", time.as_millis()),
        _ => format!("{}us", time.as_micros()),
    }
}

impl fmt::Display for SchedulingPolicy {
    /// The inverse of parsing.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => out.write_str("other"),
            Self::OtherWithSlice(slice) => write!(out, "other:{}", format_time(*slice)),
            Self::Batch => out.write_str("batch"),
            Self::Idle => out.write_str("idle"),
            Self::Fifo(priority) => write!(out, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(out, "rr:{priority}"),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => {
                let times = [runtime, deadline, period].map(|time| format_time(*time));
                write!(out, "deadline:{}", times.join("/"))
            }
        }
    }
}

impl SchedulingPolicy {
    /// The chrt(1) command line that starts a command with this policy.
    #[must_use]
    pub fn chrt_command(self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Self::Other => words(&["chrt", "--other", "0"]),
            Self::OtherWithSlice(slice) => words(&[
                "chrt",
                "--other",
                "--sched-runtime",
                &slice.as_nanos().to_string(),
                "0",
            ]),
            Self::Batch => words(&["chrt", "--batch", "0"]),
            Self::Idle => words(&["chrt", "--idle", "0"]),
            Self::Fifo(priority) => words(&["chrt", "--fifo", &priority.to_string()]),
            Self::RoundRobin(priority) => words(&["chrt", "--rr", &priority.to_string()]),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => {
                let [runtime, deadline, period] =
                    [runtime, deadline, period].map(|time| time.as_nanos().to_string());
                words(&[
                    "chrt",
                    "--reset-on-fork",
                    "--deadline",
                    "--sched-runtime",
                    &runtime,
                    "--sched-deadline",
                    &deadline,
                    "--sched-period",
                    &period,
                    "0",
                ])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip() {
        for text in [
            "other",
            "other:3ms",
            "batch",
            "idle",
            "fifo:1",
            "rr:99",
            "deadline:500us/5ms/20ms",
        ] {
            let policy: SchedulingPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
            assert_eq!(policy.chrt_command()[0], "chrt");
        }
    }

    #[test]
    fn policies_that_the_kernel_would_refuse_are_refused() {
        let refuse = |text: &str| text.parse::<SchedulingPolicy>().unwrap_err();
        for text in ["", "fast", "fifo", "nice:3"] {
            assert_eq!(refuse(text), PolicyError::Unknown, "{text}");
        }
        for text in ["fifo:0", "fifo:100", "rr:x"] {
            assert_eq!(refuse(text), PolicyError::Priority, "{text}");
        }
        for text in ["other:", "other:99us", "other:1s"] {
            assert_eq!(refuse(text), PolicyError::Slice, "{text}");
        }
        for text in [
            "deadline:5ms",
            "deadline:9ms/5ms/20ms",
            "deadline:0us/1ms/1ms",
            "deadline:1/2/3",
        ] {
            assert_eq!(refuse(text), PolicyError::Deadline, "{text}");
        }
    }
}
