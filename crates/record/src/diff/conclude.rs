//! What two machines differ in, in a sentence, and what to do next.

use super::Difference;
use crate::TopologyRecord;
use pinwise_format::{count, join_words, join_words_up_to};

/// A sentence names at most this many differences.
const MAX_NAMED: usize = 3;

/// The CPUs and caches of both, if they differ; otherwise the first differences by name.
pub(super) fn describe_most_important(
    differences: &[Difference],
    a: &TopologyRecord,
    b: &TopologyRecord,
) -> String {
    let units = [a, b].map(count_units);
    if units[0] != units[1] {
        let [in_a, in_b] = units;
        return format!("A has {in_a}; B has {in_b}.");
    }
    let known = differences.iter().filter(|one| !one.is_unknown);
    let names: Vec<&str> = known.map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        return match differences {
            [] => "A and B are the same.".to_owned(),
            _ => "A and B are the same in all that is known of both.".to_owned(),
        };
    }
    format!("A and B differ in {}.", join_words_up_to(&names, MAX_NAMED))
}

/// `16 CPUs, 8 cores and 2 last-level caches`.
fn count_units(record: &TopologyRecord) -> String {
    let counts = &record.counts;
    let mut parts = vec![count(counts.cpus, "CPU"), count(counts.cores, "core")];
    for (number, noun, least) in [
        (counts.llcs, "last-level cache", 1),
        (counts.numa_nodes, "NUMA node", 2),
        (counts.packages, "package", 2),
    ] {
        if number >= least {
            parts.push(count(number, noun));
        }
    }
    join_words(&parts)
}

/// To measure what only one side was measured for.
pub(super) fn advise(a: &TopologyRecord, b: &TopologyRecord) -> String {
    let other = match (&a.measured, &b.measured) {
        (Some(_), None) => "B",
        (None, Some(_)) => "A",
        _ => {
            return "See what placement is worth on each: pinwise compare -- PROGRAM".to_owned();
        }
    };
    format!("Measure {other} too: pinwise topology --measure")
}

#[cfg(test)]
mod tests {
    use super::super::TopologyDiff;
    use super::*;
    use pinwise_topology::Topology;

    fn record(description: &str) -> TopologyRecord {
        let topology = Topology::from_synthetic(description).unwrap();
        TopologyRecord::new(&topology, &[])
    }

    fn conclude(a: &TopologyRecord, b: &TopologyRecord) -> String {
        TopologyDiff::compare(["a", "b"], a, b).sentence
    }

    #[test]
    fn the_units_of_both_are_named_if_they_differ() {
        let (small, large) = (record("core:2 pu:1"), record("l3:2 core:4 pu:2"));
        assert_eq!(
            conclude(&small, &large),
            "A has 2 CPUs and 2 cores; B has 16 CPUs, 8 cores and 2 last-level caches."
        );
        assert_eq!(conclude(&small, &small), "A and B are the same.");
    }

    #[test]
    fn otherwise_the_first_differences_are_named_and_a_host_name_is_none() {
        let small = record("core:2 pu:1");
        let mut other = small.clone();
        other.machine.hostname = Some("other".to_owned());
        assert_eq!(conclude(&small, &other), "A and B are the same.");
        other.machine.hypervisor = Some("kvm".to_owned());
        assert_eq!(conclude(&small, &other), "A and B differ in hypervisor.");
    }
}
