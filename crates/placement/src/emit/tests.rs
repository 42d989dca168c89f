//! Golden texts on three machines, and round trips through the readers.

use pinwise_format::shell;
use proptest::prelude::*;

use super::*;
use crate::Placement;
use crate::read;
use pinwise_topology::{Capture, CpuSet, Restriction};

const SERVER: &str = "package:2 [numa(memory=1GB)] l3:2 core:2 pu:2";
const VM: &str = "package:1 core:2 pu:1";

fn machine(description: &str) -> Topology {
    Topology::from_synthetic(description).unwrap()
}

/// 4 P CPUs on 2 cores, 4 E cores.
fn hybrid() -> Topology {
    let mut capture = Capture::new();
    for cpu in 0..8 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        let siblings = match cpu {
            0 | 1 => "0-1".to_owned(),
            2 | 3 => "2-3".to_owned(),
            cpu => cpu.to_string(),
        };
        capture.insert(format!("{folder}/core_cpus_list"), siblings);
    }
    capture.insert("sys/devices/system/cpu/online", "0-7");
    capture.insert("sys/devices/cpu_core/cpus", "0-3");
    capture.insert("sys/devices/cpu_atom/cpus", "4-7");
    Topology::from_capture(&capture).0
}

fn context(command: &[&str]) -> Context {
    Context {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..Context::default()
    }
}

fn show_emission(topology: &Topology, place: &str, command: &[&str]) -> String {
    let placement: Placement = place.parse().unwrap();
    let realised = placement.realise(topology).unwrap();
    let mut text = format!("{place}: CPUs {}\n", realised.cpus);
    for tool in Tool::ALL {
        let target = Target::new(tool);
        let emission = emit(&target, &realised, topology, &context(command));
        assert_eq!(emission.tool, tool);
        text.push_str(&format!("\n== {}\n{}", tool.name(), emission.text()));
        for sentence in &emission.unsupported {
            text.push_str(&format!("cannot: {sentence}\n"));
        }
        for sentence in &emission.notes {
            text.push_str(&format!("note: {sentence}\n"));
        }
        text.push_str(&format!("verify: {}\n", emission.verify));
    }
    text
}

#[test]
fn emissions_on_a_server_with_smt_and_numa_are_as_recorded() {
    let server = machine(SERVER);
    insta::assert_snapshot!(
        "server",
        show_emission(&server, "one-per-core*4/mem=bind", &["./prog", "-n", "2"])
    );
    insta::assert_snapshot!(
        "server-bound",
        show_emission(&server, "spread*4/bound/mem=interleave", &["./prog"])
    );
}

/// numactl takes only CPUs of the mask that it was started with, unless it is told.
#[test]
fn tools_that_stay_within_the_mask_get_it_removed() {
    let mut server = machine(SERVER);
    server.allowed = CpuSet::parse_list("0-3").unwrap();
    server.restrictions = vec![Restriction::mask("affinity mask", server.allowed.clone())];
    let context = context(&["./prog"]);
    let emission = |place: &str, tool: Tool| {
        let placement: Placement = place.parse().unwrap();
        let realised = placement.realise(&server).unwrap();
        emit(&Target::new(tool), &realised, &server, &context)
    };
    let line = |place: &str| emission(place, Tool::Numactl).line();
    assert_eq!(line("cpu:2-3"), "numactl -C 2-3 ./prog");
    assert_eq!(line("cpu:3-4"), "numactl --all -C 3-4 ./prog");
    for tool in [Tool::Omp, Tool::Kmp] {
        assert!(emission("cpu:2-3", tool).unsupported.is_empty());
        let cannot = emission("cpu:3-4", tool).unsupported.join(" ");
        assert!(cannot.contains("start it with taskset -c 3-4"), "{cannot}");
    }
}

