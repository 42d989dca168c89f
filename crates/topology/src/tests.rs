//! Machines built from descriptions, files and XML.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(description: &str, cpus: usize, cores: usize, llcs: usize, nodes: usize, packages: usize) {
    let topology = Topology::from_synthetic(description).unwrap();
    let counts = Counts {
        cpus,
        cores,
        llcs,
        numa_nodes: nodes,
        packages,
    };
    assert_eq!(topology.counts(), counts, "{description}");
}

#[test]
fn synthetic_descriptions_are_read() {
    check("pu:1", 1, 1, 0, 1, 1);
    check("package:2 l3:2 core:4 pu:2", 32, 16, 4, 1, 2);
    check(
        "pack:2 [numa(memory=64GB)] L3Cache:1(size=32MB) core:8 pu:2",
        32,
        16,
        2,
        2,
        2,
    );
    check("socket:1 die:2 l3u:1 l2:4 core:1 pu:2", 16, 8, 2, 1, 1);
    check("machine:1 numa:4 core:2 pu:1", 8, 8, 0, 4, 1);
}

#[test]
fn indexes_renumber_cpus() {
    let topology = Topology::from_synthetic("core:2 pu:2(indexes=0,2,1,3)").unwrap();
    let cores: Vec<String> = topology.cores.iter().map(ToString::to_string).collect();
    assert_eq!(cores, ["0,2", "1,3"]);
    assert_eq!(topology.cpu(2).unwrap().smt_rank, 1);
}

#[test]
fn bad_descriptions_name_the_word() {
    let error = |text: &str| Topology::from_synthetic(text).unwrap_err().to_string();
    for (text, word) in [
        ("", "pu"),
        ("core:2", "pu"),
        ("core:2 pu", "'pu'"),
        ("kore:2 pu:1", "'kore'"),
        ("core:0 pu:1", "'core:0'"),
        ("core:2 pu:1 core:2", "'core:2'"),
        ("l3:2(colour=red) pu:1", "'colour=red'"),
        ("l3:2(size=32MB pu:1", "unmatched"),
        ("core:2 pu:2(indexes=0,1)", "4 different CPUs"),
        ("package:9999 core:9999 pu:2", "16383"),
    ] {
        assert!(error(text).contains(word), "{text}: {}", error(text));
    }
}

fn capture(files: &[(&str, &str)]) -> Capture {
    let mut capture = Capture::new();
    for (path, content) in files {
        capture.insert(*path, *content);
    }
    capture
}

#[test]
fn a_cpuset_restricts_and_a_quota_limits() {
    let (topology, _) = Topology::from_capture(&capture(&[
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "1"),
        ("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
        ("proc/self/cgroup", "0::/a/b"),
        ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "1"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000"),
        ("sys/fs/cgroup/a/cpu.max", "250000 100000"),
    ]));
    assert_eq!(topology.allowed.to_string(), "1");
    assert_eq!(topology.restrictions[0].by, "cpuset /sys/fs/cgroup/a/b");
    let quota = topology.quota.unwrap();
    assert!((quota.cpus - 2.5).abs() < 1e-9);
    assert_eq!(quota.source, "/sys/fs/cgroup/a/cpu.max");
}

#[test]
fn a_system_without_sys_still_has_cpus() {
    // More CPUs than a fixed set of the C library holds, and more than possible.
    for (mask, cpus, warning) in [
        ("3,5", 2, "has no /sys"),
        ("0-1535", 1536, "has no /sys"),
        ("0-99999999", 0, "/pinwise/affinity: "),
    ] {
        let (topology, warnings) = Topology::from_capture(&capture(&[("pinwise/affinity", mask)]));
        assert_eq!(topology.counts().cpus, cpus, "{mask}");
        assert_eq!(topology.counts().cores, cpus, "{mask}");
        assert!(warnings[0].contains(warning), "{warnings:?}");
    }
}

