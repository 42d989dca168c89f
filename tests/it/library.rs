//! The library in other programs: in Rust, with rayon and tokio, and in C.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use pinwise_affinity::Host;
use pinwise_machine::linux::capture_host;
use pinwise_topology::{Capture, CpuSet, Level, Topology};

use crate::support::{decode_output, has_program, report_skip, root};

/// The units of each level, and the allowed CPUs.
fn list_units(topology: &Topology) -> (Vec<Vec<CpuSet>>, CpuSet) {
    let units = Level::ALL.map(|level| topology.units(level));
    (units.to_vec(), topology.allowed.clone())
}

#[test]
fn captured_machines_are_read_from_few_files_as_from_all() {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("tests/data/machines")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "capture") {
            let capture = Capture::from_text(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let whole = Topology::from_capture(&capture).0;
            let few = Topology::from_files(&mut &capture).0;
            assert_eq!(list_units(&few), list_units(&whole), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 4);
}

#[test]
fn this_machine_is_read_from_few_files_as_from_all() {
    let (whole, _) = Topology::from_capture(&capture_host().unwrap());
    let host = Host::discover().unwrap();
    assert_eq!(list_units(host.topology()), list_units(&whole));
    assert_eq!(host.topology().quota, whole.quota);
    assert_eq!(host.topology().restrictions, whole.restrictions);
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn quotas_of_parent_cgroups_limit_the_workers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let missing = Host::from_folder(&folder.join("none")).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
    write(folder, "sys/devices/system/cpu/online", "0-3\n");
    for cpu in 0..4 {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        write(folder, &path, if cpu < 2 { "0-1\n" } else { "2-3\n" });
    }
    write(folder, "proc/self/cgroup", "0::/pod/app\n");
    write(folder, "sys/fs/cgroup/cgroup.controllers", "cpu cpuset\n");
    write(folder, "sys/fs/cgroup/pod/app/cpu.max", "300000 100000\n");
    write(
        folder,
        "sys/fs/cgroup/pod/app/cpuset.cpus.effective",
        "0,2-3\n",
    );
    let workers = || Host::from_folder(folder).unwrap().workers();
    assert_eq!((workers().parallelism, workers().cores), (3, 2));
    write(folder, "sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    assert_eq!((workers().parallelism, workers().on_own_cores), (2, 2));
    // A pipe in the place of a file must not block.
    let pipe = folder.join("sys/devices/system/cpu/online");
    std::fs::remove_file(&pipe).unwrap();
    run_successfully(Command::new("mkfifo").arg(&pipe));
    assert_eq!(workers().cpus, 3);
}

#[test]
fn the_fastest_core_of_a_folder_is_known() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "sys/devices/system/cpu/online", "0-2\n");
    for (cpu, performance) in ["180", "200", "190"].into_iter().enumerate() {
        let dir = format!("sys/devices/system/cpu/cpu{cpu}");
        write(
            folder.path(),
            &format!("{dir}/topology/core_cpus_list"),
            &cpu.to_string(),
        );
        write(
            folder.path(),
            &format!("{dir}/acpi_cppc/highest_perf"),
            performance,
        );
    }
    let host = Host::from_folder(folder.path()).unwrap();
    let cpus = |name: &str| {
        let places = host.place_as(&name.parse().unwrap(), 3);
        places.unwrap().cpus().to_string()
    };
    assert_eq!(
        (cpus("best-core"), cpus("best-core*2")),
        ("1".to_owned(), "1-2".to_owned())
    );
}

/// The folder into which cargo builds, and whether it is that of releases.
fn find_build_folder() -> (PathBuf, bool) {
    let folder = Path::new(env!("CARGO_BIN_EXE_pinwise")).parent().unwrap();
    (folder.to_owned(), folder.ends_with("release"))
}

#[track_caller]
fn run_cargo(arguments: &[&str]) {
    let (folder, is_release) = find_build_folder();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    // cargo sets these variables for tests only: with them, build scripts would run again, and
    // everything would be compiled again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_of_test = text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_");
        if is_of_test || text == "RUSTC_BOOTSTRAP" {
            command.env_remove(&name);
        }
    }
    command.args(["--locked", "--quiet", "--target-dir"]);
    command.arg(folder.parent().unwrap());
    if is_release {
        command.arg("--release");
    }
    run_successfully(&mut command);
}

#[track_caller]
fn run_successfully(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out
}

/// The command of an example. `cargo test` has built it with the tests, unless only they were
/// requested; then it is built now.
fn build_example(name: &str) -> Command {
    let path = find_build_folder().0.join("examples").join(name);
    let changed = |path: &Path| std::fs::metadata(path)?.modified();
    let source = root().join("examples").join(format!("{name}.rs"));
    let is_current = changed(&path).is_ok_and(|built| built > changed(&source).unwrap());
    if !is_current {
        run_cargo(&["build", "--example", name]);
    }
    Command::new(path)
}

