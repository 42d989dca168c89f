//! Kinds of CPU on hybrid machines.

use std::collections::BTreeMap;

use super::super::build::{CAPACITY_STEP, FREQUENCY_STEP, KindFacts, cache_speed, join_alike};
use super::{CPU_DIR, Cache, CpuSet, Reader, parse_hex};

/// Files that tell favoured cores of one design apart, the most reliable first.
pub(crate) const RANK_FILES: [&str; 4] = [
    "cpufreq/amd_pstate_prefcore_ranking",
    "acpi_cppc/highest_perf",
    "cpu_capacity",
    "cpufreq/cpuinfo_max_freq",
];

/// Files of a CPU that tell which of two designs is faster, the most reliable first.
const SPEED_FILES: [&str; 3] = [
    "cpu_capacity",
    "cpufreq/cpuinfo_max_freq",
    "acpi_cppc/highest_perf",
];

impl Reader<'_> {
    /// Reads kinds from the kernel's own lists (x86 hybrids), else by processor design (arm64:
    /// MIDR, or part number), else by capacity and sizes of caches, else by highest frequencies
    /// that differ too much for favoured cores of one design.
    pub(super) fn read_kinds(&mut self, online: &CpuSet, caches: &[Cache]) -> Vec<KindFacts> {
        let by_pmu = self.read_kinds_by_pmu();
        if by_pmu.len() > 1 {
            return by_pmu;
        }
        let by_type = self.read_kinds_by_type_folder(online);
        if by_type.len() > 1 {
            return self.add_speeds(by_type, caches);
        }
        let by_design = self.group_by_file(online, "regs/identification/midr_el1", parse_hex);
        if by_design.len() > 1 {
            let designs = by_design.into_iter().map(|group| group.cpus);
            return self.add_speeds(designs.collect(), caches);
        }
        let by_part = self.read_kinds_by_part(online);
        if by_part.len() > 1 {
            return self.add_speeds(by_part, caches);
        }
        let by_capacity = self.group_by_file(online, "cpu_capacity", |text| text.parse().ok());
        if by_capacity.len() > 1 {
            return join_alike(by_capacity, caches, CAPACITY_STEP);
        }
        let parse = |text: &str| text.parse().ok();
        let by_frequency = self.group_by_file(online, "cpufreq/cpuinfo_max_freq", parse);
        join_alike(by_frequency, caches, FREQUENCY_STEP)
    }

    /// Kinds by the designs that an arm64 kernel prints (`CPU part`), for unreadable MIDR
    /// registers.
    fn read_kinds_by_part(&self, online: &CpuSet) -> Vec<CpuSet> {
        let text = self.capture.text("proc/cpuinfo").unwrap_or_default();
        let mut designs: BTreeMap<String, CpuSet> = BTreeMap::new();
        for block in text.split("\n\n") {
            let field = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.split_once(':'));
                let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
                Some(value.trim())
            };
            let number = field("processor").and_then(|number| number.parse().ok());
            if let (Some(number), Some(part)) = (number, field("CPU part"))
                && online.contains(number)
            {
                let implementer = field("CPU implementer").unwrap_or_default();
                let design = designs.entry(format!("{implementer} {part}")).or_default();
                design.insert(number);
            }
        }
        let known: CpuSet = designs.values().flat_map(CpuSet::iter).collect();
        if known != *online {
            return Vec::new();
        }
        designs.into_values().collect()
    }

    fn read_kinds_by_pmu(&mut self) -> Vec<KindFacts> {
        [("cpu_lowpower", 0), ("cpu_atom", 1), ("cpu_core", 2)]
            .into_iter()
            .filter_map(|(pmu, speed)| {
                let cpus = self.read_list(&format!("sys/devices/{pmu}/cpus"))?;
                Some(KindFacts { cpus, speed })
            })
            .collect()
    }

    fn read_kinds_by_type_folder(&mut self, online: &CpuSet) -> Vec<CpuSet> {
        let dir = format!("{CPU_DIR}/types");
        let names: Vec<String> = self.capture.children(&dir).map(str::to_owned).collect();
        let mut rest = online.clone();
        let mut kinds = Vec::new();
        for name in names {
            let cpus = self
                .read_mask(&format!("{dir}/{name}/cpumap"))
                .or_else(|| self.read_list(&format!("{dir}/{name}/cpulist")))
                .unwrap_or_default()
                .intersection(&rest);
            rest = rest.difference(&cpus);
            kinds.push(cpus);
        }
        if !kinds.is_empty() && !rest.is_empty() {
            kinds.push(rest);
        }
        kinds
    }

    /// Adds each kind's speed from the first source in which the kinds differ. Without any, a
    /// design with more cache per core counts as faster.
    fn add_speeds(&self, kinds: Vec<CpuSet>, caches: &[Cache]) -> Vec<KindFacts> {
        let mut speeds = SPEED_FILES.map(|file| {
            let means = kinds.iter().map(|cpus| self.read_mean(cpus, file));
            means.collect::<Option<Vec<u64>>>()
        });
        let mut known = speeds.iter_mut().filter_map(Option::take);
        let speeds = known.find(|speeds| speeds.iter().any(|speed| *speed != speeds[0]));
        let by_caches = || {
            let first = kinds.iter().map(CpuSet::first);
            first.map(|cpu| cache_speed(cpu, caches)).collect()
        };
        let speeds = speeds.unwrap_or_else(by_caches);
        let kinds = kinds.into_iter().zip(speeds);
        kinds
            .map(|(cpus, speed)| KindFacts { cpus, speed })
            .collect()
    }

    /// CPUs by the speed that the firmware reports: favoured cores of one design differ in it. The
    /// first source that shows a difference counts, because some firmware gives all CPUs the
    /// highest performance that fits into the field. A source that lacks one of the CPUs is
    /// skipped.
    pub(super) fn read_ranks(&self, online: &CpuSet) -> Vec<KindFacts> {
        let parse = |text: &str| text.parse().ok();
        let mut groups = RANK_FILES.map(|file| self.group_by_file(online, file, parse));
        let first = groups.iter_mut().find(|groups| groups.len() > 1);
        first.map(std::mem::take).unwrap_or_default()
    }

    /// CPUs with the same number in a file; empty if a CPU lacks the file.
    fn group_by_file(
        &self,
        online: &CpuSet,
        file: &str,
        parse: fn(&str) -> Option<u64>,
    ) -> Vec<KindFacts> {
        let mut groups: BTreeMap<u64, CpuSet> = BTreeMap::new();
        for id in online.iter() {
            let text = self.capture.text(&format!("{CPU_DIR}/cpu{id}/{file}"));
            let Some(value) = text.and_then(parse) else {
                return Vec::new();
            };
            groups.entry(value).or_default().insert(id);
        }
        let groups = groups.into_iter();
        groups
            .map(|(speed, cpus)| KindFacts { cpus, speed })
            .collect()
    }

    /// The mean of a file's number over the CPUs that have it; `None` if none has.
    fn read_mean(&self, cpus: &CpuSet, file: &str) -> Option<u64> {
        let read = |id: usize| -> Option<u64> {
            let text = self.capture.text(&format!("{CPU_DIR}/cpu{id}/{file}"));
            text?.parse().ok()
        };
        let speeds: Vec<u64> = cpus.iter().filter_map(read).collect();
        let sum = speeds.iter().fold(0u64, |sum, &s| sum.saturating_add(s));
        sum.checked_div(speeds.len() as u64)
    }
}
