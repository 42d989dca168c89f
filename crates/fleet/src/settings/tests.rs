//! Settings are read from folders with the files of a node.

use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// The settings read from a node's files.
fn read_settings(topology: &str, files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    write_files(&folder, files);
    read(folder.path(), &Topology::from_synthetic(topology).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
fn write_files(folder: &TempDir, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Files of a server.
const SERVER: &[(&str, &str)] = &[
    ("sys/class/dmi/id/bios_vendor", "Dell Inc.\n"),
    ("sys/class/dmi/id/bios_version", "2.14.1\n"),
    ("sys/class/dmi/id/bios_date", "02/26/2024\n"),
    ("sys/class/dmi/id/board_vendor", "Dell Inc.\n"),
    ("sys/class/dmi/id/board_name", "0590KW\n"),
    ("sys/class/dmi/id/product_name", "To Be Filled By O.E.M.\n"),
    ("sys/devices/system/memory/block_size_bytes", "80000000\n"),
    ("sys/devices/system/memory/memory0/state", "online\n"),
    ("sys/devices/system/memory/memory32/state", "online\n"),
    ("sys/devices/system/memory/power/state", "x\n"),
    ("proc/meminfo", "MemTotal:  527956256 kB\nMemFree: 1 kB\n"),
    ("sys/devices/system/cpu/smt/control", "on\n"),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "powersave\n",
    ),
    (
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        "acpi-cpufreq\n",
    ),
    ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=0a1b2c3d-0000-1111-2222-333344445555 ro quiet \
                 nosmt=force BOOTIF=01-aa-bb-cc-dd-ee-ff mitigations=off quiet \
                 rd.luks.uuid=0a1b2c3d-0000-1111-2222-333344445555 net=aa:bb:cc:dd:ee:0f\n",
    ),
    (
        "sys/devices/system/cpu/vulnerabilities/l1tf",
        "Not affected\n",
    ),
    (
        "sys/devices/system/cpu/vulnerabilities/spectre_v2",
        "Mitigation: Retpolines; IBPB: conditional\n",
    ),
    (
        "sys/devices/system/cpu/vulnerabilities/retbleed",
        "Vulnerable\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/microcode/version",
        "0xa0011d7\n",
    ),
];

#[test]
fn settings_of_a_server_are_read() {
    let found = read_settings("package:2 numa:2(memory=64GiB) l3:1 core:2 pu:2", SERVER);
    let expected = [
        ("bios", "Dell Inc. 2.14.1"),
        ("bios-date", "02/26/2024"),
        ("board", "Dell Inc. 0590KW"),
        ("boost", "on"),
        ("clocksource", "tsc"),
        ("deepest-idle-state", "C1"),
        ("frequency-driver", "acpi-cpufreq"),
        ("governor", "mixed: performance (2), powersave (1)"),
        (
            "kernel-command-line",
            "mitigations=off nosmt=force quiet ro",
        ),
        ("memory", "4 GiB"),
        ("memory-per-node", "4 x 64 GiB"),
        ("microcode", "0xa0011d7"),
        ("mitigations", "retbleed (vulnerable), spectre_v2"),
        ("numa-balancing", "off"),
        ("numa-nodes-per-package", "2"),
        ("smt", "on"),
        ("transparent-hugepages", "madvise"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn unreported_settings_are_absent() {
    let found = read_settings("core:4 pu:1", &[]);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert!(
        names.iter().all(|name| *name == "numa-nodes-per-package"),
        "{found:?}"
    );
}

#[test]
fn turbo_is_read_from_either_driver() {
    for (file, text, word) in [
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n", "off"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "on"),
        ("sys/devices/system/cpu/cpufreq/boost", "0\n", "off"),
        ("sys/devices/system/cpu/cpu1/cpufreq/boost", "1\n", "on"),
    ] {
        assert_eq!(
            read_settings("core:2 pu:1", &[(file, text)])["boost"],
            word,
            "{file}"
        );
    }
}

/// Kernels of equal nodes report slightly different memory; a missing DIMM shows.
#[test]
fn memory_is_rounded_to_retail_sizes() {
    let memory = |kib: u64| {
        let text = format!("MemTotal: {kib} kB\n");
        read_settings("core:1 pu:1", &[("proc/meminfo", &text)])["memory"].clone()
    };
    assert_eq!(memory(527_956_256), "512 GiB");
    assert_eq!(memory(527_003_100), "512 GiB");
    assert_eq!(memory(494_400_000), "480 GiB");
    assert_eq!(memory(16_303_428), "16 GiB");
    assert_eq!(memory(1_950_000), "2 GiB");
    assert_eq!(memory(1_584_000_000), "1536 GiB");
}

#[test]
fn untrusted_text_is_cut_and_cleaned() {
    let long = "x".repeat(100_000);
    let found = read_settings(
        "core:1 pu:1",
        &[
            (
                "sys/class/dmi/id/bios_vendor",
                "\u{1b}[2J<script>\u{7}\nline two",
            ),
            ("sys/class/dmi/id/board_name", &long),
        ],
    );
    assert_eq!(found["bios"], "\u{fffd}[2J<script>\u{fffd} line two");
    assert_eq!(found["board"].chars().count(), MAX_VALUE_CHARACTERS + 1);
}

#[test]
fn this_host_has_settings() {
    let text = "package:1 core:1 pu:1";
    let found = read(Path::new("/"), &Topology::from_synthetic(text).unwrap());
    // /proc/meminfo exists on every Linux.
    assert!(found["memory"].ends_with(" GiB"), "{found:?}");
}

proptest! {
    #[test]
    fn values_are_short_and_printable_whatever_files_contain(text in "\\PC{0,60}|[\\x00-\\x7f]{0,200}", at in 0..8usize) {
        let paths = [
            "sys/class/dmi/id/bios_version",
            "sys/devices/system/memory/block_size_bytes",
            "proc/meminfo",
            "proc/cmdline",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "sys/devices/system/cpu/cpu0/cpuidle/state0/name",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "sys/devices/system/cpu/vulnerabilities/spectre_v1",
        ];
        let found = read_settings("core:2 pu:1", &[(paths[at], &text)]);
        for value in found.values() {
            prop_assert!(!value.is_empty());
            prop_assert!(value.chars().count() <= MAX_VALUE_CHARACTERS + 1);
            prop_assert!(!value.chars().any(char::is_control));
        }
    }

    #[test]
    fn rounding_adds_less_than_a_sixteenth(bytes in GIB..(1u64 << 50)) {
        let rounded = round_memory(bytes);
        prop_assert!(rounded >= bytes);
        prop_assert!(rounded - bytes < (bytes / 16).max(GIB));
        prop_assert_eq!(round_memory(rounded), rounded);
    }
}
