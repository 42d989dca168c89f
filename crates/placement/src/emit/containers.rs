//! Containers, pods and virtual machines.

use super::{Emission, Piece, Request, Tool, format_nodes};
use crate::MemoryPolicy;
use crate::limit::CpuLimit;
use pinwise_format::count;
use pinwise_topology::{CpuSet, Level};

pub(super) fn emit_docker(request: &Request<'_>) -> Emission {
    emit_container(request, "docker")
}

pub(super) fn emit_podman(request: &Request<'_>) -> Emission {
    let mut emission = emit_container(request, "podman");
    emission.notes.push(
        "Rootless it needs the cpuset controller delegated to the user (Delegate=cpuset of \
         user@.service)."
            .to_owned(),
    );
    emission
}

fn emit_container(request: &Request<'_>, tool: &str) -> Emission {
    let mut options = Vec::new();
    if request.names_cpus() {
        options.push(format!("--cpuset-cpus={}", request.cpu_list()));
    }
    options.extend(
        request
            .context
            .limit
            .iter()
            .flat_map(|limit| limit.docker_options()),
    );
    options.extend(request.bound_nodes().map(|n| format!("--cpuset-mems={n}")));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut words = vec![tool, "run"];
    if !request.context.command.is_empty() {
        // The program ends by itself, and may read input.
        words.extend(["--rm", "-i"]);
    }
    words.extend(&options);
    words.push("IMAGE");
    let run = if request.context.command.is_empty() {
        words.join(" ")
    } else {
        request.shell_line(&words)
    };
    let options = options.join(" ");
    let mut emission = request.emit_one_mask(
        vec![
            Piece::Command(run),
            Piece::Command(format!("{tool} update {options} CONTAINER")),
        ],
        format!("{tool} exec CONTAINER {}", request.own_mask_command()),
    );
    emission
        .notes
        .push("The second line is for a running container.".to_owned());
    request.note_missing_policies(emission)
}

pub(super) fn emit_kubernetes(request: &Request<'_>) -> Emission {
    if let (Some(limit), false) = (&request.context.limit, request.names_cpus()) {
        return emit_limited_pod(request, limit);
    }
    let pieces = vec![
        Piece::File {
            path: "pod.yaml, of the container".to_owned(),
            text: write_pod(request),
        },
        Piece::File {
            path: "/var/lib/kubelet/config.yaml, of the node".to_owned(),
            text: write_kubelet_config(request),
        },
    ];
    let mut emission = request.emit_one_mask(
        pieces,
        format!("kubectl exec POD -- {}", request.own_mask_command()),
    );
    emission.unsupported.push(format!(
        "A pod cannot name CPUs: it asks for {}, and the kubelet chooses them by its policy.",
        count(request.realised.cpus.len(), "CPU")
    ));
    if let Some(nodes) = find_nodes_without_cpus(request) {
        emission.unsupported.push(format!(
            "The kubelet takes memory from the nodes of the pod's CPUs; node {nodes} has none of \
             them: /mem=bind is left out."
        ));
    }
    let locality = request.realised.placement.locality.as_ref();
    if let Some(far) = locality.filter(|locality| !locality.is_near) {
        emission.unsupported.push(format!(
            "The kubelet cannot keep a pod far from a device: these settings choose CPUs without \
             regard to {}.",
            far.device
        ));
    }
    let requirements = [
        "A changed policy takes effect only after draining the node and removing cpu_manager_state and memory_manager_state.",
        "The static policy needs CPUs that are set aside for the system (reservedSystemCPUs, \
         kubeReserved), memoryManagerPolicy: Static needs reservedMemory.",
    ];
    emission.notes.extend(requirements.map(str::to_owned));
    if list_kubelet_options(request).contains(&ACROSS_CORES) {
        emission.notes.push(format!(
            "{ACROSS_CORES} needs the feature gate CPUManagerPolicyAlphaOptions."
        ));
    }
    request.note_missing_policies(emission)
}

/// A pod in the shared pool of CPUs with a limit on its time.
fn emit_limited_pod(request: &Request<'_>, limit: &CpuLimit) -> Emission {
    let mut pieces = vec![Piece::File {
        path: "pod.yaml, of the container".to_owned(),
        text: format!(
            "{}resources:\n  requests:\n    # Below the limit: a pod whose requests equal its limits is Guaranteed, and the\n    # static policy gives that one CPUs of its own in place of the limit.\n    cpu: {}\n  limits:\n    cpu: {}\n",
            write_pod_command(request),
            limit.kubernetes_request(),
            limit.kubernetes_quantity()
        ),
    }];
    let verify = format!("kubectl exec POD -- {}", request.own_mask_command());
    let period = limit.custom_period_text();
    if let Some(period) = &period {
        pieces.push(Piece::File {
            path: "/var/lib/kubelet/config.yaml, of the node".to_owned(),
            text: format!("cpuCFSQuotaPeriod: {period}\n"),
        });
    }
    let mut emission = request.emit_pieces(pieces, verify);
    if period.is_some() {
        emission.notes.push(
            "The period is the node's, for all its pods, and needs the feature gate CustomCPUCFSQuotaPeriod.".to_owned(),
        );
    }
    emission
}

/// The `command:` of a container; empty if no program is given.
fn write_pod_command(request: &Request<'_>) -> String {
    if request.context.command.is_empty() {
        return String::new();
    }
    // JSON's strings and lists are valid YAML.
    let command = request.command_words();
    let words = command
        .iter()
        .map(|word| Tool::Kubernetes.escape_word(word));
    format!("command: {}\n", serde_json::Value::from_iter(words))
}

