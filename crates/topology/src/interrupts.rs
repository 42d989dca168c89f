//! Interrupts of devices: their CPUs and counts.

use std::collections::BTreeMap;
use std::fmt;

use super::{CpuSet, Device, Topology};

/// An interrupt of a device; cards with several queues have one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// The system's number, as in `/proc/irq`.
    pub number: u32,
    /// The CPUs that take it now.
    pub cpus: CpuSet,
    /// How often it was raised since boot; `None` if unknown.
    pub count: Option<u64>,
    /// Does the kernel choose its CPUs and refuse changes (a managed interrupt)?
    pub is_managed: bool,
}

/// A queue of a network interface, which has CPUs of its own in addition to those of its interrupt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    /// The interface, as in `/sys/class/net`.
    pub interface: String,
    /// Is it a transmit queue? Its CPUs are then those that send on it (XPS); otherwise those that
    /// process its packets (RPS).
    pub is_sending: bool,
    /// Counted from 0, separately for each direction.
    pub number: u32,
}

impl Queue {
    /// The interface's queue whose folder in `queues` has this name: `rx-0`, `tx-3`.
    #[must_use]
    pub fn from_name(interface: &str, name: &str) -> Option<Self> {
        let (direction, number) = name.split_once('-')?;
        let is_name = |c: char| c.is_ascii_graphic() && c != '/' && c != '%';
        let is_plain = interface.chars().all(is_name) && !matches!(interface, "" | "." | "..");
        (is_plain && matches!(direction, "rx" | "tx")).then_some(Self {
            interface: interface.to_owned(),
            is_sending: direction == "tx",
            number: number.parse().ok()?,
        })
    }

    /// The name of its folder.
    #[must_use]
    pub fn name(&self) -> String {
        let direction = if self.is_sending { "tx" } else { "rx" };
        format!("{direction}-{}", self.number)
    }

    /// The file that has the mask of its CPUs, below `/`.
    #[must_use]
    pub fn mask_file(&self) -> String {
        let file = if self.is_sending {
            "xps_cpus"
        } else {
            "rps_cpus"
        };
        let (interface, name) = (&self.interface, self.name());
        format!("sys/class/net/{interface}/queues/{name}/{file}")
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.interface, self.name())
    }
}

/// Totals of `/proc/interrupts` by number. The first line names the CPUs; every other line has a
/// count for each of them after the number.
#[must_use]
pub fn totals(text: &str) -> BTreeMap<u32, u64> {
    let mut lines = text.lines();
    let cpus = lines
        .next()
        .map_or(0, |line| line.split_whitespace().count());
    let total = |line: &str| {
        let (number, counts) = line.split_once(':')?;
        let counts = counts.split_whitespace().take(cpus);
        let counts = counts.map_while(|count| count.parse::<u64>().ok());
        Some((
            number.trim().parse().ok()?,
            counts.fold(0, u64::saturating_add),
        ))
    };
    lines.filter_map(total).collect()
}

/// A line of `/proc/interrupts` or `/proc/softirqs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text before the colon: a number of `/proc/irq`, or letters such as
    /// `LOC`.
    pub label: String,
    /// Its requester, or the meaning of its letters; empty if neither is given.
    pub name: String,
    /// Its count, by CPU.
    pub counts: BTreeMap<usize, u64>,
}

/// The lines of `/proc/interrupts` or `/proc/softirqs`, CPU by CPU.
#[must_use]
pub fn lines(text: &str) -> Vec<Line> {
    let mut rows = text.lines();
    let cpus = rows.next().unwrap_or_default().split_whitespace();
    let cpus: Option<Vec<usize>> = cpus
        .map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let cpus = cpus.unwrap_or_default();
    let line = |row: &str| {
        let (label, rest) = row.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let counts = words.iter().map_while(|word| word.parse::<u64>().ok());
        let counts: BTreeMap<usize, u64> = cpus.iter().copied().zip(counts).collect();
        let label = label.trim().to_owned();
        // Numbered lines end with a chip, its line and the requester; lettered lines with a
        // description.
        let rest = words.get(counts.len()..).unwrap_or_default();
        let name = match label.parse::<u32>() {
            Ok(_) => (*rest.last().unwrap_or(&"")).to_owned(),
            Err(_) => rest.join(" "),
        };
        (counts.len() == cpus.len()).then_some(Line {
            label,
            name,
            counts,
        })
    };
    rows.filter_map(line).collect()
}

