//! The machine, and how many workers make sense on it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::files::Folder;
use super::mask;
use pinwise_topology::{CpuSet, Level, Topology, Warning};

/// A machine, and what this process may use of it.
#[derive(Debug, Clone)]
pub struct Host {
    topology: Topology,
    warnings: Vec<Warning>,
    files: usize,
    /// The folder of its files; `None` if it was built from a topology.
    root: Option<PathBuf>,
}

/// Why a machine could not be discovered.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The kernel does not report the affinity mask of the calling thread.
    #[error("the affinity mask of this thread cannot be read: {0}")]
    Affinity(std::io::Error),
    /// A folder cannot be opened.
    #[error("{path}: {reason}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// Affinity mask and cpuset share no online CPU.
    #[error(
        "this process may use no CPU: online are {online}{}",
        list_restrictions(by)
    )]
    NothingAllowed {
        /// Online CPUs.
        online: CpuSet,
        /// What restricts the CPUs, and to which.
        by: Vec<(String, CpuSet)>,
    },
}

fn list_restrictions(by: &[(String, CpuSet)]) -> String {
    let leaves = by
        .iter()
        .map(|(by, leaves)| format!(", the {by} leaves {leaves}"));
    leaves.collect()
}

/// How many workers make sense, with the limits that this follows from.
#[derive(Debug, Clone, PartialEq)]
pub struct Workers {
    /// Workers that can run at the same time: the allowed CPUs, or the quota rounded up if that is
    /// less; at least 1.
    pub parallelism: usize,
    /// The same with one worker per physical core.
    pub on_own_cores: usize,
    /// Logical CPUs that this process may use.
    pub cpus: usize,
    /// Physical cores with a CPU that this process may use.
    pub cores: usize,
    /// Such cores in each last-level-cache domain, by lowest CPU; empty if no cache is reported.
    pub cores_per_llc: Vec<usize>,
    /// CPU time per wall time that the tightest of the cgroup and its ancestors allows (2.5 is two
    /// included; `None` without a limit.
    pub quota: Option<f64>,
}

/// The units that a CPU belongs to. Indices are those of the lists in [`Topology`]; `None` if not
/// reported, or if the CPU is offline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The operating system's number of the CPU.
    pub cpu: usize,
    /// Index of its physical core.
    pub core: Option<usize>,
    /// Position among the CPUs of its core: 0 for the first hyper-thread.
    pub smt_rank: usize,
    /// Index of its last-level cache.
    pub llc: Option<usize>,
    /// The operating system's number of its NUMA node.
    pub numa_node: Option<usize>,
    /// Index of its package.
    pub package: Option<usize>,
    /// Its kind on a hybrid machine: `P`, `M` or `E`.
    pub kind: Option<String>,
    /// Is it online?
    pub online: bool,
    /// May this process run on it?
    pub allowed: bool,
}

impl Host {
    /// Reads the machine and what the calling thread may use of it. A thread
    /// that is bound already sees only its own CPUs as allowed: discover first.
    ///
    /// # Errors
    /// [`DiscoverError`] if the affinity mask cannot be read, or this process may use no CPU.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    ///
    /// let host = Host::discover()?;
    /// println!("{} CPUs", host.workers().cpus);
    /// # Ok::<(), pinwise_affinity::DiscoverError>(())
    /// ```
    pub fn discover() -> Result<Self, DiscoverError> {
        let affinity = mask::affinity().map_err(DiscoverError::Affinity)?;
        Self::read_folder(Path::new("/"), Some(affinity.to_string()))
    }

