//! The description of a simulated machine, as TOML.
//!
//! Every key is documented at its definition here; `docs/simulated-machines.md` is for users.
//! Unknown keys are errors: a misspelt `effects` must not mean "no effect".

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::behaviour::{self, Behaviour, Behaviours};
use super::checker::{Checker, DescriptionError, MAX_DESCRIPTION_BYTES, read_text};
use super::jitter::{Jitter, RawJitter};
use super::mechanism::{AssumedParameter, Scheduler, SourceFigure};
use super::noise::{NoiseParts, RawNoise};
use super::performance::{Keys, Performance};
use super::shape::{RawDevice, RawKind, Shape};
use super::wiring::{Figures, Wiring};
use super::workload::SimWorkload;
use pinwise_topology::{CpuSet, Topology};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDescription {
    /// Synthetic topology, as for `sim:` itself.
    topology: String,
    /// The usable CPUs, as a list; by default all online ones.
    allowed: Option<String>,
    /// Offline CPUs, as a list.
    offline: Option<String>,
    /// Kinds of CPU.
    #[serde(default)]
    kind: Vec<RawKind>,
    /// Devices on the PCI bus.
    #[serde(default)]
    device: Vec<RawDevice>,
    /// The workloads of commands, by program name; `default` for any other.
    #[serde(default)]
    workload: BTreeMap<String, SimWorkload>,
    /// True cost ratio to os-default, by placement.
    #[serde(default)]
    effects: BTreeMap<String, f64>,
    /// Further properties of runs of one placement.
    #[serde(default)]
    behaviour: BTreeMap<String, Behaviour>,
    #[serde(default)]
    noise: RawNoise,
    /// The true wiring, and what probes find.
    #[serde(default)]
    wiring: Figures,
    /// A scheduler, from which the time of runs follows step by step.
    scheduler: Option<Scheduler>,
    /// A model that computes the time of runs from the threads' places.
    performance: Option<Keys>,
    /// What interrupts a thread that only reads the clock.
    jitter: Option<RawJitter>,
    /// Sources of parameters; nothing is computed from them.
    #[serde(default)]
    given: Vec<SourceFigure>,
    /// Assumed parameters.
    #[serde(default)]
    assumed: Vec<AssumedParameter>,
}

/// A checked description.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) topology: Topology,
    workloads: BTreeMap<String, SimWorkload>,
    fallback: SimWorkload,
    effects: Vec<(CpuSet, f64)>,
    pub(super) behaviours: Behaviours,
    pub(super) noise: NoiseParts,
    pub(super) wiring: Wiring,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) performance: Option<Performance>,
    pub(super) jitter: Option<Jitter>,
    pub(super) given: Vec<SourceFigure>,
    pub(super) assumed: Vec<AssumedParameter>,
}

impl Description {
    pub(super) fn from_topology(text: &str) -> Result<Self, DescriptionError> {
        Topology::from_synthetic(text)
            .map_err(|error| DescriptionError::Topology(error.to_string()))?;
        let raw = RawDescription {
            topology: text.to_owned(),
            allowed: None,
            offline: None,
            kind: Vec::new(),
            device: Vec::new(),
            workload: BTreeMap::new(),
            effects: BTreeMap::new(),
            behaviour: BTreeMap::new(),
            noise: RawNoise::lognormal(0.01),
            wiring: Figures::default(),
            scheduler: None,
            performance: None,
            jitter: None,
            given: Vec::new(),
            assumed: Vec::new(),
        };
        let (path, section) = ("sim:", "");
        Checker { path, section }.check_description(raw, None)
    }

    pub(super) fn from_file(path: &Path) -> Result<Self, DescriptionError> {
        let text = read_text(path)?;
        Self::from_text(&path.display().to_string(), &text, path.parent())
    }

