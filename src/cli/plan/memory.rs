//! `--memory`: arms with memory policies.

use anyhow::{Context, bail};

use pinwise_machine::linux::check_memory_policy;
use pinwise_placement::{MemoryWish, Merged, Placement};
use pinwise_topology::Topology;

/// Adds after every placement the same with each memory policy.
pub(super) fn combine_placements(
    placements: Vec<Placement>,
    policies: &[String],
    topology: &Topology,
) -> anyhow::Result<Vec<Placement>> {
    let wishes: Vec<MemoryWish> = policies
        .iter()
        .map(|policy| policy.parse().context("--memory"))
        .collect::<anyhow::Result<_>>()?;
    if wishes.is_empty() {
        return Ok(placements);
    }
    if topology.usable_memory_nodes().len() < 2 {
        bail!(
            "--memory: nothing to compare: this process may use the memory of one NUMA node only"
        );
    }
    for wish in &wishes {
        let alone = Placement {
            memory: Some(wish.clone()),
            ..Placement::os_default()
        };
        alone.realise(topology).context("--memory")?;
    }
    let mut all = Vec::new();
    for placement in placements {
        if placement.memory.is_some() {
            bail!("--memory: --place {placement} has a memory policy; leave out its /mem=");
        }
        all.push(placement.clone());
        all.extend(wishes.iter().map(|wish| Placement {
            memory: Some(wish.clone()),
            ..placement.clone()
        }));
    }
    Ok(all)
}

/// Refuses policies that this Linux kernel does not support, before anything runs.
pub(super) fn check_policies(places: &[Merged], is_simulated: bool) -> anyhow::Result<()> {
    for Merged {
        placement: place, ..
    } in places.iter().filter(|_| !is_simulated)
    {
        if let Some(memory) = &place.memory {
            check_memory_policy(memory).with_context(|| place.placement.to_string())?;
        }
    }
    Ok(())
}