    /// The machine as it was at the first call; later calls cost nothing. Programs whose limits
    /// change use [`Host::discover`].
    ///
    /// # Errors
    /// As [`Host::discover`]; an error is not kept.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    ///
    /// let workers = Host::shared()?.workers();
    /// assert!(workers.parallelism <= workers.cpus);
    /// # Ok::<(), pinwise_affinity::DiscoverError>(())
    /// ```
    pub fn shared() -> Result<&'static Self, DiscoverError> {
        static SHARED: OnceLock<Host> = OnceLock::new();
        if let Some(host) = SHARED.get() {
            return Ok(host);
        }
        let host = Self::discover()?;
        Ok(SHARED.get_or_init(|| host))
    }

    /// Reads a folder that holds a copy of `/sys` (and perhaps `/proc`), for programs that test
    /// their placement on machines they do not have. It contains no affinity mask.
    ///
    /// # Errors
    /// As [`Host::discover`], and if there is no such folder.
    pub fn from_folder(root: &Path) -> Result<Self, DiscoverError> {
        Self::read_folder(root, None)
    }

    /// A machine from a topology, for example of [`Topology::from_synthetic`].
    ///
    /// # Errors
    /// [`DiscoverError::NothingAllowed`] if it has no usable CPU.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    /// use pinwise_topology::Topology;
    ///
    /// let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
    /// let host = Host::from_topology(topology)?;
    /// assert_eq!(host.workers().cores, 16);
    /// # Ok::<(), pinwise_affinity::DiscoverError>(())
    /// ```
    pub fn from_topology(topology: Topology) -> Result<Self, DiscoverError> {
        if topology.allowed.is_empty() {
            let restrictions = topology.restrictions.iter();
            return Err(DiscoverError::NothingAllowed {
                by: restrictions
                    .map(|r| (r.by.clone(), r.leaves.clone()))
                    .collect(),
                online: topology.online,
            });
        }
        Ok(Self {
            topology,
            warnings: Vec::new(),
            files: 0,
            root: None,
        })
    }

    fn read_folder(root: &Path, affinity: Option<String>) -> Result<Self, DiscoverError> {
        let mut files = Folder::open(root, affinity).map_err(|reason| DiscoverError::Folder {
            path: root.to_owned(),
            reason,
        })?;
        let (topology, warnings) = Topology::from_files(&mut files);
        let host = Self::from_topology(topology)?;
        Ok(Self {
            warnings,
            files: files.attempts(),
            root: Some(root.to_owned()),
            ..host
        })
    }

    /// The machine with the firmware's ranking of its CPUs, which needs a file of each CPU and is
    /// therefore read on request.
    pub(super) fn read_ranked(&self) -> Topology {
        let mut topology = self.topology.clone();
        if let Some(root) = &self.root
            && let Ok(mut files) = Folder::open(root, None)
        {
            topology.read_ranks(&mut files);
        }
        topology
    }

    /// The units of the machine. Discovery leaves out names, inner caches that no other core
    /// shares, the fastest CPUs, and sizes of memory.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Warnings about the system's report, as sentences.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Files and folders that discovery tried; its cost grows with them.
    #[must_use]
    pub const fn files_read(&self) -> usize {
        self.files
    }

    /// How many workers make sense.
    #[must_use]
    pub fn workers(&self) -> Workers {
        let quota = self.topology.quota.as_ref().map(|quota| quota.cpus);
        let cores = self.topology.allowed_units(Level::Core);
        let llcs = self.topology.allowed_units(Level::Llc);
        let cores_in = |llc: &CpuSet| cores.iter().filter(|core| core.intersects(llc)).count();
        let cpus = self.topology.allowed.len();
        Workers {
            parallelism: limit_by_quota(cpus, quota),
            on_own_cores: limit_by_quota(cores.len(), quota),
            cpus,
            cores: cores.len(),
            cores_per_llc: llcs.iter().map(cores_in).collect(),
            quota,
        }
    }

    /// The units that a CPU belongs to; `None` if there is no such CPU.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    /// use pinwise_topology::Topology;
    ///
    /// let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
    /// let location = Host::from_topology(topology)?.locate(9).unwrap();
    /// assert_eq!((location.core, location.llc, location.smt_rank), (Some(4), Some(1), 1));
    /// # Ok::<(), pinwise_affinity::DiscoverError>(())
    /// ```
    #[must_use]
    pub fn locate(&self, cpu: usize) -> Option<Location> {
        let located = self.topology.cpu(cpu)?;
        let node = |index: usize| self.topology.numa_nodes.get(index).map(|node| node.node);
        let kind = |index: usize| self.topology.kinds.get(index).map(|kind| kind.name.clone());
        Some(Location {
            cpu,
            core: located.core,
            smt_rank: located.smt_rank,
            llc: located.llc,
            numa_node: located.numa_node.and_then(node),
            package: located.package,
            kind: located.kind.and_then(kind),
            online: located.online,
            allowed: located.allowed,
        })
    }
}

/// A worker with a fraction of a CPU's time still counts as one.
fn limit_by_quota(units: usize, quota: Option<f64>) -> usize {
    let most = quota.map_or(usize::MAX, |quota| {
        // Counting up avoids a cast that could wrap; units are few.
        (1..=units)
            .find(|&n| n as f64 >= quota)
            .unwrap_or(usize::MAX)
    });
    units.min(most).max(1)
}
