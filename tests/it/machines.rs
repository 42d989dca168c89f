//! Captured machines are read as hwloc reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pinwise_placement::Placement;
use pinwise_record::TopologyRecord;
use pinwise_report::Palette;
use pinwise_topology::{Capture, CpuSet, Device, Topology};

use crate::support::{corpus, has_program, report_skip, root, run_for_json, unpack};

/// Names of the captures of emulated machines.
const EMULATED: [&str; 5] = [
    "2s2c2t",
    "2s2c2t-interleaved",
    "2s2c2t-nosmt",
    "1s2d4c2t",
    "64",
];

/// Machines that were rebuilt from public reports.
#[test]
fn machines_of_public_reports_are_read_right() {
    let read = |name: &str| {
        let text = unpack(&format!("reports/{name}.capture.xz"));
        Topology::from_capture(&Capture::from_text(std::str::from_utf8(&text).unwrap()).unwrap())
    };
    let cpus = |machine: &Topology, name: &str| {
        let placement: Placement = name.parse().unwrap();
        let realised = placement.realise(machine);
        realised.map_or_else(|error| error.to_string(), |r| r.cpus.to_string())
    };
    let text = |machine: &Topology| {
        let record = TopologyRecord::new(machine, &[]);
        pinwise_report::render_topology(machine, &record, Palette::default())
    };

    // Arrow Lake: four E-cores share an L2, each P-core has its own.
    let (machine, _) = read("arl285");
    assert_eq!(cpus(&machine, "spread*4"), "0-2,6");
    assert!(text(&machine).contains("(E-core, L1d 32 KiB, L1i 64 KiB, L2 4 MiB of CPUs 2-5)"));
    assert!(text(&machine).contains("… and 14 more such cores, CPUs 4-9,14-21"));
    assert!(text(&machine).contains("… and 6 more like core 0, CPUs 10-13,22-23"));

    // The library, which reads few files, finds these caches, too.
    let bytes = unpack("reports/arl285.capture.xz");
    let capture = Capture::from_text(std::str::from_utf8(&bytes).unwrap()).unwrap();
    let (mut few, _) = Topology::from_files(&mut &capture);
    few.read_ranks(&mut &capture);
    for name in [
        "spread*4",
        "spread*7",
        "largest-llc",
        "best-core",
        "best-core*9",
    ] {
        assert_eq!(cpus(&few, name), cpus(&machine, name), "{name}");
    }

    // GB10 without the registers that name the core's design: two designs, five capacities.
    let (machine, _) = read("gb10nomidr");
    assert_eq!(cpus(&machine, "p-cores"), "5-9,15-19");
    assert_eq!(cpus(&machine, "e-cores"), "0-4,10-14");

    // Four nodes, two of them without memory.
    let (machine, _) = read("nps4nomem");
    assert!(text(&machine).contains("4 NUMA nodes (2 without memory)"));
    assert!(text(&machine).contains("NUMA node 0: CPUs 0-5,24-29 (no memory)"));
    assert_eq!(
        cpus(&machine, "one-numa:0/mem=bind"),
        "one-numa/mem=bind: this process may use no memory of node 0 (only of 1-2)"
    );
    let interleaved: Placement = "os-default/mem=interleave".parse().unwrap();
    let memory = interleaved.realise(&machine).unwrap().memory.unwrap();
    assert_eq!(memory.nodes, [1, 2]);

    // lxcfs shows the first two CPUs as online, the cpuset has others.
    let (machine, warnings) = read("lxcfs");
    assert_eq!(cpus(&machine, "os-default"), "4-5");
    assert_eq!(machine.online.to_string(), "0-7");
    assert!(warnings[0].contains("online says 0-1, but this process may use CPUs 4-5"));

    let (machine, warnings) = read("l3overnodes");
    assert_eq!(cpus(&machine, "one-llc"), "0-3");
    assert!(warnings[0].contains("CPUs 0-7 of 2 packages, which is impossible"));

    // Nodes across packages fit into no tree, but are still shown.
    let bytes = unpack("reports/l3overnodes.capture.xz");
    let across = std::str::from_utf8(&bytes)
        .unwrap()
        .replace("node0/cpulist\t0-3", "node0/cpulist\t0-1,4-5")
        .replace("node0/cpumap\t0000000f", "node0/cpumap\t00000033")
        .replace("node1/cpulist\t4-7", "node1/cpulist\t2-3,6-7")
        .replace("node1/cpumap\t000000f0", "node1/cpumap\t000000cc");
    let (machine, _) = Topology::from_capture(&Capture::from_text(&across).unwrap());
    assert!(text(&machine).contains("\nNUMA node 0: CPUs 0-1,4-5 (memory 7.63 GiB)\n"));
}

