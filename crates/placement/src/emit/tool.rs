//! The tools by name.

use std::str::FromStr;

/// A tool or a runtime that controls where threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// util-linux' taskset.
    Taskset,
    /// numactl.
    Numactl,
    /// hwloc's hwloc-bind.
    HwlocBind,
    /// A drop-in of a systemd unit.
    Systemd,
    /// A transient systemd service.
    SystemdRun,
    /// A Docker container.
    Docker,
    /// A Podman container.
    Podman,
    /// The cpuset controller of cgroup v1.
    CgroupV1,
    /// The cpuset controller of cgroup v2.
    CgroupV2,
    /// Slurm's srun and sbatch.
    Slurm,
    /// Open MPI's mpirun, PRRTE's prterun.
    OpenMpi,
    /// Any OpenMP runtime.
    Omp,
    /// The OpenMP runtime of LLVM and Intel.
    Kmp,
    /// GCC's OpenMP runtime.
    Gomp,
    /// A pod and its kubelet.
    Kubernetes,
    /// A Java virtual machine.
    Jvm,
    /// A Go program.
    Go,
    /// Tokio's multi-threaded runtime.
    Tokio,
    /// Rayon's global pool.
    Rayon,
    /// A libvirt domain.
    Libvirt,
    /// llama.cpp.
    LlamaCpp,
}

impl Tool {
    /// Can it place several programs at once ([`emit_jointly`](super::emit_jointly))?
    #[must_use]
    pub const fn places_several(self) -> bool {
        matches!(self, Self::Systemd | Self::Kubernetes)
    }

    /// Escapes a word of the program for the tool: arguments of systemd's services and of
    /// Kubernetes' containers are searched for variables, and `$$` is a dollar.
    #[must_use]
    pub fn escape_word(self, word: &str) -> String {
        match self {
            Self::SystemdRun | Self::Kubernetes => word.replace('$', "$$"),
            _ => word.to_owned(),
        }
    }

    /// Does the tool start the program in a cgroup? Its limit on CPU time holds, and unlike a mask
    /// the program cannot leave its cpuset.
    #[must_use]
    pub const fn uses_cgroup(self) -> bool {
        matches!(
            self,
            Self::Systemd
                | Self::SystemdRun
                | Self::Docker
                | Self::Podman
                | Self::CgroupV1
                | Self::CgroupV2
                | Self::Kubernetes
        )
    }

    /// All of them, in the order in which `all` prints them.
    pub const ALL: [Self; 21] = [
        Self::Taskset,
        Self::Numactl,
        Self::HwlocBind,
        Self::Systemd,
        Self::SystemdRun,
        Self::Docker,
        Self::Podman,
        Self::CgroupV1,
        Self::CgroupV2,
        Self::Slurm,
        Self::OpenMpi,
        Self::Omp,
        Self::Kmp,
        Self::Gomp,
        Self::Kubernetes,
        Self::Jvm,
        Self::Go,
        Self::Tokio,
        Self::Rayon,
        Self::Libvirt,
        Self::LlamaCpp,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Taskset => "taskset",
            Self::Numactl => "numactl",
            Self::HwlocBind => "hwloc-bind",
            Self::Systemd => "systemd",
            Self::SystemdRun => "systemd-run",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::CgroupV1 => "cgroup-v1",
            Self::CgroupV2 => "cgroup-v2",
            Self::Slurm => "slurm",
            Self::OpenMpi => "openmpi",
            Self::Omp => "omp",
            Self::Kmp => "kmp",
            Self::Gomp => "gomp",
            Self::Kubernetes => "kubernetes",
            Self::Jvm => "jvm",
            Self::Go => "go",
            Self::Tokio => "tokio",
            Self::Rayon => "rayon",
            Self::Libvirt => "libvirt",
            Self::LlamaCpp => "llama.cpp",
        }
    }
}

/// A tool, and the process it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The tool.
    pub tool: Tool,
    /// The systemd unit of `systemd:UNIT`.
    pub unit: Option<String>,
}

/// A name that is not a tool's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownTool {
    /// No tool has this name.
    #[error("'{name}' is not a tool{}; known are {}", suggest(*nearest), list_names())]
    Unknown {
        /// The given name.
        name: String,
        /// A similar known name.
        nearest: Option<&'static str>,
    },
    /// Only systemd takes an argument after a colon.
    #[error("'{0}': only systemd takes a name after the colon (systemd:redis.service)")]
    Argument(String),
    /// An invalid systemd unit.
    #[error(
        "'{0}' is not a systemd unit: write a name such as redis.service (letters, digits and :_.\\@-)"
    )]
    Unit(String),
}

fn suggest(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

fn list_names() -> String {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
    format!("{}, all", names.join(", "))
}

impl Target {
    /// A tool without a target.
    #[must_use]
    pub const fn new(tool: Tool) -> Self {
        Self { tool, unit: None }
    }

    /// Parses `taskset,systemd:redis.service` or `all`.
    ///
    /// # Errors
    /// [`UnknownTool`] names the word that is not understood.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, UnknownTool> {
        let mut targets: Vec<Self> = Vec::new();
        for word in text.split(',').map(str::trim) {
            let word_targets = match word {
                "all" => Tool::ALL.map(Self::new).to_vec(),
                word => vec![word.parse()?],
            };
            for target in word_targets {
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        Ok(targets)
    }
}

impl FromStr for Target {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, UnknownTool> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let name = resolve_alias(name);
        let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.name() == name) else {
            let nearest = Tool::ALL
                .iter()
                .map(|tool| (strsim::jaro_winkler(name, tool.name()), tool.name()))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .filter(|(similarity, _)| *similarity > 0.75)
                .map(|(_, known)| known);
            return Err(UnknownTool::Unknown {
                name: name.to_owned(),
                nearest,
            });
        };
        match argument {
            None => Ok(Self::new(tool)),
            Some(unit) if tool == Tool::Systemd => Ok(Self {
                tool,
                unit: Some(parse_unit_name(unit)?),
            }),
            Some(_) => Err(UnknownTool::Argument(text.to_owned())),
        }
    }
}

/// Translates other common names of tools.
fn resolve_alias(name: &str) -> &str {
    match name {
        "hwloc" => "hwloc-bind",
        "openmp" => "omp",
        "mpirun" | "prrte" => "openmpi",
        "srun" | "sbatch" => "slurm",
        "java" => "jvm",
        "k8s" => "kubernetes",
        "cgroup" => "cgroup-v2",
        "llama" => "llama.cpp",
        other => other,
    }
}

/// Types of unit whose processes can be placed.
const UNIT_TYPES: [&str; 6] = ["service", "scope", "slice", "socket", "mount", "swap"];

/// Checks a unit's name and adds a missing type. Characters as in systemd.unit(5); up to 255 bytes.
fn parse_unit_name(unit: &str) -> Result<String, UnknownTool> {
    let has_type = unit
        .rsplit_once('.')
        .is_some_and(|(_, ending)| UNIT_TYPES.contains(&ending));
    let full = if has_type {
        unit.to_owned()
    } else {
        format!("{unit}.service")
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":_.\\@-".contains(c);
    let has_valid_start = !unit.is_empty() && !unit.starts_with(['.', '@', '-']);
    if !has_valid_start || full.len() > 255 || !full.chars().all(is_allowed) {
        return Err(UnknownTool::Unit(unit.to_owned()));
    }
    Ok(full)
}
