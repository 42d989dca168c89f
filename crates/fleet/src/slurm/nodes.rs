//! The nodes of a cluster as listed by `sinfo`, and the choice among them.

use std::collections::{BTreeMap, BTreeSet};

use crate::hostlist;
use crate::launcher::{Choice, LaunchError, NodeRequest, escape_controls};

/// `sinfo --format`: name, long form of the state, partition, features, reason. The reason comes
/// last, because an administrator's text may contain the separator.
pub(super) const SINFO_FORMAT: &str = "%N|%T|%P|%f|%E";

/// States in which a node gets no job until an administrator acts: sinfo(1), NODE STATE CODES.
const UNUSABLE_STATES: [&str; 10] = [
    "down", "drained", "draining", "drain", "drng", "error", "fail", "failing", "future", "inval",
];

/// A node in the output of `sinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    /// Its state in lower case, without flags such as `*`.
    state: String,
    /// Does it not respond to slurmctld?
    is_silent: bool,
    partitions: Vec<String>,
    is_default: bool,
    features: Vec<String>,
    reason: String,
}

impl Node {
    /// Why it cannot be used, if it cannot.
    fn reason_unusable(&self) -> Option<String> {
        let name = &self.name;
        if UNUSABLE_STATES.contains(&self.state.as_str()) {
            let reason = match self.reason.as_str() {
                "none" | "" => String::new(),
                reason => format!(": {}", escape_controls(reason)),
            };
            return Some(format!("{name}: {}{reason}", self.state));
        }
        self.is_silent
            .then(|| format!("{name}: does not answer Slurm"))
    }
}

/// Parses `sinfo --noheader --Node --all --format SINFO_FORMAT`: a line for each node and
/// partition.
pub(super) fn parse_sinfo(text: &str) -> Result<Vec<Node>, LaunchError> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    let mut order = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let node = parse_line(line).ok_or_else(|| LaunchError::UnexpectedOutput {
            program: "sinfo".to_owned(),
            output: escape_controls(line),
        })?;
        if let Some(known) = nodes.get_mut(&node.name) {
            known.is_default |= node.is_default;
            known.partitions.extend(node.partitions);
        } else {
            order.push(node.name.clone());
            nodes.insert(node.name.clone(), node);
        }
    }
    Ok(order.iter().filter_map(|name| nodes.remove(name)).collect())
}

fn parse_line(line: &str) -> Option<Node> {
    let mut fields = line.trim().splitn(5, '|');
    let mut field = || fields.next();
    let (name, state, partition, features) = (field()?, field()?, field()?, field()?);
    let reason = field()?;
    if !hostlist::is_node_name(name) {
        return None;
    }
    let state_code = state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_default = partition.ends_with('*');
    let partition = partition.trim_end_matches('*');
    let features = features
        .split(',')
        .filter(|word| !word.is_empty() && *word != "(null)");
    Some(Node {
        name: name.to_owned(),
        state: state_code.to_ascii_lowercase(),
        is_silent: state.contains('*'),
        partitions: vec![partition.to_owned()],
        is_default,
        features: features.map(str::to_owned).collect(),
        reason: reason.trim().to_owned(),
    })
}

/// Chooses among the existing nodes.
pub(super) fn choose(request: &NodeRequest, nodes: &[Node]) -> Result<Choice, LaunchError> {
    if let Some(list) = &request.list {
        return choose_by_name(request, list, nodes);
    }
    if let Some(count) = request.count {
        return choose_by_count(request, count, nodes);
    }
    if request.partition.is_none() && request.constraint.is_none() {
        let hint = "no nodes given: name them with --nodelist, take all of a --partition or \
                    all with a --constraint, or let Slurm choose with --nodes N";
        return Err(LaunchError::Impossible(hint.to_owned()));
    }
    let fitting = find_matching(request, nodes.iter())?;
    if fitting.is_empty() {
        return Err(no_match_error(request, nodes));
    }
    split_usable(fitting)
}

/// Chooses nodes by name, all of which Slurm must know.
fn choose_by_name(
    request: &NodeRequest,
    list: &str,
    nodes: &[Node],
) -> Result<Choice, LaunchError> {
    let refused =
        |error: hostlist::HostlistError| LaunchError::Impossible(format!("--nodelist {error}"));
    let names = hostlist::expand(list).map_err(refused)?;
    let known: BTreeMap<&str, &Node> = nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let mut chosen = Vec::new();
    for name in &names {
        let node = known.get(name.as_str()).ok_or_else(|| {
            let hint = "sinfo -N lists the nodes";
            LaunchError::Impossible(format!("--nodelist: Slurm has no node {name} ({hint})"))
        })?;
        chosen.push(*node);
    }
    let fitting = find_matching(request, chosen.into_iter())?;
    let fits: BTreeSet<&str> = fitting.iter().map(|node| node.name.as_str()).collect();
    let others = names.iter().filter(|name| !fits.contains(name.as_str()));
    let why = "not in the requested partition, or without the requested features";
    let others: Vec<String> = others.map(|name| format!("{name}: {why}")).collect();
    let mut named = split_usable(fitting)?;
    named.left_out.extend(others);
    Ok(named)
}