/// hwloc ran in the emulated machines, too.
#[test]
fn captures_of_emulated_machines_agree_with_hwloc() {
    for name in EMULATED {
        let read = |ending: &str| {
            let path = root().join(format!("tests/data/machines/{name}.{ending}"));
            run_for_json(&[
                "topology",
                "--from",
                path.to_str().unwrap(),
                "--format",
                "json",
            ])
        };
        let (own, hwloc) = (read("capture"), read("xml"));
        for key in ["counts", "shape_hash", "allowed"] {
            assert_eq!(own[key], hwloc[key], "{name}: {key}");
        }
        let caches = |record: &serde_json::Value| {
            let caches = record["caches"].as_array().unwrap().iter();
            let mut known: Vec<String> = caches.map(ToString::to_string).collect();
            known.sort();
            known
        };
        assert_eq!(caches(&own), caches(&hwloc), "{name}");
        let units = |record: &serde_json::Value| {
            let cpus = record["cpus"].as_array().unwrap().iter();
            let online = cpus.filter(|cpu| cpu["online"] == true);
            let keys = ["cpu", "core", "llc", "numa_node", "package"];
            online
                .map(|cpu| keys.map(|key| cpu[key].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(units(&own), units(&hwloc), "{name}");
    }
}

/// Devices that pinwise places by their own files, but hwloc by their root complex or, if its tree
/// has no room for their CPUs, nowhere.
const OWN_PLACE: [(&str, &str, &str); 3] = [
    // All CPUs are listed as local, and node 2 is named.
    (
        "40intel64-2g2n4c+pci",
        "0000:43:00.0",
        "2,6,10,14,18,22,26,30,34,38",
    ),
    ("32em64t-2n8c+1mic", "0000:00:02.0", "0-3"),
    ("40intel64-4n10c+pci-conflicts", "0000:01:00.0", "0-3"),
];

/// Reads a machine of `tests/data/devices`.
fn read_machine_with_devices(name: &str) -> Topology {
    let is_xml = root()
        .join(format!("tests/data/devices/{name}.xml.xz"))
        .exists();
    let ending = if is_xml { "xml" } else { "capture" };
    let text = String::from_utf8(unpack(&format!("devices/{name}.{ending}.xz"))).unwrap();
    match is_xml {
        true => Topology::from_hwloc_xml(&text).unwrap().0,
        false => Topology::from_capture(&Capture::from_text(&text).unwrap()).0,
    }
}

#[test]
fn devices_are_placed_as_hwloc_places_them() {
    let mut machines: BTreeMap<String, Topology> = BTreeMap::new();
    let mut compared = 0;
    let table = root().join("tests/data/devices/expected.csv");
    for row in csv::Reader::from_path(table).unwrap().records() {
        let row = row.unwrap();
        let [name, address, hwloc] = [&row[0], &row[1], &row[2]];
        let machine = machines
            .entry(name.to_owned())
            .or_insert_with(|| read_machine_with_devices(name));
        let device = machine.device(address).unwrap();
        let own = device.cpus.as_ref().unwrap_or(&machine.online).to_string();
        let mut exceptions = OWN_PLACE.iter();
        let exception = exceptions.find(|(n, a, _)| (*n, *a) == (name, address));
        let expected = exception.map_or(hwloc, |(.., own)| own);
        assert_eq!(own, expected, "{name}: {address}");
        compared += 1;
    }
    let known: usize = machines.values().map(|m| m.devices.len()).sum();
    assert_eq!(compared, known, "hwloc lists another number of devices");
    assert_eq!((compared, machines.len()), (204, 18));
}

#[test]
fn exported_devices_are_read_by_hwloc_and_by_pinwise() {
    for name in ["eas-tioga", "g4dnmetal", "nvidiaDGX2"] {
        let machine = read_machine_with_devices(name);
        let record = TopologyRecord::new(&machine, &[]);
        assert_eq!(record.to_topology().devices, machine.devices, "{name}");
        let xml = pinwise_report::render_topology_xml(&machine, &record);
        let again = Topology::from_hwloc_xml(&xml).unwrap().0;
        let places = |machine: &Topology| -> Vec<_> {
            let place = |d: &Device| (d.address.clone(), d.cpus.clone(), d.bridges.clone());
            machine.devices.iter().map(place).collect()
        };
        assert_eq!(places(&machine), places(&again), "{name}");
        if !has_program("hwloc-calc") {
            report_skip("hwloc-calc is not installed");
            continue;
        }
        let file = tempfile::NamedTempFile::with_suffix(".xml").unwrap();
        std::fs::write(file.path(), xml).unwrap();
        for device in &machine.devices {
            let output = Command::new("hwloc-calc")
                .arg("-i")
                .arg(file.path())
                .args(["--taskset", &format!("pci={}", device.address)])
                .output()
                .unwrap();
            let mask = String::from_utf8_lossy(&output.stdout);
            let hwloc = CpuSet::parse_mask(mask.trim()).unwrap();
            assert_eq!(Some(hwloc), device.cpus, "{name}: {}", device.address);
        }
    }
}

/// A DGX-2 has two GPUs below each switch. NVLinks, which only `nvidia-smi` reports, connect all
/// sixteen.
#[test]
fn gpus_are_connected_by_the_bus_or_by_their_links() {
    let mut machine = read_machine_with_devices("nvidiaDGX2");
    let count_classes = |machine: &Topology| -> BTreeMap<String, usize> {
        let record = TopologyRecord::new(machine, &[]);
        assert_eq!(record.to_topology().links, machine.links);
        let first = &record.devices[0].address;
        let mut counts = BTreeMap::new();
        for path in record.device_paths.iter().filter(|p| p.from == *first) {
            *counts.entry(path.abbreviation()).or_default() += 1;
        }
        counts
    };
    let count = |class: &str, count: usize| (class.to_owned(), count);
    let by_bus = [("PIX", 1), ("PXB", 2), ("NODE", 4), ("SYS", 8)];
    let by_bus = by_bus.map(|(class, number)| count(class, number));
    assert_eq!(count_classes(&machine), BTreeMap::from(by_bus));

    let cells = |row: usize| (0..16).map(move |to| if to == row { "\t X " } else { "\tNV6" });
    let rows = (0..16).map(|row| format!("GPU{row}{}\t0-23\n", cells(row).collect::<String>()));
    let header: String = (0..16).map(|gpu| format!("\tGPU{gpu}")).collect();
    let matrix = format!("{header}\tCPU Affinity\n{}", rows.collect::<String>());
    let mut capture = Capture::new();
    capture.insert(pinwise_topology::links::NVIDIA_MATRIX, matrix);
    assert_eq!(machine.read_links(&capture), [""; 0]);
    assert_eq!(count_classes(&machine), BTreeMap::from([count("NV6", 15)]));
    let record = TopologyRecord::new(&machine, &[]);
    assert_eq!(record.devices[1].ways.as_deref(), Some("NV6 gpu0 gpu2-15"));
    let text = pinwise_report::render_topology(&machine, &record, Palette::new(false));
    assert!(text.contains("  gpu1: NV6 gpu0 gpu2-15\n"), "{text}");
}

/// Snapshots, levels, and why pinwise deliberately counts them unlike hwloc.
const DELIBERATE: [(&str, &str, &str); 5] = [
    (
        "16amd64-4n4c-cgroup-distance-merge",
        "core",
        "hwloc's test filters cores out",
    ),
    (
        "32amd64-4s2n4c-cgroup2",
        "l3",
        "only caches of allowed CPUs count; hwloc keeps those beside allowed memory",
    ),
    (
        "40intel64-4n10c+pci-conflicts",
        "l3",
        "one CPU's file contradicts nine others; hwloc drops the cache, pinwise the file",
    ),
    (
        "40intel64-4n10c+pci-conflicts",
        "pkg",
        "the same for a package",
    ),
    (
        "4fake-4gr1nu1pu",
        "core",
        "no cores are reported; pinwise takes each CPU as one",
    ),
];

#[test]
fn snapshots_of_real_machines_agree_with_hwloc() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("snapshots");
    let mut index = csv::Reader::from_path(folder.join("INDEX.csv")).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for row in index.deserialize::<BTreeMap<String, String>>() {
        let row = row.unwrap();
        let name = &row["name"];
        // Thousands of files are faster in memory.
        let memory = Path::new("/dev/shm");
        let unpacked = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let archive = folder.join(format!("{name}.tar.bz2"));
        let status = Command::new("tar")
            .args([
                "xjf",
                archive.to_str().unwrap(),
                "-C",
                unpacked.path().to_str().unwrap(),
            ])
            .status()
            .unwrap();
        assert!(
            status.success(),
            "{name} cannot be unpacked (is bzip2 installed?)"
        );
        seen += 1;
        crate::outputs::xml::check_snapshot(name, unpacked.path());
        for (level, count) in read_counts(unpacked.path()) {
            let expected = row[&format!("x_{level}")].parse::<usize>().ok();
            let mut exceptions = DELIBERATE.iter();
            let is_deliberate = exceptions.any(|(n, l, _)| n == name && *l == level);
            if expected.is_some_and(|expected| expected != count) != is_deliberate {
                wrong.push(format!("{name}: {level}: {count}, hwloc {expected:?}"));
            }
        }
    }
    assert!(seen >= 22, "{seen} snapshots");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The number of units of each of hwloc's levels, as the command reports it.
fn read_counts(folder: &Path) -> Vec<(&'static str, usize)> {
    let record = run_for_json(&[
        "topology",
        "--from",
        folder.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let count = |key: &str| usize::try_from(record["counts"][key].as_u64().unwrap()).unwrap();
    let allowed: CpuSet = record["allowed"].as_str().unwrap().parse().unwrap();
    let l3 = record["caches"].as_array().unwrap().iter().filter(|cache| {
        let cpus: CpuSet = cache["cpus"].as_str().unwrap().parse().unwrap();
        cache["level"] == 3 && cpus.intersects(&allowed)
    });
    vec![
        ("pu", count("cpus")),
        ("core", count("cores")),
        ("l3", l3.count()),
        ("numa", count("numa_nodes")),
        ("pkg", count("packages")),
    ]
}

#[test]
fn this_machine_is_read_as_by_lstopo() {
    if !has_program("lstopo-no-graphics") {
        return report_skip("lstopo-no-graphics (hwloc-nox) is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let xml = folder.path().join("machine.xml");
    let status = Command::new("lstopo-no-graphics")
        .args(["--no-io", "--of", "xml", xml.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(status.success());
    let own = run_for_json(&["topology", "--format", "json"]);
    let hwloc = run_for_json(&[
        "topology",
        "--from",
        xml.to_str().unwrap(),
        "--format",
        "json",
    ]);
    for key in ["cpus", "cores", "packages", "llcs", "numa_nodes"] {
        assert_eq!(own["counts"][key], hwloc["counts"][key], "{key}");
    }
    assert_eq!(own["allowed"], hwloc["allowed"]);
    assert_eq!(own["shape_hash"], hwloc["shape_hash"]);
}
