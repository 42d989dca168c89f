//! Reads and sets CPUs of interrupts and of network queues.

use std::path::PathBuf;

use super::LedgerError;
use super::act::{System, cpu_list, read_cpus, write, write_cpus};
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

impl System {
    /// The CPUs that may take an interrupt.
    pub(super) fn interrupt_file(&self, number: u32) -> PathBuf {
        let name = format!("proc/irq/{number}/smp_affinity_list");
        self.root.join(name)
    }

    /// The CPUs, of those allowed, that take an interrupt; empty if unknown.
    pub(super) fn taking(&self, number: u32) -> CpuSet {
        let name = format!("proc/irq/{number}/effective_affinity_list");
        cpu_list(&self.root.join(name)).unwrap_or_default()
    }

    /// Restores the CPUs of an interrupt. The kernel leaves it on its CPU as long as that is among
    /// them: so it is first moved to those that took it before.
    pub(super) fn give_back(
        &self,
        number: u32,
        before: &CpuSet,
        taking: &CpuSet,
    ) -> Result<(), LedgerError> {
        let file = self.interrupt_file(number);
        if !taking.is_empty() && taking != before && self.taking(number) != *taking {
            write_cpus(&file, taking)?;
        }
        write_cpus(&file, before)
    }

    pub(super) fn queue_file(&self, queue: &Queue) -> PathBuf {
        self.root.join(queue.mask_file())
    }

    /// The CPUs of a queue; empty: none.
    pub(super) fn queue_cpus(&self, queue: &Queue) -> Result<CpuSet, LedgerError> {
        read_cpus(&self.queue_file(queue), CpuSet::parse_mask)
    }

    /// The kernel wants comma-separated 32-bit words, the highest first, and no more than it has
    /// CPUs for.
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
        write(&self.queue_file(queue), &format!("{mask}\n"))
    }
}
