//! A limit on CPU time, as in cgroups.

use std::fmt;
use std::time::Duration;

use pinwise_format::trimmed;

/// The kernel's smallest quota, µs.
const MIN_QUOTA_US: u64 = 1000;
/// The periods that the kernel accepts, µs.
const PERIODS_US: std::ops::RangeInclusive<u64> = 1000..=1_000_000;
/// More CPUs than any machine has.
const MAX_CPUS: f64 = 100_000.0;

/// CPU time that all threads together may use in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLimit {
    quota_us: u64,
    period_us: u64,
}

/// Why a limit is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// Not a number of CPUs.
    #[error("write a number of CPUs above 0, such as 2 or 0.5")]
    Cpus,
    /// The kernel does not accept the period.
    #[error("the period must lie between 1ms and 1s")]
    Period,
    /// Less than the kernel supports.
    #[error(
        "that is less than 1 ms of CPU time in each period; write more CPUs or a longer period"
    )]
    TooLittle,
}

impl CpuLimit {
    /// The default period, as in the kernel, Docker and Kubernetes.
    pub const DEFAULT_PERIOD: Duration = Duration::from_millis(100);

    /// A limit of this many CPUs' worth of time.
    ///
    /// # Errors
    /// [`LimitError`] if the kernel would not accept it.
    pub fn new(cpus: f64, period: Duration) -> Result<Self, LimitError> {
        if !(cpus > 0.0 && cpus <= MAX_CPUS) {
            return Err(LimitError::Cpus);
        }
        let period_us = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        if !PERIODS_US.contains(&period_us) {
            return Err(LimitError::Period);
        }
        let quota = Duration::from_micros(period_us).mul_f64(cpus).as_micros();
        let quota_us = u64::try_from(quota).unwrap_or(u64::MAX);
        if quota_us < MIN_QUOTA_US {
            return Err(LimitError::TooLittle);
        }
        Ok(Self {
            quota_us,
            period_us,
        })
    }

    /// CPU time in each period, µs.
    #[must_use]
    pub const fn quota_us(self) -> u64 {
        self.quota_us
    }

    /// The period, µs.
    #[must_use]
    pub const fn period_us(self) -> u64 {
        self.period_us
    }

    /// The period.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_micros(self.period_us)
    }

    /// The period, unless it is the default.
    #[must_use]
    pub fn custom_period(self) -> Option<Duration> {
        (self.period() != Self::DEFAULT_PERIOD).then(|| self.period())
    }

    /// The period in the syntax of systemd and Kubernetes, `20ms`, unless it is the default.
    #[must_use]
    pub fn custom_period_text(self) -> Option<String> {
        self.custom_period().map(format_systemd_time)
    }

    /// CPU time per wall time: 0.5 is half a CPU.
    #[must_use]
    pub fn cpus(self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// The quota as systemd writes it: `50%`.
    #[must_use]
    pub fn systemd_percent(self) -> String {
        format!("{}%", trimmed(self.cpus() * 100.0))
    }

    /// The setting of systemd: `CPUQuota=50%`.
    #[must_use]
    pub fn systemd_property(self) -> String {
        format!("CPUQuota={}", self.systemd_percent())
    }

    /// The options of Docker: `--cpus=0.5`.
    #[must_use]
    pub fn docker_options(self) -> Vec<String> {
        match self.custom_period() {
            None => vec![format!("--cpus={}", trimmed(self.cpus()))],
            Some(_) => vec![
                format!("--cpu-period={}", self.period_us),
                format!("--cpu-quota={}", self.quota_us),
            ],
        }
    }

    /// The quantity of CPU for Kubernetes: `500m`, rounded.
    #[must_use]
    pub fn kubernetes_quantity(self) -> String {
        format!(
            "{}m",
            (self.quota_us * 1000 + self.period_us / 2) / self.period_us
        )
    }

    /// A request below the limit, of Kubernetes: `450m` of `500m`.
    #[must_use]
    pub fn kubernetes_request(self) -> String {
        format!("{}m", (self.quota_us * 900 / self.period_us).max(1))
    }

    /// Threads that can be busy all the time, at least one.
    #[must_use]
    pub fn threads(self) -> usize {
        usize::try_from(self.quota_us / self.period_us).map_or(1, |fit| fit.max(1))
    }
}

impl fmt::Display for CpuLimit {
    /// As on the command line: `2`, `0.5/20ms`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&trimmed(self.cpus()))?;
        match self.custom_period() {
            Some(period) => write!(out, "/{}", format_systemd_time(period)),
            None => Ok(()),
        }
    }
}

/// A time in the syntax of systemd and Kubernetes: `20ms`.
fn format_systemd_time(time: Duration) -> String {
    match time.subsec_nanos() % 1_000_000 {
        0 => format!("{}ms", time.as_millis()),
        _ => format!("{}us", time.as_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_the_kernel_would_refuse_are_refused() {
        let limit = |cpus: f64, ms: u64| CpuLimit::new(cpus, Duration::from_millis(ms));
        let half = limit(0.5, 20).unwrap();
        assert_eq!((half.quota_us(), half.period_us()), (10_000, 20_000));
        assert_eq!(
            (half.kubernetes_quantity(), half.threads()),
            ("500m".to_owned(), 1)
        );
        assert_eq!(half.kubernetes_request(), "450m");
        assert_eq!(half.to_string(), "0.5/20ms");
        assert_eq!(limit(2.5, 100).unwrap().threads(), 2);
        for cpus in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(limit(cpus, 100), Err(LimitError::Cpus));
        }
        assert_eq!(limit(1.0, 0), Err(LimitError::Period));
        assert_eq!(limit(1.0, 1001), Err(LimitError::Period));
        assert_eq!(limit(0.005, 100), Err(LimitError::TooLittle));
    }
}
