//! Finds the CPUs that each rule demands.

use pinwise_placement::{Kind, Placement, Wish};
use pinwise_topology::{CpuSet, Restriction, Topology};
use pinwise_workload::TomlError;
use pinwise_workload::rules::{Rules, WithPosition};

/// The CPUs that a rule demands for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemandedCpus {
    /// The rule says nothing about CPUs.
    Nothing,
    /// Those that the process would have without rules.
    Default,
    /// These CPUs.
    Cpus(CpuSet),
}

/// The CPUs of a placement, or why it is not possible.
type RealisedCpus = Result<CpuSet, String>;

/// Rules on a machine.
#[derive(Debug, Clone)]
pub struct RulesPlan {
    /// The rules.
    pub rules: Rules,
    topology: Topology,
    places: Vec<Option<Placement>>,
    /// CPUs of all placements, for each set of allowed CPUs that was met: a host has few different
    /// cpusets.
    realised: Vec<(CpuSet, Vec<Option<RealisedCpus>>)>,
}

impl RulesPlan {
    /// Reads rules for a machine; `find_user` finds the ID of a user's name. The CPUs that this
    /// process itself may use do not matter.
    ///
    /// # Errors
    /// The first mistake, with its line and column; then no rule is applied.
    pub fn read(
        text: &str,
        topology: &Topology,
        find_user: impl FnMut(&str) -> Option<u32>,
    ) -> Result<Self, TomlError> {
        let mut rules = Rules::parse(text)?;
        rules.look_up_users(find_user)?;
        let topology = restrict_to(topology, &topology.online);
        let mut places = Vec::with_capacity(rules.rules.len());
        for rule in &rules.rules {
            let place = rule.place.as_ref();
            places.push(
                place
                    .map(|place| parse_placement(place, &topology))
                    .transpose()?,
            );
        }
        Ok(Self {
            rules,
            topology,
            places,
            realised: Vec::new(),
        })
    }

    /// The CPUs of a rule for a process without a cpuset; `None` if the rule does not place it.
    #[must_use]
    pub fn cpus_here(&self, rule: usize) -> Option<CpuSet> {
        let place = self.places.get(rule)?.as_ref()?;
        let realised = place.realise(&self.topology).ok()?;
        (!is_default(place)).then_some(realised.cpus)
    }

    /// The CPUs that a rule demands for a process that may use the CPUs `allowed`.
    ///
    /// # Errors
    /// Why the placement is not possible there.
    pub fn demanded_cpus(&mut self, rule: usize, allowed: &CpuSet) -> Result<DemandedCpus, String> {
        let Some(place) = self.places.get(rule).and_then(Option::as_ref) else {
            return Ok(DemandedCpus::Nothing);
        };
        if is_default(place) {
            return Ok(DemandedCpus::Default);
        }
        let known = self.realised.iter().position(|(cpus, _)| cpus == allowed);
        let at = known.unwrap_or_else(|| {
            self.realised
                .push((allowed.clone(), vec![None; self.places.len()]));
            self.realised.len() - 1
        });
        let topology = &self.topology;
        let found = self.realised[at].1[rule].get_or_insert_with(|| {
            let realised = place.realise(&restrict_to(topology, allowed));
            realised
                .map(|realised| realised.cpus)
                .map_err(|error| error.to_string())
        });
        match found {
            Ok(cpus) if cpus == allowed => Ok(DemandedCpus::Default),
            Ok(cpus) => Ok(DemandedCpus::Cpus(cpus.clone())),
            Err(reason) => Err(reason.clone()),
        }
    }
}

fn is_default(place: &Placement) -> bool {
    place.wish == Wish::OsDefault
}

fn parse_placement(
    place: &WithPosition<String>,
    topology: &Topology,
) -> Result<Placement, TomlError> {
    let error = |reason: String| TomlError::new(place.position, format!("place: {reason}"));
    let placement: Placement = place
        .value
        .parse()
        .map_err(|reason: pinwise_placement::ParseError| error(reason.to_string()))?;
    if placement.memory.is_some() {
        return Err(error(
            "a memory policy applies only when a program is started".to_owned(),
        ));
    }
    if placement.kind == Kind::Bound {
        return Err(error(
            "rules place whole processes; /bound needs pinwise run or compare".to_owned(),
        ));
    }
    let realised = placement.realise(topology);
    realised.map_err(|reason| error(reason.to_string()))?;
    Ok(placement)
}

/// The machine as a process sees it that may use only the CPUs `allowed`.
fn restrict_to(topology: &Topology, allowed: &CpuSet) -> Topology {
    let mut restricted = topology.clone();
    restricted.allowed = allowed.intersection(&topology.online);
    for cpu in &mut restricted.cpus {
        cpu.allowed = restricted.allowed.contains(cpu.id);
    }
    let limit = Restriction::limit("process's cpuset", restricted.allowed.clone());
    restricted.restrictions = vec![limit];
    restricted
}
