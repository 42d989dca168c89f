//! Recorded latency matrices of machines whose wiring is known, and a score for inferred levels.
//!
//! `latency/INDEX.csv` of the corpus has the number and size of the groups. Their CPUs follow from
//! one of three numberings: consecutive numbers, every n-th number, or (threads numbered after all
//! cores) the same range in both halves. The numbering whose groups have the lowest latency is
//! taken. On every machine here it is lower by far, and was verified by hand: all latencies within
//! SMT groups and LLCs lie below those between them, except for single disturbed pairs. On hybrid
//! chips the P-cores have the first numbers, the clusters the last.

use std::collections::BTreeMap;
use std::path::Path;

use pinwise_record::LevelName;
use pinwise_topology::CpuSet;
use pinwise_wiring::{Evidence, LevelKind, PairMatrix, Wiring};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A partition: groups of two or more CPUs, by lowest CPU.
pub(crate) type Groups = Vec<CpuSet>;

/// A machine whose wiring is known.
#[derive(Debug, Clone)]
pub(crate) struct KnownMachine {
    pub(crate) name: String,
    pub(crate) latency: PairMatrix,
    /// The groups of each level.
    pub(crate) expected: Vec<(LevelKind, Groups)>,
    /// SMT siblings, also if a level of them is not expected to be seen.
    pub(crate) smt: Groups,
}

/// Reads all machines of the corpus.
pub(crate) fn read_machines(folder: &Path) -> Vec<KnownMachine> {
    let mut index = csv::Reader::from_path(folder.join("latency/INDEX.csv")).expect("INDEX.csv");
    index
        .deserialize::<BTreeMap<String, String>>()
        .map(|row| {
            let row = row.expect("a row of INDEX.csv");
            let path = folder.join("latency").join(&row["file"]);
            let text = std::fs::read_to_string(path).expect("a matrix");
            let latency = PairMatrix::from_csv(&text).expect("a readable matrix");
            build_machine(&row, latency)
        })
        .collect()
}

fn build_machine(row: &BTreeMap<String, String>, latency: PairMatrix) -> KnownMachine {
    let columns = [
        (LevelKind::Smt, "expected_smt"),
        (LevelKind::Llc, "expected_llc_or_cluster"),
        (LevelKind::Package, "expected_package_or_die"),
    ];
    let expected: Vec<(LevelKind, Groups)> = columns
        .iter()
        .filter(|(_, column)| row[*column] != "-")
        .map(|(kind, column)| (*kind, find_groups(&latency, &row[*column])))
        .collect();
    let smt = expected
        .iter()
        .find(|(kind, _)| *kind == LevelKind::Smt)
        .map(|(_, groups)| groups.clone())
        .unwrap_or_default();
    KnownMachine {
        name: row["file"].trim_end_matches(".csv").to_owned(),
        latency,
        expected,
        smt,
    }
}

/// Parses sizes of groups: `8x2+4x1` means eight groups of two and four of one.
fn parse_sizes(text: &str) -> Vec<usize> {
    let mut sizes: Vec<usize> = text
        .split('+')
        .flat_map(|part| {
            let (times, size) = part.split_once('x').expect("such as 8x2");
            let times: usize = times.parse().expect("a number");
            vec![size.parse().expect("a number"); times]
        })
        .collect();
    // Pairs of P-cores come before the single E-cores; Apple's small cluster
    // of two before those of three.
    if sizes.contains(&1) {
        sizes.sort_unstable_by(|a, b| b.cmp(a));
    }
    sizes
}

/// The groups of these sizes, by the numbering with the lowest latency within groups.
fn find_groups(latency: &PairMatrix, text: &str) -> Groups {
    let (n, sizes) = (latency.len(), parse_sizes(text));
    let total: usize = sizes.iter().sum();
    let (count, size) = (sizes.len(), sizes[0]);
    let mut numberings: Vec<Vec<Vec<usize>>> = vec![split_range(n - total, &sizes)];
    if sizes.iter().all(|s| *s == size) && count * size == n {
        numberings.push(
            (0..count)
                .map(|g| (g..n).step_by(count).collect())
                .collect(),
        );
        if size % 2 == 0 {
            let half = split_range(0, &vec![size / 2; count]);
            let both = |g: &Vec<usize>| g.iter().flat_map(|&c| [c, c + n / 2]).collect();
            numberings.push(half.iter().map(both).collect());
        }
    }
    let closest = numberings
        .into_iter()
        .min_by(|a, b| median_within(latency, a).total_cmp(&median_within(latency, b)))
        .expect("a numbering");
    let mut groups: Groups = closest
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| group.into_iter().collect())
        .collect();
    groups.sort_by_key(CpuSet::first);
    groups
}

/// Splits consecutive numbers into groups of these sizes.
fn split_range(from: usize, sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut start = from;
    sizes
        .iter()
        .map(|size| {
            start += size;
            (start - size..start).collect()
        })
        .collect()
}

/// Median latency within groups, ns.
fn median_within(latency: &PairMatrix, groups: &[Vec<usize>]) -> f64 {
    let mut within: Vec<f64> = groups
        .iter()
        .flat_map(|g| g.iter().flat_map(move |&a| g.iter().map(move |&b| (a, b))))
        .filter(|(a, b)| a < b)
        .map(|(a, b)| latency.at(a, b))
        .collect();
    within.sort_by(f64::total_cmp);
    within
        .get(within.len() / 2)
        .copied()
        .unwrap_or(f64::INFINITY)
}

