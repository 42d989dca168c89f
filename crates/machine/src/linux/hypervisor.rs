//! The hypervisor's own name.
//!
//! x86 only: leaf `0x4000_0000` of CPUID, which bare metal does not have. A hypervisor may hide or
//! lie, so DMI and `/proc/cpuinfo` are read as well.

/// The hypervisor's usual short name; `None` on bare metal or if not reported.
#[cfg(target_arch = "x86_64")]
pub(super) fn signature() -> Option<String> {
    const HYPERVISOR_BIT: u32 = 1 << 31;
    let features = cpuid(1);
    if features.ecx & HYPERVISOR_BIT == 0 {
        return None;
    }
    let leaf = cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    let name = match text.trim_matches('\0') {
        "KVMKVMKVM" => "kvm",
        "VMwareVMware" => "vmware",
        "Microsoft Hv" => "hyper-v",
        "XenVMMXenVMM" => "xen",
        "TCGTCGTCGTCG" => "qemu-tcg",
        "VBoxVBoxVBox" => "virtualbox",
        "bhyve bhyve " => "bhyve",
        "ACRNACRNACRN" => "acrn",
        "prl hyperv  " | " lrpepyh  vr" => "parallels",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(target_arch = "x86_64")]
#[allow(
    unsafe_code,
    unused_unsafe,
    reason = "older compilers take the instruction for unsafe, newer ones do not"
)]
fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction; unknown leaves read
    // as some other leaf.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}

/// Other architectures have no such leaf.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn signature() -> Option<String> {
    None
}
