//! Standard tools of a Linux system: taskset, numactl, hwloc, systemd, cgroups.

use super::{Emission, Piece, Request, SHOW_OWN_MASK, Tool, format_nodes};
use crate::MemoryPolicy;
use pinwise_format::shell;

pub(super) fn emit_taskset(request: &Request<'_>) -> Emission {
    let list = request.cpu_list();
    let emission = request.emit_one_mask(
        vec![Piece::Command(
            request.shell_line(&["taskset", "-c", &list]),
        )],
        format!("taskset -c {list} {SHOW_OWN_MASK}"),
    );
    request.note_missing_memory(emission)
}

pub(super) fn emit_numactl(request: &Request<'_>) -> Emission {
    let options = numactl_options(request);
    let mut emission = request.emit_one_mask(
        vec![Piece::Command(format!(
            "numactl {options} {}",
            request.shell_line(&[])
        ))],
        format!("numactl {options} numactl --show"),
    );
    if request.has_policy(MemoryPolicy::Weighted) {
        emission
            .notes
            .push("--weighted-interleave needs numactl 2.0.19 and Linux 6.9, or later.".to_owned());
    }
    emission
}

/// The options of numactl for a mask with its memory policy.
pub(super) fn numactl_options(request: &Request<'_>) -> String {
    // By itself numactl takes only CPUs of the mask that it was started with.
    let all = if request.leaves_mask() { "--all " } else { "" };
    let cpus = format!("{all}-C {}", request.realised.cpus);
    let Some(memory) = &request.realised.memory else {
        return cpus;
    };
    let nodes: Vec<String> = memory.nodes.iter().map(usize::to_string).collect();
    let nodes = nodes.join(",");
    match memory.policy {
        MemoryPolicy::Local => format!("{cpus} --localalloc"),
        MemoryPolicy::Bind => format!("{cpus} --membind={nodes}"),
        MemoryPolicy::Interleave => format!("{cpus} --interleave={nodes}"),
        MemoryPolicy::Weighted => format!("{cpus} --weighted-interleave={nodes}"),
        MemoryPolicy::Preferred if memory.nodes.len() > 1 => {
            format!("{cpus} --preferred-many={nodes}")
        }
        MemoryPolicy::Preferred => format!("{cpus} --preferred={nodes}"),
    }
}

pub(super) fn emit_hwloc_bind(request: &Request<'_>) -> Emission {
    let mask = request.cpu_mask();
    let mut words = vec!["hwloc-bind".to_owned(), "--cpubind".to_owned(), mask];
    let memory = request.realised.memory.as_ref();
    let policy = memory.and_then(|memory| match memory.policy {
        MemoryPolicy::Local | MemoryPolicy::Weighted => None,
        MemoryPolicy::Bind => Some("bind --strict"),
        // Nodes that are bound to, not strictly, are preferred.
        MemoryPolicy::Preferred => Some("bind"),
        MemoryPolicy::Interleave => Some("interleave"),
    });
    if let (Some(policy), Some(memory)) = (policy, memory) {
        words.extend(["--physical", "--membind"].map(str::to_owned));
        words.extend(memory.nodes.iter().map(|node| format!("numa:{node}")));
        words.push("--mempolicy".to_owned());
        words.extend(policy.split(' ').map(str::to_owned));
    }
    words.push("--".to_owned());
    let options: Vec<&str> = words.iter().map(String::as_str).collect();
    let show_command = match policy {
        Some(_) => "sh -c 'hwloc-bind --get --taskset; hwloc-bind --get --membind'",
        None => "hwloc-bind --get --taskset",
    };
    let verify = format!("{} {show_command}", shell::line(&words));
    let mut emission =
        request.emit_one_mask(vec![Piece::Command(request.shell_line(&options))], verify);
    if request.has_policy(MemoryPolicy::Local) {
        emission.unsupported.push(
            "It does not support strictly local memory; numactl --localalloc does.".to_owned(),
        );
    }
    emission
        .unsupported
        .extend(request.explain_missing_weights());
    emission
}

