//! A placement in the syntax of other tools: what to write, what the tool cannot express, and a
//! command that verifies.
//!
//! Pure text: nothing is run and no file is written here. Each emitter returns the closest
//! equivalent of its tool, and says in full sentences what is missing.

mod containers;
mod devices;
mod joint;
mod parallel;
mod runtimes;
mod system;
mod tool;

use pinwise_format::shell;

use super::{CpuLimit, Kind, MemoryPolicy, Realised, Wish};
use pinwise_topology::Topology;

use system::numactl_options;

pub use joint::{JointPlace, emit_jointly};
pub use tool::{Target, Tool, UnknownTool};

/// The context of an emission, besides the placement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The program with its arguments; if empty, `COMMAND` is written in its place.
    pub command: Vec<String>,
    /// Variables added to the program's environment.
    pub environment: Vec<(String, String)>,
    /// Threads that the program starts; `None` for one per CPU.
    pub threads: Option<usize>,
    /// The program's limit on CPU time.
    pub limit: Option<CpuLimit>,
}

/// A placement in the syntax of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// The tool.
    pub tool: Tool,
    /// What to write, in order.
    pub pieces: Vec<Piece>,
    /// What the tool cannot express of the placement, as sentences.
    pub unsupported: Vec<String>,
    /// Notes worth knowing, as sentences.
    pub notes: Vec<String>,
    /// A shell line that shows whether the placement took effect.
    pub verify: String,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line for a shell.
    Command(String),
    /// A variable of the program's environment.
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value, unquoted.
        value: String,
    },
    /// A file, or a part of one.
    File {
        /// Its path.
        path: String,
        /// Its content.
        text: String,
    },
}

impl Emission {
    /// All pieces as one text for a shell or an editor: variables as `export`, files below a
    /// comment with their path. Another comment separates a file from commands after it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut is_in_file = false;
        for piece in &self.pieces {
            let was_in_file =
                std::mem::replace(&mut is_in_file, matches!(piece, Piece::File { .. }));
            if was_in_file && !is_in_file {
                text.push_str("# then, in a shell:\n");
            }
            match piece {
                Piece::Command(line) => text.push_str(&format!("{line}\n")),
                Piece::Variable { name, value } => {
                    text.push_str(&format!("export {name}={}\n", shell::word(value)));
                }
                Piece::File { path, text: inner } => {
                    text.push_str(&format!("# {path}\n{inner}"));
                }
            }
        }
        text
    }

    /// The variables and the first command on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Variable { name, value } => {
                    line.push_str(&format!("{name}={} ", shell::word(value)));
                }
                Piece::Command(command) => return line + command,
                Piece::File { .. } => {}
            }
        }
        line
    }
}

/// Expresses a placement in the syntax of a tool.
#[must_use]
pub fn emit(
    target: &Target,
    realised: &Realised,
    topology: &Topology,
    context: &Context,
) -> Emission {
    let request = Request {
        tool: target.tool,
        realised,
        topology,
        context,
    };
    let mut emission = match target.tool {
        Tool::Taskset => system::emit_taskset(&request),
        Tool::Numactl => system::emit_numactl(&request),
        Tool::HwlocBind => system::emit_hwloc_bind(&request),
        Tool::Systemd => system::emit_systemd(&request, target.unit.as_deref()),
        Tool::SystemdRun => system::emit_systemd_run(&request),
        Tool::CgroupV1 => system::emit_cgroup_v1(&request),
        Tool::CgroupV2 => system::emit_cgroup_v2(&request),
        Tool::Docker => containers::emit_docker(&request),
        Tool::Podman => containers::emit_podman(&request),
        Tool::Kubernetes => containers::emit_kubernetes(&request),
        Tool::Libvirt => containers::emit_libvirt(&request),
        Tool::Slurm => parallel::emit_slurm(&request),
        Tool::OpenMpi => parallel::emit_openmpi(&request),
        Tool::Omp => parallel::emit_omp(&request),
        Tool::Kmp => parallel::emit_kmp(&request),
        Tool::Gomp => parallel::emit_gomp(&request),
        Tool::Jvm => runtimes::emit_jvm(&request),
        Tool::Go => runtimes::emit_go(&request),
        Tool::Tokio => runtimes::emit_tokio(&request),
        Tool::Rayon => runtimes::emit_rayon(&request),
        Tool::LlamaCpp => runtimes::emit_llama_cpp(&request),
    };
    if let Some(limit) = context.limit.filter(|_| !target.tool.uses_cgroup()) {
        emission.unsupported.push(format!(
            "It cannot limit CPU time; systemd-run -p {} does.",
            limit.systemd_property()
        ));
    }
    emission
        .notes
        .extend(devices::explain_device_syntax(target.tool, &request));
    emission
}

/// The request to an emitter.
struct Request<'a> {
    tool: Tool,
    realised: &'a Realised,
    topology: &'a Topology,
    context: &'a Context,
}