impl Topology {
    /// Devices by the numbers of their interrupts, if those were read.
    #[must_use]
    pub fn devices_by_interrupt(&self) -> BTreeMap<u32, &Device> {
        let devices = self.devices.iter().flat_map(|device| {
            let numbers = device.interrupts.iter();
            numbers.map(move |interrupt| (interrupt.number, device))
        });
        devices.collect()
    }
}

impl Device {
    /// The CPUs that take its interrupts: if counts are known, of those that were raised, since
    /// most cards have unused ones.
    #[must_use]
    pub fn interrupted(&self) -> CpuSet {
        let raised = self.interrupts.iter().filter(|i| i.count != Some(0));
        CpuSet::union_of(raised.map(|interrupt| &interrupt.cpus))
    }

    /// The CPUs of its sending or receiving queues; empty if none are set.
    #[must_use]
    pub fn queue_cpus(&self, is_sending: bool) -> CpuSet {
        let queues = self.queues.iter();
        let queues = queues.filter(|(queue, _)| queue.is_sending == is_sending);
        CpuSet::union_of(queues.map(|(_, cpus)| cpus))
    }

    /// Are all CPUs of its interrupts far from it?
    #[must_use]
    pub fn is_interrupted_far(&self) -> bool {
        let cpus = self.interrupted();
        let near = self.cpus.as_ref();
        near.is_some_and(|near| !cpus.is_empty() && !cpus.intersects(near))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_over_the_cpus() {
        let text = "            CPU0       CPU1\n 36:          5    1232883 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n 37:          0          0 PCI-MSIX-0000:00:03.0   0-edge\nNMI:          7          7   Non-maskable interrupts\nERR:          0\n";
        let totals = totals(text);
        assert_eq!(
            totals.into_iter().collect::<Vec<_>>(),
            [(36, 1_232_888), (37, 0)]
        );
        assert!(super::totals("").is_empty());
    }

    #[test]
    fn lines_have_counts_by_cpu_and_names() {
        let text = "            CPU0       CPU3\n 36:          5    1232883 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n 37:          0          0 PCI-MSIX-0000:00:03.0   0-edge\nLOC:          7          8   Local timer interrupts\nERR:          0\n";
        let read = |line: &Line| {
            let counts = line.counts.iter().map(|(cpu, n)| format!("{cpu}:{n}"));
            let counts: Vec<String> = counts.collect();
            format!("{} {} {}", line.label, line.name, counts.join(" "))
        };
        let lines = lines(text);
        assert_eq!(
            lines.iter().map(read).collect::<Vec<_>>(),
            [
                "36 virtio1-req.0 0:5 3:1232883",
                "37 0-edge 0:0 3:0",
                "LOC Local timer interrupts 0:7 3:8",
            ]
        );
        assert!(super::lines("").is_empty());
        assert!(super::lines("nothing\n1: 2 3 4\n")[0].counts.is_empty());
    }

    #[test]
    fn queues_are_named_as_their_folders() {
        let queue = Queue::from_name("eth0", "tx-11").unwrap();
        assert_eq!(queue.to_string(), "eth0 tx-11");
        assert_eq!(
            queue.mask_file(),
            "sys/class/net/eth0/queues/tx-11/xps_cpus"
        );
        let first = Queue::from_name("eth0", "rx-2").unwrap();
        assert_eq!(first.mask_file(), "sys/class/net/eth0/queues/rx-2/rps_cpus");
        assert!(first < Queue::from_name("eth0", "rx-10").unwrap());
        for (interface, name) in [
            ("..", "rx-0"),
            ("", "rx-0"),
            ("a/b", "rx-0"),
            ("a b", "rx-0"),
            ("eth0", "rx"),
            ("eth0", "rx-x"),
            ("eth0", "bql-0"),
        ] {
            assert_eq!(
                Queue::from_name(interface, name),
                None,
                "{interface} {name}"
            );
        }
    }

    #[test]
    fn interrupts_that_were_never_raised_do_not_count() {
        let mut device = Device::new("0000:01:00.0", 0x0200, None, None).unwrap();
        let list = |text: &str| CpuSet::parse_list(text).unwrap();
        let interrupt = |number, cpus: &str, count| Interrupt {
            number,
            cpus: list(cpus),
            count,
            is_managed: false,
        };
        device.cpus = Some(list("4-7"));
        device.interrupts = vec![interrupt(30, "4", Some(0)), interrupt(31, "1", Some(9))];
        assert_eq!(device.interrupted(), list("1"));
        assert!(device.is_interrupted_far());
        device.interrupts[0].count = None;
        assert!(!device.is_interrupted_far());
        device.interrupts.clear();
        assert!(!device.is_interrupted_far());
    }
}
