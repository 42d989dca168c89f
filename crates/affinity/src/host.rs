//! The machine at hand, and how many workers make sense on it.

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
    /// Where its files are; `None` where it was built.
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
    /// Affinity mask and cpuset have no CPU in common that is online.
    #[error(
        "this process may use no CPU: online are {online}{}",
        describe_limits(by)
    )]
    NothingAllowed {
        /// CPUs that are switched on.
        online: CpuSet,
        /// Who leaves which.
        by: Vec<(String, CpuSet)>,
    },
}

fn describe_limits(by: &[(String, CpuSet)]) -> String {
    let leaves = by
        .iter()
        .map(|(by, leaves)| format!(", the {by} leaves {leaves}"));
    leaves.collect()
}

/// How many workers make sense, by what limits them.
#[derive(Debug, Clone, PartialEq)]
pub struct Workers {
    /// Workers that can run at the same time: the allowed CPUs, or the quota
    /// rounded up where that is less; at least 1.
    pub parallelism: usize,
    /// The same with one worker per physical core.
    pub on_own_cores: usize,
    /// Logical CPUs that this process may use.
    pub cpus: usize,
    /// Physical cores with a CPU that this process may use.
    pub cores: usize,
    /// Such cores in each last-level-cache domain, by lowest CPU; empty where
    /// no cache is reported.
    pub cores_per_llc: Vec<usize>,
    /// CPUs' worth of time that the tightest cgroup leaves, its ancestors
    /// included; `None` without a limit.
    pub quota: Option<f64>,
}

/// The units that a CPU belongs to. Indices are those of the lists in
/// [`Topology`]; `None` where nothing is reported, or the CPU is offline.
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
    /// Is it switched on?
    pub online: bool,
    /// May this process run on it?
    pub allowed: bool,
}

impl Host {
    /// Reads the machine and what the calling thread may use of it. A thread
    /// that is bound already sees only its own CPUs as allowed: discover first.
    ///
    /// # Errors
    /// [`DiscoverError`] where the affinity mask cannot be read, or where
    /// nothing is left to this process.
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
        Self::read(Path::new("/"), Some(affinity.to_string()))
    }

    /// The machine as it was when this was first called; later calls cost
    /// nothing. For programs whose limits change, there is [`Host::discover`].
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

    /// Reads a folder that holds a copy of `/sys` (and perhaps `/proc`), for
    /// programs that test their own placing on machines they do not have. An
    /// affinity mask is not part of it.
    ///
    /// # Errors
    /// As [`Host::discover`], and where there is no such folder.
    pub fn from_folder(root: &Path) -> Result<Self, DiscoverError> {
        Self::read(root, None)
    }

    /// A machine that was read or built before, such as
    /// [`Topology::from_synthetic`] makes.
    ///
    /// # Errors
    /// [`DiscoverError::NothingAllowed`] where it has no CPU to be used.
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

    fn read(root: &Path, affinity: Option<String>) -> Result<Self, DiscoverError> {
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

    /// The machine with what the firmware says of its fastest CPUs, which takes files of
    /// each CPU and is left to who asks for them.
    pub(super) fn read_ranked(&self) -> Topology {
        let mut topology = self.topology.clone();
        if let Some(root) = &self.root
            && let Ok(mut files) = Folder::open(root, None)
        {
            topology.read_ranks(&mut files);
        }
        topology
    }

    /// The units of the machine. Discovery leaves out names, inner caches that no other
    /// core shares, which CPUs are the fastest, and sizes of memory.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What is odd about the system's report, as sentences.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Files and folders that discovery tried; what it costs grows with them.
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

    /// The units that a CPU belongs to; `None` where there is no such CPU.
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
        let found = self.topology.cpu(cpu)?;
        let node = |index: usize| self.topology.numa_nodes.get(index).map(|node| node.node);
        let kind = |index: usize| self.topology.kinds.get(index).map(|kind| kind.name.clone());
        Some(Location {
            cpu,
            core: found.core,
            smt_rank: found.smt_rank,
            llc: found.llc,
            numa_node: found.numa_node.and_then(node),
            package: found.package,
            kind: found.kind.and_then(kind),
            online: found.online,
            allowed: found.allowed,
        })
    }
}

/// A worker that a quota lets run for a part of the time still counts as one.
fn limit_by_quota(units: usize, quota: Option<f64>) -> usize {
    let most = quota.map_or(usize::MAX, |quota| {
        // As an integer without casts that could wrap: units are few.
        (1..=units)
            .find(|&n| n as f64 >= quota)
            .unwrap_or(usize::MAX)
    });
    units.min(most).max(1)
}