pub(super) fn emit_systemd(request: &Request<'_>, unit: Option<&str>) -> Emission {
    let program = request.context.command.first();
    let unit = match (unit, program) {
        (Some(unit), _) => unit.to_owned(),
        (None, Some(program)) => format!("{}.service", escape_unit_name(last_path_part(program))),
        (None, None) => "UNIT.service".to_owned(),
    };
    let ending = unit.rsplit_once('.').map_or("service", |(_, end)| end);
    let section = match ending {
        "scope" => "Scope",
        "slice" => "Slice",
        "socket" => "Socket",
        "mount" => "Mount",
        "swap" => "Swap",
        _ => "Service",
    };
    // Scopes and slices start no process: they only have a cgroup.
    let starts_processes = !matches!(ending, "scope" | "slice");
    let mut text = format!("[{section}]\n");
    for (name, value) in list_properties(request, starts_processes) {
        text.push_str(&format!("{name}={value}\n"));
    }
    let quoted = shell::word(&unit);
    let pieces = vec![
        Piece::File {
            path: format!("/etc/systemd/system/{unit}.d/50-pinwise.conf"),
            text,
        },
        Piece::Command("systemctl daemon-reload".to_owned()),
        Piece::Command(format!("systemctl restart {quoted}")),
    ];
    let shown = match request.names_cpus() {
        true => "EffectiveCPUs,EffectiveMemoryNodes,CPUAffinity,NUMAPolicy,NUMAMask",
        false => "CPUQuotaPerSecUSec,CPUQuotaPeriodUSec",
    };
    let verify = format!("systemctl show -p {shown} {quoted}");
    let mut emission = request.emit_one_mask(pieces, verify);
    if !starts_processes
        && request
            .memory_policy()
            .is_some_and(|(p, _)| p != MemoryPolicy::Bind)
    {
        emission.unsupported.push(format!(
            "A {ending} has a cgroup and no memory policy: set it on the services inside."
        ));
    }
    if starts_processes {
        emission
            .unsupported
            .extend(explain_numa_policy_limits(request));
    }
    if request.names_cpus() {
        emission.notes.push(
        "AllowedCPUs= needs the unified cgroup hierarchy (v2); CPUAffinity= works without it, but the program can undo it."
            .to_owned(),
        );
    }
    emission
}

/// A unit's settings, as names and values.
fn list_properties(request: &Request<'_>, starts_processes: bool) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if request.names_cpus() {
        lines.push(("AllowedCPUs", request.cpu_list()));
    }
    if let Some(limit) = &request.context.limit {
        lines.push(("CPUQuota", limit.systemd_percent()));
        let period = limit.custom_period_text();
        lines.extend(period.map(|period| ("CPUQuotaPeriodSec", period)));
    }
    lines.extend(request.bound_nodes().map(|n| ("AllowedMemoryNodes", n)));
    if starts_processes {
        if request.names_cpus() {
            lines.push(("CPUAffinity", request.cpu_list()));
        }
        if let Some(memory) = &request.realised.memory
            && memory.policy != MemoryPolicy::Weighted
        {
            lines.push(("NUMAPolicy", memory.policy.name().to_owned()));
            let nodes = match memory.policy {
                MemoryPolicy::Local => &[],
                MemoryPolicy::Preferred => &memory.nodes[..memory.nodes.len().min(1)],
                _ => &memory.nodes[..],
            };
            if !nodes.is_empty() {
                lines.push(("NUMAMask", format_nodes(nodes)));
            }
        }
    }
    lines
}

/// What `NUMAPolicy=` cannot express.
fn explain_numa_policy_limits(request: &Request<'_>) -> Option<String> {
    let first =
        "NUMAPolicy=preferred takes one node, here the first; numactl --preferred-many takes all.";
    match request.prefers_several() {
        true => Some(first.to_owned()),
        false => request.explain_missing_weights(),
    }
}

pub(super) fn emit_systemd_run(request: &Request<'_>) -> Emission {
    let mut words: Vec<String> = ["systemd-run", "--wait", "--pipe", "--collect", "--same-dir"]
        .map(str::to_owned)
        .to_vec();
    for (name, value) in list_properties(request, true) {
        words.extend(["-p".to_owned(), format!("{name}={value}")]);
    }
    words.push("--".to_owned());
    let options = shell::line(&words);
    let command = request.command_words();
    words.extend(
        command
            .iter()
            .map(|word| Tool::SystemdRun.escape_word(word)),
    );
    let mut emission = request.emit_one_mask(
        vec![Piece::Command(shell::line(words))],
        format!("{options} {}", show_inside_command(request)),
    );
    emission
        .unsupported
        .extend(explain_numa_policy_limits(request));
    emission
        .notes
        .push("The program gets systemd's environment, not the shell's.".to_owned());
    emission
}

/// A command that shows mask and memory policy inside a service.
fn show_inside_command(request: &Request<'_>) -> String {
    match request.memory_policy() {
        // systemd takes $$ for a dollar sign.
        None if !request.names_cpus() => {
            "sh -c 'cat /sys/fs/cgroup$$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max'".to_owned()
        }
        Some((policy, _)) if policy != MemoryPolicy::Weighted => {
            format!("sh -c '{SHOW_OWN_MASK}; head -n 1 /proc/self/numa_maps'")
        }
        _ => SHOW_OWN_MASK.to_owned(),
    }
}

