//! Containers, pods and virtual machines.

use super::{Emission, Piece, Request, Tool, node_list};
use crate::MemoryPolicy;
use crate::limit::CpuLimit;
use pinwise_format::count;
use pinwise_topology::{CpuSet, Level};

pub(super) fn docker(request: &Request<'_>) -> Emission {
    container(request, "docker")
}

pub(super) fn podman(request: &Request<'_>) -> Emission {
    let mut emission = container(request, "podman");
    emission.notes.push(
        "Rootless it needs the cpuset controller delegated to the user (Delegate=cpuset of \
         user@.service)."
            .to_owned(),
    );
    emission
}

fn container(request: &Request<'_>, tool: &str) -> Emission {
    let mut options = Vec::new();
    if request.names_cpus() {
        options.push(format!("--cpuset-cpus={}", request.list()));
    }
    options.extend(
        request
            .context
            .limit
            .iter()
            .flat_map(|limit| limit.docker()),
    );
    options.extend(request.bound_nodes().map(|n| format!("--cpuset-mems={n}")));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut words = vec![tool, "run"];
    if !request.context.command.is_empty() {
        // A program that ends, and may read input.
        words.extend(["--rm", "-i"]);
    }
    words.extend(&options);
    words.push("IMAGE");
    let run = if request.context.command.is_empty() {
        words.join(" ")
    } else {
        request.line(&words)
    };
    let shared = options.join(" ");
    let mut emission = request.one_mask(
        vec![
            Piece::Command(run),
            Piece::Command(format!("{tool} update {shared} CONTAINER")),
        ],
        format!("{tool} exec CONTAINER {}", request.verify_own_mask()),
    );
    emission
        .notes
        .push("The second line is for a running container.".to_owned());
    request.keep_nodes_only(emission)
}

pub(super) fn kubernetes(request: &Request<'_>) -> Emission {
    if let (Some(limit), false) = (&request.context.limit, request.names_cpus()) {
        return limited_pod(request, limit);
    }
    let pieces = vec![
        Piece::File {
            path: "pod.yaml, of the container".to_owned(),
            text: pod(request),
        },
        Piece::File {
            path: "/var/lib/kubelet/config.yaml, of the node".to_owned(),
            text: kubelet(request),
        },
    ];
    let mut emission = request.one_mask(
        pieces,
        format!("kubectl exec POD -- {}", request.verify_own_mask()),
    );
    emission.unsupported.push(format!(
        "A pod cannot name CPUs: it asks for {}, and the kubelet chooses them by its policy.",
        count(request.realised.cpus.len(), "CPU")
    ));
    if let Some(nodes) = nodes_elsewhere(request) {
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
    let needs = [
        "A changed policy takes effect only after draining the node and removing cpu_manager_state and memory_manager_state.",
        "The static policy needs CPUs that are set aside for the system (reservedSystemCPUs, \
         kubeReserved), memoryManagerPolicy: Static needs reservedMemory.",
    ];
    emission.notes.extend(needs.map(str::to_owned));
    if kubelet_options(request).contains(&ACROSS_CORES) {
        emission.notes.push(format!(
            "{ACROSS_CORES} needs the feature gate CPUManagerPolicyAlphaOptions."
        ));
    }
    request.keep_nodes_only(emission)
}

/// A pod in the shared pool of CPUs with a limit on its time.
fn limited_pod(request: &Request<'_>, limit: &CpuLimit) -> Emission {
    let mut pieces = vec![Piece::File {
        path: "pod.yaml, of the container".to_owned(),
        text: format!(
            "{}resources:\n  requests:\n    # Below the limit: a pod whose requests equal its limits is Guaranteed, and the\n    # static policy gives that one CPUs of its own in place of the limit.\n    cpu: {}\n  limits:\n    cpu: {}\n",
            pod_command(request),
            limit.kubernetes_request(),
            limit.kubernetes()
        ),
    }];
    let verify = format!("kubectl exec POD -- {}", request.verify_own_mask());
    let period = limit.written_period();
    if let Some(period) = &period {
        pieces.push(Piece::File {
            path: "/var/lib/kubelet/config.yaml, of the node".to_owned(),
            text: format!("cpuCFSQuotaPeriod: {period}\n"),
        });
    }
    let mut emission = request.emission(pieces, verify);
    if period.is_some() {
        emission.notes.push(
            "The period is the node's, for all its pods, and needs the feature gate CustomCPUCFSQuotaPeriod.".to_owned(),
        );
    }
    emission
}

/// The program, if it is known.
fn pod_command(request: &Request<'_>) -> String {
    if request.context.command.is_empty() {
        return String::new();
    }
    // JSON's strings and lists are valid YAML.
    let command = request.command();
    let words = command
        .iter()
        .map(|word| Tool::Kubernetes.escape_word(word));
    format!("command: {}\n", serde_json::Value::from_iter(words))
}

/// Whole CPUs, requests equal to limits: only such pods get exclusive CPUs.
pub(super) fn pod(request: &Request<'_>) -> String {
    let cpus = request.realised.cpus.len();
    let command = pod_command(request);
    let amounts = format!("    cpu: \"{cpus}\"\n    memory: MEMORY\n");
    format!("{command}resources:\n  requests:\n{amounts}  limits:\n{amounts}")
}

/// A request and no limit: such pods share the CPUs that no pod has for its own.
pub(super) fn sharing_pod(request: &Request<'_>) -> String {
    let command = pod_command(request);
    format!("{command}resources:\n  requests:\n    cpu: 100m\n    memory: MEMORY\n")
}

/// Options of the static policy.
fn kubelet_options(request: &Request<'_>) -> Vec<&'static str> {
    let used = &request.realised.used;
    let mut options = Vec::new();
    if used.numa_nodes > 1 {
        options.push("distribute-cpus-across-numa");
    } else if used.llcs == 1 && request.topology.llcs.len() > 1 {
        options.push("prefer-align-cpus-by-uncorecache");
    }
    if uses_whole_cores(request) {
        options.push("full-pcpus-only");
    } else if asks_for_cores_apart(request) && options.is_empty() {
        options.push(ACROSS_CORES);
    }
    options
}

pub(super) fn kubelet(request: &Request<'_>) -> String {
    let used = &request.realised.used;
    let options = kubelet_options(request);
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
    if request.bound_nodes().is_some() && nodes_elsewhere(request).is_none() {
        text.push_str("memoryManagerPolicy: Static\n");
    }
    text
}

/// Nodes that memory is bound to but that have no CPU of the placement.
fn nodes_elsewhere(request: &Request<'_>) -> Option<String> {
    let memory = request.realised.memory.as_ref()?;
    let has_cpus = |node: &usize| {
        let mut all = request.topology.numa_nodes.iter();
        all.any(|one| one.node == *node && one.cpus.intersects(&request.realised.cpus))
    };
    let nodes = memory.nodes.iter().copied();
    let elsewhere: Vec<usize> = nodes.filter(|node| !has_cpus(node)).collect();
    (memory.policy == MemoryPolicy::Bind && !elsewhere.is_empty()).then(|| node_list(&elsewhere))
}

/// The kubelet accepts it with none of the others.
const ACROSS_CORES: &str = "distribute-cpus-across-cores";

/// Does it use one CPU of each core that has several?
fn asks_for_cores_apart(request: &Request<'_>) -> bool {
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

pub(super) fn libvirt(request: &Request<'_>) -> Emission {
    let vcpus = request.threads();
    let list = request.list();
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
    let policy = request.policy();
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
    let mut emission = request.emission(vec![Piece::File { path, text }], verify.to_owned());
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
