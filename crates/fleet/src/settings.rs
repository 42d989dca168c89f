//! A node's configuration: firmware, memory, SMT, NUMA, clocks, and its kernel's options.
//!
//! Reads files below a root folder, which tests choose. Without its file, a setting is left out
//! rather than guessed. Values are untrusted text: they are shortened, and control characters
//! replaced. UUIDs, addresses and names of hosts are left out, so that equal nodes have equal
//! settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pinwise_topology::Topology;

#[cfg(test)]
mod tests;

/// Maximum number of bytes read of a file.
const MAX_FILE_BYTES: u64 = 16 * 1024;
/// Maximum length of a value, characters.
const MAX_VALUE_CHARACTERS: usize = 400;
/// Maximum number of distinct values listed if CPUs differ.
const MAX_VALUES_SHOWN: usize = 4;
/// Maximum number of names read of a folder.
const MAX_NAMES: usize = 65_536;
/// Maximum number of idle states of a CPU.
const MAX_IDLE_STATES: usize = 16;

const GIB: u64 = 1 << 30;
const CPU: &str = "sys/devices/system/cpu";
const DMI: &str = "sys/class/dmi/id";

/// The settings of a node by name; `root` is `/` except in tests.
///
/// | name | from |
/// |---|---|
/// | `bios`, `bios-date`, `board`, `product` | DMI; clouds report the type of an instance as product |
/// | `memory`, `memory-per-node` | memory blocks, or else what the kernel has; rounded |
/// | `smt`, `numa-nodes-per-package` | SMT control; the topology |
/// | `governor`, `frequency-driver`, `energy-preference`, `boost` | cpufreq and `intel_pstate` |
/// | `deepest-idle-state` | cpuidle: the last state that is not disabled |
/// | `transparent-hugepages`, `numa-balancing`, `clocksource` | the kernel's switches |
/// | `kernel`, `kernel-command-line`, `microcode`, `mitigations`, `hypervisor` | what runs |
///
/// A per-CPU setting is one value if all agree, else `mixed: A (12), B (4)`.
#[must_use]
pub fn read(root: &Path, topology: &Topology) -> BTreeMap<String, String> {
    let reader = SettingsReader { root, topology };
    let identity = &topology.identity;
    let settings = [
        ("bios", reader.read_dmi(&["bios_vendor", "bios_version"])),
        ("bios-date", reader.read_dmi(&["bios_date"])),
        ("board", reader.read_dmi(&["board_vendor", "board_name"])),
        ("product", reader.read_dmi(&["sys_vendor", "product_name"])),
        ("memory", reader.memory()),
        ("memory-per-node", reader.memory_per_node()),
        ("smt", reader.smt()),
        ("numa-nodes-per-package", reader.nodes_per_package()),
        ("governor", reader.read_per_cpu("cpufreq/scaling_governor")),
        (
            "frequency-driver",
            reader.read_per_cpu("cpufreq/scaling_driver"),
        ),
        (
            "energy-preference",
            reader.read_per_cpu("cpufreq/energy_performance_preference"),
        ),
        ("boost", reader.boost()),
        ("deepest-idle-state", reader.idle_state()),
        (
            "transparent-hugepages",
            reader.read_bracketed("sys/kernel/mm/transparent_hugepage/enabled"),
        ),
        ("numa-balancing", reader.numa_balancing()),
        (
            "clocksource",
            reader.read_text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        ("kernel", identity.kernel.clone()),
        ("kernel-command-line", reader.command_line()),
        (
            "microcode",
            reader
                .read_per_cpu("microcode/version")
                .or_else(|| identity.microcode.clone()),
        ),
        ("mitigations", reader.mitigations()),
        ("hypervisor", identity.hypervisor.clone()),
    ];
    settings
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), clean_value(&value?)?)))
        .collect()
}

struct SettingsReader<'a> {
    root: &'a Path,
    topology: &'a Topology,
}