/// How tools handle the policies that are missing in the goldens above.
#[test]
fn policies_of_memory_are_kept_or_reported() {
    let server = machine(SERVER);
    let context = context(&[]);
    let emission = |place: &str, tool: Tool| {
        let placement: Placement = place.parse().unwrap();
        let realised = placement.realise(&server).unwrap();
        emit(&Target::new(tool), &realised, &server, &context)
    };
    let check = |place: &str, tool: Tool, words: &str, lack: Option<&str>| {
        let emission = emission(place, tool);
        let text = emission.text();
        assert!(text.contains(words), "{place}: {text}");
        let cannot = emission.unsupported.join(" ");
        match lack {
            Some(lack) => assert!(cannot.contains(lack), "{place}: {cannot}"),
            None => assert_eq!(cannot, "", "{place}"),
        }
    };
    let weighted = "os-default/mem=weighted";
    let first = Tool::Numactl;
    check(weighted, first, "--weighted-interleave=0,1 ", None);
    check("cpu:0/mem=preferred:1", first, "--preferred=1 ", None);
    check("cpu:0/mem=preferred:0-1", first, "-many=0,1 ", None);
    check("cpu:0/mem=bind:1", first, "-C 0 --membind=1 ", None);

    let hwloc = Tool::HwlocBind;
    let strict = "--membind numa:1 --mempolicy bind --strict --";
    check("cpu:0/mem=bind:1", hwloc, strict, None);
    let preferred = "--membind numa:1 --mempolicy bind --";
    check("cpu:0/mem=preferred:1", hwloc, preferred, None);
    check(weighted, hwloc, "--cpubind", Some("weighted interleaving"));

    let systemd = Tool::Systemd;
    let one = "NUMAPolicy=preferred\nNUMAMask=1\n";
    check("cpu:0/mem=preferred:1", systemd, one, None);
    let both = "NUMAPolicy=preferred\nNUMAMask=0\n";
    let lack = "takes one node, here the first";
    check("cpu:0/mem=preferred:0-1", systemd, both, Some(lack));
    let none = "CPUAffinity=0-15\n#";
    check(weighted, systemd, none, Some("weighted interleaving"));
    let run = Tool::SystemdRun;
    check(weighted, run, "CPUAffinity=0-15 --", Some("weighted"));

    let docker = Tool::Docker;
    check("cpu:0/mem=bind:1", docker, "--cpuset-mems=1 ", None);
    check(
        weighted,
        docker,
        "=0-15 IMAGE",
        Some("/mem=weighted is left"),
    );
    let slurm = Tool::Slurm;
    let mask = "--mem-bind=prefer,mask_mem:0x2 ";
    check("cpu:0/mem=preferred:1", slurm, mask, None);
    check(
        weighted,
        slurm,
        "srun",
        Some("--mem-bind cannot interleave"),
    );
    let kubernetes = Tool::Kubernetes;
    let lack = "node 1 has none of them: /mem=bind is left out";
    let file = "single-numa-node\n";
    check("cpu:0/mem=bind:1", kubernetes, file, Some(lack));
    let text = emission("cpu:0/mem=bind:1", kubernetes).text();
    assert!(!text.contains("memoryManagerPolicy"), "{text}");
    let libvirt = Tool::Libvirt;
    let mode = "<memory mode='preferred' nodeset='1'/>";
    check("cpu:0/mem=preferred:1", libvirt, mode, None);
    check(weighted, libvirt, "<vcpu", Some("/mem=weighted is left"));
}

/// bash would expand `{0,1}` into several assignments.
#[test]
fn braces_are_quoted() {
    let text = show_emission(&machine(SERVER), "cpu:0,1,5", &["./prog"]);
    assert!(text.contains("export OMP_PLACES='{0,1,5}'\n"), "{text}");
}

