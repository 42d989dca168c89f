//! The section `[noise]` of a description.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::checker::{Checker, DescriptionError};
use crate::series::{self, Series};

/// Noise as written; all parts multiply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNoise {
    /// Optional and only checked: `none`, `lognormal`, `series`.
    kind: Option<String>,
    /// Standard deviation of `ln(time)`, independent from run to run.
    sd: Option<f64>,
    /// Change per hour: 0.1 is 10 % slower after an hour.
    drift: Option<f64>,
    /// Intermittent load.
    bursts: Option<Bursts>,
    /// The level moves between states, as floating vCPUs do.
    level_shifts: Option<LevelShifts>,
    /// A first-order autoregressive part of `ln(time)`.
    wander: Option<Wander>,
    /// Every n-th run is slower.
    period: Option<Period>,
    /// CPUs that other programs use; runs report it, and `[behaviour]` describes its effect.
    load: Option<Load>,
    /// Wall-clock times are rounded to a clock with this step, s.
    clock_s: Option<f64>,
    /// A CSV of recorded runs (columns wall, user, sys …), replayed in time
    /// order from a seeded offset; `.xz` is read too.
    series: Option<PathBuf>,
    /// Only the rows of this arm of the series.
    arm: Option<u32>,
}

impl RawNoise {
    /// Only log-normal noise.
    pub(crate) fn lognormal(sd: f64) -> Self {
        Self {
            sd: Some(sd),
            ..Self::default()
        }
    }

    const fn has_parts(&self) -> bool {
        self.sd.is_some()
            || self.drift.is_some()
            || self.bursts.is_some()
            || self.level_shifts.is_some()
            || self.wander.is_some()
            || self.period.is_some()
            || self.load.is_some()
            || self.series.is_some()
    }
}

/// On/off load with exponentially distributed times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bursts {
    /// Mean seconds between the end of one and the start of the next.
    pub(super) every_s: f64,
    /// Mean seconds that one lasts.
    pub(super) lasts_s: f64,
    /// Factor on a run's time meanwhile.
    pub(super) factor: f64,
}

/// Levels with exponentially distributed dwell times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LevelShifts {
    /// Mean seconds in a level.
    pub(super) dwell_s: f64,
    /// Factor on a run's time in each.
    pub(super) levels: Vec<f64>,
}

/// `x(n+1) = correlation × x(n) + innovation`, of stationary deviation `sd`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wander {
    /// Correlation of neighbouring runs.
    pub(super) correlation: f64,
    /// Standard deviation of `ln(time)`.
    pub(super) sd: f64,
}

/// A disturbance with a period in runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Period {
    /// One run in this many is slower.
    pub(super) runs: u64,
    /// It takes this many times as long.
    pub(super) factor: f64,
}

/// A number of CPUs, uniform from 0 on, constant for an exponential time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    /// Mean time that the number stays, s.
    pub(super) dwell_s: f64,
    /// The largest number of CPUs.
    pub(super) most_cpus: f64,
}

/// Checked noise.
#[derive(Debug, Clone, Default)]
pub(crate) struct NoiseParts {
    pub(super) sd: f64,
    pub(super) drift: f64,
    pub(super) bursts: Option<Bursts>,
    pub(super) level_shifts: Option<LevelShifts>,
    pub(super) wander: Option<Wander>,
    pub(super) period: Option<Period>,
    pub(super) load: Option<Load>,
    pub(super) clock_s: Option<f64>,
    pub(super) series: Option<Series>,
}

impl RawNoise {
    pub(crate) fn check(
        self,
        checker: &Checker<'_>,
        folder: Option<&Path>,
    ) -> Result<NoiseParts, DescriptionError> {
        self.check_kind(checker)?;
        if let Some(bursts) = &self.bursts {
            checker.check_positive("noise.bursts.every_s", bursts.every_s)?;
            checker.check_positive("noise.bursts.lasts_s", bursts.lasts_s)?;
            checker.check_positive("noise.bursts.factor", bursts.factor)?;
        }
        if let Some(shifts) = &self.level_shifts {
            checker.check_positive("noise.level_shifts.dwell_s", shifts.dwell_s)?;
            if shifts.levels.is_empty() {
                return Err(
                    checker.value_error("noise.level_shifts.levels", "needs at least one level")
                );
            }
            for &level in &shifts.levels {
                checker.check_positive("noise.level_shifts.levels", level)?;
            }
        }
        if let Some(wander) = &self.wander
            && !(wander.correlation.abs() < 1.0 && (0.0..10.0).contains(&wander.sd))
        {
            let reason = "needs |correlation| < 1 and sd from 0 to 10";
            return Err(checker.value_error("noise.wander", reason));
        }
        if let Some(period) = &self.period {
            checker.check_positive("noise.period.factor", period.factor)?;
            if period.runs == 0 {
                return Err(checker.value_error("noise.period.runs", "must be at least 1"));
            }
        }
        if let Some(load) = &self.load {
            checker.check_positive("noise.load.dwell_s", load.dwell_s)?;
            checker.check_positive("noise.load.most_cpus", load.most_cpus)?;
        }
        if let Some(clock_s) = self.clock_s {
            checker.check_positive("noise.clock_s", clock_s)?;
        }
        let sd = self.sd.unwrap_or(0.0);
        if !(0.0..10.0).contains(&sd) {
            return Err(checker.value_error("noise.sd", "must be from 0 to 10"));
        }
        let drift = self.drift.unwrap_or(0.0);
        if !drift.is_finite() {
            return Err(checker.value_error("noise.drift", "must be a finite number"));
        }
        let series = match &self.series {
            None => None,
            Some(file) => {
                let path = folder.unwrap_or(Path::new(".")).join(file);
                Some(series::load_series(&path, self.arm)?)
            }
        };
        Ok(NoiseParts {
            sd,
            drift,
            bursts: self.bursts,
            level_shifts: self.level_shifts,
            wander: self.wander,
            period: self.period,
            load: self.load,
            clock_s: self.clock_s,
            series,
        })
    }

    fn check_kind(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let key = "noise.kind";
        match self.kind.as_deref() {
            None => Ok(()),
            Some("none") if self.has_parts() => {
                Err(checker.value_error(key, "'none' excludes the other keys of [noise]"))
            }
            Some("none") => Ok(()),
            Some("lognormal") if self.sd.is_none() => {
                Err(checker.value_error(key, "lognormal needs sd"))
            }
            Some("series") if self.series.is_none() => {
                Err(checker.value_error(key, "series needs series"))
            }
            Some("lognormal" | "series") => Ok(()),
            Some(other) => Err(checker.value_error(
                key,
                &format!("unknown kind '{other}' (known: none, lognormal, series)"),
            )),
        }
    }
}
