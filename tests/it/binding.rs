//! Bound placements on the real host: every thread begins on the CPU that is
//! its turn, and the command notices nothing else.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{
    decode_output, go_settings, has_program, pinwise, report_skip, root, wait_until,
};

/// Threads of a test that counts them.
const MANY: usize = 24;

/// A folder with a program for a test, or the reason why it is missing.
struct Bench {
    folder: tempfile::TempDir,
    cpus: Vec<usize>,
}

impl Bench {
    /// `None`, and a line that says so, if this host cannot bind.
    fn new() -> Option<Self> {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
            cpus: allowed_cpus(),
        };
        let probe = bench.run(&["cpu:0-1/bound", "--", "true"]);
        let (_, err) = decode_output(&probe);
        if bench.cpus.len() < 2 {
            report_skip("only one CPU is allowed here");
            return None;
        }
        if err.contains("to bind the threads of") {
            report_skip(&err);
            return None;
        }
        Some(bench)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The CPUs in turn, as a placement.
    fn place(&self) -> String {
        let list: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
        format!("cpu:{}/bound", list.join(","))
    }

    fn pinwise(&self, arguments: &[&str]) -> Command {
        let mut command = pinwise(&self.folder.path().join("store.db"));
        command
            .args(["--quiet", "run", "--place"])
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        self.pinwise(arguments).output().unwrap()
    }

    /// What a command prints whose threads are bound to all CPUs in turn.
    #[track_caller]
    fn run_bound(&self, command: &[&str]) -> String {
        let place = self.place();
        let output = self.run(&[&[place.as_str(), "--"], command].concat());
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{command:?}: {err}");
        out
    }

    /// Compiles a C program of `tests/data/binding`.
    fn compile(&self, name: &str, options: &[&str]) -> Option<String> {
        let program = self.path(&format!("{name}{}", options.concat()));
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread"]).args(options);
        let source = root().join(format!("tests/data/binding/{name}.c"));
        let output = compiler.arg(source).arg("-o").arg(&program).output();
        output.ok()?.status.success().then_some(program)
    }

    /// The masks of lines "NUMBER MASK".
    #[track_caller]
    fn masks(&self, printed: &str) -> Vec<usize> {
        let lines = printed.lines().filter(|line| !line.starts_with("proc"));
        lines
            .map(|line| {
                let (_, mask) = line.split_once(' ').expect(line);
                let set = pinwise_topology::CpuSet::parse_mask(mask).expect(line);
                assert_eq!(set.len(), 1, "not bound to one CPU: {line}");
                set.first().unwrap()
            })
            .collect()
    }

    /// Every thread has a CPU of its own turn, from the first on.
    #[track_caller]
    fn take_turns(&self, printed: &str, threads: usize) {
        let masks = self.masks(printed);
        let wanted = self.cpus.iter().copied().cycle();
        assert_eq!(masks, wanted.take(threads).collect::<Vec<_>>());
    }
}

fn allowed_cpus() -> Vec<usize> {
    let record = crate::support::run_for_json(&["topology", "--format", "json"]);
    let allowed = record["allowed"].as_str().unwrap();
    let set: pinwise_topology::CpuSet = allowed.parse().unwrap();
    set.iter().take(4).collect()
}

#[test]
fn threads_in_c_are_bound_before_their_first_instruction() {
    let Some(bench) = Bench::new() else { return };
    for options in [&[][..], &["-static"]] {
        let Some(program) = bench.compile("masks", options) else {
            report_skip(&format!("no C compiler for {options:?}"));
            continue;
        };
        // As many by pthread_create and by a bare clone.
        let printed = bench.run_bound(&[&program, &MANY.to_string()]);
        bench.take_turns(&printed, 1 + 2 * MANY);
    }
}

#[test]
fn a_thousand_threads_at_once_are_all_bound() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("masks", &[]) else {
        return report_skip("no C compiler");
    };
    let printed = bench.run_bound(&[&program, "1000", "together"]);
    bench.take_turns(&printed, 1001);
}

