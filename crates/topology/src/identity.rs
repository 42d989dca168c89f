//! Names and versions from `/proc/cpuinfo`, DMI and files that the capturing program adds.
//!
//! A missing field stays `None`.

use super::{Capture, CpuSet, Identity};

pub(super) fn parse_identity(capture: &Capture) -> Identity {
    let info = CpuInfo::parse(capture.text("proc/cpuinfo").unwrap_or_default());
    let number = |key: &str| info.first(key).and_then(|text| text.parse().ok());
    let owned = |text: &str| Some(text.to_owned()).filter(|t| !t.is_empty());
    Identity {
        hostname: capture.text("proc/sys/kernel/hostname").and_then(owned),
        cpu_model: ["model name", "cpu model", "cpu", "uarch", "machine"]
            .iter()
            .find_map(|key| info.first(key))
            .and_then(owned),
        vendor: info
            .first("vendor_id")
            .and_then(owned)
            .or_else(|| info.first("CPU implementer").map(name_arm_vendor)),
        arch: capture.text("pinwise/arch").and_then(owned),
        kernel: capture
            .text("proc/sys/kernel/osrelease")
            .or_else(|| {
                capture
                    .text("proc/version")?
                    .split_ascii_whitespace()
                    .nth(2)
            })
            .and_then(owned),
        hypervisor: find_hypervisor(capture, &info),
        family: number("cpu family"),
        model: number("model"),
        stepping: number("stepping"),
        microcode: info.first("microcode").and_then(owned),
    }
}

/// CPUs listed in `/proc/cpuinfo`, for systems that hide `/sys`.
pub(super) fn list_processors(capture: &Capture) -> Option<CpuSet> {
    let text = capture.text("proc/cpuinfo")?;
    let cpus: CpuSet = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == "processor")
        .filter_map(|(_, value)| value.trim().parse().ok())
        .collect();
    (!cpus.is_empty()).then_some(cpus)
}

struct CpuInfo<'a> {
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> CpuInfo<'a> {
    fn parse(text: &'a str) -> Self {
        let pairs = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        Self { pairs }
    }

    fn first(&self, key: &str) -> Option<&'a str> {
        self.pairs
            .iter()
            .find(|(k, value)| *k == key && !value.is_empty())
            .map(|(_, value)| *value)
    }
}

fn find_hypervisor(capture: &Capture, info: &CpuInfo<'_>) -> Option<String> {
    if let Some(name) = capture.text("pinwise/hypervisor").filter(|t| !t.is_empty()) {
        return Some(name.to_owned());
    }
    if let Some(name) = capture
        .text("sys/hypervisor/type")
        .filter(|t| !t.is_empty())
    {
        return Some(name.to_owned());
    }
    let dmi = |file: &str| {
        capture
            .text(&format!("sys/class/dmi/id/{file}"))
            .unwrap_or_default()
    };
    let described = format!("{} {}", dmi("sys_vendor"), dmi("product_name"));
    let known = [
        ("KVM", "kvm"),
        ("QEMU", "kvm"),
        ("Amazon EC2", "kvm"),
        ("Google Compute", "kvm"),
        ("OpenStack", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Microsoft Corporation Virtual", "hyper-v"),
        ("Parallels", "parallels"),
        ("Bochs", "bochs"),
    ];
    // Amazon's bare-metal instances carry its name without a hypervisor.
    let is_metal = described.contains(".metal");
    let named = known
        .iter()
        .find(|(mark, _)| !is_metal && described.contains(mark))
        .map(|(_, name)| (*name).to_owned());
    let has_flag = info
        .first("flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    named.or_else(|| has_flag.then(|| "unknown".to_owned()))
}

/// The vendor of an implementer code in arm64's MIDR register (Arm ARM, D19.2.122).
fn name_arm_vendor(code: &str) -> String {
    match code {
        "0x41" => "Arm",
        "0x42" => "Broadcom",
        "0x43" => "Cavium",
        "0x46" => "Fujitsu",
        "0x48" => "HiSilicon",
        "0x4e" => "NVIDIA",
        "0x50" => "Applied Micro",
        "0x51" => "Qualcomm",
        "0x61" => "Apple",
        "0x6d" => "Microsoft",
        "0xc0" => "Ampere",
        other => other,
    }
    .to_owned()
}
