//! The time that a program needs to place its own threads on a machine of 384 CPUs; beside it the
//! whole report and hwloc, if its library and a C compiler are installed.
//!
//! The machine's files are written to memory. Files of sysfs cost more to open; the difference is
//! measured on files of this machine and added.
#![allow(clippy::unwrap_used, reason = "a benchmark may fail by panicking")]

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use pinwise_affinity::Host;
use pinwise_machine::linux::capture_folder;
use pinwise_topology::CpuSet;
use pinwise_topology::Topology;

use crate::process::compile;
use crate::table::Table;
use xtask::programs::read_output;

const ROUNDS: usize = 41;
const THREADS: usize = 96;
/// Packages, last-level caches in each, cores in each, CPUs of each.
const SHAPE: [usize; 4] = [2, 12, 8, 2];

pub(crate) fn run(_: &[String]) -> Result<()> {
    let memory = Path::new("/dev/shm");
    let tree = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }?;
    write_machine(tree.path());

    let host = Host::from_folder(tree.path()).unwrap();
    let files = host.files_read();

    let few = measure_us(|| Host::from_folder(tree.path()).unwrap().place(THREADS));
    let place = measure_us(|| host.place(THREADS));
    let here = measure_us(|| Host::discover().unwrap().place(1));
    let shared = measure_us(|| Host::shared().unwrap().workers());
    let cpus: usize = SHAPE.iter().product();
    let mut table = Table::new("discovery", "what | μs, best of 41 | median");
    table.add_row(format!(
        "discover and place {THREADS} threads, {cpus} CPUs, {files} files in memory | {few}"
    ));
    table.add_row(format!("of this, placing | {place}"));
    let whole = measure_report_us(tree.path(), &host);
    table.add_row(format!("the whole report instead | {whole}"));
    for (name, path) in [
        ("hwloc", tree.path()),
        ("hwloc, this machine", Path::new("/")),
    ] {
        match measure_hwloc_us(tree.path(), path) {
            Ok(hwloc) => table.add_row(format!("{name}: load the topology | {hwloc}")),
            Err(reason) => println!("{name} was not measured: {reason:#}"),
        }
    }
    table.add_row(format!("discover and place, this machine | {here}"));
    table.add_row(format!("workers, discovered before | {shared}"));
    table.publish()?;

    let file = "sys/devices/system/cpu/cpu0/topology/core_cpus_list";
    let [in_memory, in_sysfs] =
        [tree.path(), Path::new("/")].map(|root| measure_file_us(&root.join(file)));
    let expected = few.best + files as f64 * (in_sysfs - in_memory);
    println!(
        "\nA file costs {in_memory:.2} μs in memory and {in_sysfs:.2} μs in the sysfs of this machine: \
         with {files} of those, {cpus} CPUs take {expected:.0} μs."
    );
    Ok(())
}

/// With all files that the command reads: those of every CPU.
fn measure_report_us(tree: &Path, host: &Host) -> Times {
    let read = || Topology::from_capture(&capture_folder(tree).unwrap()).0;
    let whole = read();
    assert_eq!(host.topology().cores, whole.cores);
    assert_eq!(host.topology().llcs, whole.llcs);
    measure_us(|| Host::from_topology(read()).unwrap().place(THREADS))
}

/// Opening, reading and closing a file, the shortest of many.
fn measure_file_us(path: &Path) -> f64 {
    let mut best = f64::INFINITY;
    let mut content = [0; 4096];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..100 {
            let mut file = std::fs::File::open(path).unwrap();
            std::hint::black_box(file.read(&mut content).unwrap());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / 100.0);
    }
    best
}

fn measure_us<T>(mut work: impl FnMut() -> T) -> Times {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Times {
        best: times[0],
        median: times[ROUNDS / 2],
    }
}

/// The best is the time of the work, the median contains that of other users of this machine.
struct Times {
    best: f64,
    median: f64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:.1} | {:.1}", self.best, self.median)
    }
}

/// The time of hwloc's library in a separate program, which times itself.
fn measure_hwloc_us(scratch: &Path, root: &Path) -> Result<Times> {
    let rounds = format!("-DROUNDS={ROUNDS}");
    let program = compile(scratch, "hwloc.c", "hwloc", &["-O2", &rounds, "-lhwloc"])
        .context("is libhwloc-dev installed?")?;
    let mut run = Command::new(&program);
    // Only the kernel's files, which we read as well.
    run.env("HWLOC_COMPONENTS", "linux,stop");
    if root != Path::new("/") {
        run.env("HWLOC_FSROOT", root).env("HWLOC_THISSYSTEM", "0");
    }
    let text = read_output(&mut run)?;
    let (best, median) = text.trim().split_once(' ').context("two figures")?;
    Ok(Times {
        best: best.parse()?,
        median: median.parse()?,
    })
}