#[test]
fn xml_is_imported() {
    let text = r#"<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000001f" allowed_cpuset="0x00000007">
 <object type="Package" os_index="0" cpuset="0x0000000f"><info name="CPUModel" value="Test CPU"/>
  <object type="NUMANode" os_index="0" cpuset="0x0000000f" local_memory="1024"/>
  <object type="L3Cache" cpuset="0x0000000f" cache_size="4096" cache_type="0">
   <object type="Core" cpuset="0x00000003"><object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/></object>
   <object type="Core" cpuset="0x0000000c"><object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/></object>
  </object></object></object></topology>"#;
    let (topology, warnings) = Topology::from_hwloc_xml(text).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(topology.allowed.to_string(), "0-2");
    assert_eq!(topology.cpus.len(), 5);
    assert_eq!(topology.counts().cores, 2);
    assert_eq!(topology.identity.cpu_model.as_deref(), Some("Test CPU"));
}

/// The parser would compare all pairs, for many seconds.
#[test]
fn xml_with_very_many_attributes_is_refused() {
    let many: String = (0..100_000).map(|i| format!(" a{i}=\"\"")).collect();
    let text = format!(
        "<topology version=\"2.0\">\n<!-- {} -->\n<object{many}/>\n</topology>",
        "=".repeat(2_000)
    );
    let error = Topology::from_hwloc_xml(&text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3: an element has more than 1000 attributes"
    );
}

#[test]
fn foreign_xml_is_refused() {
    let error = |text: &str| Topology::from_hwloc_xml(text).unwrap_err().to_string();
    assert!(error("<a/>").contains("<a>"));
    assert!(error("<topology version=\"4.0\"/>").contains("4.0"));
    assert!(error("<topology version=\"2.0\"/>").contains("no processing unit"));
    assert!(error("<topology").contains("not well-formed"));
    let bad = "<topology version=\"2.0\">\n<object type=\"PU\" cpuset=\"zz\"/></topology>";
    assert!(error(bad).starts_with("line 2:"));
}

/// Machines far larger than real ones are read in a moment or refused; the tree and every set of
/// CPUs once took time and memory with the square of their size.
#[test]
fn machines_of_any_size_are_read_or_refused_quickly() {
    let error = |text: &str| Topology::from_synthetic(text).unwrap_err().to_string();
    assert!(error("pu:65535").contains("more than 16383 CPUs"));
    assert!(error("core:2000 [numa] pu:1").contains("more than 1024 NUMA nodes"));
    assert!(error(&"[numa] ".repeat(2000)).contains("must end with"));
    let topology = Topology::from_synthetic("core:4096 pu:2").unwrap();
    assert_eq!(topology.counts().cores, 4096);
    let mut cores_of_two = 0;
    topology.tree().walk(&mut |node, _| {
        let is_core = node.kind == NodeKind::Unit(Level::Core);
        cores_of_two += usize::from(is_core && node.children.len() == 2);
    });
    assert_eq!(cores_of_two, 4096);
    let caches = "l5:16383 l4:1 l3:1 l2:1 l1:1 l1i:1 core:1 pu:1";
    let topology = Topology::from_synthetic(caches).unwrap();
    assert_eq!(
        (topology.llcs.len(), topology.caches.len()),
        (16383, 6 * 16383)
    );
}

#[test]
fn too_many_nodes_are_taken_as_one() {
    let mut capture = capture(&[("sys/devices/system/cpu/online", "0-2000")]);
    for node in 0..2000 {
        let path = format!("sys/devices/system/node/node{node}/cpulist");
        capture.insert(path, format!("0-{node}"));
    }
    let (topology, warnings) = Topology::from_capture(&capture);
    assert_eq!(topology.numa_nodes.len(), 1);
    assert!(warnings.join("\n").contains("2000 NUMA nodes are more"));
}

