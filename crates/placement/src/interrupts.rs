//! Which CPUs take the interrupts of a device.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Locality, Placement, RealiseError, Wish};
use pinwise_topology::interrupts::{Interrupt, Queue};
use pinwise_topology::{CpuSet, Device, Topology};

/// Where a device's interrupts should be handled: `eth0=local`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptWish {
    /// A device name of the topology.
    pub device: String,
    /// The CPUs.
    pub place: InterruptPlace,
    /// Should these CPUs also send on its queues (`+xps`)?
    pub with_xps: bool,
}

/// CPUs for interrupts, and for queues of network interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterruptCpus {
    /// By the interrupt's number.
    pub interrupts: BTreeMap<u32, CpuSet>,
    /// By queue.
    pub queues: BTreeMap<Queue, CpuSet>,
}

impl InterruptCpus {
    /// Is there nothing to move?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.interrupts.is_empty() && self.queues.is_empty()
    }

    /// Moves the interrupts of these CPUs to all other online CPUs. Also returns the numbers of
    /// managed interrupts, which cannot be moved. The topology must contain the interrupts.
    #[must_use]
    pub fn move_away_from(cpus: &CpuSet, topology: &Topology) -> (Self, CpuSet) {
        let others = topology.online.difference(cpus);
        let all = topology.devices.iter().flat_map(|d| &d.interrupts);
        let affected = all.filter(|interrupt| interrupt.cpus.intersects(cpus));
        let (managed, free): (Vec<_>, Vec<_>) = affected.partition(|i| i.is_managed);
        let moved = Self {
            interrupts: free.iter().map(|i| (i.number, others.clone())).collect(),
            queues: BTreeMap::new(),
        };
        (moved, managed.iter().map(|i| i.number as usize).collect())
    }

    /// Adds others, which replace entries of the same interrupt or queue.
    pub fn extend(&mut self, others: Self) {
        self.interrupts.extend(others.interrupts);
        self.queues.extend(others.queues);
    }
}

impl fmt::Display for InterruptCpus {
    /// As `IRQ 37-39 on CPU 1, RPS of eth0 queue 0-3 on CPU 0-7`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_cpus: BTreeMap<String, CpuSet> = BTreeMap::new();
        for (&number, cpus) in &self.interrupts {
            let numbers = by_cpus.entry(cpus.to_string()).or_default();
            numbers.insert(number as usize);
        }
        let by_cpus = by_cpus.iter();
        let interrupts = by_cpus.map(|(cpus, numbers)| format!("IRQ {numbers} on CPU {cpus}"));
        let mut by_queue: BTreeMap<_, CpuSet> = BTreeMap::new();
        for (queue, cpus) in &self.queues {
            let key = (queue.is_sending, &queue.interface, cpus.to_string());
            by_queue
                .entry(key)
                .or_default()
                .insert(queue.number as usize);
        }
        let queues = by_queue
            .iter()
            .map(|((is_sending, interface, cpus), numbers)| {
                let kind = if *is_sending { "XPS" } else { "RPS" };
                format!("{kind} of {interface} queue {numbers} on CPU {cpus}")
            });
        let words: Vec<String> = interrupts.chain(queues).collect();
        out.write_str(&words.join(", "))
    }
}

/// CPUs that take interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterruptPlace {
    /// Those that take them now.
    AsIs,
    /// Those near the device.
    Local,
    /// Those far from the device, as a control: shows what nearness gains.
    Far,
    /// Those that the program does not use.
    Away,
    /// All.
    Spread,
    /// These CPUs.
    Cpus(CpuSet),
}

/// Why interrupts cannot be placed this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterruptError {
    /// It is not of the form DEVICE=PLACE.
    #[error(
        "'{0}' is not DEVICE=PLACE; a place is local, far, away, spread or a list of CPUs, each also with +xps, or as-is"
    )]
    Syntax(String),
    /// There are no CPUs for it.
    #[error(transparent)]
    Place(#[from] RealiseError),
    /// The program uses all CPUs.
    #[error("{wish}: the program may use every CPU; leave some free, as in --place cpu:{spare}")]
    NoneFree {
        /// The wish.
        wish: String,
        /// All CPUs except one.
        spare: CpuSet,
    },
    /// A CPU that does not exist or is offline.
    #[error("{wish}: CPU {cpus} is not online")]
    NotOnline {
        /// The wish.
        wish: String,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// No transmit queue of the device can be assigned to CPUs.
    #[error(
        "{0}: it has no transmit queues that can be assigned to CPUs (XPS needs a network card with several); leave out +xps"
    )]
    NoQueues(String),
    /// The device has no interrupts.
    #[error("{0} has no interrupts of its own")]
    NoInterrupts(String),
    /// The kernel placed all relevant ones itself.
    #[error(
        "the kernel manages the interrupts of {device}, so they cannot be moved (managed interrupts {numbers})"
    )]
    Managed {
        /// The device.
        device: String,
        /// Their numbers.
        numbers: CpuSet,
    },
}

