//! Reads and sets CPUs of interrupts and of network queues.

use std::path::PathBuf;

use super::LedgerError;
use super::act::{System, read_cpu_list, read_cpus, write_cpus, write_value};
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

impl System {
    /// The file with the CPUs that may take an interrupt.
    pub(super) fn interrupt_file(&self, number: u32) -> PathBuf {
        let name = format!("proc/irq/{number}/smp_affinity_list");
        self.root.join(name)
    }

    /// Reads which of the allowed CPUs the kernel has chosen to take an interrupt; empty if
    /// unknown.
    pub(super) fn read_effective_cpus(&self, number: u32) -> CpuSet {
        let name = format!("proc/irq/{number}/effective_affinity_list");
        read_cpu_list(&self.root.join(name)).unwrap_or_default()
    }

    /// Restores the CPUs of an interrupt. The kernel leaves it where it is as long as that CPU is
    /// among them, so the interrupt is first moved to the CPUs that took it before.
    pub(super) fn restore_interrupt(
        &self,
        number: u32,
        before: &CpuSet,
        taking: &CpuSet,
    ) -> Result<(), LedgerError> {
        let file = self.interrupt_file(number);
        if !taking.is_empty() && taking != before && self.read_effective_cpus(number) != *taking {
            write_cpus(&file, taking)?;
        }
        write_cpus(&file, before)
    }

    pub(super) fn queue_file(&self, queue: &Queue) -> PathBuf {
        self.root.join(queue.mask_file())
    }

    /// Reads the CPUs of a queue; empty if none are set.
    pub(super) fn read_queue_cpus(&self, queue: &Queue) -> Result<CpuSet, LedgerError> {
        read_cpus(&self.queue_file(queue), CpuSet::parse_mask)
    }

    /// Sets the CPUs of a queue. The kernel expects comma-separated words of 32 bits, the highest
    /// first, and no more words than it has CPUs for.
    pub(super) fn set_queue(&self, queue: &Queue, cpus: &CpuSet) -> Result<(), LedgerError> {
        let words = cpus.words().iter().rev();
        let words = words.flat_map(|word| [word >> 32, word & 0xffff_ffff]);
        let words: Vec<String> = words
            .skip_while(|word| *word == 0)
            .map(|word| format!("{word:08x}"))
            .collect();
        let mask = match words.is_empty() {
            true => "00000000".to_owned(),
            false => words.join(","),
        };
        write_value(&self.queue_file(queue), &format!("{mask}\n"))
    }
}