/// Checks that threads, on lines with this prefix, ran on the only CPU of their masks; returns their
/// number.
#[track_caller]
fn count_bound_threads(out: &str, prefix: &str) -> usize {
    let lines = out.lines().filter(|line| line.starts_with(prefix));
    let checked = lines.inspect(|line| {
        let (_, rest) = line.split_once("CPU ").unwrap();
        let (cpu, mask) = rest.split_once(", mask ").unwrap();
        assert_eq!(cpu, mask, "{out}");
    });
    checked.count()
}

#[test]
fn a_rayon_pool_binds_its_threads() {
    let workers = Host::discover().unwrap().workers().parallelism;
    for (arguments, threads) in [(vec![], workers), (vec!["compact", "3"], 3)] {
        let out = run_successfully(build_example("rayon_pool").args(arguments));
        assert_eq!(count_bound_threads(&out, "thread"), threads, "{out}");
    }
    let output = build_example("rayon_pool")
        .arg("cpu:9999")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(decode_output(&output).1.contains("there is no CPU 9999"));
}

#[test]
fn a_tokio_runtime_binds_its_workers() {
    let out = run_successfully(&mut build_example("tokio_runtime"));
    let workers = Host::discover().unwrap().workers().parallelism;
    assert!(out.contains(&format!("workers {workers}\n")), "{out}");
    assert!(count_bound_threads(&out, "tasks") > 0, "{out}");
}

/// A folder with programs in C, linked with the shared and with the static library.
struct CPrograms {
    folder: tempfile::TempDir,
}

impl CPrograms {
    /// `None` if there is no C compiler.
    fn build() -> Option<&'static Self> {
        static BUILT: OnceLock<CPrograms> = OnceLock::new();
        if !has_program("cc") {
            report_skip("no C compiler (cc)");
            return None;
        }
        Some(BUILT.get_or_init(|| {
            // With only one package, cargo would rebuild its dependencies with other features.
            run_cargo(&["build", "--workspace", "--lib", "--examples"]);
            let folder = tempfile::tempdir().unwrap();
            let library = find_build_folder().0;
            std::fs::copy(
                library.join("libpinwise.so"),
                folder.path().join("libpinwise.so.0"),
            )
            .unwrap();
            std::os::unix::fs::symlink("libpinwise.so.0", folder.path().join("libpinwise.so"))
                .unwrap();
            std::fs::copy(
                library.join("libpinwise.a"),
                folder.path().join("libpinwise.a"),
            )
            .unwrap();
            let guide = std::fs::read_to_string(root().join("docs/library.md")).unwrap();
            let (_, block) = guide.split_once("```c\n").unwrap();
            let (prog, _) = block.split_once("```").unwrap();
            std::fs::write(folder.path().join("guide.c"), prog).unwrap();
            let built = Self { folder };
            let example = root().join("capi/examples/place.c");
            built.compile("cc", "-std=c11", &example, "place");
            built.compile(
                "cc",
                "-std=c11",
                &built.folder.path().join("guide.c"),
                "guide",
            );
            built
        }))
    }

    fn compile(&self, compiler: &str, standard: &str, source: &Path, name: &str) {
        let folder = self.folder.path();
        let start = || {
            let mut command = Command::new(compiler);
            command.args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-o"]);
            command
        };
        let include = root().join("capi/include");
        let mut shared = start();
        shared
            .arg(folder.join(name))
            .arg(source)
            .arg("-I")
            .arg(&include);
        shared
            .arg("-L")
            .arg(folder)
            .args(["-lpinwise", "-lpthread"]);
        run_successfully(&mut shared);
        let mut with_static = start();
        with_static
            .arg(folder.join(format!("{name}-static")))
            .arg(source)
            .arg("-I")
            .arg(&include);
        with_static.arg(folder.join("libpinwise.a"));
        with_static.args(["-lpthread", "-ldl", "-lm"]);
        run_successfully(&mut with_static);
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.path().join(name));
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command
    }
}

