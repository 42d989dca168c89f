//! The CPUs of a description: its topology, online and allowed CPUs, and their kinds.

use serde::Deserialize;

use super::DescriptionError;
use super::checker::Checker;
use pinwise_topology::{
    CpuSet, Device, DeviceKind, Facts, KindFacts, Restriction, SyntheticError, Topology,
};

/// Limits of the speed of a kind of CPU, relative to the others.
const MIN_SPEED: f64 = 0.01;
const MAX_SPEED: f64 = 100.0;

/// `[[kind]]`: CPUs of equal speed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKind {
    /// `P`, `M` or `E`, consistent with the speeds; only checked.
    name: Option<String>,
    /// A CPU list.
    cpus: String,
    /// Relative to the speed of the others.
    speed: f64,
}

/// `[[device]]`: a device on the PCI bus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDevice {
    /// Its purpose.
    #[serde(rename = "type")]
    kind: RawDeviceKind,
    /// Its driver's name; GPUs are also `gpu0`, `gpu1` ….
    name: Option<String>,
    /// The CPUs near it; by default unknown.
    cpus: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawDeviceKind {
    Gpu,
    Network,
    Storage,
    Accelerator,
}

/// Root complexes have buses 0 to 255; a device is on each.
const MAX_DEVICES: usize = 255;

/// The keys that describe the CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) topology: &'a str,
    pub(super) allowed: Option<&'a str>,
    pub(super) offline: Option<&'a str>,
    pub(super) kinds: &'a [RawKind],
    pub(super) devices: &'a [RawDevice],
}

/// Parses a synthetic topology and takes these CPUs offline.
pub(super) fn parse_topology_without(
    text: &str,
    offline: &CpuSet,
) -> Result<Topology, SyntheticError> {
    let mut facts = Facts::from_synthetic(text)?;
    take_offline(&mut facts, offline);
    Ok(Topology::from_facts(facts).0)
}

fn take_offline(facts: &mut Facts, offline: &CpuSet) {
    for (cpu, facts) in &mut facts.cpus {
        facts.online &= !offline.contains(*cpu);
    }
}

