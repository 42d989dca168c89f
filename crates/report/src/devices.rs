//! The devices of a machine as a table.

use super::style::{
    Palette, columns, cpu_noun, paragraph, shorten, table, visible, width as width_of,
};
use pinwise_record::{DeviceRecord, PathClass, TopologyRecord};
use pinwise_topology::CpuSet;

/// Longer names and lists are cut; records have them in full.
const LONGEST_NAME: usize = 20;
const LONGEST_LIST: usize = 20;
/// If there is less room than this, the model is left out.
const SHORTEST_MODEL: usize = 10;
/// A card has hundreds of virtual functions: of those that differ only in their address this many
/// are shown.
const SHOWN_ALIKE: usize = 2;
/// The column of the CPUs that take interrupts, which is left out if none is known.
const INTERRUPTS: usize = 4;

/// The table; empty if there is no device.
pub(super) fn devices(record: &TopologyRecord, palette: Palette) -> String {
    if record.devices.is_empty() {
        return String::new();
    }
    let is_known = |device: &DeviceRecord| device.interrupted_cpus.is_some();
    let has_interrupts = record.devices.iter().any(is_known);
    let mut rows = Vec::new();
    let alike = |a: &&DeviceRecord, b: &&DeviceRecord| {
        let key = |d: &DeviceRecord| (d.kind.clone(), d.ids.clone(), d.cpus.clone());
        a.names.is_empty() && b.names.is_empty() && key(a) == key(b)
    };
    let all: Vec<&DeviceRecord> = record.devices.iter().collect();
    for group in all.chunk_by(alike) {
        let shown = match group.len() {
            count if count > SHOWN_ALIKE + 1 => SHOWN_ALIKE,
            count => count,
        };
        rows.extend(group[..shown].iter().map(|device| row(device)));
        if let [first, .., last] = &group[shown..] {
            let more = group.len() - shown;
            rows.push(vec![
                format!("… {more} more"),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                visible(&first.address),
                format!("to {}", visible(&last.address)),
            ]);
        }
    }
    let heading = palette.strong("Devices on the PCI bus");
    let mut header = vec!["device", "type", "node", "near CPUs", "address", "model"];
    if has_interrupts {
        header.insert(INTERRUPTS, "IRQs on");
    } else {
        for row in &mut rows {
            row.remove(INTERRUPTS);
        }
    }
    fit(&mut header, &mut rows);
    let mut text = format!("\n{heading}\n{}", table(&header, rows));
    for device in &record.devices {
        let name = device.names.first().unwrap_or(&device.address);
        let packets = packets(device);
        if !packets.is_empty() {
            let line = paragraph("  ", "    ", &format!("{name}: {packets}"));
            text.push_str(&format!("{line}\n"));
        }
        if let Some(note) = &device.note {
            let line = paragraph("  ! ", "    ", &format!("{name}: {note}"));
            text.push_str(&format!("{}\n", palette.warn(&line)));
        }
    }
    text.push_str(&paths(record, palette));
    text
}

/// The paths between a GPU and another device, nearest first, with the meaning of the abbreviation.
const PATHS: [(PathClass, &str); 7] = [
    (PathClass::Nvlink, "bonded NVLinks"),
    (PathClass::Xgmi, "Infinity Fabric"),
    (PathClass::Switch, "one PCIe switch at most"),
    (PathClass::Switches, "PCIe switches"),
    (PathClass::HostBridge, "a host bridge"),
    (PathClass::Node, "host bridges of one NUMA node"),
    (PathClass::System, "NUMA nodes apart"),
];

/// A line for each device with the others by path, nearest first; empty if nothing is known.
fn paths(record: &TopologyRecord, palette: Palette) -> String {
    if record.device_paths.is_empty() {
        return String::new();
    }
    let mut lines = String::new();
    for device in &record.devices {
        if let Some(ways) = &device.ways {
            let name = device.names.first().unwrap_or(&device.address);
            let line = paragraph("  ", "    ", &format!("{name}: {ways}"));
            lines.push_str(&format!("{line}\n"));
        }
    }
    let occurs = |class: &PathClass| record.device_paths.iter().any(|p| p.path == *class);
    let legend = PATHS.iter().filter(|(class, _)| occurs(class));
    let legend: Vec<String> = legend
        .map(|(class, words)| format!("{class} {words}"))
        .collect();
    let legend = paragraph("  ", "  ", &format!("Between: {}.", legend.join(", ")));
    format!(
        "\n{}\n{lines}{legend}\n",
        palette.strong("Ways between devices, nearest first")
    )
}

/// Which CPUs process the packets of a network card, if these are set; empty otherwise: then those
/// with the interrupts do, and any CPU sends on any queue.
fn packets(device: &DeviceRecord) -> String {
    let noun = |cpus: &str| {
        let count = CpuSet::parse_list(cpus).map_or(0, |cpus| cpus.len());
        format!("{} {cpus}", cpu_noun(count))
    };
    let processed = device.rps_cpus.as_deref();
    let processed = processed.map(|cpus| format!("packets processed on {} (RPS)", noun(cpus)));
    let sent = device.xps_cpus.as_deref();
    let sent = sent.map(|cpus| format!("queues to send on for {} (XPS)", noun(cpus)));
    let words: Vec<String> = processed.into_iter().chain(sent).collect();
    words.join(", ")
}

/// Gives the model, which is last, the room that the others leave.
fn fit(header: &mut Vec<&str>, rows: &mut [Vec<String>]) {
    let last = header.len() - 1;
    let width = |column: usize| {
        let cells = rows.iter().map(|row| width_of(&row[column]));
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    let used_columns: usize = (0..last).map(|column| width(column) + 2).sum();
    let left = columns().saturating_sub(used_columns + 2);
    if left < SHORTEST_MODEL {
        header.pop();
    }
    for row in rows {
        match row.pop() {
            Some(model) if left >= SHORTEST_MODEL => row.push(shorten(&model, left)),
            _ => {}
        }
    }
}

fn row(device: &DeviceRecord) -> Vec<String> {
    let names: Vec<String> = device.names.iter().map(|name| visible(name)).collect();
    let name = match names.is_empty() {
        true => "-".to_owned(),
        false => shorten(&names.join(" "), LONGEST_NAME),
    };
    let model = device.model.as_ref().or(device.ids.as_ref());
    let node = device.numa_node.map(|node| node.to_string());
    vec![
        name,
        device.kind.to_string(),
        node.unwrap_or_else(|| "?".to_owned()),
        shorten(device.cpus.as_deref().unwrap_or("?"), LONGEST_LIST),
        shorten(
            device.interrupted_cpus.as_deref().unwrap_or_default(),
            LONGEST_LIST,
        ),
        visible(&device.address),
        model.map_or_else(String::new, |model| visible(model)),
    ]
}
