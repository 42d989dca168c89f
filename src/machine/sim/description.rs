//! The description of a simulated machine, as TOML.
//!
//! Every key is documented where it is defined here; `docs/simulated-machines.md`
//! is for users. Unknown keys are errors: a misspelt `effects` must not mean
//! "no effect".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::mechanism::{Assumed, Given, Scheduler};
use super::series::{self, Series};
use super::wiring::{Figures, Wiring};
use super::workload::SimWorkload;
use crate::placement::Placement;
use crate::topology::{CpuSet, Topology};

/// Why a description was refused.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// A file cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The TOML is malformed, or has an unknown key or a value of the wrong
    /// type.
    #[error("{path}:{line}: {reason}")]
    Toml {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The synthetic topology that is the whole description.
    #[error("{0}")]
    Topology(String),
    /// A value makes no sense.
    #[error("{path}: {key}: {reason}")]
    Value {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDescription {
    /// Synthetic topology, as `sim:` itself takes it.
    topology: String,
    /// What commands mean here, by program name; `default` for any other.
    #[serde(default)]
    workload: BTreeMap<String, SimWorkload>,
    /// True cost ratio to os-default, by placement.
    #[serde(default)]
    effects: BTreeMap<String, f64>,
    #[serde(default)]
    noise: RawNoise,
    /// How it is really wired, and what probes find.
    #[serde(default)]
    wiring: Figures,
    /// Runs follow from a mechanism.
    scheduler: Option<Scheduler>,
    /// Where parameters come from; nothing is computed from it.
    #[serde(default)]
    given: Vec<Given>,
    /// Parameters that nothing gives.
    #[serde(default)]
    assumed: Vec<Assumed>,
}

/// Noise as written; all parts multiply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNoise {
    /// Optional and only checked: `none`, `lognormal`, `series`.
    kind: Option<String>,
    /// Standard deviation of `ln(time)`, independent from run to run.
    sd: Option<f64>,
    /// Change per hour: 0.1 is 10 % slower after an hour.
    drift: Option<f64>,
    /// Load that comes and goes.
    bursts: Option<Bursts>,
    /// The level moves between states, as floating vCPUs do.
    level_shifts: Option<LevelShifts>,
    /// A first-order autoregressive wander of `ln(time)`.
    wander: Option<Wander>,
    /// Every n-th run is slower.
    period: Option<Period>,
    /// A CSV of recorded runs (columns wall, user, sys …), replayed in time
    /// order from a seeded offset; `.xz` is read too.
    series: Option<PathBuf>,
    /// Only the rows of this arm of the series.
    arm: Option<u32>,
}

impl RawNoise {
    const fn has_parts(&self) -> bool {
        self.sd.is_some()
            || self.drift.is_some()
            || self.bursts.is_some()
            || self.level_shifts.is_some()
            || self.wander.is_some()
            || self.period.is_some()
            || self.series.is_some()
    }
}

/// On/off load with exponentially distributed times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bursts {
    /// Mean seconds between the end of one and the start of the next.
    pub(super) every_s: f64,
    /// Mean seconds that one lasts.
    pub(super) lasts_s: f64,
    /// Times the run takes meanwhile.
    pub(super) factor: f64,
}

/// Levels with exponentially distributed dwell times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelShifts {
    /// Mean seconds in a level.
    pub(super) dwell_s: f64,
    /// Times the run takes in each.
    pub(super) levels: Vec<f64>,
}

/// `x(n+1) = correlation × x(n) + innovation`, of stationary deviation `sd`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wander {
    /// Correlation of neighbouring runs.
    pub(super) correlation: f64,
    /// Standard deviation of `ln(time)`.
    pub(super) sd: f64,
}

/// A disturbance with a period in runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Period {
    /// Every so many runs …
    pub(super) runs: u64,
    /// … one takes so many times as long.
    pub(super) factor: f64,
}

/// Noise ready to be drawn from.
#[derive(Debug, Clone, Default)]
pub(super) struct NoiseParts {
    pub(super) sd: f64,
    pub(super) drift: f64,
    pub(super) bursts: Option<Bursts>,
    pub(super) level_shifts: Option<LevelShifts>,
    pub(super) wander: Option<Wander>,
    pub(super) period: Option<Period>,
    pub(super) series: Option<Series>,
}