impl Request<'_> {
    fn cpu_list(&self) -> String {
        self.realised.cpus.to_string()
    }

    /// The CPUs in the placement's order, separated by commas.
    fn ordered_list(&self) -> String {
        let order: Vec<String> = self.realised.order.iter().map(usize::to_string).collect();
        order.join(",")
    }

    fn cpu_mask(&self) -> String {
        self.realised.cpus.to_mask()
    }

    /// Does the placement name CPUs? Not if only a limit on CPU time is requested.
    fn names_cpus(&self) -> bool {
        self.context.limit.is_none() || self.realised.placement.wish != Wish::OsDefault
    }

    /// Are some CPUs outside the caller's mask, so that only tools that set a mask can reach them?
    fn leaves_mask(&self) -> bool {
        !self.realised.cpus.is_subset(&self.topology.allowed)
    }

    fn is_bound(&self) -> bool {
        self.realised.placement.kind == Kind::Bound
    }

    fn threads(&self) -> usize {
        self.context.threads.unwrap_or(self.realised.cpus.len())
    }

    /// The words that start the program.
    fn command_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.context.environment.is_empty() {
            words.push("env".to_owned());
            let variables = self.context.environment.iter();
            words.extend(variables.map(|(name, value)| format!("{name}={value}")));
        }
        match self.context.command.is_empty() {
            true => words.push("COMMAND".to_owned()),
            false => words.extend(self.context.command.iter().cloned()),
        }
        words
    }

    /// The words of a tool and then the program, quoted for a shell.
    fn shell_line(&self, tool_words: &[&str]) -> String {
        let words = tool_words.iter().map(|word| (*word).to_owned());
        shell::line(words.chain(self.command_words()))
    }

    /// The list of NUMA nodes that memory is bound to (`mem=bind`).
    fn bound_nodes(&self) -> Option<String> {
        let memory = self.realised.memory.as_ref()?;
        (memory.policy == MemoryPolicy::Bind).then(|| format_nodes(&memory.nodes))
    }

    /// The memory policy with its list of nodes.
    fn memory_policy(&self) -> Option<(MemoryPolicy, String)> {
        let memory = self.realised.memory.as_ref()?;
        Some((memory.policy, format_nodes(&memory.nodes)))
    }

    fn has_policy(&self, policy: MemoryPolicy) -> bool {
        let memory = self.realised.memory.as_ref();
        memory.is_some_and(|memory| memory.policy == policy)
    }

    /// Are several nodes preferred? Some tools take only the first.
    fn prefers_several(&self) -> bool {
        let memory = self.realised.memory.as_ref();
        memory.is_some_and(|memory| {
            memory.policy == MemoryPolicy::Preferred && memory.nodes.len() > 1
        })
    }

    /// The sentence for tools that cannot interleave with weights; `None` if the placement does not.
    fn explain_missing_weights(&self) -> Option<String> {
        self.has_policy(MemoryPolicy::Weighted).then(|| {
            "It does not support weighted interleaving; numactl --weighted-interleave does."
                .to_owned()
        })
    }

    /// An emission for a tool that gives all threads one mask.
    fn emit_one_mask(&self, pieces: Vec<Piece>, verify: String) -> Emission {
        let mut emission = self.emit_pieces(pieces, verify);
        if self.is_bound() {
            emission.unsupported.push(
                "It gives all threads one mask and binds none of them; pinwise run binds each to one CPU."
                    .to_owned(),
            );
        }
        emission
    }

    const fn emit_pieces(&self, pieces: Vec<Piece>, verify: String) -> Emission {
        Emission {
            tool: self.tool,
            pieces,
            unsupported: Vec::new(),
            notes: Vec::new(),
            verify,
        }
    }

    /// Says what is left out, for tools without memory policies.
    fn note_missing_memory(&self, mut emission: Emission) -> Emission {
        if let Some((policy, _)) = self.memory_policy() {
            emission.unsupported.push(format!(
                "It does not place memory: /mem={} is left out; numactl sets it.",
                policy.name()
            ));
        }
        emission
    }

    /// Says what is left out, for tools that can limit nodes but have no policies.
    fn note_missing_policies(&self, mut emission: Emission) -> Emission {
        if let Some((policy, _)) = self.memory_policy()
            && policy != MemoryPolicy::Bind
        {
            emission.unsupported.push(format!(
                "It can limit memory to nodes but has no policies: /mem={} is left out; start the program with numactl inside.",
                policy.name()
            ));
        }
        emission
    }

    /// A command to run in the container: it shows the mask of its own process, and the nodes if
    /// the placement limits them; without CPUs, the limit on CPU time.
    fn own_mask_command(&self) -> &'static str {
        match self.bound_nodes() {
            None if !self.names_cpus() => "cat /sys/fs/cgroup/cpu.max",
            Some(_) => "grep -E '(Cpu|Mem)s_allowed_list' /proc/self/status",
            None => SHOW_OWN_MASK,
        }
    }

    /// A command that shows mask and memory policy of a process that [`Self::start_line`] started.
    fn pid_mask_command(&self) -> String {
        match self.realised.memory {
            Some(_) => format!("{SHOW_PID_MASK}; head -n 1 /proc/PID/numa_maps"),
            None => SHOW_PID_MASK.to_owned(),
        }
    }

    /// The line that starts the program with the placement's mask and memory.
    fn start_line(&self) -> String {
        if self.realised.memory.is_some() {
            let options = numactl_options(self);
            return format!("numactl {options} {}", self.shell_line(&[]));
        }
        self.shell_line(&["taskset", "-c", &self.cpu_list()])
    }
}

/// Formats node numbers as `0,2-3`, which all these tools read.
fn format_nodes(nodes: &[usize]) -> String {
    let set: pinwise_topology::CpuSet = nodes.iter().copied().collect();
    set.to_string()
}

/// Shows the mask of its own process.
const SHOW_OWN_MASK: &str = "grep Cpus_allowed_list /proc/self/status";
/// Shows the mask of a running process.
const SHOW_PID_MASK: &str = "grep Cpus_allowed_list /proc/PID/task/*/status";

#[cfg(test)]
mod tests;