#[test]
fn hostile_cgroups_are_read_up_to_a_bound() {
    let own = format!("0::{}", "/a".repeat(2000));
    let mounts = "cgroup2 /m cgroup2 rw 0 0\n".repeat(1000);
    let capture = capture(&[
        ("sys/devices/system/cpu/online", "0-1"),
        ("proc/mounts", &mounts),
        ("proc/self/cgroup", &own),
        ("m/cpu.max", "inf 1"),
    ]);
    assert!(wanted_cgroup_files(&capture).len() < 20_000);
    let (topology, _) = Topology::from_capture(&capture);
    assert_eq!(topology.quota, None);
}

#[test]
fn names_stand_at_the_machine_or_a_package() {
    let text = r#"<topology version="2.0"><object type="Machine" cpuset="0x3"><info name="Architecture" value="x86_64"/>
 <object type="Package" cpuset="0x1"><info name="CPUVendor" value="A"/><object type="PU" os_index="0" cpuset="0x1"><info name="CPUModel" value="no"/></object></object>
 <object type="Package" cpuset="0x2"><info name="CPUModel" value="B"/><info name="CPUVendor" value="C"/><object type="PU" os_index="1" cpuset="0x2"/></object>
</object></topology>"#;
    let (topology, _) = Topology::from_hwloc_xml(text).unwrap();
    let identity = topology.identity;
    let listed = [identity.cpu_model, identity.vendor, identity.arch];
    assert_eq!(
        listed.map(Option::unwrap_or_default),
        ["B", "A", "x86_64"].map(str::to_owned)
    );
}

/// Renumbering CPUs must not change the shape.
fn shuffle_description(cpus: usize, seed: u64) -> String {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    let mut numbers: Vec<usize> = (0..cpus).collect();
    numbers.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed));
    numbers
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

proptest! {
    #[test]
    fn relabelling_keeps_the_shape(seed in any::<u64>(), packages in 1usize..3, llcs in 1usize..3, cores in 1usize..4, pus in 1usize..3) {
        let total = packages * llcs * cores * pus;
        let plain = format!("package:{packages} l3:{llcs} core:{cores} pu:{pus}");
        let mixed = format!("{plain}(indexes={})", shuffle_description(total, seed));
        let a = Topology::from_synthetic(&plain).unwrap();
        let b = Topology::from_synthetic(&mixed).unwrap();
        prop_assert_eq!(a.shape_hash(), b.shape_hash());
        prop_assert_eq!(a.counts(), b.counts());
    }

    #[test]
    fn any_capture_gives_a_topology(files in proptest::collection::vec((0usize..14, 0usize..4, "[0-9,x\\-]{0,6}"), 0..24)) {
        const NAMES: [&str; 14] = [
            "sys/devices/system/cpu/online", "sys/devices/system/cpu/cpu{}/online",
            "sys/devices/system/cpu/cpu{}/topology/core_cpus_list", "sys/devices/system/cpu/cpu{}/topology/package_cpus_list",
            "sys/devices/system/cpu/cpu{}/topology/core_id", "sys/devices/system/cpu/cpu{}/cache/index0/level",
            "sys/devices/system/cpu/cpu{}/cache/index0/shared_cpu_list", "sys/devices/system/cpu/cpu{}/cache/index0/size",
            "sys/devices/system/node/node{}/cpulist", "sys/devices/system/node/node{}/meminfo",
            "pinwise/affinity", "sys/devices/cpu_atom/cpus", "sys/devices/cpu_core/cpus", "sys/devices/system/cpu/cpu{}/cpu_capacity",
        ];
        let mut capture = Capture::new();
        for (name, number, text) in files {
            capture.insert(NAMES[name].replace("{}", &number.to_string()), text);
        }
        let (topology, _) = Topology::from_capture(&capture);
        prop_assert!(topology.allowed.is_subset(&topology.online));
        for units in [&topology.cores, &topology.llcs, &topology.packages] {
            let total: usize = units.iter().map(CpuSet::len).sum();
            let union = CpuSet::union_of(units.iter());
            prop_assert_eq!(total, union.len());
        }
        let _ = topology.shape_hash();
    }
}

