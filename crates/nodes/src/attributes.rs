//! The hardware and the settings of nodes, as indices: a value that all nodes share is stored once.

use std::collections::HashMap;

use pinwise_record::FleetNode;

/// The index of a node without a value.
pub(crate) const ABSENT: u32 = u32::MAX;

/// The kind of a machine, whatever its settings: nodes that differ here never share a group.
pub(crate) const KIND: [&str; 4] = ["architecture", "vendor", "cpu", "cpu-model"];

/// Other hardware. Nodes that differ here may form a group of their own even if it is small, unlike
/// nodes that differ in a version or a tuning.
pub(crate) const HARDWARE: [&str; 4] = ["stepping", "memory", "hypervisor", SHAPE];

/// The topology that the system reports. It also changes when one of [`SHAPING`] does.
pub(crate) const SHAPE: &str = "topology";
/// Attributes that change [`SHAPE`].
pub(crate) const SHAPING: [&str; 5] = [
    "smt",
    "numa-nodes-per-package",
    "packages",
    "cores",
    "numa-nodes",
];

/// Attributes of all nodes, by column.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) columns: Vec<Attribute>,
    place_by_name: HashMap<String, usize>,
    nodes: usize,
}

/// An attribute of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    /// Its values, each once.
    pub(crate) values: Vec<String>,
    /// Index into `values` for each node; [`ABSENT`] if it has none.
    of_nodes: Vec<u32>,
    place_by_name: HashMap<String, u32>,
}

impl Attributes {
    /// Adds the attributes of the next node.
    pub(crate) fn add(&mut self, attributes: Vec<(String, String)>) {
        for (name, value) in attributes {
            let place = match self.place_by_name.get(&name) {
                Some(place) => *place,
                None => {
                    self.place_by_name.insert(name.clone(), self.columns.len());
                    self.columns.push(Attribute {
                        name,
                        ..Attribute::default()
                    });
                    self.columns.len() - 1
                }
            };
            self.columns[place].set(self.nodes, value);
        }
        self.nodes += 1;
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Attribute> {
        self.place_by_name
            .get(name)
            .map(|place| &self.columns[*place])
    }
}

impl Attribute {
    /// The index of a node's value.
    pub(crate) fn value_of(&self, node: usize) -> u32 {
        self.of_nodes.get(node).copied().unwrap_or(ABSENT)
    }

    /// The value as text.
    pub(crate) fn text(&self, value: u32) -> Option<&str> {
        let at = usize::try_from(value).ok()?;
        self.values.get(at).map(String::as_str)
    }

    /// How many of some nodes have each value, the most frequent first; of equally frequent values,
    /// the one met first.
    pub(crate) fn count_values(&self, nodes: &[usize]) -> Vec<(u32, usize)> {
        let mut counts = vec![0usize; self.values.len()];
        for node in nodes {
            let value = usize::try_from(self.value_of(*node)).ok();
            if let Some(count) = value.and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        let mut found: Vec<(u32, usize)> = (0..).zip(counts).filter(|(_, n)| *n > 0).collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    }

    fn set(&mut self, node: usize, value: String) {
        let next = u32::try_from(self.values.len()).unwrap_or(ABSENT);
        let place = *self.place_by_name.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        });
        self.of_nodes.resize(node + 1, ABSENT);
        self.of_nodes[node] = place;
    }
}

/// All attributes of a node, by name. Its host name and addresses are not included: they differ by
/// design.
pub(crate) fn list_attributes(node: &FleetNode) -> Vec<(String, String)> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut push = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            attributes.push((name.to_owned(), value));
        }
    };
    if let Some(host) = &node.host {
        let machine = &host.machine;
        push("architecture", machine.arch.clone());
        push("vendor", machine.vendor.clone());
        push("cpu", machine.cpu_model.clone());
        let numbers = machine.cpu_family.zip(machine.cpu_model_number);
        push("cpu-model", numbers.map(|(f, m)| format!("{f}/{m}")));
        push("stepping", machine.cpu_stepping.map(|n| n.to_string()));
        push("packages", Some(host.counts.packages.to_string()));
        push("cores", Some(host.counts.cores.to_string()));
        if !node.settings.contains_key("numa-nodes-per-package") {
            push("numa-nodes", Some(host.counts.numa_nodes.to_string()));
        }
        let bare_metal = Some("none".to_owned());
        let hypervisor = machine.hypervisor.clone().or(bare_metal);
        for (name, value) in [
            ("microcode", &machine.microcode),
            ("kernel", &machine.kernel),
            ("hypervisor", &hypervisor),
        ] {
            if !node.settings.contains_key(name) {
                push(name, value.clone());
            }
        }
        if !host.shape_hash.is_empty() {
            push(SHAPE, Some(host.shape_hash.clone()));
        }
    }
    let is_known_by_host = |name: &str| attributes.iter().any(|(known, _)| known == name);
    let settings = node
        .settings
        .iter()
        .filter(|(name, _)| !is_known_by_host(name));
    let settings: Vec<_> = settings.map(|(n, v)| (n.clone(), v.clone())).collect();
    attributes.extend(settings);
    attributes
}
