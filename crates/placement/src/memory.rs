//! Memory policies and their syntax: `bind`, `preferred:1`.

use std::fmt;
use std::str::FromStr;

use super::ParseError;
use pinwise_topology::CpuSet;

/// The nodes that memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryPolicy {
    /// The node of the CPU that touches it first, strictly by policy
    /// (`MPOL_LOCAL`).
    Local,
    /// Only these nodes (`MPOL_BIND`).
    Bind,
    /// Page by page over these nodes (`MPOL_INTERLEAVE`).
    Interleave,
    /// Over these nodes by weight, from their bandwidth or as the administrator
    /// set it (`MPOL_WEIGHTED_INTERLEAVE`, Linux 6.9).
    Weighted,
    /// These nodes, and others if they are full (`MPOL_PREFERRED`, of several nodes
    /// `MPOL_PREFERRED_MANY`).
    Preferred,
}

impl MemoryPolicy {
    /// All variants.
    const ALL: [Self; 5] = [
        Self::Local,
        Self::Bind,
        Self::Interleave,
        Self::Weighted,
        Self::Preferred,
    ];

    /// The word after `/mem=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Bind => "bind",
            Self::Interleave => "interleave",
            Self::Weighted => "weighted",
            Self::Preferred => "preferred",
        }
    }
}

/// A requested memory policy: `POLICY[:NODES]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemoryWish {
    /// The policy.
    pub policy: MemoryPolicy,
    /// The operating system's node numbers; `None`: the nodes of the placement's
    /// CPUs.
    pub nodes: Option<CpuSet>,
}

impl From<MemoryPolicy> for MemoryWish {
    fn from(policy: MemoryPolicy) -> Self {
        Self {
            policy,
            nodes: None,
        }
    }
}

impl fmt::Display for MemoryWish {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.policy.name())?;
        match &self.nodes {
            Some(nodes) => write!(out, ":{nodes}"),
            None => Ok(()),
        }
    }
}

impl FromStr for MemoryWish {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let invalid = |reason: String| ParseError::Argument {
            text: text.to_owned(),
            reason,
        };
        let (name, nodes) = match text.split_once(':') {
            Some((name, nodes)) => (name, Some(nodes)),
            None => (text, None),
        };
        let mut known = MemoryPolicy::ALL.into_iter();
        let policy = known.find(|policy| policy.name() == name).ok_or_else(|| {
            invalid(
                "a memory policy is local, bind, interleave, weighted or preferred, perhaps \
                 with nodes: bind:0, interleave:0-1"
                    .to_owned(),
            )
        })?;
        let nodes = match nodes {
            None => None,
            Some(_) if policy == MemoryPolicy::Local => {
                let reason = "local is the node of the allocating CPU: it takes no nodes";
                return Err(invalid(reason.to_owned()));
            }
            Some(list) => {
                let nodes = CpuSet::parse_list(list).ok();
                let nodes = nodes.filter(|nodes| !nodes.is_empty());
                let invalid_nodes =
                    || invalid(format!("write the nodes after {name}: such as {name}:0-1"));
                Some(nodes.ok_or_else(invalid_nodes)?)
            }
        };
        Ok(Self { policy, nodes })
    }
}
