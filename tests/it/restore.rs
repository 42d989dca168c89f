//! Whatever ends pinwise, wherever it is: every value of the system comes back.
//!
//! A process of this test's own makes changes through the library and is ended at thirteen moments
//! in seven ways, two of which begin with the loss of the journal's folder. Masks, niceness and
//! cgroups are real, and memory if there are two NUMA nodes (else in `memory_vm`); CPUs are
//! switched, interrupts moved and queues of network cards given to other CPUs in a folder that
//! represents the host, and for real in `restore_vm` and `devices_vm`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pinwise_machine::RunSetting;
use pinwise_machine::linux::{Change, FAULT_POINTS, Ledger, LedgerOptions};
use pinwise_placement::InterruptCpus;
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

use crate::support::{Running, cpus_of, heed_signals, pinwise, skipped, stat_field, texts};

const KINDS: [&str; 7] = ["int", "term", "kill", "panic", "full", "vanish", "bereft"];
/// Interrupts in the folder that represents the host, and the CPUs that take them.
const INTERRUPTS: [(u32, &str); 2] = [(30, "0"), (31, "2")];
/// Queues of a network card there, and the masks of their CPUs.
const QUEUES: [(&str, &str); 2] = [("rx-0", "00000001"), ("tx-3", "00000000")];
/// What makes this test program the process that is ended.
const SCENE: &str = "PINWISE_TEST_LEDGER";

/// A node of memory to move to: of several the last one, so that there is something
/// to move.
fn target_node() -> usize {
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    let nodes = nodes
        .ok()
        .and_then(|list| CpuSet::parse_list(list.trim()).ok());
    nodes.and_then(|nodes| nodes.last()).unwrap_or(0)
}

fn queue(name: &str) -> Queue {
    Queue::from_name("eth0", name).unwrap()
}

/// A process whose threads are moved about.
struct Sleeper(Running);

impl Sleeper {
    fn start() -> Self {
        Self(Running::sleeper())
    }

    fn id(&self) -> i32 {
        i32::try_from(self.0.0.id()).unwrap()
    }

    fn cpus(&self) -> String {
        cpus_of(self.id())
    }

    fn nice(&self) -> String {
        stat_field(self.id(), 19)
    }