#[test]
fn threads_in_rust_are_bound_before_their_first_instruction() {
    let Some(bench) = Bench::new() else { return };
    if !has_program("rustc") {
        return report_skip("no rustc");
    }
    let program = bench.path("masks");
    let mut compiler = Command::new("rustc");
    let source = root().join("tests/data/binding/masks.rs");
    compiler.args(["--edition", "2024", "-o", &program]);
    assert!(compiler.arg(source).status().unwrap().success());
    let printed = bench.run_bound(&[&program, &MANY.to_string()]);
    bench.take_turns(&printed, 1 + MANY);
}

/// Go starts threads of its own, in an order of its own.
#[test]
fn threads_in_go_are_bound() {
    let Some(bench) = Bench::new() else { return };
    if !has_program("go") {
        return report_skip("no go");
    }
    let program = bench.path("masks-go");
    let mut compiler = Command::new("go");
    let source = root().join("tests/data/binding/masks.go");
    compiler
        .args(["build", "-o", &program])
        .arg(source)
        .current_dir(bench.folder.path())
        .envs(go_settings());
    assert!(compiler.status().unwrap().success());
    let printed = bench.run_bound(&[&program, &MANY.to_string()]);
    assert_eq!(bench.masks(&printed).len(), 1 + MANY);
    check_known_cpus(&printed, bench.cpus.len());
}

#[test]
fn threads_in_java_are_bound() {
    let Some(bench) = Bench::new() else { return };
    if !has_program("javac") || !has_program("java") {
        return report_skip("no javac and java");
    }
    let source = root().join("tests/data/binding/Masks.java");
    let mut compiler = Command::new("javac");
    compiler.args(["-d", &bench.path("")]).arg(source);
    assert!(compiler.status().unwrap().success());
    let printed = bench.run_bound(&["java", "-cp", ".", "Masks", &MANY.to_string()]);
    assert_eq!(bench.masks(&printed).len(), 1 + MANY);
    check_known_cpus(&printed, bench.cpus.len());
}

/// The runtime was given the number of CPUs: its own first thread has one.
#[track_caller]
fn check_known_cpus(printed: &str, cpus: usize) {
    let line = format!("processors {cpus}");
    assert!(printed.lines().any(|other| other == line), "{printed}");
}

#[test]
fn what_the_user_sets_stays() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let mut command = bench.pinwise(&[
        &place,
        "--",
        "sh",
        "-c",
        "echo $OMP_NUM_THREADS $GOMAXPROCS",
    ]);
    let output = command
        .env("OMP_NUM_THREADS", "77")
        .env_remove("GOMAXPROCS");
    let (out, _) = decode_output(&output.output().unwrap());
    assert_eq!(out, format!("77 {}\n", bench.cpus.len()));
}

/// Processes have their turn like threads: each `grep` is one, started by vfork
/// or fork, and so are those of a daemon that forks twice.
#[test]
fn processes_take_turns_with_threads() {
    let Some(bench) = Bench::new() else { return };
    let own = "grep Cpus_allowed: /proc/self/status";
    let script = format!("{own}; {own}; (({own}; true) & wait)");
    let printed = bench.run_bound(&["sh", "-c", &script]);
    let masks = printed.replace("Cpus_allowed:\t", "0 ").replace(',', "");
    let seen = bench.masks(&masks);
    assert_eq!(seen.len(), 3, "{printed}");
    let cycle: Vec<usize> = bench.cpus.iter().copied().cycle().take(4).collect();
    assert_eq!(seen[..2], cycle[1..3]);
}

/// The thread keeps its CPU when it becomes its process's first.
#[test]
fn a_thread_that_executes_keeps_its_cpu() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("exec", &[]) else {
        return report_skip("no C compiler");
    };
    let printed = bench.run_bound(&[&program, "grep", "Cpus_allowed:", "/proc/self/status"]);
    let masks = printed.replace("Cpus_allowed:\t", "0 ").replace(',', "");
    assert_eq!(bench.masks(&masks), [bench.cpus[1]]);
}

#[test]
fn ends_are_the_commands_own() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let shell = |script: &str| bench.run(&[&place, "--", "sh", "-c", script]).status;
    assert_eq!(shell("exit 7").code(), Some(7));
    assert_eq!(shell("kill -TERM $$").signal(), Some(libc::SIGTERM));
    assert_eq!(shell("kill -KILL $$").signal(), Some(libc::SIGKILL));
    assert_eq!(
        shell("trap 'exit 5' USR1; kill -USR1 $$; sleep 9").code(),
        Some(5)
    );
    assert_eq!(shell("kill -TRAP $$").signal(), Some(libc::SIGTRAP));
}