#[test]
fn the_environment_is_passed_on() {
    let context = Context {
        environment: vec![("A".to_owned(), "x y".to_owned())],
        ..context(&["./prog"])
    };
    let server = machine(SERVER);
    let placement: Placement = "one-core".parse().unwrap();
    let realised = placement.realise(&server).unwrap();
    let text = |tool| emit(&Target::new(tool), &realised, &server, &context).text();
    assert_eq!(text(Tool::Taskset), "taskset -c 0-1 env 'A=x y' ./prog\n");
    assert!(text(Tool::Systemd).contains("prog.service"));
}

#[test]
fn a_limit_on_cpu_time_is_kept_or_reported() {
    let server = machine(SERVER);
    let placement = Placement::os_default();
    let realised = placement.realise(&server).unwrap();
    let emit_limited = |tool, cpus, period_ms| {
        let period = std::time::Duration::from_millis(period_ms);
        let context = Context {
            limit: Some(CpuLimit::new(cpus, period).unwrap()),
            ..context(&["./prog"])
        };
        emit(&Target::new(tool), &realised, &server, &context)
    };
    let line = |tool| emit_limited(tool, 1.5, 100).line();
    assert_eq!(
        line(Tool::Docker),
        "docker run --rm -i --cpus=1.5 IMAGE ./prog"
    );
    assert_eq!(
        line(Tool::SystemdRun),
        "systemd-run --wait --pipe --collect --same-dir -p CPUQuota=150% -- ./prog"
    );
    let text = |tool| emit_limited(tool, 0.5, 20).text();
    assert!(text(Tool::Podman).contains("--cpu-period=20000 --cpu-quota=10000 IMAGE"));
    assert!(text(Tool::Systemd).contains("CPUQuota=50%\nCPUQuotaPeriodSec=20ms\n"));
    assert!(text(Tool::CgroupV2).contains("echo 10000 20000 > /sys/fs/cgroup/pinwise/cpu.max"));
    assert!(
        text(Tool::CgroupV1).contains("echo 10000 > /sys/fs/cgroup/cpu/pinwise/cpu.cfs_quota_us")
    );
    let pod = text(Tool::Kubernetes);
    assert!(
        pod.contains("    cpu: 450m\n  limits:\n    cpu: 500m\n"),
        "{pod}"
    );
    assert!(pod.contains("cpuCFSQuotaPeriod: 20ms"), "{pod}");
    for tool in Tool::ALL {
        let emission = emit_limited(tool, 2.0, 100);
        let says_so = emission
            .unsupported
            .iter()
            .any(|c| c.contains("CPUQuota=200%"));
        assert_eq!(says_so, !tool.uses_cgroup(), "{}", tool.name());
    }
}

/// Of these options the kubelet accepts the first with none of the others (kubernetes,
/// `pkg/kubelet/cm/cpumanager/policy_options.go`).
#[test]
fn the_kubelet_gets_compatible_options() {
    let server = machine(SERVER);
    for place in [
        "one-numa",
        "one-per-core",
        "spread",
        "one-per-llc",
        "cpu:0",
        "cpu:0,2",
    ] {
        let placement: Placement = place.parse().unwrap();
        let realised = placement.realise(&server).unwrap();
        let target = Target::new(Tool::Kubernetes);
        let text = emit(&target, &realised, &server, &context(&[])).text();
        let options = text.matches("\"true\"").count();
        let is_apart = text.contains("distribute-cpus-across-cores");
        assert!(!is_apart || options == 1, "{place}: {text}");
    }
}

#[test]
fn emissions_on_a_hybrid_are_as_recorded() {
    insta::assert_snapshot!("hybrid", show_emission(&hybrid(), "p-cores/mem=local", &[]));
}

#[test]
fn emissions_on_a_small_virtual_machine_are_as_recorded() {
    insta::assert_snapshot!(
        "vm",
        show_emission(&machine(VM), "cpu:1", &["sh", "-c", "echo \"it's $HOME\""])
    );
}

