//! Snapshots that are incomplete, padded, contradictory or hostile are read with warnings or refused
//! in one line, within a bounded time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, decode_output, pinwise};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// A folder in the form of a Linux system's `/sys` and `/proc`.
struct Snapshot {
    folder: tempfile::TempDir,
}

impl Snapshot {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Four CPUs on two cores, all in one cache, node and package.
    fn whole() -> Self {
        let snapshot = Self::new();
        snapshot.write(&format!("{CPU}/online"), "0-3\n");
        for cpu in 0..4 {
            let dir = format!("{CPU}/cpu{cpu}");
            for (file, text) in [
                ("topology/core_cpus", ["3", "c"][cpu / 2]),
                ("topology/package_cpus", "f"),
                ("topology/core_id", ["0", "1"][cpu / 2]),
                ("cache/index0/level", "3"),
                ("cache/index0/type", "Unified"),
                ("cache/index0/size", "32768K"),
                ("cache/index0/shared_cpu_map", "f"),
            ] {
                snapshot.write(&format!("{dir}/{file}"), format!("{text}\n"));
            }
        }
        snapshot.write(&format!("{NODE}/node0/cpumap"), "f\n");
        snapshot.write(
            &format!("{NODE}/node0/meminfo"),
            "Node 0 MemTotal: 4096 kB\n",
        );
        snapshot
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Changes the content of every file.
    fn change(&self, change: impl Fn(Vec<u8>) -> Vec<u8>) {
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let content = std::fs::read(&path).unwrap();
                    std::fs::write(&path, change(content)).unwrap();
                }
            }
        }
    }

    /// Checks the counts (CPUs, cores, LLCs, nodes, packages), and that there are warnings with
    /// these words and no others.
    #[track_caller]
    fn check(&self, counts: [u64; 5], warnings: &[&str]) {
        check(self.folder.path(), counts, warnings);
    }
}