/// The command has pinwise's process id, its own children only, and streams
/// that end with it.
#[test]
fn the_command_takes_pinwises_place() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let script = "echo $$; cat /proc/$$/task/$$/children; echo";
    let mut command = bench.pinwise(&[&place, "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    child.wait().unwrap();
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some(id.to_string().as_str()));
    // `cat` itself is the only child.
    let children = lines.next().unwrap();
    assert_eq!(children.split_whitespace().count(), 1, "{children}");
}

/// A stopped command is seen as stopped by who started it, and goes on.
#[test]
fn a_command_is_stopped_and_goes_on() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let script = "echo ready; kill -STOP $$; echo goes on";
    let mut command = bench.pinwise(&[&place, "--", "sh", "-c", script]);
    let mut child = command
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: the pointer is valid; the child is this test's own.
    #[expect(unsafe_code, reason = "std waits for no stop")]
    let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) };
    assert_eq!(waited, pid);
    assert!(libc::WIFSTOPPED(status), "{status:#x}");
    let woken = Command::new("kill")
        .args(["-CONT", &pid.to_string()])
        .status();
    assert!(woken.unwrap().success());
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert_eq!(printed, "ready\ngoes on\n");
    assert!(child.wait().unwrap().success());
}

/// After the settling time no thread is traced, and new threads may use all CPUs again.
#[test]
fn threads_are_left_alone_after_the_settling_time() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    // A thread that created none before then does not count as a creator: then more of it is
    // needed.
    let script = "true | cat; \
        grep -q 'TracerPid:.0$' /proc/$$/status && exit 9; \
        while ! grep -q 'TracerPid:.0$' /proc/$$/status; do sleep 0.01; done; \
        grep Cpus_allowed: /proc/self/status";
    let run = |ms: u32| {
        let settle = format!("{ms}ms");
        bench.run(&[&place, "--settle", &settle, "--", "sh", "-c", script])
    };
    let mut runs = (0..8).map(|doublings| run(50 << doublings));
    let output = runs.find(|output| output.status.code() != Some(9)).unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let mask = out
        .trim()
        .trim_start_matches("Cpus_allowed:\t")
        .replace(',', "");
    let set = pinwise_topology::CpuSet::parse_mask(&mask).unwrap();
    assert_eq!(set.iter().collect::<Vec<_>>(), bench.cpus);
}

/// A program that moves its own threads is found out, and its knob named.
#[test]
fn a_program_that_moves_its_threads_is_found_out() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("mover", &[]) else {
        return report_skip("no C compiler");
    };
    let place = bench.place();
    let mut command = bench.pinwise(&[&place, "--", &program]);
    let (_, err) = decode_output(&command.env("GOMP_CPU_AFFINITY", "0-1").output().unwrap());
    for words in [
        "2 threads were bound",
        "1 moved away",
        "mover by GOMP_CPU_AFFINITY",
    ] {
        assert!(err.replace('\n', " ").contains(words), "{words}: {err}");
    }
    // Nothing is reported as quiet if all stay.
    let (_, err) = decode_output(&bench.run(&[&place, "--", "true"]));
    assert_eq!(err, "");
}

#[test]
fn comparisons_record_the_coverage_of_placements() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("masks", &[]) else {
        return report_skip("no C compiler");
    };
    let mut command = pinwise(&bench.folder.path().join("store.db"));
    let place = bench.place();
    let options = ["--max-runs", "3", "--warmup", "0", "--format", "json"];
    command.args([
        "compare",
        "--quiet",
        "--place",
        "os-default",
        "--place",
        &place,
    ]);
    command.args(options).args(["--", "sh", "-c"]);
    let output = command
        .arg(format!("{program} {MANY} & wait"))
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    let record: serde_json::Value = serde_json::from_str(&out).unwrap();
    let arms = record["arms"].as_array().unwrap();
    assert_eq!(arms[1]["placement"]["kind"], "bound");
    for run in arms[0]["runs"].as_array().unwrap() {
        assert!(run.get("coverage").is_none(), "{run}");
    }
    for run in arms[1]["runs"].as_array().unwrap() {
        let coverage = &run["coverage"];
        assert_eq!(coverage["threads"], 2 + 2 * MANY, "{run}");
        assert_eq!(coverage["moved_threads"], 0);
        assert_eq!(coverage["cpu_s"], coverage["where_asked_s"]);
        // The grandchild is counted once, by its parent.
        let used = run["user_s"].as_f64().unwrap() + run["sys_s"].as_f64().unwrap();
        assert!(
            coverage["cpu_s"].as_f64().unwrap() < 1.5 * used + 0.05,
            "{run}"
        );
    }
    let findings = record["findings"].as_array().unwrap();
    let message = findings
        .iter()
        .find(|finding| finding["check"] == "coverage");
    let sentence = message.unwrap()["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("100.0 % of CPU time ran where asked"),
        "{sentence}"
    );
}