    /// Pages of its own on each node, if there are several.
    fn memory(&self) -> String {
        let path = format!("/proc/{}/numa_maps", self.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let own = text.lines().filter(|line| line.contains(" anon="));
        let mut pages = std::collections::BTreeMap::new();
        for word in own.flat_map(str::split_ascii_whitespace) {
            if target_node() == 0 {
                break;
            }
            if let Some((node, count)) = word.strip_prefix('N').and_then(|w| w.split_once('=')) {
                *pages.entry(node.to_owned()).or_insert(0) += count.parse::<u64>().unwrap();
            }
        }
        format!("{pages:?}")
    }

    fn groups(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/cgroup", self.id())).unwrap()
    }
}

/// A cgroup of this test's own, if groups with CPUs can be made.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/cpuset");
        let path = root.join(format!("pinwise-test-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        let group = Self(path);
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let whole = std::fs::read(root.join(file)).ok()?;
            std::fs::write(group.0.join(file), whole).ok()?;
        }
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// What is changed and read back.
struct Scene {
    folder: tempfile::TempDir,
    first: Sleeper,
    second: Sleeper,
    group: Option<Group>,
}

impl Scene {
    fn new(group: Option<Group>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cpus = folder.path().join("sys/devices/system/cpu");
        for cpu in 0..4 {
            std::fs::create_dir_all(cpus.join(format!("cpu{cpu}"))).unwrap();
            if cpu > 0 {
                std::fs::write(cpus.join(format!("cpu{cpu}/online")), "1\n").unwrap();
            }
        }
        std::fs::write(cpus.join("online"), "0-3\n").unwrap();
        for (interrupt, cpus) in INTERRUPTS {
            let folder = folder.path().join(format!("proc/irq/{interrupt}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("smp_affinity_list"), format!("{cpus}\n")).unwrap();
        }
        for (name, mask) in QUEUES {
            let file = folder.path().join(queue(name).mask_file());
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{mask}\n")).unwrap();
        }
        Self {
            folder,
            first: Sleeper::start(),
            second: Sleeper::start(),
            group,
        }
    }

    fn journals(&self) -> PathBuf {
        self.folder.path().join("journals")
    }

    /// Every value that the scene's changes are about.
    fn values(&self) -> Vec<String> {
        let cpus = self.folder.path().join("sys/devices/system/cpu");
        let online = (1..4).map(|cpu| {
            let file = cpus.join(format!("cpu{cpu}/online"));
            let now = std::fs::read_to_string(file).unwrap();
            format!("CPU {cpu} {}", now.trim())
        });
        let interrupts = INTERRUPTS.map(|(interrupt, _)| {
            let name = format!("proc/irq/{interrupt}/smp_affinity_list");
            let now = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
            format!("interrupt {interrupt} {}", now.trim())
        });
        let queues = QUEUES.map(|(name, _)| {
            let file = self.folder.path().join(queue(name).mask_file());
            format!("{name} {}", std::fs::read_to_string(file).unwrap().trim())
        });
        let mut values: Vec<String> = online.chain(interrupts).chain(queues).collect();
        for sleeper in [&self.first, &self.second] {
            values.push(sleeper.cpus());
            values.push(sleeper.nice());
            values.push(sleeper.memory());
            values.push(sleeper.groups());
        }
        if let Some(group) = &self.group {
            let file = group.0.join("cpuset.cpus");
            values.push(std::fs::read_to_string(file).unwrap().trim().to_owned());
            values.push(format!("made: {}", group.0.join("made").exists()));
        }
        values
    }

    /// Ends a process in the middle of its changes; says how it ended, and whether
    /// by its own words all changes were in force.
    fn strike(&self, fault: &str) -> (std::process::ExitStatus, bool) {
        let lock = self.lock();
        let seen = self.folder.path().join("seen");
        let _ = std::fs::remove_file(&seen);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "restore::applies_changes_on_request",
                "--nocapture",
            ])
            .arg("--test-threads=1")
            .env(SCENE, self.folder.path())
            .env("SCENE_FAULT", fault)
            .env(
                "SCENE_TASKS",
                format!("{} {}", self.first.id(), self.second.id()),
            )
            .env(
                "SCENE_GROUP",
                self.group.as_ref().map_or(Path::new(""), |g| &g.0),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        heed_signals(&mut command);
        let output = command.output().unwrap();
        let status = output.status;
        if status.code() == Some(101) {
            eprintln!("{fault}: {}", String::from_utf8_lossy(&output.stderr));
        }
        // The guardian has it as long as it lives, with its name or without.
        lock.lock().unwrap();
        let left = std::fs::read_dir(self.journals()).into_iter().flatten();
        let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let journals: Vec<String> = names.filter(|name| name.ends_with(".journal")).collect();
        assert!(journals.is_empty(), "left: {journals:?}");
        // A process that another test forks just now has the lock, too, until it
        // runs its program: closing would not be enough.
        lock.unlock().unwrap();
        (status, seen.exists())
    }

    /// The file whose lock the process and its guardian will have.
    fn lock(&self) -> std::fs::File {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        let _ = std::fs::DirBuilder::new()
            .mode(0o700)
            .create(self.journals());
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        options.open(self.journals().join("host.lock")).unwrap()
    }
}

fn own_cpus() -> CpuSet {
    CpuSet::parse_list(&cpus_of("self")).unwrap()
}

/// Not a test of its own: the process that [`Scene::strike`] ends.
#[test]
fn applies_changes_on_request() {
    let Some(folder) = std::env::var_os(SCENE).map(PathBuf::from) else {
        return;
    };
    let variable = |name: &str| std::env::var(name).unwrap();
    let tasks = variable("SCENE_TASKS");
    let mut tasks = tasks.split(' ').map(|task| task.parse::<i32>().unwrap());
    let (first, second) = (tasks.next().unwrap(), tasks.next().unwrap());
    let options = LedgerOptions {
        folders: vec![folder.join("journals")],
        is_for_host: true,
        root: folder.clone(),
        fault: Some(variable("SCENE_FAULT").parse().unwrap()),
    };
    let mut ledger = Ledger::open(options).unwrap();
    let one = CpuSet::single(own_cpus().last().unwrap());
    let mask = |thread: i32| Change::Mask {
        thread,
        cpus: one.clone(),
    };
    let nice = |thread: i32| Change::Nice { thread, nice: 7 };
    let mut changes = vec![mask(first), nice(first)];
    let group = PathBuf::from(variable("SCENE_GROUP"));
    if !group.as_os_str().is_empty() {
        let made = group.join("made");
        let file = group.join("cpuset.cpus");
        changes.push(Change::Cpuset {
            file,
            cpus: one.clone(),
        });
        changes.push(Change::Folder { path: made });
        changes.push(Change::Move {
            task: second,
            to: group,
        });
    }
    changes.extend([mask(second), nice(second)]);
    if Path::new("/proc/self/numa_maps").exists() {
        changes.push(Change::Memory {
            process: first,
            nodes: CpuSet::single(target_node()),
        });
    }
    for change in &changes {
        // With a full disk a change is refused, and the rest with it.
        if ledger.change(change).is_err() {
            return;
        }
    }
    let moved = InterruptCpus {
        interrupts: INTERRUPTS
            .map(|(interrupt, _)| (interrupt, CpuSet::single(3)))
            .into(),
        queues: QUEUES
            .map(|(name, _)| (queue(name), CpuSet::single(3)))
            .into(),
    };
    let off = CpuSet::parse_list("2-3").unwrap();
    for setting in [RunSetting::Interrupts(moved), RunSetting::Offline(off)] {
        if ledger.apply_settings(&[setting]).is_err() {
            return;
        }
    }
    let is_off = std::fs::read_to_string(folder.join("sys/devices/system/cpu/cpu2/online"));
    if is_off.unwrap().trim() == "0" {
        std::fs::write(folder.join("seen"), "").unwrap();
    }
    ledger.note_running();
    ledger.undo_all();
}

/// The process came by that moment, and was ended there.
#[track_caller]
fn check_end(status: std::process::ExitStatus, point: &str, kind: &str) {
    use std::os::unix::process::ExitStatusExt;
    let signal = match kind {
        "int" => Some(2),
        "kill" | "bereft" => Some(9),
        "term" => Some(15),
        _ => None,
    };
    assert_eq!(status.signal(), signal, "{point} {kind}: {status}");
    if kind == "panic" {
        assert_eq!(status.code(), Some(101), "{point} {kind}: {status}");
    }
}

/// The N-th time that a moment occurs: not at the first change, when there is nothing to undo yet.
fn turn(point: &str) -> u32 {
    match point {
        "before-write" | "after-write" | "after-change" | "between-changes" => 4,
        "after-value" | "between-restores" => 3,
        "after-offline" => 2,
        // After the first of the queues.
        "after-interrupt" => 3,
        _ => 1,
    }
}

#[test]
fn everything_comes_back_from_thirteen_moments_and_seven_ends() {
    if own_cpus().len() < 2 {
        return skipped("this needs two CPUs");
    }
    let group = Group::make();
    if group.is_none() {
        skipped("cgroups are left out: no cpuset of version 1 can be made here");
    }
    if target_node() == 0 {
        skipped("this machine has one NUMA node: memory is there already; memory_vm moves it");
    }
    let scene = Scene::new(group);
    let before = scene.values();
    // The changes are real: left to themselves, they are seen and undone.
    assert!(scene.strike("opened:kill:99").1, "nothing was changed");
    assert_eq!(scene.values(), before, "undone without any fault");
    let mut table = format!(
        "{:<18}{}\n",
        "interrupted",
        KINDS.map(|k| format!("{k:>8}")).concat()
    );
    let mut wrong = 0;
    for point in FAULT_POINTS {
        table.push_str(&format!("{point:<18}"));
        for kind in KINDS {
            let (status, _) = scene.strike(&format!("{point}:{kind}:{}", turn(point)));
            check_end(status, point, kind);
            let is_whole = scene.values() == before;
            wrong += usize::from(!is_whole);
            table.push_str(&format!("{:>8}", if is_whole { "ok" } else { "WRONG" }));
        }
        table.push('\n');
    }
    println!("{table}");
    assert_eq!(wrong, 0, "{table}\n{before:?}\n{:?}", scene.values());
}

/// A journal whose writer and guardian have both gone, as after a power cut of
/// which the kernel knows nothing.
#[test]
fn the_restore_command_does_what_the_guardian_could_not() {
    let cpus = own_cpus();
    if cpus.len() < 2 {
        return skipped("this needs two CPUs");
    }
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let sleeper = Sleeper::start();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let start = stat_field(sleeper.id(), 22);
    let one = cpus.first().unwrap().to_string();
    let id = sleeper.id();
    let set = Command::new("taskset")
        .args(["-pc", &one, &id.to_string()])
        .output();
    assert!(set.unwrap().status.success());
    std::fs::write(
        folder.path().join("left.journal"),
        format!(
            "pinwise journal 1 {} {id}\nmade 1 mask {id} {start} {cpus} {one}\n",
            boot.trim()
        ),
    )
    .unwrap();
    let command = |arguments: &[&str]| {
        let mut command = pinwise(&folder.path().join("store.db"));
        command
            .env("PINWISE_RUNTIME_DIR", folder.path())
            .args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        texts(&output).0
    };
    let message = command(&["apply", "restore", "--dry-run"]);
    assert!(
        message.contains(&format!("thread {id}: CPUs {cpus} (would be restored)")),
        "{message}"
    );
    assert_eq!(sleeper.cpus(), one);
    let message = command(&["apply", "restore"]);
    assert!(
        message.contains(&format!("thread {id}: CPUs {cpus} (restored)")),
        "{message}"
    );
    assert_eq!(sleeper.cpus(), cpus.to_string());
    let message = command(&["apply", "restore"]);
    let searched = format!(
        "Nothing to restore: no journal in {}",
        folder.path().display()
    );
    assert!(message.starts_with(&searched), "{message}");
}

/// Among temporary files anybody may take any name first.
#[test]
fn another_users_temporary_folder_does_not_stop_apply() {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let own = std::fs::metadata(folder.path()).unwrap().uid();
    // Root's journals go elsewhere.
    let user = if own == 0 { 65534 } else { own };
    let name = format!("pinwise-{user}");
    let mut taken = std::fs::DirBuilder::new();
    taken.mode(0o755).create(folder.path().join(&name)).unwrap();
    let as_user = |mut command: Command| {
        if own == 0 {
            command.uid(user).gid(user);
        }
        command
    };
    let mut sleep = as_user(Command::new("sleep"));
    let sleeper = Sleeper(Running::start(sleep.arg("600")));
    let mut command = as_user(pinwise(&folder.path().join("store.db")));
    for variable in ["PINWISE_RUNTIME_DIR", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    let cpu = own_cpus().first().unwrap();
    command
        .env("TMPDIR", folder.path())
        .args(["apply", "--pid"]);
    command.arg(sleeper.id().to_string());
    command.args(["--place", &format!("cpu:{cpu}"), "--for", "1ms"]);
    let output = match command.output() {
        Err(error) => return skipped(&error.to_string()),
        Ok(output) => output,
    };
    assert!(output.status.success(), "{}", texts(&output).1);
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let begin = format!("{name}-");
    assert_eq!(names.filter(|name| name.starts_with(&begin)).count(), 1);
}
