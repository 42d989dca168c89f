//! The drawing: every CPU once and inside the page, no string becomes markup.

use pinwise_record::TopologyRecord;
use pinwise_topology::{Capture, CpuSet, Device, Topology};
use roxmltree::{Document, Node};

use super::fixture;
use crate::support::root;

/// Classes of the boxes that stand for CPUs.
const CPU_CLASSES: [&str; 5] = ["cpu", "cpu-e", "cpu-m", "barred", "offline"];

fn drawn(topology: &Topology) -> String {
    pinwise_report::topology_svg(topology, &TopologyRecord::new(topology, &[]))
}

fn attribute(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name)
        .map_or(0.0, |text| text.parse().unwrap())
}

/// Left, top, right, bottom.
fn sides(node: Node<'_, '_>) -> [f64; 4] {
    let [x, y] = [attribute(node, "x"), attribute(node, "y")];
    let [width, height] = [attribute(node, "width"), attribute(node, "height")];
    [x, y, x + width, y + height]
}

/// The boxes of CPUs: groups with a box and a number.
fn cpu_boxes<'a>(document: &'a Document<'a>) -> Vec<(usize, [f64; 4], &'a str)> {
    let groups = document.descendants().filter(|node| node.has_tag_name("g"));
    groups
        .filter_map(|group| {
            let child = |name: &str| group.children().find(|node| node.has_tag_name(name));
            let rect = child("rect")?;
            let class = rect.attribute("class")?;
            let cpu = child("text")?.text()?.parse().ok()?;
            CPU_CLASSES
                .contains(&class)
                .then(|| (cpu, sides(rect), class))
        })
        .collect()
}

#[track_caller]
fn check_drawing(topology: &Topology, svg: &str) {
    let document = Document::parse(svg).unwrap();
    let page = document.root_element();
    assert_eq!(page.attribute("role"), Some("img"));
    let [width, height] = [attribute(page, "width"), attribute(page, "height")];
    for rect in document.descendants().filter(|n| n.has_tag_name("rect")) {
        let [left, top, right, bottom] = sides(rect);
        assert!(left >= 0.0 && top >= 0.0, "{rect:?}");
        assert!(right <= width + 1.0 && bottom <= height + 1.0, "{rect:?}");
    }
    let mut boxes = cpu_boxes(&document);
    let mut cpus: Vec<usize> = boxes.iter().map(|(cpu, ..)| *cpu).collect();
    cpus.sort_unstable();
    let expected: Vec<usize> = topology.cpus.iter().map(|cpu| cpu.id).collect();
    assert_eq!(cpus, expected, "every CPU is drawn once");
    boxes.sort_by(|(_, a, _), (_, b, _)| a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])));
    for pair in boxes.windows(2) {
        let (a, b) = (pair[0].1, pair[1].1);
        let is_apart = b[0] >= a[2] - 0.11 || b[1] >= a[3] - 0.11;
        assert!(is_apart, "CPUs {} and {} overlap", pair[0].0, pair[1].0);
    }
}

#[test]
fn machines_of_all_sizes_are_drawn() {
    for description in [
        "pu:1",
        "package:1 core:2 pu:1",
        "package:1 l3:2(size=32MB) core:4 pu:2",
        "core:100 pu:1",
        "package:2 numa:4 l3:1 core:6 pu:1",
        "package:1 l3:1 l2:6 core:4 pu:8",
        "package:2 l3:12 core:8 pu:2",
        "package:2 l3:24 core:16 pu:2",
    ] {
        let topology = Topology::from_synthetic(description).unwrap();
        check_drawing(&topology, &drawn(&topology));
    }
    for name in ["2s2c2t-interleaved", "2s2c2t-nosmt", "64"] {
        let path = root().join(format!("tests/data/machines/{name}.capture"));
        let capture = Capture::from_text(&std::fs::read_to_string(path).unwrap()).unwrap();
        let topology = Topology::from_capture(&capture).0;
        check_drawing(&topology, &drawn(&topology));
    }
}

