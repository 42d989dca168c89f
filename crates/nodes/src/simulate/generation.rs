//! The kinds of server in a simulated fleet.
//!
//! Cores, sockets, channels and clocks are from the makers' product pages. Peak bandwidth is
//! channels × transfers × 8 bytes. Latencies between cores are medians of matrices published with
//! `core-to-core-latency-plus` and `cpu-latency` (dual Xeon Platinum 8358 by leavelet, dual EPYC
//! 7763 and 9754 by fwyzard); PAUSE is from [`pinwise_spin::chips`]. All other numbers are
//! plausible round numbers.

use pinwise_spin::chips;

/// A kind of server: two packages of one processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Generation {
    /// The processor's name in `/proc/cpuinfo`.
    pub(super) cpu: &'static str,
    pub(super) vendor: &'static str,
    pub(super) family: u32,
    pub(super) model: u32,
    pub(super) stepping: u32,
    /// Its row of [`pinwise_spin::chips`].
    chip: &'static str,
    /// Last-level caches of a package, and cores of each cache.
    pub(super) llcs: usize,
    pub(super) cores_per_llc: usize,
    /// NUMA nodes of a package: set correctly, and wrongly.
    pub(super) nodes_per_package: [usize; 2],
    /// Memory of the server and of a DIMM, GiB.
    pub(super) memory_gib: u32,
    pub(super) dimm_gib: u32,
    /// Clock of one busy core and of all cores, GHz.
    pub(super) one_ghz: f64,
    pub(super) all_ghz: f64,
    /// Theoretical memory bandwidth of a package, GB/s.
    pub(super) peak_gb_per_s: f64,
    /// Latency between siblings, in one last-level cache, in one package, in two packages, ns.
    pub(super) cores_ns: [f64; 4],
    /// Load latency of L1, L2, L3, memory of the same and of the other package, ns.
    pub(super) loads_ns: [f64; 5],
    /// Work per cycle relative to the oldest generation.
    pub(super) per_cycle: f64,
    /// Microcode: current and old.
    pub(super) microcode: [&'static str; 2],
    /// Maker and name of the board.
    pub(super) board: &'static str,
    /// BIOS of most nodes, and of the others.
    pub(super) bios: [&'static str; 2],
    pub(super) governor_driver: &'static str,
    pub(super) mitigations: &'static str,
}

/// All kinds, the oldest first.
pub(super) const GENERATIONS: [Generation; 3] = [
    Generation {
        cpu: "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz",
        vendor: "GenuineIntel",
        family: 6,
        model: 0x6a,
        stepping: 6,
        chip: "ice-lake-sp",
        llcs: 1,
        cores_per_llc: 32,
        nodes_per_package: [1, 2],
        memory_gib: 512,
        dimm_gib: 32,
        one_ghz: 3.4,
        all_ghz: 3.3,
        peak_gb_per_s: 8.0 * 3.2 * 8.0,
        cores_ns: [8.0, 50.0, 50.0, 111.0],
        loads_ns: [1.5, 4.1, 21.0, 85.0, 140.0],
        per_cycle: 1.0,
        microcode: ["0xd0003f5", "0xd000389"],
        board: "Supermicro X12DPi-N6",
        bios: ["American Megatrends 1.8", "American Megatrends 2.1"],
        governor_driver: "intel_pstate",
        mitigations: "gather_data_sampling, mmio_stale_data, spectre_v1, spectre_v2",
    },
    Generation {
        cpu: "AMD EPYC 7763 64-Core Processor",
        vendor: "AuthenticAMD",
        family: 25,
        model: 1,
        stepping: 1,
        chip: "zen-3-server",
        llcs: 8,
        cores_per_llc: 8,
        nodes_per_package: [1, 4],
        memory_gib: 512,
        dimm_gib: 32,
        one_ghz: 3.5,
        all_ghz: 3.0,
        peak_gb_per_s: 8.0 * 3.2 * 8.0,
        cores_ns: [10.4, 26.0, 119.0, 305.0],
        loads_ns: [1.2, 3.6, 14.0, 105.0, 195.0],
        per_cycle: 1.08,
        microcode: ["0xa0011d7", "0xa001173"],
        board: "Dell Inc. 0590KW",
        bios: ["Dell Inc. 2.14.1", "Dell Inc. 2.16.2"],
        governor_driver: "acpi-cpufreq",
        mitigations: "spec_rstack_overflow, spectre_v1, spectre_v2",
    },
    Generation {
        cpu: "AMD EPYC 9754 128-Core Processor",
        vendor: "AuthenticAMD",
        family: 25,
        model: 0xa0,
        stepping: 2,
        chip: "zen-4",
        llcs: 16,
        cores_per_llc: 8,
        nodes_per_package: [1, 4],
        memory_gib: 1536,
        dimm_gib: 64,
        one_ghz: 3.1,
        all_ghz: 3.0,
        peak_gb_per_s: 12.0 * 4.8 * 8.0,
        cores_ns: [12.8, 31.0, 108.0, 204.0],
        loads_ns: [1.3, 4.5, 16.0, 120.0, 220.0],
        per_cycle: 1.22,
        microcode: ["0xaa00219", "0xaa00212"],
        board: "Gigabyte MZ73-LM0-000",
        bios: ["GIGABYTE R15_F20", "GIGABYTE R19_F25"],
        governor_driver: "amd-pstate-epp",
        mitigations: "spec_rstack_overflow, spectre_v1, spectre_v2",
    },
];

impl Generation {
    /// PAUSE, core cycles.
    pub(super) fn pause_cycles(&self) -> f64 {
        // A test makes sure that every chip is found.
        chips::chip(self.chip).map_or(f64::NAN, |chip| chip.pause_cycles.0)
    }

    /// Cores of the server.
    pub(super) const fn cores(&self) -> usize {
        2 * self.llcs * self.cores_per_llc
    }

    /// Last-level caches of the server. A cache is split if a package has more NUMA nodes than
    /// caches.
    pub(super) fn llc_count(&self, nodes_per_package: usize) -> usize {
        2 * self.llcs.max(nodes_per_package)
    }

    /// The server as a synthetic topology of hwloc.
    pub(super) fn to_synthetic(self, has_smt: bool, nodes_per_package: usize) -> String {
        let llcs = self.llc_count(nodes_per_package) / (2 * nodes_per_package);
        let cores = self.cores() / (2 * nodes_per_package * llcs);
        let pu = if has_smt { 2 } else { 1 };
        format!("package:2 numa:{nodes_per_package} l3:{llcs} core:{cores} pu:{pu}")
    }
}