#[test]
fn c_programs_place_themselves() {
    let Some(c) = CPrograms::build() else { return };
    let workers = Host::discover().unwrap().workers();
    for program in ["place", "place-static"] {
        let out = run_successfully(&mut c.program(program));
        let expected = format!("{} workers make sense", workers.parallelism);
        assert!(out.lines().next().unwrap().ends_with(&expected), "{out}");
        assert_eq!(out.lines().count(), 1 + workers.parallelism, "{out}");
        let out = run_successfully(c.program(program).args(["compact", "5"]));
        assert_eq!(out.lines().count(), 6, "{out}");
        let refused = |name: &str| {
            let output = c.program(program).arg(name).output().unwrap();
            assert!(!output.status.success());
            decode_output(&output).1
        };
        assert!(refused("cpu:9999").contains("there is no CPU 9999 on this machine"));
        assert!(refused("one-croe").contains("did you mean 'one-core'?"));
    }
    for program in ["guide", "guide-static"] {
        let out = run_successfully(&mut c.program(program));
        assert!(out.starts_with("on CPU "), "{out}");
    }
}

#[test]
fn c_programs_get_messages_for_their_mistakes() {
    let Some(c) = CPrograms::build() else { return };
    let source = c.folder.path().join("wrong.c");
    let text = r#"
#include <pinwise.h>
#include <stdio.h>
#include <string.h>
static void say(const char *what, int failed) {
    printf("%s: %s\n", failed ? what : "NO ERROR", pinwise_last_error());
}
int main(void) {
    printf("[%s]\n", pinwise_last_error());
    PinwiseWorkers workers;
    PinwiseLocation location;
    PinwiseHost *host = pinwise_host_discover();
    say("no host", pinwise_host_workers(NULL, &workers, sizeof workers) == -1);
    say("no room", pinwise_host_workers(host, NULL, sizeof workers) == -1);
    say("no size", pinwise_host_workers(host, &workers, 0) == -1);
    say("no cpu", pinwise_host_locate(host, -5, &location, sizeof location) == -1);
    say("no place", pinwise_place(NULL, 1) == NULL);
    say("no name", pinwise_place_as(host, NULL, 1) == NULL);
    say("no utf", pinwise_place_as(host, "\xff\xfe", 1) == NULL);
    say("no places", pinwise_bind(NULL, 0) == -1);
    say("no folder", pinwise_host_from_folder("/nowhere/at/all") == NULL);
    /* A caller that knows only the first field gets only that. */
    memset(&workers, 0x55, sizeof workers);
    size_t next = workers.on_own_cores;
    if (pinwise_host_workers(host, &workers, sizeof workers.parallelism) != 0) return 1;
    printf("%s\n", workers.on_own_cores == next && workers.parallelism != next ? "cut" : "spilt");
    PinwisePlaces *places = pinwise_place(host, 1);
    int one[1] = {-1};
    if (pinwise_places_cpus(places, NULL, 0) != 1) return 1;
    if (pinwise_places_cpus(places, one, 1) != 1) return 1;
    if (one[0] != pinwise_places_cpu(places, 0)) return 1;
    if (pinwise_host_locate(host, one[0], &location, sizeof location) != 0) return 1;
    if (location.allowed != 1 || location.online != 1 || location.core < 0) return 1;
    if (pinwise_unbind() != 0) return 1;
    if (pinwise_bind(places, 0) != 0 || pinwise_confine(places) != 0) return 1;
    if (pinwise_unbind() != 0) return 1;
    pinwise_places_free(NULL);
    pinwise_host_free(NULL);
    pinwise_places_free(places);
    pinwise_host_free(host);
    printf("%s\n", pinwise_version());
    return 0;
}
"#;
    std::fs::write(&source, text).unwrap();
    c.compile("cc", "-std=c11", &source, "wrong");
    let expected = format!(
        "[]\nno host: host is NULL\nno room: workers is NULL\n\
         no size: the size of workers is 0; pass sizeof(*workers)\n\
         no cpu: there is no CPU -5 on this machine\nno place: host is NULL\n\
         no name: placement is NULL\nno utf: placement is not UTF-8\n\
         no places: places is NULL\n\
         no folder: /nowhere/at/all: No such file or directory (os error 2)\ncut\n{}\n",
        env!("CARGO_PKG_VERSION")
    );
    for program in ["wrong", "wrong-static"] {
        assert_eq!(run_successfully(&mut c.program(program)), expected);
    }
    if !has_program("valgrind") {
        return report_skip("valgrind is not installed: memory was not checked");
    }
    for program in ["wrong", "place"] {
        let mut command = Command::new("valgrind");
        command.args(["--error-exitcode=99", "--leak-check=full", "--quiet"]);
        // Valgrind does not know of what a thread keeps to its end.
        command.args(["--errors-for-leak-kinds=definite,indirect"]);
        command.arg(c.folder.path().join(program));
        command.env("LD_LIBRARY_PATH", c.folder.path());
        run_successfully(&mut command);
    }
}