#[test]
fn cpus_are_ranked_by_the_first_source_in_which_they_differ() {
    let ranks = |sources: &[(&str, [&str; 4])]| {
        let mut capture = Capture::new();
        capture.insert("sys/devices/system/cpu/online", "0-3");
        for (file, values) in sources {
            for (cpu, value) in values.iter().enumerate() {
                capture.insert(format!("sys/devices/system/cpu/cpu{cpu}/{file}"), *value);
            }
        }
        let ranks = Topology::from_capture(&capture).0.ranks;
        ranks.iter().map(CpuSet::to_string).collect::<Vec<_>>()
    };
    let performance = ("acpi_cppc/highest_perf", ["166", "231", "166", "236"]);
    let frequency = ("cpufreq/cpuinfo_max_freq", ["5", "5", "4", "4"]);
    assert_eq!(ranks(&[performance, frequency]), ["3", "1", "0,2"]);
    // Some firmware saturates the field.
    let saturated = ("acpi_cppc/highest_perf", ["255"; 4]);
    assert_eq!(ranks(&[saturated, frequency]), ["0-1", "2-3"]);
    assert!(ranks(&[saturated]).is_empty());
    let damaged = ("acpi_cppc/highest_perf", ["1", "2", "x", "4"]);
    assert!(ranks(&[damaged]).is_empty());
}

#[test]
fn mounts_of_both_versions_are_found() {
    let table = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
        cgroup2 /sys/fs/cgroup/uni\\040fied cgroup2 rw,relatime 0 0\nodd\n";
    let found: Vec<Mount> = mounts(table).collect();
    assert_eq!(found.len(), 2);
    assert!(found[0].has("cpuset") && !found[0].is_unified());
    assert_eq!(found[1].point, "/sys/fs/cgroup/uni fied");
    assert!(found[1].is_unified());
}

#[test]
fn one_package_id_makes_one_package() {
    let mut capture = Capture::new();
    for cpu in 0..4 {
        let dir = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        capture.insert(format!("{dir}/package_cpus_list"), cpu.to_string());
        capture.insert(format!("{dir}/physical_package_id"), "0");
    }
    let (topology, warnings) = Topology::from_capture(&capture);
    assert_eq!(topology.packages, ["0-3".parse().unwrap()]);
    assert!(warnings[1].contains("make 4 packages"), "{warnings:?}");
}

#[test]
fn a_limit_above_the_machine_is_named() {
    let mut capture = Capture::new();
    capture.insert("sys/devices/system/cpu/online", "0-1");
    capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    capture.insert("proc/self/cgroup", "0::/");
    capture.insert("sys/fs/cgroup/cpu.max", "800000 100000");
    let (_, warnings) = Topology::from_capture(&capture);
    let expected = "The limit of 8 CPUs in /sys/fs/cgroup/cpu.max exceeds the 2";
    assert!(
        warnings.iter().any(|w| w.starts_with(expected)),
        "{warnings:?}"
    );
}

/// hwloc names the CPUs near a memory, the kernel gives each to one node.
#[test]
fn several_memories_of_the_same_cpus_are_nodes() {
    let node = |number: usize, cpus: &str, bytes: u64| {
        format!(
            "<object type=\"NUMANode\" os_index=\"{number}\" cpuset=\"{cpus}\" \
             local_memory=\"{bytes}\"/>"
        )
    };
    let pu = |number: usize| {
        let mask = 1 << number;
        format!("<object type=\"PU\" os_index=\"{number}\" cpuset=\"0x{mask:x}\"/>")
    };
    // DRAM and HBM of two halves, and memory behind CXL for all.
    let objects = [
        node(4, "0xf", 1 << 40),
        node(2, "0x3", 1 << 33),
        node(0, "0x3", 1 << 35),
        node(3, "0xc", 1 << 33),
        node(1, "0xc", 1 << 35),
    ];
    let text = format!(
        "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xf\">{}{}</object></topology>",
        objects.concat(),
        (0..4).map(pu).collect::<String>()
    );
    let (topology, warnings) = Topology::from_hwloc_xml(&text).unwrap();
    let nodes: Vec<(usize, String)> = topology
        .numa_nodes
        .iter()
        .map(|node| (node.node, node.cpus.to_string()))
        .collect();
    let expected = [(0, "0-1"), (1, "2-3"), (2, ""), (3, ""), (4, "")];
    assert_eq!(nodes, expected.map(|(node, cpus)| (node, cpus.to_owned())));
    assert_eq!(warnings, Vec::<String>::new());
}