impl Shape<'_> {
    /// The machine, and the speeds of its kinds, slowest first.
    pub(super) fn build(
        &self,
        checker: &Checker<'_>,
    ) -> Result<(Topology, Vec<f64>), DescriptionError> {
        let mut facts = Facts::from_synthetic(self.topology)
            .map_err(|error| checker.value_error("topology", &error.to_string()))?;
        let present: CpuSet = facts.cpus.keys().copied().collect();
        let offline =
            parse_cpu_list(checker, "offline", self.offline, &present)?.unwrap_or_default();
        let online = present.difference(&offline);
        if online.is_empty() {
            return Err(checker.value_error("offline", "leaves no CPU online"));
        }
        take_offline(&mut facts, &offline);
        if let Some(allowed) = parse_cpu_list(checker, "allowed", self.allowed, &present)? {
            let offline_ones = allowed.intersection(&offline);
            if !offline_ones.is_empty() {
                let reason = format!("CPUs {offline_ones} are offline");
                return Err(checker.value_error("allowed", &reason));
            }
            let limit = Restriction::limit("cpuset of the description", allowed);
            facts.restrictions.push(limit);
        }
        let speeds = self.add_kinds(checker, &mut facts, &present, &online)?;
        facts.devices = self.resolve_devices(checker, &present)?;
        Ok((Topology::from_facts(facts).0, speeds))
    }

    fn resolve_devices(
        &self,
        checker: &Checker<'_>,
        present: &CpuSet,
    ) -> Result<Vec<Device>, DescriptionError> {
        if self.devices.len() > MAX_DEVICES {
            let reason = format!("at most {MAX_DEVICES} devices can be described");
            return Err(checker.value_error("device", &reason));
        }
        let mut devices = Vec::new();
        for (number, raw) in self.devices.iter().enumerate() {
            let (class, kind) = match raw.kind {
                RawDeviceKind::Gpu => (0x0302, DeviceKind::Gpu),
                RawDeviceKind::Network => (0x0200, DeviceKind::Network),
                RawDeviceKind::Storage => (0x0108, DeviceKind::Storage),
                RawDeviceKind::Accelerator => (0x1200, DeviceKind::Accelerator),
            };
            let address = format!("0000:{:02x}:00.0", number + 1);
            let Some(mut device) = Device::new(&address, class, None, None) else {
                continue;
            };
            device.kind = kind;
            device.names.extend(raw.name.clone());
            let key = format!("device[{number}].cpus");
            device.cpus = parse_cpu_list(checker, &key, raw.cpus.as_deref(), present)?;
            devices.push(device);
        }
        Ok(devices)
    }

    fn add_kinds(
        &self,
        checker: &Checker<'_>,
        facts: &mut Facts,
        present: &CpuSet,
        online: &CpuSet,
    ) -> Result<Vec<f64>, DescriptionError> {
        if self.kinds.is_empty() {
            return Ok(Vec::new());
        }
        let mut kinds = Vec::new();
        let mut described = CpuSet::new();
        for (number, kind) in self.kinds.iter().enumerate() {
            let key = |name: &str| format!("kind[{number}].{name}");
            checker.check_range(&key("speed"), kind.speed, MIN_SPEED, MAX_SPEED)?;
            let cpus = parse_cpu_list(checker, &key("cpus"), Some(&kind.cpus), present)?;
            let cpus = cpus.unwrap_or_default();
            let both = described.intersection(&cpus);
            if !both.is_empty() {
                let reason = format!("CPUs {both} are in another kind, too");
                return Err(checker.value_error(&key("cpus"), &reason));
            }
            described = described.union(&cpus);
            kinds.push((kind, cpus.intersection(online), key("name")));
        }
        let unreported = online.difference(&described);
        if !unreported.is_empty() {
            let reason = format!("CPUs {unreported} are in no kind; every CPU needs one");
            return Err(checker.value_error("kind", &reason));
        }
        kinds.sort_by(|a, b| a.0.speed.total_cmp(&b.0.speed));
        self.check_kinds(checker, &kinds)?;
        facts.kinds = (1u64..)
            .zip(&kinds)
            .map(|(speed, (_, cpus, _))| KindFacts {
                cpus: cpus.clone(),
                speed,
            })
            .collect();
        Ok(kinds.iter().map(|(kind, ..)| kind.speed).collect())
    }

    /// Checks that kinds, slowest first, are disjoint, and named consistently with their speeds.
    fn check_kinds(
        &self,
        checker: &Checker<'_>,
        kinds: &[(&RawKind, CpuSet, String)],
    ) -> Result<(), DescriptionError> {
        if let Some((_, _, key)) = kinds.iter().find(|(_, cpus, _)| cpus.is_empty()) {
            let reason = "all its CPUs are offline; omit the kind";
            return Err(checker.value_error(&key.replace("name", "cpus"), reason));
        }
        if kinds.len() < 2 {
            let reason = "a single kind has no effect; omit it";
            return Err(checker.value_error("kind", reason));
        }
        for pair in kinds.windows(2) {
            if pair[0].0.speed >= pair[1].0.speed {
                let reason = "another kind is as fast; CPUs of equal speed are one kind";
                return Err(checker.value_error(&pair[1].2.replace("name", "speed"), reason));
            }
        }
        let last = kinds.len() - 1;
        for (rank, (kind, _, key)) in kinds.iter().enumerate() {
            let correct = match rank {
                0 => "E",
                rank if rank == last => "P",
                _ => "M",
            };
            if kind.name.as_deref().is_some_and(|name| name != correct) {
                let reason = format!(
                    "by its speed this kind is {correct}: P is the fastest, E the slowest, M \
                     between"
                );
                return Err(checker.value_error(key, &reason));
            }
        }
        Ok(())
    }
}

/// Parses a CPU list whose CPUs must exist.
pub(super) fn parse_cpu_list(
    checker: &Checker<'_>,
    key: &str,
    list: Option<&str>,
    present: &CpuSet,
) -> Result<Option<CpuSet>, DescriptionError> {
    let Some(list) = list else { return Ok(None) };
    let set =
        CpuSet::parse_list(list).map_err(|error| checker.value_error(key, &error.to_string()))?;
    let missing = set.difference(present);
    if !missing.is_empty() {
        let reason = format!("no such CPU: {missing}; the topology has CPUs {present}");
        return Err(checker.value_error(key, &reason));
    }
    if set.is_empty() {
        return Err(checker.value_error(key, "names no CPU"));
    }
    Ok(Some(set))
}