pub(super) fn emit_cgroup_v1(request: &Request<'_>) -> Emission {
    if let (Some(limit), false) = (&request.context.limit, request.names_cpus()) {
        let folder = "/sys/fs/cgroup/cpu/pinwise";
        let (quota, period) = (limit.quota_us(), limit.period_us());
        let pieces = vec![
            Piece::Command(format!("mkdir -p {folder}")),
            Piece::Command(format!("echo {period} > {folder}/cpu.cfs_period_us")),
            Piece::Command(format!("echo {quota} > {folder}/cpu.cfs_quota_us")),
            Piece::Command(cgroup_start_line(
                request,
                &format!("{folder}/cgroup.procs"),
            )),
        ];
        let verify = format!("cat {folder}/cpu.cfs_quota_us {folder}/cpu.cfs_period_us");
        return request.emit_pieces(pieces, verify);
    }
    let folder = "/sys/fs/cgroup/cpuset/pinwise";
    // A v1 cpuset accepts no process before it has both.
    let nodes = match request.bound_nodes() {
        Some(nodes) => format!("echo {nodes} > {folder}/cpuset.mems"),
        None => format!("cat /sys/fs/cgroup/cpuset/cpuset.mems > {folder}/cpuset.mems"),
    };
    let pieces = vec![
        Piece::Command(format!("mkdir -p {folder}")),
        Piece::Command(format!(
            "echo {} > {folder}/cpuset.cpus",
            request.cpu_list()
        )),
        Piece::Command(nodes),
        Piece::Command(cgroup_start_line(request, &format!("{folder}/tasks"))),
    ];
    let mut verify = format!("cat {folder}/cpuset.effective_cpus");
    if request.bound_nodes().is_some() {
        verify.push_str(&format!(" {folder}/cpuset.effective_mems"));
    }
    let emission = request.emit_one_mask(pieces, verify);
    request.note_missing_policies(emission)
}

pub(super) fn emit_cgroup_v2(request: &Request<'_>) -> Emission {
    let folder = "/sys/fs/cgroup/pinwise";
    if let (Some(limit), false) = (&request.context.limit, request.names_cpus()) {
        let (quota, period) = (limit.quota_us(), limit.period_us());
        let pieces = vec![
            Piece::Command("echo +cpu > /sys/fs/cgroup/cgroup.subtree_control".to_owned()),
            Piece::Command(format!("mkdir -p {folder}")),
            Piece::Command(format!("echo {quota} {period} > {folder}/cpu.max")),
            Piece::Command(cgroup_start_line(
                request,
                &format!("{folder}/cgroup.procs"),
            )),
        ];
        return request.emit_pieces(pieces, format!("cat {folder}/cpu.max"));
    }
    let mut pieces = vec![
        Piece::Command("echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control".to_owned()),
        Piece::Command(format!("mkdir -p {folder}")),
        Piece::Command(format!(
            "echo {} > {folder}/cpuset.cpus",
            request.cpu_list()
        )),
    ];
    let mut verify = format!("cat {folder}/cpuset.cpus.effective");
    if let Some(nodes) = request.bound_nodes() {
        pieces.push(Piece::Command(format!(
            "echo {nodes} > {folder}/cpuset.mems"
        )));
        verify.push_str(&format!(" {folder}/cpuset.mems.effective"));
    }
    pieces.push(Piece::Command(cgroup_start_line(
        request,
        &format!("{folder}/cgroup.procs"),
    )));
    let mut emission = request.emit_one_mask(pieces, verify);
    emission.notes.push(format!(
        "For a running program: echo PID > {folder}/cgroup.procs; its threads then lose the masks that they had set."
    ));
    request.note_missing_policies(emission)
}

/// The line that starts the program inside a cgroup: a shell joins it and executes the program.
fn cgroup_start_line(request: &Request<'_>, file: &str) -> String {
    let enter = format!("echo $$ > {file} && exec \"$@\"");
    request.shell_line(&["sh", "-c", &enter, "sh"])
}

/// The last part of a path.
fn last_path_part(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// A text as part of a unit's name, as systemd-escape(1) writes it.
fn escape_unit_name(text: &str) -> String {
    let mut escaped = String::new();
    for (position, byte) in text.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_');
        match byte {
            b'/' => escaped.push('-'),
            b'.' if position > 0 => escaped.push('.'),
            byte if is_plain => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if escaped.is_empty() {
        return "UNIT".to_owned();
    }
    escaped
}
