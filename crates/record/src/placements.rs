//! The placements of a machine as a record.

use serde::{Deserialize, Serialize};

use super::host::list_layout;
use super::{Answer, CountsRecord, MachineRecord};
use pinwise_format::{count, count_of, grouped_digits, power_of_ten};
use pinwise_placement::UsedUnits;
use pinwise_placement::space::{Shaped, Space};
use pinwise_topology::Topology;

/// How many placements a machine has, and the even ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.placements/1")]
pub struct PlacementsRecord {
    /// Names and versions.
    pub machine: MachineRecord,
    /// The CPUs that were counted, those that this process may use, as a list; empty in records of
    /// earlier versions.
    #[serde(default)]
    pub allowed: String,
    /// The numbers of their units; `null` in records of earlier versions.
    #[serde(default)]
    pub counts: Option<CountsRecord>,
    /// The same CPUs by last-level cache, the CPUs of a core together: `0-1 2-3`.
    #[serde(default)]
    pub layout: Vec<String>,
    /// For each number of threads.
    pub threads: Vec<ThreadPlacements>,
    /// In how many ways threads can be placed, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

/// The placements of this many threads, one CPU each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadPlacements {
    /// Number of threads.
    pub threads: usize,
    /// Placements that differ by more than the exchange of equal units, as a
    /// decimal number: it may have dozens of digits.
    pub placements: String,
    /// The placements that are spread evenly, fewest units first.
    pub shapes: Vec<ShapeRecord>,
}

/// An even placement and the units that it uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShapeRecord {
    /// Its name, as `--place` takes it.
    pub name: String,
    /// Equal for equal placements on machines of equal trees.
    pub id: String,
    /// CPUs with this occupancy, as a list.
    pub cpus: String,
    /// Packages used.
    pub packages: usize,
    /// NUMA nodes used.
    pub numa_nodes: usize,
    /// Last-level caches used; 0 if caches are not reported.
    pub llcs: usize,
    /// Cores used.
    pub cores: usize,
    /// CPUs used.
    pub cpu_count: usize,
}

impl PlacementsRecord {
    /// Counts the placements for each of these numbers of threads, on the CPUs that this process
    /// may use.
    #[must_use]
    pub fn new(topology: &Topology, threads: &[usize]) -> Self {
        let space = Space::from_topology(topology);
        let count_placements = |&threads: &usize| ThreadPlacements {
            threads,
            placements: space.count(threads).to_string(),
            shapes: space
                .shapes(threads)
                .iter()
                .map(|shape| ShapeRecord::new(topology, &space, shape))
                .collect(),
        };
        let used = UsedUnits::count(topology, &topology.allowed);
        let mut record = Self {
            machine: MachineRecord::new(&topology.identity),
            allowed: topology.allowed.to_string(),
            counts: Some(CountsRecord {
                cpus: used.cpus,
                cores: used.cores,
                llcs: used.llcs,
                numa_nodes: used.numa_nodes,
                packages: used.packages,
            }),
            layout: list_layout(topology),
            threads: threads.iter().map(count_placements).collect(),
            answer: Answer::default(),
        };
        record.conclude();
        record
    }

    /// Fills in the answer: of several numbers of threads, the one with the most placements.
    fn conclude(&mut self) {
        // Of decimal numbers without leading zeros, the longer is the larger.
        let size = |one: &&ThreadPlacements| (one.placements.len(), one.placements.clone());
        let Some(most) = self.threads.iter().rev().max_by_key(size) else {
            return;
        };
        let threads = count(most.threads, "thread");
        let (on, several) = (self.describe_units(), self.threads.len() > 1);
        let ways = format_ways(&most.placements);
        let even = most.shapes.len() as u64;
        let sentence = match ways.as_str() {
            "1" if several => {
                format!(
                    "Each number of threads that was counted can be placed{on} in only one way."
                )
            }
            "1" => format!("{threads} can be placed{on} in only one way."),
            _ if several => {
                format!("{threads} can be placed{on} in {ways} ways: more than any other number.")
            }
            _ => format!(
                "{threads} can be placed{on} in {ways} ways; {} even: the caches and cores in use differ by at most one thread.",
                count_of(even, "is", "are")
            ),
        };
        let advice = match ways.as_str() {
            "1" => "Find the best number of threads: pinwise search --threads 1..max -- PROGRAM"
                .to_owned(),
            _ => format!(
                "Find the fastest: pinwise search --threads {} -- PROGRAM",
                most.threads
            ),
        };
        self.answer = Answer { sentence, advice };
    }

    /// " on 16 CPUs (8 cores, 2 last-level caches)"; empty if the record does not know.
    fn describe_units(&self) -> String {
        let Some(counts) = &self.counts else {
            return String::new();
        };
        let cores = (counts.cores != counts.cpus).then(|| count(counts.cores, "core"));
        let caches = (counts.llcs > 0).then(|| count(counts.llcs, "last-level cache"));
        let units: Vec<String> = cores.into_iter().chain(caches).collect();
        let inner = match units.is_empty() {
            true => String::new(),
            false => format!(" ({})", units.join(", ")),
        };
        format!(" on {}{inner}", count(counts.cpus, "CPU"))
    }
}

/// A number with more digits is shown as a power of ten.
const MAX_DIGITS: usize = 15;

/// "18,145"; of dozens of digits "6.9·10^27".
fn format_ways(digits: &str) -> String {
    match digits.parse() {
        Ok(value) if digits.len() > MAX_DIGITS => power_of_ten(value),
        _ => grouped_digits(digits),
    }
}

impl ShapeRecord {
    fn new(topology: &Topology, space: &Space, shape: &Shaped) -> Self {
        let cpus = space.choose(&shape.occupancy);
        let used = UsedUnits::count(topology, &cpus);
        Self {
            name: shape.placement.to_string(),
            id: space.id(&shape.occupancy),
            cpus: cpus.to_string(),
            packages: used.packages,
            numa_nodes: used.numa_nodes,
            llcs: used.llcs,
            cores: used.cores,
            cpu_count: used.cpus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_even_means_and_how_many_ways_there_are() {
        let answer = |description: &str, threads: &[usize]| {
            let topology = Topology::from_synthetic(description).unwrap();
            PlacementsRecord::new(&topology, threads).answer
        };
        let one = answer("l3:2 core:4 pu:2", &[8]);
        assert_eq!(
            one.sentence,
            "8 threads can be placed on 16 CPUs (8 cores, 2 last-level caches) in 16 ways; 4 are even: the caches and cores in use differ by at most one thread."
        );
        assert_eq!(
            one.advice,
            "Find the fastest: pinwise search --threads 8 -- PROGRAM"
        );
        let several = answer("l3:2 core:4 pu:2", &[1, 8, 16]);
        let end = " in 16 ways: more than any other number.";
        assert!(several.sentence.ends_with(end), "{}", several.sentence);
        let equal = answer("core:4 pu:1", &[1, 2, 4]);
        let end = " on 4 CPUs in only one way.";
        assert!(equal.sentence.ends_with(end), "{}", equal.sentence);
        assert_eq!(format_ways("6856396806172085"), "6.9·10^15");
    }
}
