//! Keeps what runs on CPUs and cores, and for how long.

use super::occupant::Occupant;
use super::{IDLE, Tid};
use pinwise_topology::{CpuSet, Topology};

/// A CPU and its sums since the last frame.
#[derive(Debug, Clone)]
pub(super) struct Cpu {
    pub(super) now: Occupant,
    /// No event yet.
    is_untouched: bool,
    /// The time before this is counted.
    counted_ns: u64,
    core: Option<usize>,
    /// The topology contains it.
    pub(super) is_described: bool,
    /// Time in which its state is known.
    pub(super) known_ns: u64,
    pub(super) busy_ns: u64,
    pub(super) own_ns: u64,
    pub(super) switches: u64,
    /// Time of the last poll and the busy time it found, ns.
    last_usage: Option<(u64, u64)>,
    /// Busy time between polls, and the time between them, ns.
    pub(super) polled: Option<(u64, u64)>,
}

/// The numbers of a core's busy CPUs, idle CPUs, and all CPUs.
#[derive(Debug, Clone, Copy, Default)]
struct Core {
    busy: usize,
    idle: usize,
    cpus: usize,
}

impl Core {
    const fn is_shared(self) -> bool {
        self.busy >= 2
    }

    const fn is_idle(self) -> bool {
        self.cpus > 0 && self.idle == self.cpus
    }
}

/// Shared and idle cores, in sums of core-nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CoreTime {
    pub(super) shared_ns: u64,
    pub(super) idle_ns: u64,
    /// The smaller of both numbers of cores at each moment.
    pub(super) avoidable_ns: u64,
}

/// All CPUs, by number.
#[derive(Debug)]
pub(super) struct Cpus {
    cpus: Vec<Option<Cpu>>,
    cores: Vec<Core>,
    /// Numbers of shared and idle cores.
    shared: usize,
    idle: usize,
    /// The cores' time before this is counted.
    counted_ns: u64,
    /// Start of the interval.
    began_ns: u64,
    pub(super) time: CoreTime,
}