#[track_caller]
fn check(from: &Path, counts: [u64; 5], warnings: &[&str]) {
    let (status, out, err) = run_topology(from, "json");
    assert_eq!(status, 0, "{err}");
    let record: serde_json::Value = serde_json::from_str(&out).unwrap();
    let keys = ["cpus", "cores", "llcs", "numa_nodes", "packages"];
    let found = keys.map(|key| record["counts"][key].as_u64().unwrap());
    let messages: Vec<&str> = record["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    assert_eq!(found, counts, "{messages:#?}");
    for part in warnings {
        assert!(
            messages.iter().any(|message| message.contains(part)),
            "{part}: {messages:#?}"
        );
    }
    let is_expected = |message: &&str| warnings.iter().any(|part| message.contains(part));
    let unexpected: Vec<&&str> = messages
        .iter()
        .filter(|message| !is_expected(message))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// Checks that a snapshot is refused in one line with these words.
#[track_caller]
fn check_refused(from: &Path, part: &str) {
    let (status, out, err) = run_topology(from, "json");
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.starts_with("error: --from"), "{err}");
    assert!(err.contains(part), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// Exit status and output of `pinwise topology`, which must end in time.
#[track_caller]
fn run_topology(from: &Path, format: &str) -> (i32, String, String) {
    let store = tempfile::tempdir().unwrap();
    let mut child = pinwise(&store.path().join("store.db"))
        .args(["topology", "--from", from.to_str().unwrap()])
        .args(["--format", format])
        .stdout(std::fs::File::create(store.path().join("out")).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{format} did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let (_, err) = decode_output(&output);
    assert!(!err.contains("panicked"), "{err}");
    let out = std::fs::read(store.path().join("out")).unwrap();
    let out = String::from_utf8(out).unwrap();
    (output.status.code().unwrap(), out, err)
}

#[test]
fn whole_snapshots_are_read_without_warnings() {
    Snapshot::whole().check([4, 2, 1, 1, 1], &[]);
}

#[test]
fn missing_files_are_reported() {
    let snapshot = Snapshot::whole();
    for cpu in 0..4 {
        snapshot.remove(&format!("{CPU}/cpu{cpu}/topology"));
        snapshot.remove(&format!("{CPU}/cpu{cpu}/cache"));
        snapshot.write(&format!("{CPU}/cpu{cpu}/online"), "1");
    }
    snapshot.remove(NODE);
    snapshot.remove(&format!("{CPU}/online"));
    snapshot.check([4, 4, 0, 1, 1], &["No core is reported for CPUs 0-3:"]);

    let snapshot = Snapshot::whole();
    snapshot.remove(&format!("{CPU}/cpu2/topology"));
    snapshot.write(&format!("{CPU}/cpu3/topology/core_cpus"), "8");
    for cpu in 0..4 {
        let caches = if cpu == 2 { "" } else { "b" };
        snapshot.write(
            &format!("{CPU}/cpu{cpu}/cache/index0/shared_cpu_map"),
            caches,
        );
    }
    snapshot.remove(&format!("{CPU}/cpu2/cache/index0/level"));
    snapshot.check(
        [4, 3, 1, 1, 1],
        &[
            "No core is reported for CPUs 2:",
            "No package is reported for CPUs 2",
            "No cache is reported for CPUs 2,",
        ],
    );
}

#[test]
fn folders_without_a_machine_are_refused() {
    let snapshot = Snapshot::new();
    check_refused(
        snapshot.folder.path(),
        "it contains no sys/devices/system/cpu",
    );
    // Only an empty folder names a CPU.
    std::fs::create_dir_all(snapshot.path(&format!("{CPU}/cpu0/topology"))).unwrap();
    check_refused(snapshot.folder.path(), "no usable CPU");
    check_refused(&snapshot.path("nowhere"), "nowhere");
    let off = Snapshot::whole();
    off.remove(&format!("{CPU}/online"));
    for cpu in 0..4 {
        off.write(&format!("{CPU}/cpu{cpu}/online"), "0\n");
    }
    check_refused(off.folder.path(), "no usable CPU");
    let blocked = Snapshot::new();
    blocked.write("sys", "a file where a folder should be");
    check_refused(
        blocked.folder.path(),
        "it contains no sys/devices/system/cpu",
    );
}

#[test]
fn padding_is_ignored_and_unreadable_content_is_reported() {
    let padded = Snapshot::whole();
    padded.change(|mut content| {
        content.extend([0; 4000]);
        content
    });
    padded.check([4, 2, 1, 1, 1], &[]);

    let blank = Snapshot::whole();
    blank.change(|content| vec![0; content.len()]);
    blank.check([4, 4, 0, 1, 1], &["No core is reported for CPUs 0-3:"]);

    let binary = Snapshot::whole();
    binary.write(&format!("{CPU}/online"), b"\xff\xfe0-3");
    binary.write(&format!("{CPU}/cpu3/topology/core_id"), b"\x80");
    binary.write("proc/cpuinfo", b"model name : \xff\x1b[31mred\n");
    binary.check(
        [4, 2, 1, 1, 1],
        &["cpu/online: no text", "core_id: no text"],
    );

    // A file far longer than any of the kernel's.
    let long = Snapshot::whole();
    long.write(&format!("{CPU}/cpu0/topology/core_id"), "7".repeat(1 << 20));
    let start = "7".repeat(40);
    long.check(
        [4, 2, 1, 1, 1],
        &[&format!("core_id: '{start}' is not a number")],
    );
}

#[test]
fn links_that_loop_are_ignored() {
    let snapshot = Snapshot::whole();
    snapshot.link(&format!("{CPU}/cpu8"), "cpu8");
    snapshot.link(&format!("{CPU}/cpu0/cache/index1"), "../cache");
    snapshot.link(
        &format!("{CPU}/cpu1/cache/index1"),
        "../../cpu1/cache/index1",
    );
    snapshot.link(&format!("{NODE}/node1"), "..");
    snapshot.link("proc", ".");
    // Reading a pipe would block.
    snapshot.remove(&format!("{CPU}/cpu3/topology/core_id"));
    let pipe = snapshot.path(&format!("{CPU}/cpu3/topology/core_id"));
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    snapshot.check([4, 2, 1, 1, 1], &[]);
    // A CPU that is the folder of all CPUs has no facts, and is not online.
    snapshot.link(&format!("{CPU}/cpu9"), ".");
    snapshot.check([4, 2, 1, 1, 1], &[]);

    let looped = Snapshot::new();
    looped.link("a", ".");
    check_refused(
        looped.folder.path(),
        "it contains no sys/devices/system/cpu",
    );
    looped.remove("a");
    looped.link("a", "b");
    looped.link("b", "a");
    check_refused(
        looped.folder.path(),
        "it contains no sys/devices/system/cpu",
    );
    check_refused(&looped.path("a"), "symbolic links");
}

#[test]
fn contradictions_are_warnings() {
    let snapshot = Snapshot::whole();
    snapshot.write(&format!("{CPU}/online"), "0-3,7");
    snapshot.write(&format!("{CPU}/cpu1/topology/core_cpus"), "6");
    snapshot.write(&format!("{CPU}/cpu3/topology/package_cpus"), "8");
    snapshot.write(&format!("{CPU}/cpu2/cache/index0/shared_cpu_map"), "c");
    snapshot.write(&format!("{NODE}/node0/cpumap"), "7");
    snapshot.write(&format!("{NODE}/node1/cpumap"), "1c");
    snapshot.check(
        [4, 2, 1, 1, 1],
        &[
            "CPUs 7 are reported online",
            "CPU 1 is reported to share a core",
            "CPU 3 is reported to share a package",
            "An L3 cache is reported to be shared by CPUs 2-3",
            "NUMA node 1 claims CPUs 2-3 that node 0 claims too",
        ],
    );
    for format in ["text", "xml"] {
        let (status, _, err) = run_topology(snapshot.folder.path(), format);
        assert_eq!((status, err.as_str()), (0, ""), "{format}");
    }
    let others = Snapshot::whole();
    for (file, cpus) in [
        ("topology/core_cpus", "c"),
        ("cache/index0/shared_cpu_map", "c"),
    ] {
        others.write(&format!("{CPU}/cpu1/{file}"), cpus);
    }
    // CPU 0 still says where CPU 1 is.
    others.check(
        [4, 2, 1, 1, 1],
        &[
            "core_cpus: CPUs 2-3 are without CPU 1 itself",
            "shared_cpu_map: CPUs 2-3 are without CPU 1 itself",
            "An L3 cache is reported to be shared by CPUs 1,",
        ],
    );
}

#[test]
fn absurd_numbers_are_reported() {
    let snapshot = Snapshot::whole();
    for (file, text) in [
        ("cpu0/cache/index1/level", "300"),
        ("cpu0/cache/index1/type", "Data"),
        ("cpu1/cache/index1/level", "2"),
        ("cpu1/cache/index1/type", "Victim"),
        ("cpu0/cache/index0/size", "18446744073709551615G"),
        ("cpu2/topology/core_id", "99999999999999999999"),
        ("cpu2/topology/core_cpus", "4"),
        ("cpu3/topology/core_cpus", "8"),
        ("cpu20000/online", "1"),
        ("cpu99999999999999999999/online", "1"),
        ("cpu07/topology/core_id", "1"),
        ("cpu-1/topology/core_id", "1"),
        ("online", "0-18446744073709551615"),
    ] {
        snapshot.write(&format!("{CPU}/{file}"), text);
    }
    snapshot.write(&format!("{NODE}/node0/meminfo"), "MemTotal: -1 kB");
    snapshot.check(
        [4, 3, 1, 1, 1],
        &[
            "cpu0/cache/index1: no such cache level or type",
            "cpu1/cache/index1: no such cache level or type",
            "is not a size",
            "is not memory in kB",
            "'99999999999999999999' is not a number",
            "CPUs with numbers above 16383 are left out; there are 1.",
            "is beyond the largest id",
        ],
    );
}

#[test]
fn numbering_may_be_sparse_and_repeated() {
    let snapshot = Snapshot::new();
    let packages = [("0,7", [0, 7]), ("500,1023", [500, 1023])];
    for (package, cpus) in packages {
        for (core, cpu) in cpus.into_iter().enumerate() {
            let dir = format!("{CPU}/cpu{cpu}/topology");
            // Every package counts its cores from 0.
            snapshot.write(&format!("{dir}/core_id"), core.to_string());
            snapshot.write(&format!("{dir}/core_cpus_list"), cpu.to_string());
            snapshot.write(&format!("{dir}/package_cpus_list"), package);
        }
    }
    snapshot.write(&format!("{CPU}/online"), "0,7,500,1023\n");
    snapshot.write(&format!("{NODE}/node3/cpulist"), "0,7\n");
    snapshot.write(&format!("{NODE}/node255/cpulist"), "500,1023\n");
    snapshot.check([4, 4, 0, 2, 2], &[]);
}

#[test]
fn cpu_0_may_be_offline() {
    let snapshot = Snapshot::whole();
    snapshot.write(&format!("{CPU}/online"), "1-3\n");
    snapshot.write(&format!("{CPU}/cpu0/online"), "0\n");
    snapshot.remove(&format!("{CPU}/cpu0/topology"));
    snapshot.remove(&format!("{CPU}/cpu0/cache"));
    for (path, mask) in [
        ("cpu/cpu1/topology/core_cpus", "2"),
        ("cpu/cpu1/cache/index0/shared_cpu_map", "e"),
        ("cpu/cpu2/cache/index0/shared_cpu_map", "e"),
        ("cpu/cpu3/cache/index0/shared_cpu_map", "e"),
        ("node/node0/cpumap", "e"),
    ] {
        snapshot.write(&format!("sys/devices/system/{path}"), mask);
    }
    for cpu in 1..4 {
        snapshot.write(&format!("{CPU}/cpu{cpu}/topology/package_cpus"), "e");
    }
    snapshot.check([3, 2, 1, 1, 1], &[]);
}

/// A mask as the kernel prints it: words of 32 bits with commas.
fn mask(low: usize, high: usize, all: usize) -> String {
    let word = |word: usize| -> u32 {
        (0..32)
            .filter(|bit| (low..high).contains(&(word * 32 + bit)))
            .map(|bit| 1 << bit)
            .sum()
    };
    let words = (0..all / 32)
        .rev()
        .map(|index| format!("{:08x}", word(index)));
    words.collect::<Vec<_>>().join(",")
}

#[test]
fn machines_of_more_than_1024_cpus_are_read() {
    const ALL: usize = 1280;
    let snapshot = Snapshot::new();
    snapshot.write(&format!("{CPU}/online"), format!("0-{}\n", ALL - 1));
    let unit = |cpu: usize, size: usize| mask(cpu / size * size, cpu / size * size + size, ALL);
    for cpu in 0..ALL {
        let dir = format!("{CPU}/cpu{cpu}");
        snapshot.write(&format!("{dir}/topology/core_cpus"), unit(cpu, 2));
        snapshot.write(&format!("{dir}/topology/package_cpus"), unit(cpu, 640));
        snapshot.write(
            &format!("{dir}/topology/core_id"),
            (cpu % 640 / 2).to_string(),
        );
        snapshot.write(&format!("{dir}/cache/index3/level"), "3");
        snapshot.write(&format!("{dir}/cache/index3/type"), "Unified");
        snapshot.write(&format!("{dir}/cache/index3/shared_cpu_map"), unit(cpu, 16));
    }
    for node in 0..10 {
        let cpus = mask(node * 128, node * 128 + 128, ALL);
        snapshot.write(&format!("{NODE}/node{node}/cpumap"), cpus);
    }
    snapshot.check([1280, 640, 80, 10, 2], &[]);

    // With an inconsistency at every CPU the list of warnings stays readable.
    for cpu in 0..ALL {
        snapshot.write(&format!("{CPU}/cpu{cpu}/topology/core_cpus"), "none");
    }
    let (_, out, _) = run_topology(snapshot.folder.path(), "json");
    let record: serde_json::Value = serde_json::from_str(&out).unwrap();
    let warnings = record["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 40);
    assert_eq!(warnings[39], "1242 more inconsistencies in this report.");
}

/// Writes a file in a temporary folder.
fn write_file(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

#[test]
fn xml_may_repeat_itself_and_be_deep() {
    let xml = |inside: &str| {
        format!(
            "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x3\">{inside}</object></topology>"
        )
    };
    let pu = |id: usize| {
        format!(
            "<object type=\"PU\" os_index=\"{id}\" cpuset=\"{:#x}\"/>",
            1 << id
        )
    };
    let node = |cpus: &str| format!("<object type=\"NUMANode\" os_index=\"4\" cpuset=\"{cpus}\"/>");
    let twice = [pu(0), pu(0), pu(1), node("0x1"), node("0x2")].concat();
    let (_folder, path) = write_file("twice.xml", xml(&twice));
    check(
        &path,
        [2, 2, 0, 1, 1],
        &[
            "CPU 0 is described twice.",
            "NUMA node 4 is described twice",
        ],
    );
    let depth = 2000;
    let deep = [
        "<object type=\"Group\" cpuset=\"0x1\">".repeat(depth),
        pu(0),
        "</object>".repeat(depth),
    ];
    let (_folder, path) = write_file("deep.xml", xml(&deep.concat()));
    check(&path, [1, 1, 0, 1, 1], &[]);
}

/// The file is within the size limit, but needs more memory than available.
#[test]
fn running_out_of_memory_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("many.capture");
    let line = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/topology/core_id\t{cpu}\n");
    let lines: String = (0..500_000).map(line).collect();
    let head = "pinwise-capture 1\nsys/devices/system/cpu/online\t0-1\n";
    std::fs::write(&file, format!("{head}{lines}end\n")).unwrap();
    let limited = "ulimit -v 120000; exec \"$0\" topology --from \"$1\"";
    let output = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_pinwise")])
        .arg(&file)
        .output()
        .unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.starts_with("error: out of memory"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}