/// Ten X925 and ten A725 with the capacities of a GB10, in hwloc's format.
#[test]
fn favoured_cores_are_not_a_separate_kind() {
    let pu = |number: usize| {
        format!(
            "<object type=\"L2Cache\" cache_size=\"{}\" cpuset=\"0x{mask:x}\"/>\
             <object type=\"PU\" os_index=\"{number}\" cpuset=\"0x{mask:x}\"/>",
            if number % 10 < 5 { 512 << 10 } else { 2 << 20 },
            mask = 1u32 << number
        )
    };
    let kinds = [
        (0x1f, 718),
        (0x7c00, 731),
        (0x3e0, 997),
        (0x78000, 1017),
        (0x80000, 1024),
    ];
    let kind = |(cpus, capacity): (u32, u32)| {
        format!(
            "<cpukind cpuset=\"0x{cpus:x}\"><info name=\"LinuxCapacity\" value=\"{capacity}\"/></cpukind>"
        )
    };
    let text = format!(
        "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xfffff\">{}</object>{}</topology>",
        (0..20).map(pu).collect::<String>(),
        kinds.map(kind).concat()
    );
    let (topology, _) = Topology::from_hwloc_xml(&text).unwrap();
    let kinds: Vec<(&str, String)> = topology
        .kinds
        .iter()
        .map(|kind| (kind.name.as_str(), kind.cpus.to_string()))
        .collect();
    assert_eq!(
        kinds,
        [("E", "0-4,10-14".to_owned()), ("P", "5-9,15-19".to_owned())]
    );
}

/// A processor whose dense cores have the caches of the fast ones, as files and as hwloc's XML; and
/// one with favoured cores only.
#[test]
fn dense_cores_are_a_kind_favoured_cores_are_not() {
    let by_files = |mhz: [u64; 4]| {
        let mut capture = Capture::new();
        capture.insert("sys/devices/system/cpu/online", "0-3");
        for (cpu, mhz) in mhz.iter().enumerate() {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
            capture.insert(path, (mhz * 1000).to_string());
        }
        Topology::from_capture(&capture).0
    };
    let by_xml = |mhz: [u64; 4]| {
        let pu = |cpu: usize| {
            format!(
                "<object type=\"PU\" os_index=\"{cpu}\" cpuset=\"0x{:x}\"/>",
                1 << cpu
            )
        };
        let kind = |(cpu, mhz): (usize, &u64)| {
            format!(
                "<cpukind cpuset=\"0x{:x}\"><info name=\"FrequencyMaxMHz\" value=\"{mhz}\"/></cpukind>",
                1 << cpu
            )
        };
        let pus: String = (0..4).map(pu).collect();
        let kinds: String = mhz.iter().enumerate().map(kind).collect();
        let machine = format!("<object type=\"Machine\" cpuset=\"0xf\">{pus}</object>");
        let text = format!("<topology version=\"2.0\">{machine}{kinds}</topology>");
        Topology::from_hwloc_xml(&text).unwrap().0
    };
    for read in [by_files as fn(_) -> Topology, by_xml] {
        let dense = read([5157, 5100, 3309, 3309]);
        let kinds = dense.kinds.iter();
        let kinds: Vec<_> = kinds
            .map(|kind| (kind.name.as_str(), kind.cpus.to_string()))
            .collect();
        assert_eq!(kinds, [("E", "2-3".to_owned()), ("P", "0-1".to_owned())]);
        assert_eq!(
            dense.ranks.last().map(CpuSet::to_string).as_deref(),
            Some("2-3")
        );
        let favoured = read([5157, 4950, 4600, 4500]);
        assert!(favoured.kinds.is_empty(), "{:?}", favoured.kinds);
        assert_eq!(
            favoured.ranks.first().map(CpuSet::to_string).as_deref(),
            Some("0")
        );
    }
}