impl Cpus {
    pub(super) fn from_topology(topology: &Topology) -> Self {
        let mut cpus = Self {
            cpus: Vec::new(),
            cores: vec![Core::default(); topology.cores.len()],
            shared: 0,
            idle: 0,
            counted_ns: 0,
            began_ns: 0,
            time: CoreTime::default(),
        };
        for cpu in topology.cpus.iter().filter(|cpu| cpu.online) {
            let core = cpu.core.filter(|core| *core < cpus.cores.len());
            if let Some(core) = core {
                cpus.cores[core].cpus += 1;
            }
            if let Some(entry) = cpus.cpu_by_id(cpu.id) {
                entry.core = core;
                entry.is_described = true;
            }
        }
        cpus
    }

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.counted_ns = now_ns;
        for cpu in self.cpus.iter_mut().flatten() {
            cpu.counted_ns = now_ns;
        }
    }

    /// The CPU's state; a new CPU is added, unless its number is too large.
    fn cpu_by_id(&mut self, id: usize) -> Option<&mut Cpu> {
        if id > CpuSet::MAX_CPU {
            return None;
        }
        if self.cpus.len() <= id {
            self.cpus.resize(id + 1, None);
        }
        let began_ns = self.began_ns;
        Some(self.cpus[id].get_or_insert(Cpu {
            now: Occupant::Unknown,
            is_untouched: true,
            counted_ns: began_ns,
            core: None,
            is_described: false,
            known_ns: 0,
            busy_ns: 0,
            own_ns: 0,
            switches: 0,
            last_usage: None,
            polled: None,
        }))
    }

    fn at(&self, cpu: u32) -> Option<&Cpu> {
        self.cpus.get(usize::try_from(cpu).ok()?)?.as_ref()
    }

    fn cpu_mut(&mut self, cpu: u32) -> Option<&mut Cpu> {
        self.cpu_by_id(usize::try_from(cpu).ok()?)
    }

    /// Numbers of all CPUs.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.iter().map(|(number, _)| number).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Cpu)> {
        let numbered = self.cpus.iter().enumerate();
        numbered.filter_map(|(id, cpu)| Some((u32::try_from(id).ok()?, cpu.as_ref()?)))
    }

    /// What the CPUs of each core run; the observer's CPU counts as idle.
    pub(super) fn cores_now(&self, observer: Option<Tid>) -> Vec<Vec<Occupant>> {
        let mut cores = vec![Vec::new(); self.cores.len()];
        for cpu in self.cpus.iter().flatten() {
            if let Some(core) = cpu.core {
                cores[core].push(match cpu.now {
                    Occupant::Thread(tid) if Some(tid) == observer => Occupant::Idle,
                    now => now,
                });
            }
        }
        cores
    }

    /// For each core, the sum of its CPUs' polled busy shares, and the number of CPUs; `None` if a
    /// CPU was not polled twice.
    pub(super) fn polled_cores(&self) -> Option<Vec<(f64, usize)>> {
        let mut cores = vec![(0.0, 0); self.cores.len()];
        for cpu in self.cpus.iter().flatten().filter(|cpu| cpu.is_described) {
            let (busy, span) = cpu.polled.filter(|(_, span)| *span > 0)?;
            if let Some(core) = cpu.core {
                cores[core].0 += (busy as f64 / span as f64).min(1.0);
                cores[core].1 += 1;
            }
        }
        Some(cores)
    }

    pub(super) fn occupant(&self, cpu: u32) -> Occupant {
        self.at(cpu).map_or(Occupant::Unknown, |cpu| cpu.now)
    }

    pub(super) fn is_untouched(&self, cpu: u32) -> bool {
        self.at(cpu).is_none_or(|cpu| cpu.is_untouched)
    }

    /// Sets what the CPU has run since the start of the interval.
    pub(super) fn set_first_occupant(&mut self, cpu: u32, now: Occupant) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.now = now;
        }
    }

    /// Counts the CPU's time up to now; returns the thread that it ran, and the time in ns.
    pub(super) fn advance(&mut self, cpu: u32, to_ns: u64) -> Option<(Tid, u64)> {
        self.count_cores(to_ns);
        let cpu = self.cpu_mut(cpu)?;
        let time = to_ns.saturating_sub(cpu.counted_ns);
        cpu.counted_ns = cpu.counted_ns.max(to_ns);
        match cpu.now {
            Occupant::Unknown => None,
            Occupant::Idle => {
                cpu.known_ns = cpu.known_ns.saturating_add(time);
                None
            }
            Occupant::Thread(tid) => {
                cpu.known_ns = cpu.known_ns.saturating_add(time);
                cpu.busy_ns = cpu.busy_ns.saturating_add(time);
                (tid > IDLE).then_some((tid, time))
            }
        }
    }

    pub(super) fn add_own(&mut self, cpu: u32, time_ns: u64) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.own_ns = cpu.own_ns.saturating_add(time_ns);
        }
    }

    pub(super) fn count_switch(&mut self, cpu: u32) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.switches += 1;
        }
    }

    /// Sets the occupant of the CPU from now on; time that is not counted yet is unknown.
    pub(super) fn occupy(&mut self, cpu: u32, at_ns: u64, now: Occupant) {
        self.count_cores(at_ns);
        let Some(cpu) = self.cpu_mut(cpu) else { return };
        let before = std::mem::replace(&mut cpu.now, now);
        let was_untouched = std::mem::replace(&mut cpu.is_untouched, false);
        cpu.counted_ns = cpu.counted_ns.max(at_ns);
        if let Some(core) = cpu.core {
            // A first occupant, set in retrospect, has not been counted for its core.
            let before = if was_untouched {
                Occupant::Unknown
            } else {
                before
            };
            self.change_core(core, before, now);
        }
    }

    fn change_core(&mut self, core: usize, before: Occupant, now: Occupant) {
        let Some(core) = self.cores.get_mut(core) else {
            return;
        };
        let was = *core;
        match before {
            Occupant::Unknown => {}
            Occupant::Idle => core.idle = core.idle.saturating_sub(1),
            Occupant::Thread(_) => core.busy = core.busy.saturating_sub(1),
        }
        match now {
            Occupant::Unknown => {}
            Occupant::Idle => core.idle += 1,
            Occupant::Thread(_) => core.busy += 1,
        }
        self.shared = self.shared + usize::from(core.is_shared()) - usize::from(was.is_shared());
        self.idle = self.idle + usize::from(core.is_idle()) - usize::from(was.is_idle());
    }

    fn count_cores(&mut self, to_ns: u64) {
        let time = to_ns.saturating_sub(self.counted_ns);
        if time == 0 {
            return;
        }
        self.counted_ns = to_ns;
        let times = |cores: usize| time.saturating_mul(cores as u64);
        let sums = &mut self.time;
        sums.shared_ns = sums.shared_ns.saturating_add(times(self.shared));
        sums.idle_ns = sums.idle_ns.saturating_add(times(self.idle));
        let both = self.shared.min(self.idle);
        sums.avoidable_ns = sums.avoidable_ns.saturating_add(times(both));
    }

    /// Adds a poll of a CPU's busy time.
    pub(super) fn add_usage(&mut self, cpu: u32, at_ns: u64, busy_ns: u64) {
        let Some(cpu) = self.cpu_mut(cpu) else { return };
        if let Some((before_ns, before)) = cpu.last_usage.replace((at_ns, busy_ns)) {
            let (busy, span) = cpu.polled.unwrap_or_default();
            cpu.polled = Some((
                busy.saturating_add(busy_ns.saturating_sub(before)),
                span.saturating_add(at_ns.saturating_sub(before_ns)),
            ));
        }
    }

    /// Resets the sums. Time counts from `now_ns` on, even if an event was later.
    pub(super) fn start_interval(&mut self, now_ns: u64) {
        self.time = CoreTime::default();
        self.begin(now_ns);
        for cpu in self.cpus.iter_mut().flatten() {
            (cpu.known_ns, cpu.busy_ns, cpu.own_ns, cpu.switches) = (0, 0, 0, 0);
            cpu.polled = None;
        }
    }
}