#[test]
fn the_header_is_cpp_too() {
    let Some(c) = CPrograms::build() else { return };
    if !has_program("c++") {
        return report_skip("there is no C++ compiler (c++)");
    }
    let source = c.folder.path().join("guide.cpp");
    std::fs::copy(c.folder.path().join("guide.c"), &source).unwrap();
    c.compile("c++", "-std=c++17", &source, "guide-cpp");
    run_successfully(&mut c.program("guide-cpp"));
}

#[test]
fn an_affinity_mask_from_outside_is_respected() {
    let Some(c) = CPrograms::build() else { return };
    if !has_program("taskset") {
        return report_skip("taskset is not installed");
    }
    let allowed = Host::discover().unwrap().topology().allowed.clone();
    let (first, last) = (allowed.first().unwrap(), allowed.last().unwrap());
    let place = |arguments: &[&str]| -> Output {
        let mut command = Command::new("taskset");
        command.args(["-c", &last.to_string()]);
        command.arg(c.folder.path().join("place")).args(arguments);
        command
            .env("LD_LIBRARY_PATH", c.folder.path())
            .output()
            .unwrap()
    };
    let (out, _) = decode_output(&place(&[]));
    assert_eq!(
        out,
        format!("1 CPUs, 1 cores, 1 workers make sense\nthread 0 ran on CPU {last}\n")
    );
    if first != last {
        let (out, _) = decode_output(&place(&[&format!("cpu:{first}")]));
        assert!(out.contains(&format!("ran on CPU {first}")), "{out}");
    }
}

/// A cgroup that is removed when it is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates one below the mount of a controller of version 1, or of version 2 if it is delegated.
    /// Returns also whether it is of version 2.
    fn create(controller: &str, name: &str) -> Result<(Self, bool), String> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let found = mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_v1 = words[2] == "cgroup" && words[3].split(',').any(|o| o == controller);
            let delegated = Path::new(words[1]).join("cgroup.subtree_control");
            let is_v2 = words[2] == "cgroup2"
                && std::fs::read_to_string(delegated)
                    .is_ok_and(|all| all.split_whitespace().any(|one| one == controller));
            (is_v1 || is_v2).then(|| (PathBuf::from(words[1]), is_v2))
        });
        let (mount, is_v2) = found.ok_or(format!("no cgroup has the controller {controller}"))?;
        let folder = mount.join(format!("pinwise-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| format!("no cgroup can be made: {error}"))?;
        Ok((Self(folder), is_v2))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        std::fs::write(self.0.join(file), value).map_err(|error| format!("{file}: {error}"))
    }

    /// Runs a program inside.
    fn run(&self, c: &CPrograms, arguments: &[&str]) -> Output {
        Command::new("sh")
            .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""])
            .arg(&self.0)
            .arg(c.folder.path().join("place"))
            .args(arguments)
            .env("LD_LIBRARY_PATH", c.folder.path())
            .output()
            .unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_real_quota_limits_the_workers() {
    let Some(c) = CPrograms::build() else { return };
    let limited = Cgroup::create("cpu", "quota").and_then(|(cgroup, is_v2)| {
        if is_v2 {
            cgroup.set("cpu.max", "50000 100000")?;
        } else {
            cgroup.set("cpu.cfs_quota_us", "50000")?;
        }
        Ok(cgroup)
    });
    let cgroup = match limited {
        Ok(cgroup) => cgroup,
        Err(reason) => return report_skip(&reason),
    };
    let (out, err) = decode_output(&cgroup.run(c, &[]));
    assert!(out.contains(", 1 workers make sense\n"), "{out}{err}");
    assert_eq!(out.lines().count(), 2, "{out}{err}");
}

#[test]
fn a_cpuset_that_forbids_cpus_is_named() {
    let Some(c) = CPrograms::build() else { return };
    let allowed = Host::discover().unwrap().topology().allowed.clone();
    let (first, last) = (allowed.first().unwrap(), allowed.last().unwrap());
    if first == last {
        return report_skip("there is only one CPU");
    }
    let limited = Cgroup::create("cpuset", "cpuset").and_then(|(cgroup, is_v2)| {
        cgroup.set("cpuset.cpus", &first.to_string())?;
        if !is_v2 {
            cgroup.set("cpuset.mems", "0")?;
        }
        Ok(cgroup)
    });
    let cgroup = match limited {
        Ok(cgroup) => cgroup,
        Err(reason) => return report_skip(&reason),
    };
    let (out, err) = decode_output(&cgroup.run(c, &[]));
    assert!(out.contains(", 1 workers make sense\n"), "{out}{err}");
    let (_, err) = decode_output(&cgroup.run(c, &[&format!("cpu:{last}")]));
    let expected = format!("CPU {last} is forbidden: the cpuset {}", cgroup.0.display());
    assert!(err.contains(&expected), "{err}");
}