/// Four cores of two designs; `files` adds to CPUs 0-1, then to 2-3.
fn hybrid(files: &[(&str, [&str; 2])]) -> Topology {
    let mut capture = Capture::new();
    capture.insert("sys/devices/system/cpu/online", "0-3");
    for cpu in 0..4 {
        for (file, texts) in files {
            let text = texts[cpu / 2].replace("CPU", &cpu.to_string());
            capture.insert(format!("sys/devices/system/cpu/cpu{cpu}/{file}"), text);
        }
    }
    let part = |cpu: usize| ["0xd85", "0xd87"][cpu / 2];
    let blocks = (0..4).map(|cpu| format!("processor : {cpu}\nCPU part : {}\n\n", part(cpu)));
    capture.insert("proc/cpuinfo", blocks.collect::<String>());
    Topology::from_capture(&capture).0
}

const L2: [(&str, [&str; 2]); 2] = [
    ("cache/index2/level", ["2", "2"]),
    ("cache/index2/type", ["Unified", "Unified"]),
];

/// Two designs are known, and not from capacities which of them is the faster.
#[test]
fn of_two_designs_the_faster_is_known_by_any_source() {
    let fast = |topology: &Topology| {
        let last = topology.kinds.last();
        last.map(|kind| (kind.name.clone(), kind.cpus.to_string()))
    };
    let first = Some(("P".to_owned(), "0-1".to_owned()));
    for file in [
        "cpu_capacity",
        "cpufreq/cpuinfo_max_freq",
        "acpi_cppc/highest_perf",
    ] {
        assert_eq!(fast(&hybrid(&[(file, ["900", "700"])])), first, "{file}");
    }
    let sizes = ("cache/index2/size", ["2048K", "512K"]);
    assert_eq!(fast(&hybrid(&[L2[0], L2[1], sizes])), first);
}

/// As in an x86 guest or a container, whose files name no kinds.
#[test]
fn cores_with_unlike_caches_are_of_two_kinds() {
    let mut capture = Capture::new();
    capture.insert("sys/devices/system/cpu/online", "0-3");
    let kinds_of = |sizes: [[&str; 2]; 4]| {
        let mut capture = capture.clone();
        for (cpu, sizes) in sizes.iter().enumerate() {
            let both = [("1", "Data", sizes[0]), ("2", "Unified", sizes[1])];
            for (level, kind, size) in both {
                let dir = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{level}");
                capture.insert(format!("{dir}/level"), level);
                capture.insert(format!("{dir}/type"), kind);
                capture.insert(format!("{dir}/size"), size);
            }
        }
        let kinds = Topology::from_capture(&capture).0.kinds;
        let kinds = kinds
            .iter()
            .map(|kind| format!("{} {}", kind.name, kind.cpus));
        kinds.collect::<Vec<String>>()
    };
    let [fast, slow] = [["48K", "2048K"], ["32K", "4096K"]];
    assert_eq!(kinds_of([slow, fast, fast, slow]), ["E 0,3", "P 1-2"]);
    assert_eq!(kinds_of([fast; 4]), Vec::<String>::new());
    // Of one CPU the size is missing.
    assert_eq!(
        kinds_of([fast, slow, ["48K", ""], slow]),
        Vec::<String>::new()
    );
}