impl FromStr for InterruptWish {
    type Err = InterruptError;

    fn from_str(text: &str) -> Result<Self, InterruptError> {
        let invalid = || InterruptError::Syntax(text.to_owned());
        let (device, place) = text.split_once('=').ok_or_else(invalid)?;
        let (place, with_xps) = match place.strip_suffix("+xps") {
            Some("as-is") => return Err(invalid()),
            Some(place) => (place, true),
            None => (place, false),
        };
        let place = match place {
            "as-is" => InterruptPlace::AsIs,
            "local" => InterruptPlace::Local,
            "far" => InterruptPlace::Far,
            "away" => InterruptPlace::Away,
            "spread" => InterruptPlace::Spread,
            list => {
                let cpus = CpuSet::parse_list(list).ok();
                InterruptPlace::Cpus(cpus.filter(|set| !set.is_empty()).ok_or_else(invalid)?)
            }
        };
        match device {
            "" => Err(invalid()),
            device => Ok(Self {
                device: device.to_owned(),
                place,
                with_xps,
            }),
        }
    }
}

impl fmt::Display for InterruptWish {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}=", self.device)?;
        match &self.place {
            InterruptPlace::AsIs => out.write_str("as-is"),
            InterruptPlace::Local => out.write_str("local"),
            InterruptPlace::Far => out.write_str("far"),
            InterruptPlace::Away => out.write_str("away"),
            InterruptPlace::Spread => out.write_str("spread"),
            InterruptPlace::Cpus(cpus) => write!(out, "{cpus}"),
        }?;
        out.write_str(if self.with_xps { "+xps" } else { "" })
    }
}

impl InterruptWish {
    /// Deals the wish's CPUs to the interrupts of the device, one each, every core once before any
    /// a second time; `as-is` moves none. Interrupts that were raised come first, so that they do
    /// not share a CPU while unused ones have their own; managed interrupts are left out. Queues
    /// that hand their packets to other CPUs (RPS) get all of the wish's CPUs: otherwise the old
    /// CPUs would continue to process the packets. With `+xps` the CPUs are also dealt to the
    /// sending queues.
    ///
    /// `program`: the CPUs that the program may use. The topology must contain the device's
    /// interrupts.
    ///
    /// # Errors
    /// [`InterruptError`] if there is no such device, it has no interrupts, or no CPU is left for
    /// them.
    pub fn realise(
        &self,
        topology: &Topology,
        program: &CpuSet,
    ) -> Result<InterruptCpus, InterruptError> {
        let cpus = self.list_cpus(topology, program)?;
        let device = topology.device(&self.device);
        let interrupts: Vec<_> = device.iter().flat_map(|d| &d.interrupts).collect();
        if interrupts.is_empty() {
            return Err(InterruptError::NoInterrupts(self.device.clone()));
        }
        if self.place == InterruptPlace::AsIs {
            return Ok(InterruptCpus::default());
        }
        let (managed, mut interrupts): (Vec<_>, Vec<_>) = interrupts
            .into_iter()
            .partition(|interrupt| interrupt.is_managed);
        // Cards have a configuration interrupt besides those that do the work.
        let count_raised = |some: &[&Interrupt]| -> u64 {
            let counts = some.iter().map(|interrupt| interrupt.count.unwrap_or(1));
            counts.fold(0, u64::saturating_add)
        };
        if !managed.is_empty() && count_raised(&managed) >= count_raised(&interrupts) {
            return Err(InterruptError::Managed {
                device: self.device.clone(),
                numbers: managed.iter().map(|i| i.number as usize).collect(),
            });
        }
        interrupts.sort_by_key(|interrupt| (interrupt.count == Some(0), interrupt.number));
        let numbers = interrupts.iter().map(|interrupt| interrupt.number);
        let dealt = cpus.iter().cycle().map(|&cpu| CpuSet::from_iter([cpu]));
        Ok(InterruptCpus {
            interrupts: numbers.zip(dealt).collect(),
            queues: self.assign_queues(device, &cpus)?,
        })
    }