#[test]
fn the_matrix_is_drawn_whole() {
    let desktop = fixture::desktop();
    let svg = pinwise_report::topology_svg(&desktop.topology, &desktop.record);
    let document = Document::parse(&svg).unwrap();
    let titles = document.descendants().filter(|n| n.has_tag_name("title"));
    let cells = titles.filter(|title| title.text().unwrap().contains(" and "));
    assert_eq!(cells.count(), 16 * 15);

    // One run of cells of a colour is one line.
    let large = fixture::large();
    let svg = pinwise_report::topology_svg(&large.topology, &large.record);
    let document = Document::parse(&svg).unwrap();
    let paths = document.descendants().filter_map(|n| n.attribute("d"));
    let runs = paths.flat_map(|path| path.split('h').skip(1));
    let lengths = runs.filter_map(|run| run.split('M').next()?.parse::<usize>().ok());
    assert!(lengths.sum::<usize>() >= 192 * 191);
    assert!(svg.len() < 600_000, "{} bytes", svg.len());
    assert!(svg.contains("CPUs 0-7 and 8-15: "));
    assert!(svg.contains("444 pairs were measured, 17892 taken"));
}

#[test]
fn contradictions_stand_out() {
    let machine = fixture::drifting();
    let svg = pinwise_report::topology_svg(&machine.topology, &machine.record);
    for part in [
        "Contradicted: last-level caches (confidence 0.97)",
        "Reported: CPUs 0-1 share an L3 cache of 32 MiB.",
        "L3 32 MiB · measured otherwise",
        "Do not count on two whole cores.",
        "The wiring changed 9 times in 223 s",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NUMA node 0 · measured otherwise"));
}

#[test]
fn kinds_and_cpus_that_may_not_be_used_look_different() {
    let mut topology = Topology::from_synthetic("core:6 pu:1").unwrap();
    topology.allowed.remove(2);
    topology.cpus[2].allowed = false;
    topology.cpus.push(pinwise_topology::Cpu {
        id: 6,
        core: None,
        llc: None,
        numa_node: None,
        package: None,
        kind: None,
        smt_rank: 0,
        online: false,
        allowed: false,
    });
    for (name, cpus) in [("E", "3-5"), ("P", "0-2")] {
        topology.kinds.push(pinwise_topology::CpuKind {
            name: name.to_owned(),
            cpus: cpus.parse().unwrap(),
        });
    }
    for cpu in topology.cpus.iter_mut().take(6) {
        cpu.kind = Some(usize::from(cpu.id < 3));
    }
    let svg = drawn(&topology);
    check_drawing(&topology, &svg);
    let document = Document::parse(&svg).unwrap();
    let mut classes: Vec<(usize, &str)> = cpu_boxes(&document)
        .into_iter()
        .map(|(cpu, _, class)| (cpu, class))
        .collect();
    classes.sort_unstable();
    let expected = ["cpu", "cpu", "barred", "cpu-e", "cpu-e", "cpu-e", "offline"];
    assert_eq!(
        classes,
        expected.into_iter().enumerate().collect::<Vec<_>>()
    );
    assert!(svg.contains("online, but not allowed for this process"));
    assert!(svg.contains("CPU of a P-core"));
}

#[test]
fn strings_of_hosts_do_not_become_markup() {
    let mut machine = fixture::drifting();
    let hostile = "<script>alert('&')</script>\u{1b}[31m\u{0}\"";
    machine.topology.identity.cpu_model = Some(hostile.to_owned());
    machine.record.machine.cpu_model = Some(hostile.to_owned());
    machine.record.machine.hostname = Some(hostile.to_owned());
    machine.record.contradictions[0].level = hostile.to_owned().into();
    machine.record.contradictions[0].claim = hostile.to_owned();
    let svg = pinwise_report::topology_svg(&machine.topology, &machine.record);
    let document = Document::parse(&svg).unwrap();
    assert!(document.descendants().all(|n| !n.has_tag_name("script")));
    assert!(svg.contains("&lt;script&gt;alert(&#39;&amp;&#39;)"));
    assert!(!svg.contains('\u{1b}'));
}

#[test]
fn devices_are_drawn_by_the_cpus_near_them() {
    let mut topology = Topology::from_synthetic("package:2 core:4 pu:2").unwrap();
    for (number, name, cpus) in [(1, "gpu0", "0-7"), (2, "<b>", "0-7"), (3, "eth0", "8-15")] {
        let address = format!("0000:{number:02x}:00.0");
        let mut device = Device::new(&address, 0x0200, None, None).unwrap();
        device.names.push(name.to_owned());
        device.cpus = CpuSet::parse_list(cpus).ok();
        topology.devices.update(|all| all.push(device));
    }
    let svg = drawn(&topology);
    check_drawing(&topology, &svg);
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    for expected in ["gpu0, <b>: near CPUs 0-7", "eth0: near CPUs 8-15"] {
        assert!(texts.contains(&expected), "{expected}: {texts:?}");
    }
}