/// A checked description.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) topology: Topology,
    workloads: BTreeMap<String, SimWorkload>,
    fallback: SimWorkload,
    effects: Vec<(CpuSet, f64)>,
    pub(super) noise: NoiseParts,
    pub(super) wiring: Wiring,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) given: Vec<Given>,
    pub(super) assumed: Vec<Assumed>,
}

impl Description {
    pub(super) fn from_topology(text: &str) -> Result<Self, DescriptionError> {
        Topology::from_synthetic(text)
            .map_err(|error| DescriptionError::Topology(error.to_string()))?;
        let raw = RawDescription {
            topology: text.to_owned(),
            workload: BTreeMap::new(),
            effects: BTreeMap::new(),
            noise: RawNoise {
                sd: Some(0.01),
                ..RawNoise::default()
            },
            wiring: Figures::default(),
            scheduler: None,
            given: Vec::new(),
            assumed: Vec::new(),
        };
        Checker { path: "sim:" }.check(raw, None)
    }

    pub(super) fn from_file(path: &Path) -> Result<Self, DescriptionError> {
        let text = read_text(path)?;
        Self::from_text(&path.display().to_string(), &text, path.parent())
    }

    /// From the text of a file; `folder` is where its relative paths start.
    pub(super) fn from_text(
        shown: &str,
        text: &str,
        folder: Option<&Path>,
    ) -> Result<Self, DescriptionError> {
        let raw = toml::from_str(text).map_err(|error| DescriptionError::Toml {
            path: shown.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            reason: shortened(error.message()),
        })?;
        Checker { path: shown }.check(raw, folder)
    }

    /// What a program of this name means here.
    pub(super) fn workload(&self, name: &str) -> &SimWorkload {
        self.described(name).unwrap_or(&self.fallback)
    }

    /// The same, where the description says it.
    pub(super) fn described(&self, name: &str) -> Option<&SimWorkload> {
        self.workloads.get(name)
    }

    /// True cost ratio to os-default on these CPUs.
    pub(super) fn effect(&self, workload: &SimWorkload, cpus: &CpuSet) -> f64 {
        let find = |effects: &[(CpuSet, f64)]| {
            effects
                .iter()
                .find(|(set, _)| set == cpus)
                .map(|(_, effect)| *effect)
        };
        find(&workload.resolved)
            .or_else(|| find(&self.effects))
            .unwrap_or(1.0)
    }
}

pub(super) struct Checker<'a> {
    path: &'a str,
}