/// Lets Slurm choose the nodes. If fewer match than requested, this is refused: Slurm would wait
/// for ever.
fn choose_by_count(
    request: &NodeRequest,
    count: usize,
    nodes: &[Node],
) -> Result<Choice, LaunchError> {
    let choice = Choice {
        count,
        ..Choice::default()
    };
    if parse_constraint(request.constraint.as_deref().unwrap_or_default()).is_none() {
        return Ok(choice);
    }
    let fitting = find_matching(request, nodes.iter())?;
    if fitting.is_empty() {
        // sbatch explains the reason better.
        return Ok(choice);
    }
    if fitting.len() < count {
        let matching = fitting.len();
        return Err(LaunchError::Impossible(format!(
            "--nodes {count}: only {matching} nodes match the request"
        )));
    }
    Ok(choice)
}

/// Finds the nodes that are in the partition and have the features.
fn find_matching<'a>(
    request: &NodeRequest,
    nodes: impl Iterator<Item = &'a Node>,
) -> Result<Vec<&'a Node>, LaunchError> {
    let constraint = request.constraint.as_deref().unwrap_or_default();
    let groups = parse_constraint(constraint).ok_or_else(|| {
        LaunchError::Impossible(format!(
            "--constraint '{}': only names joined by & or by | are understood here; \
             with --nodes N Slurm itself reads it",
            escape_controls(constraint)
        ))
    })?;
    let is_in = |node: &Node| match &request.partition {
        Some(partitions) => partitions
            .split(',')
            .any(|one| node.partitions.iter().any(|p| p == one)),
        None => node.is_default || request.list.is_some(),
    };
    let has = |node: &Node| {
        let has_all = |group: &Vec<&str>| {
            group
                .iter()
                .all(|f| node.features.iter().any(|has| has == f))
        };
        groups.iter().any(has_all)
    };
    let is_excluded = |node: &Node| request.exclude.contains(&node.name);
    let fitting = nodes.filter(|node| is_in(node) && has(node) && !is_excluded(node));
    Ok(fitting.collect())
}

/// Parses `a&b|c` into alternative lists of features; one empty list without a constraint. Returns
/// `None` for brackets, counts, or other syntax of Slurm.
fn parse_constraint(constraint: &str) -> Option<Vec<Vec<&str>>> {
    if constraint.is_empty() {
        return Some(vec![Vec::new()]);
    }
    let is_name = |word: &str| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.:=+".contains(c);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let mut groups = Vec::new();
    for group in constraint.split('|') {
        let names: Vec<&str> = group.split(['&', ',']).map(str::trim).collect();
        if !names.iter().all(|name| is_name(name)) {
            return None;
        }
        groups.push(names);
    }
    Some(groups)
}

/// Separates usable nodes from others, which are listed with the reason.
fn split_usable(nodes: Vec<&Node>) -> Result<Choice, LaunchError> {
    let mut choice = Choice::default();
    for node in nodes {
        match node.reason_unusable() {
            Some(why) => choice.left_out.push(why),
            None => choice.nodes.push(node.name.clone()),
        }
    }
    if choice.nodes.is_empty() {
        let why = match choice.left_out.is_empty() {
            true => "none matches the request".to_owned(),
            false => choice.left_out.join("; "),
        };
        return Err(LaunchError::Impossible(format!("no node is usable: {why}")));
    }
    choice.count = choice.nodes.len();
    Ok(choice)
}

fn no_match_error(request: &NodeRequest, nodes: &[Node]) -> LaunchError {
    let partition = request.partition.as_deref().unwrap_or_default();
    let is_known = |one: &str| nodes.iter().any(|n| n.partitions.iter().any(|p| p == one));
    if let Some(unknown) = partition
        .split(',')
        .find(|one| !one.is_empty() && !is_known(one))
    {
        let mut known: Vec<&str> = nodes
            .iter()
            .flat_map(|n| n.partitions.iter().map(String::as_str))
            .collect();
        known.sort_unstable();
        known.dedup();
        let known = escape_controls(&known.join(", "));
        return LaunchError::Impossible(format!(
            "--partition: Slurm has no partition '{}' with nodes (there are {known})",
            escape_controls(unknown)
        ));
    }
    let constraint = escape_controls(request.constraint.as_deref().unwrap_or_default());
    LaunchError::Impossible(format!("--constraint: no node has '{constraint}'"))
}
