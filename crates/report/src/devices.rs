//! The devices of a machine as a table.

use super::style::{Palette, shortened, table, visible};
use pinwise_record::{DeviceRecord, TopologyRecord};

/// Longer names of models are cut.
const LONGEST_MODEL: usize = 32;
/// A card has hundreds of virtual functions: of those that only their address
/// sets apart so many are shown.
const SHOWN_ALIKE: usize = 2;

/// The table; empty where there is no device.
pub(super) fn devices(record: &TopologyRecord, palette: Palette) -> String {
    if record.devices.is_empty() {
        return String::new();
    }
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
                visible(&first.address),
                format!("to {}", visible(&last.address)),
            ]);
        }
    }
    let heading = palette.strong("Devices on the PCI bus");
    let header = ["device", "type", "node", "near CPUs", "address", "model"];
    format!("\n{heading}\n{}", table(&header, rows))
}

fn row(device: &DeviceRecord) -> Vec<String> {
    let names: Vec<String> = device.names.iter().map(|name| visible(name)).collect();
    let name = match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(" "),
    };
    let model = device.model.as_ref().or(device.ids.as_ref());
    let node = device.numa_node.map(|node| node.to_string());
    vec![
        name,
        device.kind.to_string(),
        node.unwrap_or_else(|| "?".to_owned()),
        device.cpus.clone().unwrap_or_else(|| "?".to_owned()),
        visible(&device.address),
        model.map_or_else(String::new, |model| {
            shortened(&visible(model), LONGEST_MODEL)
        }),
    ]
}