impl Checker<'_> {
    fn check(
        &self,
        raw: RawDescription,
        folder: Option<&Path>,
    ) -> Result<Description, DescriptionError> {
        let topology = Topology::from_synthetic(&raw.topology)
            .map_err(|error| self.bad("topology", &error.to_string()))?;
        let effects = self.effects("effects", &raw.effects, &topology)?;
        let mut workloads = raw.workload;
        for (name, workload) in &mut workloads {
            workload.check(name, &topology, self)?;
        }
        let fallback = workloads
            .remove("default")
            .unwrap_or_else(|| SimWorkload::plain(0.1, 1));
        if let Some(scheduler) = &raw.scheduler {
            scheduler.check(&topology, self)?;
        }
        let wiring = raw.wiring.check(&topology, self)?;
        Ok(Description {
            topology,
            workloads,
            fallback,
            effects,
            noise: self.noise(raw.noise, folder)?,
            wiring,
            scheduler: raw.scheduler,
            given: raw.given,
            assumed: raw.assumed,
        })
    }

    pub(super) fn effects(
        &self,
        key: &str,
        effects: &BTreeMap<String, f64>,
        topology: &Topology,
    ) -> Result<Vec<(CpuSet, f64)>, DescriptionError> {
        effects
            .iter()
            .map(|(name, &effect)| {
                let key = format!("{key}.\"{name}\"");
                self.positive(&key, effect)?;
                let placement: Placement = name
                    .parse()
                    .map_err(|error| self.bad(&key, &format!("{error}")))?;
                let realised = placement
                    .realise(topology)
                    .map_err(|error| self.bad(&key, &error.to_string()))?;
                Ok((realised.cpus, effect))
            })
            .collect()
    }

    fn noise(&self, raw: RawNoise, folder: Option<&Path>) -> Result<NoiseParts, DescriptionError> {
        self.noise_kind(&raw)?;
        if let Some(bursts) = &raw.bursts {
            self.positive("noise.bursts.every_s", bursts.every_s)?;
            self.positive("noise.bursts.lasts_s", bursts.lasts_s)?;
            self.positive("noise.bursts.factor", bursts.factor)?;
        }
        if let Some(shifts) = &raw.level_shifts {
            self.positive("noise.level_shifts.dwell_s", shifts.dwell_s)?;
            if shifts.levels.is_empty() {
                return Err(self.bad("noise.level_shifts.levels", "needs at least one level"));
            }
            for &level in &shifts.levels {
                self.positive("noise.level_shifts.levels", level)?;
            }
        }
        if let Some(wander) = &raw.wander
            && !(wander.correlation.abs() < 1.0 && (0.0..10.0).contains(&wander.sd))
        {
            let reason = "needs |correlation| < 1 and sd from 0 to 10";
            return Err(self.bad("noise.wander", reason));
        }
        if let Some(period) = &raw.period {
            self.positive("noise.period.factor", period.factor)?;
            if period.runs == 0 {
                return Err(self.bad("noise.period.runs", "must be at least 1"));
            }
        }
        let sd = raw.sd.unwrap_or(0.0);
        if !(0.0..10.0).contains(&sd) {
            return Err(self.bad("noise.sd", "must be from 0 to 10"));
        }
        let drift = raw.drift.unwrap_or(0.0);
        if !drift.is_finite() {
            return Err(self.bad("noise.drift", "must be a finite number"));
        }
        let series = match &raw.series {
            None => None,
            Some(file) => {
                let path = folder.unwrap_or(Path::new(".")).join(file);
                Some(series::load(&path, raw.arm)?)
            }
        };
        Ok(NoiseParts {
            sd,
            drift,
            bursts: raw.bursts,
            level_shifts: raw.level_shifts,
            wander: raw.wander,
            period: raw.period,
            series,
        })
    }

    fn noise_kind(&self, raw: &RawNoise) -> Result<(), DescriptionError> {
        let key = "noise.kind";
        match raw.kind.as_deref() {
            None => Ok(()),
            Some("none") if raw.has_parts() => {
                Err(self.bad(key, "'none' leaves no room for the other keys of [noise]"))
            }
            Some("none") => Ok(()),
            Some("lognormal") if raw.sd.is_none() => Err(self.bad(key, "lognormal needs sd")),
            Some("series") if raw.series.is_none() => Err(self.bad(key, "series needs series")),
            Some("lognormal" | "series") => Ok(()),
            Some(other) => Err(self.bad(
                key,
                &format!("'{other}' is not known (none, lognormal, series)"),
            )),
        }
    }

    pub(super) fn positive(&self, key: &str, value: f64) -> Result<(), DescriptionError> {
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(self.bad(key, &format!("{value} must be above 0")))
    }

    pub(super) fn bad(&self, key: &str, reason: &str) -> DescriptionError {
        DescriptionError::Value {
            path: self.path.to_owned(),
            key: key.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// A section may know dozens of keys: of many, only the nearest is named.
fn shortened(message: &str) -> String {
    const MOST_NAMED: usize = 10;
    let Some((wrong, known)) = message.split_once(", expected one of ") else {
        return message.to_owned();
    };
    let known: Vec<&str> = known.split(", ").collect();
    if known.len() <= MOST_NAMED {
        return message.to_owned();
    }
    let name = wrong.split('`').nth(1).unwrap_or(wrong);
    let likeness = |key: &&str| strsim::jaro_winkler(name, key.trim_matches('`'));
    let nearest = known
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.map_or("", |key| key);
    format!("{wrong}; did you mean {nearest}?")
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&b| b == b'\n').count()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a simulated machine is made of its files; this is the Edge"
)]
pub(super) fn read_text(path: &Path) -> Result<String, DescriptionError> {
    std::fs::read_to_string(path).map_err(|error| DescriptionError::Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}