    fn assign_queues(
        &self,
        device: Option<&Device>,
        cpus: &[usize],
    ) -> Result<BTreeMap<Queue, CpuSet>, InterruptError> {
        let queues = device.iter().flat_map(|device| &device.queues);
        let (sending, receiving): (Vec<_>, Vec<_>) = queues.partition(|(q, _)| q.is_sending);
        let receiving = receiving.into_iter().filter(|(_, now)| !now.is_empty());
        let all: CpuSet = cpus.iter().copied().collect();
        let mut assigned: BTreeMap<Queue, CpuSet> = receiving
            .map(|(queue, _)| (queue.clone(), all.clone()))
            .collect();
        if self.with_xps {
            if sending.is_empty() || cpus.is_empty() {
                return Err(InterruptError::NoQueues(self.to_string()));
            }
            // Every queue has a CPU, and every CPU a queue.
            for turn in 0..sending.len().max(cpus.len()) {
                let (queue, _) = sending[turn % sending.len()];
                let queue_cpus = assigned.entry(queue.clone()).or_default();
                queue_cpus.insert(cpus[turn % cpus.len()]);
            }
        }
        Ok(assigned)
    }

    /// The CPUs in the order of assignment.
    fn list_cpus(
        &self,
        topology: &Topology,
        program: &CpuSet,
    ) -> Result<Vec<usize>, InterruptError> {
        // Interrupts ignore cpusets: any online CPU can take them. Asking for the near CPUs also
        // checks that the device exists.
        let spread_by_locality = |is_near| Placement {
            locality: Some(Locality {
                is_near,
                device: self.device.clone(),
            }),
            ..Placement::new(Wish::Spread)
        };
        let restrict_to = |allowed: CpuSet| Topology {
            allowed,
            ..topology.clone()
        };
        let online = &topology.online;
        let (placement, allowed) = match &self.place {
            InterruptPlace::Local => (spread_by_locality(true), online.clone()),
            InterruptPlace::Far => (spread_by_locality(false), online.clone()),
            InterruptPlace::AsIs | InterruptPlace::Spread => {
                (Placement::new(Wish::Spread), online.clone())
            }
            InterruptPlace::Away => {
                let free = online.difference(program);
                if free.is_empty() {
                    return Err(InterruptError::NoneFree {
                        wish: self.to_string(),
                        spare: online.iter().skip(1).collect(),
                    });
                }
                (Placement::new(Wish::Spread), free)
            }
            InterruptPlace::Cpus(cpus) => {
                let missing = cpus.difference(online);
                if !missing.is_empty() {
                    return Err(InterruptError::NotOnline {
                        wish: self.to_string(),
                        cpus: missing,
                    });
                }
                (Placement::new(Wish::Spread), cpus.clone())
            }
        };
        if topology.device(&self.device).is_none() {
            // Its error names the existing devices.
            let near = Placement {
                wish: Wish::Compact,
                ..spread_by_locality(true)
            };
            near.realise(topology)?;
        }
        Ok(placement.realise(&restrict_to(allowed))?.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Device;

    fn machine() -> Topology {
        let mut topology = Topology::from_synthetic("package:2 core:2 pu:2").unwrap();
        let mut card = Device::new("0000:01:00.0", 0x0200, None, None).unwrap();
        card.names = vec!["eth0".to_owned()];
        card.cpus = Some(CpuSet::parse_list("4-7").unwrap());
        card.interrupts = (30..34)
            .map(|number| Interrupt {
                number,
                cpus: CpuSet::from_iter([0]),
                count: Some(u64::from(number - 30)),
                is_managed: false,
            })
            .collect();
        let quiet = Device::new("0000:02:00.0", 0x0108, None, None).unwrap();
        topology.devices = vec![card, quiet].into();
        topology
    }

    fn place_interrupts(wish: &str, program: &str) -> Result<String, InterruptError> {
        let wish: InterruptWish = wish.parse()?;
        let program = CpuSet::parse_list(program).unwrap();
        let found = wish.realise(&machine(), &program)?;
        let words = found
            .interrupts
            .iter()
            .map(|(number, cpus)| format!("{number}:{cpus}"));
        Ok(words.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn interrupts_move_away_from_given_cpus() {
        let mut topology = machine();
        topology.devices.update(|all| {
            all[0].interrupts[1].cpus = CpuSet::from_iter([5]);
            all[0].interrupts[2].is_managed = true;
        });
        let (moved, stuck) = InterruptCpus::move_away_from(&CpuSet::from_iter([0, 1]), &topology);
        assert_eq!(moved.to_string(), "IRQ 30,33 on CPU 2-7");
        assert_eq!(stuck.to_string(), "32");
    }

    #[test]
    fn queues_follow_their_interrupts() {
        let mut topology = machine();
        let mut queue = |name: &str, cpus: &[usize]| {
            let queue = Queue::from_name("eth0", name).unwrap();
            let cpus = cpus.iter().copied().collect();
            topology.devices.update(|all| {
                all[0].queues.insert(queue, cpus);
            });
        };
        queue("rx-0", &[0]);
        queue("rx-1", &[]);
        for (sending, cpu) in ["tx-0", "tx-1", "tx-2"].into_iter().zip(0..) {
            queue(sending, &[cpu]);
        }
        let describe = |wish: &str| {
            let wish: InterruptWish = wish.parse().unwrap();
            let mut found = wish.realise(&topology, &topology.online).unwrap();
            found.interrupts.clear();
            found.to_string()
        };
        // Without RPS, packets stay with the interrupt.
        assert_eq!(describe("eth0=local"), "RPS of eth0 queue 0 on CPU 4-7");
        assert_eq!(
            describe("eth0=local+xps"),
            "RPS of eth0 queue 0 on CPU 4-7, XPS of eth0 queue 0 on CPU 4,7, XPS of eth0 queue 2 on CPU 5, XPS of eth0 queue 1 on CPU 6"
        );
        assert_eq!(
            describe("eth0=1-2+xps"),
            "RPS of eth0 queue 0 on CPU 1-2, XPS of eth0 queue 0,2 on CPU 1, XPS of eth0 queue 1 on CPU 2"
        );
        assert_eq!(describe("eth0=as-is"), "");
    }

    #[test]
    fn interrupts_of_a_cpu_are_listed_together() {
        let on = CpuSet::single;
        let moved = InterruptCpus {
            interrupts: [(37, on(1)), (38, on(0)), (39, on(1))].into(),
            queues: BTreeMap::new(),
        };
        assert_eq!(moved.to_string(), "IRQ 38 on CPU 0, IRQ 37,39 on CPU 1");
    }

    #[test]
    fn raised_interrupts_get_cores_of_their_own_first() {
        // 30 was never raised: it comes last.
        assert_eq!(
            place_interrupts("eth0=local", "0-7").unwrap(),
            "30:7 31:4 32:6 33:5"
        );
        assert_eq!(
            place_interrupts("eth0=far", "0-7").unwrap(),
            "30:3 31:0 32:2 33:1"
        );
        assert_eq!(
            place_interrupts("eth0=spread", "0-7").unwrap(),
            "30:6 31:0 32:4 33:2"
        );
        assert_eq!(
            place_interrupts("eth0=away", "0-6").unwrap(),
            "30:7 31:7 32:7 33:7"
        );
        assert_eq!(
            place_interrupts("eth0=1,3", "0-7").unwrap(),
            "30:3 31:1 32:3 33:1"
        );
        assert_eq!(place_interrupts("eth0=as-is", "0-7").unwrap(), "");
    }

    #[test]
    fn managed_interrupts_stay() {
        let wish: InterruptWish = "eth0=4".parse().unwrap();
        let mut topology = machine();
        let interrupts = |topology: &Topology| {
            let found = wish.realise(topology, &topology.online);
            found.map(|found| found.interrupts.into_keys().collect::<Vec<_>>())
        };
        topology
            .devices
            .update(|all| all[0].interrupts[2].is_managed = true);
        assert_eq!(interrupts(&topology).unwrap(), [30, 31, 33]);
        // The remaining one was raised once, the others five times.
        topology
            .devices
            .update(|all| all[0].interrupts[3].is_managed = true);
        let error = interrupts(&topology).unwrap_err().to_string();
        assert!(error.contains("32-33"), "{error}");
    }

    #[test]
    fn impossible_wishes_are_refused() {
        for (wish, words) in [
            ("eth0", "not DEVICE=PLACE"),
            ("=local", "not DEVICE=PLACE"),
            ("eth0=nowhere", "local, far, away"),
            ("eth1=local", "did you mean 'eth0'?"),
            ("eth1=as-is", "did you mean 'eth0'?"),
            ("eth0=away", "--place cpu:1-7"),
            ("eth0=8", "CPU 8 is not online"),
            ("eth0=local+xps", "leave out +xps"),
            ("eth0=as-is+xps", "not DEVICE=PLACE"),
            ("0000:02:00.0=spread", "has no interrupts"),
            ("0000:02:00.0=local", "does not say which CPUs"),
        ] {
            let error = place_interrupts(wish, "0-7").unwrap_err().to_string();
            assert!(error.contains(words), "{wish}: {error}");
        }
    }

    #[test]
    fn wishes_round_trip_through_text() {
        for text in ["eth0=local", "pci:0000:01:00.0=0-1,3+xps", "nvme0n1=as-is"] {
            let wish: InterruptWish = text.parse().unwrap();
            assert_eq!(wish.to_string(), text);
        }
    }
}