impl SettingsReader<'_> {
    /// A file's trimmed content; `None` if it is empty or missing.
    fn read_text(&self, path: &str) -> Option<String> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(self.root.join(path))
            .ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut content).ok()?;
        let text = String::from_utf8_lossy(&content).trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Lists the names in a folder, ascending.
    fn list_names(&self, path: &str) -> Vec<String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this crate may read /sys; tests pass another root"
        )]
        let Ok(entries) = std::fs::read_dir(self.root.join(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(MAX_NAMES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Joins fields of the firmware to one line, without placeholders of vendors for empty fields.
    fn read_dmi(&self, files: &[&str]) -> Option<String> {
        let is_filled_in = |text: &String| {
            let text = text.to_ascii_lowercase();
            const PLACEHOLDERS: [&str; 4] =
                ["to be filled", "default string", "not specified", "unknown"];
            !PLACEHOLDERS.iter().any(|n| text.starts_with(n))
        };
        let texts = files
            .iter()
            .map(|file| self.read_text(&format!("{DMI}/{file}")));
        let texts: Vec<String> = texts.flatten().filter(is_filled_in).collect();
        Some(texts.join(" ")).filter(|text| !text.is_empty())
    }

    /// The value of a per-CPU file over all online CPUs.
    fn read_per_cpu(&self, file: &str) -> Option<String> {
        self.combine_cpus(|cpu| self.read_text(&format!("{CPU}/cpu{cpu}/{file}")))
    }

    /// The value that all online CPUs share, or `mixed: A (12), B (4)`.
    fn combine_cpus(&self, read: impl Fn(usize) -> Option<String>) -> Option<String> {
        let mut values: BTreeMap<String, usize> = BTreeMap::new();
        for value in self.topology.online.iter().filter_map(read) {
            *values.entry(value).or_default() += 1;
        }
        if values.len() <= 1 {
            return values.into_keys().next();
        }
        let shown = values.iter().take(MAX_VALUES_SHOWN);
        let shown: Vec<String> = shown
            .map(|(text, cpus)| format!("{text} ({cpus})"))
            .collect();
        let others = if values.len() > MAX_VALUES_SHOWN {
            ", …"
        } else {
            ""
        };
        Some(format!("mixed: {}{others}", shown.join(", ")))
    }

    /// Installed memory, by the kernel's memory blocks. Its total is used only without blocks: it
    /// lacks the memory that the kernel reserves at boot, which varies.
    fn memory(&self) -> Option<String> {
        let blocks = || {
            let folder = "sys/devices/system/memory";
            let size = self.read_text(&format!("{folder}/block_size_bytes"))?;
            let size = u64::from_str_radix(size.trim_start_matches("0x"), 16).ok()?;
            let is_block = |name: &&String| {
                let number = name.strip_prefix("memory");
                number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
            };
            let blocks = self.list_names(folder).iter().filter(is_block).count() as u64;
            size.checked_mul(blocks).filter(|bytes| *bytes > 0)
        };
        let total = || {
            let text = self.read_text("proc/meminfo")?;
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemTotal:"))?;
            let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
            Some(round_memory(kib.checked_mul(1024)?))
        };
        let bytes = blocks().or_else(total)?;
        Some(format!("{} GiB", bytes.saturating_add(GIB / 2) / GIB))
    }

    /// The memory of NUMA nodes, such as `2 x 256 GiB` or `256 + 224 GiB`, which shows a missing
    /// DIMM.
    fn memory_per_node(&self) -> Option<String> {
        let nodes = self.topology.numa_nodes.iter();
        let sizes = nodes.filter_map(|node| node.memory_bytes);
        let sizes: Vec<u64> = sizes
            .filter(|bytes| *bytes > 0)
            .map(|bytes| (round_memory(bytes) / GIB).max(1))
            .collect();
        let (first, rest) = sizes.split_first()?;
        if rest.iter().all(|size| size == first) {
            return Some(format!("{} x {first} GiB", sizes.len()));
        }
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        Some(format!("{} GiB", sizes.join(" + ")))
    }

    fn smt(&self) -> Option<String> {
        let reported = self.read_text(&format!("{CPU}/smt/control"));
        // Old kernels and guests report nothing; the topology shows two threads per core.
        reported.or_else(|| self.topology.has_smt().then(|| "on".to_owned()))
    }

    /// NUMA nodes with CPUs per package, which firmware sets as NPS (AMD) or SNC (Intel).
    fn nodes_per_package(&self) -> Option<String> {
        let with_cpus = |node: &&pinwise_topology::NumaNode| !node.cpus.is_empty();
        let nodes = self.topology.numa_nodes.iter().filter(with_cpus).count();
        let packages = self.topology.packages.len();
        if nodes == 0 || packages == 0 {
            return None;
        }
        Some(match nodes % packages {
            0 => (nodes / packages).to_string(),
            // One node over several packages, or unevenly divided packages.
            _ => format!("{nodes}/{packages}"),
        })
    }

    fn boost(&self) -> Option<String> {
        let switch = |path: &str, on: &str| {
            let text = self.read_text(&format!("{CPU}/{path}"))?;
            Some(if text == on { "on" } else { "off" }.to_owned())
        };
        switch("intel_pstate/no_turbo", "0")
            .or_else(|| switch("cpufreq/boost", "1"))
            .or_else(|| self.combine_cpus(|cpu| switch(&format!("cpu{cpu}/cpufreq/boost"), "1")))
    }

    fn idle_state(&self) -> Option<String> {
        self.combine_cpus(|cpu| {
            let state = |number: usize, file: &str| {
                self.read_text(&format!("{CPU}/cpu{cpu}/cpuidle/state{number}/{file}"))
            };
            let mut deepest = None;
            for number in 0..MAX_IDLE_STATES {
                let Some(name) = state(number, "name") else {
                    break;
                };
                if state(number, "disable").is_none_or(|text| text == "0") {
                    deepest = Some(name);
                }
            }
            deepest
        })
    }

    /// The word in brackets of `always [madvise] never`.
    fn read_bracketed(&self, path: &str) -> Option<String> {
        let text = self.read_text(path)?;
        let (_, rest) = text.split_once('[')?;
        let (word, _) = rest.split_once(']')?;
        Some(word.to_owned())
    }

    fn numa_balancing(&self) -> Option<String> {
        let text = self.read_text("proc/sys/kernel/numa_balancing")?;
        Some(match text.as_str() {
            "0" => "off".to_owned(),
            "1" => "on".to_owned(),
            // A set of bits: 2 is memory tiering.
            _ => text,
        })
    }

    /// The kernel's command line, sorted, without what is specific to this host or image.
    fn command_line(&self) -> Option<String> {
        let text = self.read_text("proc/cmdline")?;
        let words: BTreeSet<&str> = text
            .split_whitespace()
            .filter(|w| !is_host_specific(w))
            .collect();
        let words: Vec<&str> = words.into_iter().collect();
        Some(words.join(" "))
    }

    /// Processor vulnerabilities that the kernel mitigates, and those that it leaves open.
    fn mitigations(&self) -> Option<String> {
        let folder = format!("{CPU}/vulnerabilities");
        let mut words = Vec::new();
        let names = self.list_names(&folder);
        for name in &names {
            let Some(text) = self.read_text(&format!("{folder}/{name}")) else {
                continue;
            };
            if text.starts_with("Vulnerable") {
                words.push(format!("{name} (vulnerable)"));
            } else if !text.starts_with("Not affected") {
                words.push(name.clone());
            }
        }
        if words.is_empty() {
            return (!names.is_empty()).then(|| "none".to_owned());
        }
        Some(words.join(", "))
    }
}

/// Is a word of the kernel's command line specific to one host?
fn is_host_specific(word: &str) -> bool {
    const HOST_SPECIFIC_KEYS: [&str; 13] = [
        "root",
        "BOOT_IMAGE",
        "initrd",
        "resume",
        "resume_offset",
        "ip",
        "nfsroot",
        "BOOTIF",
        "hostname",
        "systemd.hostname",
        "systemd.machine_id",
        "ostree",
        "crashkernel",
    ];
    let key = word.split('=').next().unwrap_or(word);
    HOST_SPECIFIC_KEYS.contains(&key)
        || word.split(['=', ':', '/', ',']).any(is_uuid)
        || has_address(word)
}

/// 8-4-4-4-12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Six pairs of hexadecimal digits between colons: a network card's address.
fn has_address(text: &str) -> bool {
    let is_pair = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let pairs: Vec<&str> = value.split(':').collect();
    pairs.len() == 6 && pairs.iter().all(is_pair)
}

/// Rounds memory up to a size that is sold: a multiple of 1/32 of the next power of two, at least 1
/// GiB. A kernel reports up to about 2 % less.
fn round_memory(bytes: u64) -> u64 {
    let power = bytes.checked_next_power_of_two().unwrap_or(1 << 63);
    let step = (power / 32).max(GIB);
    bytes.div_ceil(step).saturating_mul(step)
}

/// A value on one line, without control characters, of limited length; `None` if it is empty.
fn clean_value(text: &str) -> Option<String> {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = line.chars().map(clean).take(MAX_VALUE_CHARACTERS).collect();
    if line.chars().nth(MAX_VALUE_CHARACTERS).is_some() {
        short.push('…');
    }
    Some(short).filter(|text| !text.is_empty())
}