#[test]
fn hostile_words_stay_words() {
    let topology = machine(VM);
    let placement: Placement = "cpu:0".parse().unwrap();
    let realised = placement.realise(&topology).unwrap();
    let words = ["/opt/my prog;x", "a b", "$(reboot)", "'", "\n", "%n"];
    let expected = |tool| {
        let target = Target::new(tool);
        emit(&target, &realised, &topology, &context(&words))
    };
    for tool in [
        Tool::Taskset,
        Tool::Numactl,
        Tool::HwlocBind,
        Tool::CgroupV2,
    ] {
        let emission = expected(tool);
        let Some(Piece::Command(line)) = emission.pieces.last() else {
            panic!("{tool:?}");
        };
        assert!(line.ends_with(&shell::line(words)), "{line}");
    }
    let unit = expected(Tool::Systemd).text();
    assert!(unit.contains("/my\\x20prog\\x3bx.service.d/"), "{unit}");
    let run = expected(Tool::SystemdRun).text();
    assert!(run.contains("'$$(reboot)'"), "{run}");
    let pod = expected(Tool::Kubernetes).text();
    assert!(pod.contains(r#""$$(reboot)","'","\n","%n""#), "{pod}");
}

#[test]
fn targets_are_read_or_refused() {
    let read = |text: &str| Target::parse_list(text);
    assert_eq!(read("all").unwrap().len(), Tool::ALL.len());
    assert_eq!(read("omp,openmp").unwrap().len(), 1);
    let unit = read("systemd:redis").unwrap().remove(0).unit;
    assert_eq!(unit.as_deref(), Some("redis.service"));
    for (bad, words) in [
        ("dokcer", "did you mean 'docker'?"),
        ("", "known are taskset"),
        ("docker:x", "only systemd"),
        ("systemd:", "not a systemd unit"),
        ("systemd:../../x", "not a systemd unit"),
        ("systemd:a b", "not a systemd unit"),
    ] {
        let error = read(bad).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// The text after a word, up to a blank or a quote.
fn text_after<'a>(text: &'a str, word: &str) -> &'a str {
    let rest = text
        .split_once(word)
        .unwrap_or_else(|| panic!("{word}: {text}"))
        .1;
    rest.split([' ', '\'', '\n']).next().unwrap()
}

fn value(emission: &Emission, wanted: &str) -> String {
    let mut values = emission.pieces.iter().filter_map(|piece| match piece {
        Piece::Variable { name, value } if *name == wanted => Some(value.clone()),
        _ => None,
    });
    values.next().unwrap()
}

/// Each tool's interpretation of the emitted text: CPUs, place by place.
fn understood(emission: &Emission, topology: &Topology) -> Option<Vec<CpuSet>> {
    let text = emission.text();
    let one = |set: Result<CpuSet, read::ReadError>| Some(vec![set.unwrap()]);
    let all = &topology.allowed;
    match emission.tool {
        Tool::Taskset | Tool::Jvm | Tool::Go | Tool::Tokio | Tool::Rayon | Tool::OpenMpi => text
            .contains("taskset")
            .then(|| vec![read::parse_taskset_list(text_after(&text, "taskset -c ")).unwrap()]),
        Tool::Numactl => one(read::parse_numactl_list(text_after(&text, "-C "), all)),
        Tool::HwlocBind => one(read::parse_hwloc_location(
            text_after(&text, "--cpubind "),
            topology,
        )),
        Tool::Systemd => one(read::parse_systemd_list(text_after(
            &text,
            "\nCPUAffinity=",
        ))),
        Tool::SystemdRun => one(read::parse_systemd_list(text_after(&text, "AllowedCPUs="))),
        Tool::Docker | Tool::Podman => one(read::parse_systemd_list(text_after(
            &text,
            "--cpuset-cpus=",
        ))),
        Tool::CgroupV1 | Tool::CgroupV2 => {
            let line = text.lines().find(|line| line.ends_with("cpuset.cpus"));
            one(read::parse_systemd_list(text_after(line.unwrap(), "echo ")))
        }
        Tool::Slurm => Some(read::parse_slurm_binding(text_after(&text, "--cpu-bind=")).unwrap()),
        Tool::Omp => {
            Some(read::parse_omp_places(&value(emission, "OMP_PLACES"), topology).unwrap())
        }
        Tool::Kmp => {
            let value = value(emission, "KMP_AFFINITY");
            let list = value.split_once("proclist=").unwrap().1;
            Some(read::parse_kmp_proclist(list.strip_suffix(",explicit").unwrap()).unwrap())
        }
        Tool::Gomp => {
            let order = read::parse_gomp_list(&value(emission, "GOMP_CPU_AFFINITY")).unwrap();
            Some(order.into_iter().map(CpuSet::single).collect())
        }
        Tool::Libvirt => {
            let pins = text.split("<vcpupin").skip(1);
            let list =
                |pin: &str| read::parse_libvirt_cpuset(text_after(pin, " cpuset='")).unwrap();
            Some(pins.map(list).collect())
        }
        Tool::LlamaCpp => one(read::parse_hwloc_location(
            text_after(&text, "--cpu-mask "),
            topology,
        )),
        // It names no CPU.
        Tool::Kubernetes => None,
    }
}

/// Tools that bind thread by thread, or process by process.
const BINDING: [Tool; 5] = [Tool::Slurm, Tool::Omp, Tool::Kmp, Tool::Gomp, Tool::Libvirt];

#[track_caller]
fn check(realised: &Realised, topology: &Topology) {
    for tool in Tool::ALL {
        let target = Target::new(tool);
        let emission = emit(&target, realised, topology, &Context::default());
        assert!(!emission.verify.is_empty());
        let Some(places) = understood(&emission, topology) else {
            continue;
        };
        let is_bound = realised.placement.kind == Kind::Bound;
        if tool == Tool::Gomp || (is_bound && BINDING.contains(&tool)) {
            let order = realised.order.iter().copied().map(CpuSet::single);
            assert_eq!(places, order.collect::<Vec<_>>(), "{tool:?}");
        } else {
            assert!(!places.is_empty());
            assert!(
                places.iter().all(|set| *set == realised.cpus),
                "{tool:?}: {places:?}"
            );
        }
        if is_bound && !BINDING.contains(&tool) && !matches!(tool, Tool::LlamaCpp | Tool::OpenMpi) {
            assert!(!emission.unsupported.is_empty(), "{tool:?} keeps quiet");
        }
    }
}

proptest! {
    #[test]
    fn emitted_placements_are_read_back(
        sizes in (1usize..4, 1usize..4, 1usize..5, 1usize..3),
        seed in any::<u64>(),
        name in prop::sample::select(vec!["compact", "spread", "one-per-core", "balanced", "one-per-llc"]),
        ending in prop::sample::select(vec!["", "/bound", "/mem=bind", "/bound/mem=interleave", "/mem=local"]),
    ) {
        use rand::{SeedableRng, seq::SliceRandom};
        let (packages, llcs, cores, cpus) = sizes;
        let mut numbers: Vec<usize> = (0..packages * llcs * cores * cpus).collect();
        numbers.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed));
        let list = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let topology = machine(&format!(
            "package:{packages} [numa(memory=1GB)] l3:{llcs} core:{cores} pu:{cpus}(indexes={list})"
        ));
        let placement: Placement = format!("{name}{ending}").parse().unwrap();
        check(&placement.realise(&topology).unwrap(), &topology);
    }

    #[test]
    fn any_cpus_are_read_back(
        cpus in prop::collection::btree_set(0usize..128, 1..40),
        ending in prop::sample::select(vec!["", "/bound"]),
    ) {
        let topology = machine("package:2 core:32 pu:2");
        let cpus: CpuSet = cpus.into_iter().collect();
        let placement: Placement = format!("cpu:{cpus}{ending}").parse().unwrap();
        check(&placement.realise(&topology).unwrap(), &topology);
    }
}