/// Writes a file below a folder, with its parent folders.
fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{content}\n")).unwrap();
}

/// The CPUs of the unit of this many cores that a core is in: siblings are far
/// apart in number, as on most servers.
fn list_unit_cpus(core: usize, size: usize) -> CpuSet {
    let [packages, llcs, cores, smt] = SHAPE;
    let all_cores = packages * llcs * cores;
    let first = core / size * size;
    let threads = (0..smt).map(|thread| thread * all_cores);
    threads
        .flat_map(|thread| (first..first + size).map(move |core| thread + core))
        .collect()
}

/// Every file that Linux 6 has below `topology`, `cache` and `node` of such a
/// machine, and those of a session's cgroup.
fn write_machine(root: &Path) {
    let [packages, llcs, cores, smt] = SHAPE;
    let all_cores = packages * llcs * cores;
    let dir = "sys/devices/system/cpu";
    let all = CpuSet::first_n(all_cores * smt).to_string();
    for file in ["online", "present", "possible"] {
        write(root, &format!("{dir}/{file}"), &all);
    }
    let name = "cpu:type:x86,ven0002fam0019mod0011:feature:";
    write(root, &format!("{dir}/modalias"), name);
    for id in 0..all_cores * smt {
        write_topology(root, &format!("{dir}/cpu{id}/topology"), id % all_cores);
        write_caches(root, &format!("{dir}/cpu{id}/cache"), id % all_cores);
    }
    let nodes = "sys/devices/system/node";
    write(
        root,
        &format!("{nodes}/online"),
        &format!("0-{}", packages - 1),
    );
    for package in 0..packages {
        let set = list_unit_cpus(package * llcs * cores, llcs * cores);
        let node = format!("{nodes}/node{package}");
        write(root, &format!("{node}/cpumap"), &format_kernel_mask(&set));
        write(root, &format!("{node}/cpulist"), &set.to_string());
        let memory = format!("Node {package} MemTotal: 395000000 kB");
        write(root, &format!("{node}/meminfo"), &memory);
    }
    for (path, content) in [
        ("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
        (
            "proc/self/cgroup",
            "0::/user.slice/user-0.slice/session.scope",
        ),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory"),
        ("sys/fs/cgroup/user.slice/cpu.max", "max 100000"),
    ] {
        write(root, path, content);
    }
}

fn write_topology(root: &Path, folder: &str, core: usize) {
    let [_, llcs, cores, _] = SHAPE;
    let package = llcs * cores;
    for (name, number) in [
        ("core_id", core),
        ("physical_package_id", core / package),
        ("die_id", 0),
    ] {
        write(root, &format!("{folder}/{name}"), &number.to_string());
    }
    for (names, size) in [
        (["core_cpus", "thread_siblings"], 1),
        (["package_cpus", "core_siblings"], package),
        (["die_cpus", "cluster_cpus"], package),
    ] {
        let set = list_unit_cpus(core, size);
        for name in names {
            write(root, &format!("{folder}/{name}"), &format_kernel_mask(&set));
            write(root, &format!("{folder}/{name}_list"), &set.to_string());
        }
    }
}

fn write_caches(root: &Path, folder: &str, core: usize) {
    let cores = SHAPE[2];
    for (index, level, kind, size, bytes) in [
        (0, "1", "Data", 1, "32K"),
        (1, "1", "Instruction", 1, "32K"),
        (2, "2", "Unified", 1, "1024K"),
        (3, "3", "Unified", cores, "32768K"),
    ] {
        let set = list_unit_cpus(core, size);
        for (name, content) in [
            ("level", level),
            ("type", kind),
            ("size", bytes),
            ("id", &(core / size).to_string()),
            ("shared_cpu_map", &format_kernel_mask(&set)),
            ("shared_cpu_list", &set.to_string()),
            ("coherency_line_size", "64"),
            ("number_of_sets", "64"),
            ("ways_of_associativity", "8"),
            ("physical_line_partition", "1"),
        ] {
            write(root, &format!("{folder}/index{index}/{name}"), content);
        }
    }
}

/// Words of 32 bits with commas between, as the kernel writes them.
fn format_kernel_mask(set: &CpuSet) -> String {
    let cpus: usize = SHAPE.iter().product();
    let words: Vec<String> = (0..cpus.div_ceil(32))
        .rev()
        .map(|word| {
            let bits = (0..32).filter(|bit| set.contains(word * 32 + bit));
            format!("{:08x}", bits.fold(0u32, |all, bit| all | 1 << bit))
        })
        .collect();
    words.join(",")
}
