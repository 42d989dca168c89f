//! The devices of a machine as a table.

use super::style::{
    Palette, columns, cpu_noun, paragraph, shorten, table, visible, width as width_of,
};
use pinwise_record::{DeviceRecord, PathClass, TopologyRecord};
use pinwise_topology::CpuSet;

/// The most columns of names and of lists of CPUs; longer ones are cut.
const MAX_NAME_WIDTH: usize = 20;
const MAX_LIST_WIDTH: usize = 20;
/// If fewer columns than this are left, the model is left out.
const MIN_MODEL_WIDTH: usize = 10;
/// A card can have hundreds of virtual functions. Of devices that differ only in their address, at
/// most this many are shown.
const MAX_SIMILAR: usize = 2;
/// The index of the column with the CPUs that take interrupts; without such CPUs it is left out.
const INTERRUPTS_COLUMN: usize = 4;

/// The table; empty if there is no device.
pub(super) fn format_devices_table(record: &TopologyRecord, palette: Palette) -> String {
    if record.devices.is_empty() {
        return String::new();
    }
    let is_known = |device: &DeviceRecord| device.interrupted_cpus.is_some();
    let has_interrupts = record.devices.iter().any(is_known);
    let mut rows = Vec::new();
    let are_similar = |a: &&DeviceRecord, b: &&DeviceRecord| {
        let key = |d: &DeviceRecord| (d.kind.clone(), d.ids.clone(), d.cpus.clone());
        a.names.is_empty() && b.names.is_empty() && key(a) == key(b)
    };
    let all: Vec<&DeviceRecord> = record.devices.iter().collect();
    for group in all.chunk_by(are_similar) {
        let shown = match group.len() {
            count if count > MAX_SIMILAR + 1 => MAX_SIMILAR,
            count => count,
        };
        rows.extend(
            group[..shown]
                .iter()
                .map(|device| format_device_row(device)),
        );
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
        header.insert(INTERRUPTS_COLUMN, "IRQs on");
    } else {
        for row in &mut rows {
            row.remove(INTERRUPTS_COLUMN);
        }
    }
    fit_models(&mut header, &mut rows);
    let mut text = format!("\n{heading}\n{}", table(&header, rows));
    for device in &record.devices {
        let name = device.names.first().unwrap_or(&device.address);
        let packets = describe_packet_cpus(device);
        if !packets.is_empty() {
            let line = paragraph("  ", "    ", &format!("{name}: {packets}"));
            text.push_str(&format!("{line}\n"));
        }
        if let Some(note) = &device.note {
            let line = paragraph("  ! ", "    ", &format!("{name}: {note}"));
            text.push_str(&format!("{}\n", palette.warn(&line)));
        }
    }
    text.push_str(&list_paths(record, palette));
    text
}

/// The paths between devices, nearest first, and what each abbreviation means.
const PATHS: [(PathClass, &str); 7] = [
    (PathClass::Nvlink, "bonded NVLinks"),
    (PathClass::Xgmi, "Infinity Fabric"),
    (PathClass::Switch, "one PCIe switch at most"),
    (PathClass::Switches, "PCIe switches"),
    (PathClass::HostBridge, "a host bridge"),
    (PathClass::Node, "host bridges of one NUMA node"),
    (PathClass::System, "NUMA nodes apart"),
];

/// A line for each device that lists the others by path, nearest first; empty if no path is known.
fn list_paths(record: &TopologyRecord, palette: Palette) -> String {
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

/// Describes which CPUs process the packets of a network card (RPS) and send on its queues (XPS).
/// Empty if none are set: then the CPUs that take its interrupts do.
fn describe_packet_cpus(device: &DeviceRecord) -> String {
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

/// Cuts the models, which are the last column, to the width that the other columns leave.
fn fit_models(header: &mut Vec<&str>, rows: &mut [Vec<String>]) {
    let last = header.len() - 1;
    let width = |column: usize| {
        let cells = rows.iter().map(|row| width_of(&row[column]));
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    let used_columns: usize = (0..last).map(|column| width(column) + 2).sum();
    let left = columns().saturating_sub(used_columns + 2);
    if left < MIN_MODEL_WIDTH {
        header.pop();
    }
    for row in rows {
        match row.pop() {
            Some(model) if left >= MIN_MODEL_WIDTH => row.push(shorten(&model, left)),
            _ => {}
        }
    }
}

fn format_device_row(device: &DeviceRecord) -> Vec<String> {
    let names: Vec<String> = device.names.iter().map(|name| visible(name)).collect();
    let name = match names.is_empty() {
        true => "-".to_owned(),
        false => shorten(&names.join(" "), MAX_NAME_WIDTH),
    };
    let model = device.model.as_ref().or(device.ids.as_ref());
    let node = device.numa_node.map(|node| node.to_string());
    vec![
        name,
        device.kind.to_string(),
        node.unwrap_or_else(|| "?".to_owned()),
        shorten(device.cpus.as_deref().unwrap_or("?"), MAX_LIST_WIDTH),
        shorten(
            device.interrupted_cpus.as_deref().unwrap_or_default(),
            MAX_LIST_WIDTH,
        ),
        visible(&device.address),
        model.map_or_else(String::new, |model| visible(model)),
    ]
}