    /// From the text of the file `path`, which errors name; `folder` is the base of its relative
    /// paths.
    pub(super) fn from_text(
        path: &str,
        text: &str,
        folder: Option<&Path>,
    ) -> Result<Self, DescriptionError> {
        if text.len() > MAX_DESCRIPTION_BYTES {
            return Err(DescriptionError::Toml {
                path: path.to_owned(),
                line: 1,
                reason: format!(
                    "larger than {} KiB: not the description of a machine",
                    MAX_DESCRIPTION_BYTES / 1024
                ),
            });
        }
        let raw = toml::from_str(text).map_err(|error| DescriptionError::Toml {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_at(text, span.start)),
            reason: shorten_message(error.message()),
        })?;
        let section = "";
        Checker { path, section }.check_description(raw, folder)
    }

    /// The workload of a program name, else the default one.
    pub(super) fn workload(&self, name: &str) -> &SimWorkload {
        self.find_workload(name).unwrap_or(&self.fallback)
    }

    /// The workload of a program name, if the description has one.
    pub(super) fn find_workload(&self, name: &str) -> Option<&SimWorkload> {
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

impl Checker<'_> {
    fn check_description(
        &self,
        raw: RawDescription,
        folder: Option<&Path>,
    ) -> Result<Description, DescriptionError> {
        let shape = Shape {
            topology: &raw.topology,
            allowed: raw.allowed.as_deref(),
            offline: raw.offline.as_deref(),
            kinds: &raw.kind,
            devices: &raw.device,
        };
        let (topology, speeds) = shape.build(self)?;
        let effects = self.resolve_effects("effects", &raw.effects, &topology)?;
        let behaviours = behaviour::resolve(raw.behaviour, &topology, self)?;
        let mut workloads = raw.workload;
        for (name, workload) in &mut workloads {
            workload.check(name, &topology, self)?;
        }
        let fallback = workloads
            .remove("default")
            .unwrap_or_else(|| SimWorkload::new(0.1, 1));
        if let Some(scheduler) = &raw.scheduler {
            scheduler.check(&topology, self)?;
        }
        self.refuse_contradictions(
            raw.scheduler.is_some(),
            raw.performance.is_some(),
            &workloads,
        )?;
        let wiring = raw.wiring.check(&topology, self)?;
        let performance = raw
            .performance
            .map(|keys| Performance::new(keys, &topology, &speeds, &wiring, self))
            .transpose()?;
        let jitter = raw.jitter.map(|raw| raw.check(&topology, self));
        Ok(Description {
            jitter: jitter.transpose()?,
            topology,
            workloads,
            fallback,
            effects,
            behaviours,
            noise: raw.noise.check(self, folder)?,
            wiring,
            scheduler: raw.scheduler,
            performance,
            given: raw.given,
            assumed: raw.assumed,
        })
    }

    /// Refuses two models of a run's time at once, and keys that no model reads.
    fn refuse_contradictions(
        &self,
        has_scheduler: bool,
        has_performance: bool,
        workloads: &BTreeMap<String, SimWorkload>,
    ) -> Result<(), DescriptionError> {
        if has_scheduler && has_performance {
            let reason = "excludes [scheduler], which also sets the time of runs; omit one of them";
            return Err(self.value_error("performance", reason));
        }
        for (name, workload) in workloads {
            if workload.demand.is_some() && !has_performance {
                let reason = "needs a section [performance], which says what the machine can do";
                return Err(self.value_error(&format!("workload.{name}.demand"), reason));
            }
        }
        Ok(())
    }
}

/// Shortens the message about an unknown key, which lists all allowed ones: with more than ten, only
/// the nearest is named.
fn shorten_message(message: &str) -> String {
    const MAX_LISTED: usize = 10;
    let Some((wrong, known)) = message.split_once(", expected one of ") else {
        return message.to_owned();
    };
    let known: Vec<&str> = known.split(", ").collect();
    if known.len() <= MAX_LISTED {
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

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&b| b == b'\n').count()
}