/// A pod with whole CPUs, requests equal to limits: only such pods get exclusive CPUs.
pub(super) fn write_pod(request: &Request<'_>) -> String {
    let cpus = request.realised.cpus.len();
    let command = write_pod_command(request);
    let amounts = format!("    cpu: \"{cpus}\"\n    memory: MEMORY\n");
    format!("{command}resources:\n  requests:\n{amounts}  limits:\n{amounts}")
}

/// A pod with a request and no limit: it shares the CPUs that no pod has exclusively.
pub(super) fn write_sharing_pod(request: &Request<'_>) -> String {
    let command = write_pod_command(request);
    format!("{command}resources:\n  requests:\n    cpu: 100m\n    memory: MEMORY\n")
}

/// Options of the static policy.
fn list_kubelet_options(request: &Request<'_>) -> Vec<&'static str> {
    let used = &request.realised.used;
    let mut options = Vec::new();
    if used.numa_nodes > 1 {
        options.push("distribute-cpus-across-numa");
    } else if used.llcs == 1 && request.topology.llcs.len() > 1 {
        options.push("prefer-align-cpus-by-uncorecache");
    }
    if uses_whole_cores(request) {
        options.push("full-pcpus-only");
    } else if uses_one_cpu_per_core(request) && options.is_empty() {
        options.push(ACROSS_CORES);
    }
    options
}

pub(super) fn write_kubelet_config(request: &Request<'_>) -> String {
    let used = &request.realised.used;
    let options = list_kubelet_options(request);
    let mut text = "cpuManagerPolicy: static\n".to_owned();
    if !options.is_empty() {
        text.push_str("cpuManagerPolicyOptions:\n");
    }
    for option in options {
        text.push_str(&format!("  {option}: \"true\"\n"));
    }
    if used.numa_nodes == 1 && request.topology.numa_nodes.len() > 1 {
        text.push_str("topologyManagerPolicy: single-numa-node\n");
    }
    if request.bound_nodes().is_some() && find_nodes_without_cpus(request).is_none() {
        text.push_str("memoryManagerPolicy: Static\n");
    }
    text
}

/// Nodes that memory is bound to but that have no CPU of the placement.
fn find_nodes_without_cpus(request: &Request<'_>) -> Option<String> {
    let memory = request.realised.memory.as_ref()?;
    let has_cpus = |node: &usize| {
        let mut nodes = request.topology.numa_nodes.iter();
        nodes.any(|known| known.node == *node && known.cpus.intersects(&request.realised.cpus))
    };
    let nodes = memory.nodes.iter().copied();
    let elsewhere: Vec<usize> = nodes.filter(|node| !has_cpus(node)).collect();
    (memory.policy == MemoryPolicy::Bind && !elsewhere.is_empty()).then(|| format_nodes(&elsewhere))
}

/// The kubelet accepts this option with none of the others.
const ACROSS_CORES: &str = "distribute-cpus-across-cores";

/// Does the placement use only one CPU of each of its cores, on a machine with SMT?
fn uses_one_cpu_per_core(request: &Request<'_>) -> bool {
    let used = &request.realised.used;
    used.cores == used.cpus && request.topology.has_smt()
}

/// Does the placement use all CPUs of each of its SMT cores?
fn uses_whole_cores(request: &Request<'_>) -> bool {
    let cpus = &request.realised.cpus;
    let mut cores = request.topology.units(Level::Core);
    cores.retain(|core| core.intersects(cpus));
    let has_siblings = cores.iter().any(|core| core.len() > 1);
    has_siblings && cores.iter().all(|core| core.is_subset(cpus))
}

pub(super) fn emit_libvirt(request: &Request<'_>) -> Emission {
    let vcpus = request.threads();
    let list = request.cpu_list();
    let mut text = format!("<vcpu placement='static' cpuset='{list}'>{vcpus}</vcpu>\n");
    text.push_str("<cputune>\n");
    let order = &request.realised.order;
    for vcpu in 0..vcpus {
        let set = match order.get(vcpu % order.len().max(1)) {
            Some(cpu) if request.is_bound() => CpuSet::single(*cpu).to_string(),
            _ => list.clone(),
        };
        text.push_str(&format!("  <vcpupin vcpu='{vcpu}' cpuset='{set}'/>\n"));
    }
    text.push_str("</cputune>\n");
    let policy = request.memory_policy();
    let mode = policy.as_ref().and_then(|(policy, _)| match policy {
        MemoryPolicy::Interleave => Some("interleave"),
        MemoryPolicy::Bind => Some("strict"),
        MemoryPolicy::Preferred => Some("preferred"),
        MemoryPolicy::Local | MemoryPolicy::Weighted => None,
    });
    if let (Some(mode), Some((_, nodes))) = (mode, &policy) {
        text.push_str(&format!(
            "<numatune>\n  <memory mode='{mode}' nodeset='{nodes}'/>\n</numatune>\n"
        ));
    }
    let path = "virsh edit DOMAIN, inside <domain>".to_owned();
    let verify = match mode {
        Some(_) => "virsh vcpupin DOMAIN; virsh numatune DOMAIN",
        None => "virsh vcpupin DOMAIN",
    };
    let mut emission = request.emit_pieces(vec![Piece::File { path, text }], verify.to_owned());
    if let (None, Some((policy, _))) = (mode, policy) {
        emission.unsupported.push(format!(
            "Memory of a domain is given by node; /mem={} is left out.",
            policy.name()
        ));
    }
    emission.notes.push(
        "Threads inside the guest are placed by the guest: place them there, too.".to_owned(),
    );
    emission
}