#[test]
fn a_debugger_that_is_there_already_is_named() {
    let Some(bench) = Bench::new() else { return };
    if !has_program("strace") {
        return report_skip("no strace");
    }
    let place = bench.place();
    let inner = bench.pinwise(&[&place, "--", "true"]);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o", "/dev/null"])
        .arg(inner.get_program())
        .args(inner.get_args());
    let output = command.output().unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("strace (process"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// Tracing would take a setuid program's rights away: it is not even started.
#[test]
fn a_setuid_program_is_refused_unless_root_binds_it() {
    let Some(bench) = Bench::new() else { return };
    let setuid = ["/usr/bin/su", "/bin/su", "/usr/bin/passwd"];
    let Some(program) = setuid.into_iter().find(|path| Path::new(path).exists()) else {
        return report_skip("no setuid program");
    };
    if !has_program("setpriv") {
        return report_skip("no setpriv");
    }
    let place = bench.place();
    let inner = bench.pinwise(&[&place, "--", program, "--help"]);
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir("/");
    let output = command.output().unwrap();
    let (_, err) = decode_output(&output);
    if err.contains("setpriv") {
        return report_skip(&err);
    }
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("it is setuid"), "{err}");
    assert!(err.contains("as root"), "{err}");
}

#[test]
fn settling_is_for_bound_placements() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pinwise(&folder.path().join("store.db"));
    let output = command
        .args(["run", "--settle", "1s", "--", "true"])
        .output();
    let output = output.unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("--settle") && err.contains("/bound"), "{err}");
}

#[test]
fn a_program_that_cannot_be_executed_is_reported_once() {
    let Some(bench) = Bench::new() else { return };
    let script = bench.path("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let status = Command::new("chmod").args(["+x", &script]).status();
    assert!(status.unwrap().success());
    let place = bench.place();
    let output = bench.run(&[&place, "--", &script]);
    let (out, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(126), "{err}");
    assert_eq!(out, "");
    assert_eq!(err.lines().count(), 1, "{err}");
    let mut command = pinwise(&bench.folder.path().join("store.db"));
    let places = ["--place", &place, "--place", "os-default"];
    command
        .args(["compare", "--quiet", "--max-runs", "1"])
        .args(places);
    let output = command.args(["--", &script]).output().unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// A run that takes too long, and a pinwise that is killed, leave nothing.
#[test]
fn measured_runs_leave_nothing() {
    let Some(bench) = Bench::new() else { return };
    let folder = bench.path("");
    let script = format!("(sleep 77; : {folder}) & sleep 77; : {folder}");
    let compare = |more: &[&str]| {
        let mut command = pinwise(&bench.folder.path().join("store.db"));
        command.args(["compare", "--quiet", "--placebo", "--max-runs", "1"]);
        command.args(["--place", &bench.place()]).args(more);
        command.args(["--", "sh", "-c", &script]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let output = compare(&["--timeout", "300ms"]).output().unwrap();
    let (_, err) = decode_output(&output);
    assert!(err.contains("took longer"), "{err}");
    wait_until_all_end(&folder);

    let mut child = compare(&[]).stdout(Stdio::null()).spawn().unwrap();
    while living(&folder) < 2 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_all_end(&folder);
}

/// Shells that have this in their command line.
fn living(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.starts_with("sh\0-c\0") && line.contains(word)
        })
        .count()
}

#[track_caller]
fn wait_until_all_end(word: &str) {
    wait_until("what is left behind ends", || living(word) == 0);
}