impl KnownMachine {
    /// The latencies, without contention.
    pub(crate) fn to_evidence(&self) -> Evidence {
        Evidence {
            latency_ns: self.latency.clone(),
            contention: None,
        }
    }

    /// The same with simulated contention: siblings 1.6 ± 0.12, others 1.02 ± 0.04, one pair in two
    /// hundred disturbed.
    pub(crate) fn add_contention(&self, seed: u64) -> Evidence {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let n = self.latency.len();
        let mut contention = PairMatrix::new(self.latency.cpus().to_vec());
        for i in 0..n {
            for j in 0..i {
                let (a, b) = (self.latency.cpus()[i], self.latency.cpus()[j]);
                let is_sibling = self.smt.iter().any(|g| g.contains(a) && g.contains(b));
                let (centre, sd) = match is_sibling {
                    true => (1.6, 0.12),
                    false => (1.02, 0.04),
                };
                let shift = match random.random_bool(0.005) {
                    true => draw_normal(&mut random).abs() * 0.4,
                    false => 0.0,
                };
                contention.set(i, j, centre + sd * draw_normal(&mut random) + shift);
            }
        }
        Evidence {
            latency_ns: self.latency.clone(),
            contention: Some(contention),
        }
    }

    /// The machine with multiplicative noise on every latency.
    pub(crate) fn add_noise(&self, sd: f64, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut known = self.clone();
        for i in 0..self.latency.len() {
            for j in 0..i {
                let factor = (sd * draw_normal(&mut random)).exp();
                known.latency.set(i, j, self.latency.at(i, j) * factor);
            }
        }
        known
    }

    /// The machine as seen by a guest that has only these CPUs.
    pub(crate) fn restrict_to(&self, cpus: &[usize]) -> Self {
        let mut latency = PairMatrix::new(cpus.to_vec());
        for (i, &a) in cpus.iter().enumerate() {
            for (j, &b) in cpus.iter().enumerate().take(i) {
                latency.set(i, j, self.latency.at(a, b));
            }
        }
        let kept: CpuSet = cpus.iter().copied().collect();
        let restrict = |groups: &Groups| -> Groups {
            let mut left: Groups = groups
                .iter()
                .map(|group| group.intersection(&kept))
                .filter(|group| group.len() > 1)
                .collect();
            left.sort_by_key(CpuSet::first);
            left
        };
        let mut expected: Vec<(LevelKind, Groups)> = Vec::new();
        for (kind, groups) in &self.expected {
            let groups = restrict(groups);
            // A level cannot be seen if its only group has all CPUs, or if the level below has the
            // same groups.
            let divides = groups.iter().any(|group| group.len() < cpus.len());
            if divides && expected.iter().all(|(_, below)| *below != groups) {
                expected.push((*kind, groups));
            }
        }
        Self {
            name: self.name.clone(),
            latency,
            expected,
            smt: restrict(&self.smt),
        }
    }
}

/// Draws from the standard normal distribution (Box & Muller 1958).
pub(crate) fn draw_normal(random: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Counts of right and wrong levels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Score {
    /// For SMT, LLC and package: levels with exact groups and kind, with exact groups, expected.
    pub(crate) levels: [[usize; 3]; 3],
    /// Machines without any level: found so, expected.
    pub(crate) flat: [usize; 2],
    /// Levels with groups that are not expected.
    pub(crate) spurious: usize,
    /// Machines with every level exact under its kind and nothing spurious.
    pub(crate) perfect: usize,
    /// The same with any kind.
    pub(crate) exact: usize,
    pub(crate) machines: usize,
    /// A line for each mistake.
    pub(crate) mistakes: Vec<String>,
}

const KINDS: [LevelKind; 3] = [LevelKind::Smt, LevelKind::Llc, LevelKind::Package];

impl Score {
    pub(crate) fn add(&mut self, known: &KnownMachine, found: &[(LevelKind, Groups)]) {
        let before = self.mistakes.len();
        let is_exact = known.expected.len() == found.len()
            && known
                .expected
                .iter()
                .all(|(_, g)| found.iter().any(|(_, f)| f == g));
        self.exact += usize::from(is_exact);
        let mut note = |what: String| self.mistakes.push(format!("{}: {what}", known.name));
        for (place, kind) in KINDS.iter().enumerate() {
            let Some((_, groups)) = known.expected.iter().find(|(k, _)| k == kind) else {
                continue;
            };
            let by_any = found.iter().any(|(_, g)| g == groups);
            let by_kind = found.iter().any(|(k, g)| k == kind && g == groups);
            let counts = [by_kind, by_any, true];
            for (sum, &holds) in self.levels[place].iter_mut().zip(&counts) {
                *sum += usize::from(holds);
            }
            if !by_kind {
                let mistake = if by_any {
                    "under another kind"
                } else {
                    "missed"
                };
                note(format!("{} {mistake}", LevelName::from(*kind)));
            }
        }
        for (kind, groups) in found {
            if known.expected.iter().all(|(_, g)| g != groups) {
                self.spurious += 1;
                note(format!(
                    "spurious {} of {} groups",
                    LevelName::from(*kind),
                    groups.len()
                ));
            }
        }
        if known.expected.is_empty() {
            self.flat[0] += usize::from(found.is_empty());
            self.flat[1] += 1;
        }
        self.machines += 1;
        self.perfect += usize::from(self.mistakes.len() == before);
    }
}

/// Kinds and groups of inferred levels.
pub(crate) fn list_levels(wiring: &Wiring) -> Vec<(LevelKind, Groups)> {
    wiring
        .levels
        .iter()
        .map(|level| (level.kind, level.groups.clone()))
        .collect()
}
