//! Bound placements on the real host: threads are bound to the CPUs in turn, and the command
//! notices nothing else.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{
    decode_output, find_finding, go_settings, has_program, pinwise, read_allowed_cpus, report_skip,
    root, send_signal, wait_until,
};

/// Threads that the programs start.
const THREADS: usize = 24;

/// A folder for programs and a store, and the CPUs to which threads are bound.
struct Bench {
    folder: tempfile::TempDir,
    cpus: Vec<usize>,
}

impl Bench {
    /// `None`, with the reason, if this host cannot bind.
    fn new() -> Option<Self> {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
            cpus: list_allowed_cpus(),
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

    /// The placement that binds threads to these CPUs in turn.
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

    /// Runs a command whose threads are bound to all CPUs in turn, and returns its output.
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

    /// The CPU of each line "NUMBER MASK"; a mask must have one CPU.
    #[track_caller]
    fn parse_masks(&self, printed: &str) -> Vec<usize> {
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

    /// Checks that the threads are bound to the CPUs in turn, from the first on.
    #[track_caller]
    fn check_turns(&self, printed: &str, threads: usize) {
        let masks = self.parse_masks(printed);
        let expected = self.cpus.iter().copied().cycle();
        assert_eq!(masks, expected.take(threads).collect::<Vec<_>>());
    }
}

/// At most four CPUs that this test may use.
fn list_allowed_cpus() -> Vec<usize> {
    let allowed = read_allowed_cpus("self");
    let set = pinwise_topology::CpuSet::parse_list(&allowed).unwrap();
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
        // The program starts as many by pthread_create as by a bare clone.
        let printed = bench.run_bound(&[&program, &THREADS.to_string()]);
        bench.check_turns(&printed, 1 + 2 * THREADS);
    }
}

#[test]
fn a_thousand_threads_at_once_are_all_bound() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("masks", &[]) else {
        return report_skip("no C compiler");
    };
    let printed = bench.run_bound(&[&program, "1000", "together"]);
    bench.check_turns(&printed, 1001);
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
    let printed = bench.run_bound(&[&program, &THREADS.to_string()]);
    bench.check_turns(&printed, 1 + THREADS);
}

/// The Go runtime starts further threads, in any order.
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
    let printed = bench.run_bound(&[&program, &THREADS.to_string()]);
    assert_eq!(bench.parse_masks(&printed).len(), 1 + THREADS);
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
    let printed = bench.run_bound(&["java", "-cp", ".", "Masks", &THREADS.to_string()]);
    assert_eq!(bench.parse_masks(&printed).len(), 1 + THREADS);
    check_known_cpus(&printed, bench.cpus.len());
}

/// Checks that the runtime knows the number of CPUs, although its first thread is bound to one.
#[track_caller]
fn check_known_cpus(printed: &str, cpus: usize) {
    let line = format!("processors {cpus}");
    assert!(printed.lines().any(|other| other == line), "{printed}");
}

#[test]
fn variables_that_the_user_sets_are_kept() {
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

/// Each `grep` is a process, started by vfork or fork, and so are those of a daemon that forks
/// twice.
#[test]
fn processes_take_turns_with_threads() {
    let Some(bench) = Bench::new() else { return };
    let own = "grep Cpus_allowed: /proc/self/status";
    let script = format!("{own}; {own}; (({own}; true) & wait)");
    let printed = bench.run_bound(&["sh", "-c", &script]);
    let masks = printed.replace("Cpus_allowed:\t", "0 ").replace(',', "");
    let seen = bench.parse_masks(&masks);
    assert_eq!(seen.len(), 3, "{printed}");
    let cycle: Vec<usize> = bench.cpus.iter().copied().cycle().take(4).collect();
    assert_eq!(seen[..2], cycle[1..3]);
}

/// After exec it is the main thread of the process.
#[test]
fn a_thread_that_executes_keeps_its_cpu() {
    let Some(bench) = Bench::new() else { return };
    let Some(program) = bench.compile("exec", &[]) else {
        return report_skip("no C compiler");
    };
    let printed = bench.run_bound(&[&program, "grep", "Cpus_allowed:", "/proc/self/status"]);
    let masks = printed.replace("Cpus_allowed:\t", "0 ").replace(',', "");
    assert_eq!(bench.parse_masks(&masks), [bench.cpus[1]]);
}

#[test]
fn the_exit_status_is_that_of_the_command() {
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

#[test]
fn the_command_has_the_pid_of_pinwise_and_no_other_children() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let script = "echo $$; cat /proc/$$/task/$$/children; echo";
    let mut command = bench.pinwise(&[&place, "--", "sh", "-c", script]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let (printed, _) = decode_output(&child.wait_with_output().unwrap());
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some(id.to_string().as_str()));
    // `cat` itself is the only child.
    let children = lines.next().unwrap();
    assert_eq!(children.split_whitespace().count(), 1, "{children}");
}

/// The parent sees that the command is stopped.
#[test]
fn a_command_can_be_stopped_and_continued() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    let script = "echo ready; kill -STOP $$; echo goes on";
    let mut command = bench.pinwise(&[&place, "--", "sh", "-c", script]);
    let child = command
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
    send_signal(child.id(), "CONT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(decode_output(&output).0, "ready\ngoes on\n");
    assert!(output.status.success());
}

#[test]
fn after_the_settling_time_no_thread_is_traced_and_new_ones_may_use_all_cpus() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place();
    // On a slow machine the shell starts its first process only after the settling time; then the
    // test is repeated with a longer one.
    let script = "true | cat; \
        grep -q 'TracerPid:.0$' /proc/$$/status && exit 9; \
        while ! grep -q 'TracerPid:.0$' /proc/$$/status; do sleep 0.01; done; \
        grep Cpus_allowed: /proc/self/status";
    let run_settled = |ms: u32| {
        let settle = format!("{ms}ms");
        bench.run(&[&place, "--settle", &settle, "--", "sh", "-c", script])
    };
    let mut runs = (0..8).map(|doublings| run_settled(50 << doublings));
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

#[test]
fn a_program_that_moves_its_threads_is_reported_with_its_setting() {
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
    // Nothing is reported if all threads stay.
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
        .arg(format!("{program} {THREADS} & wait"))
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
        assert_eq!(coverage["threads"], 2 + 2 * THREADS, "{run}");
        assert_eq!(coverage["moved_threads"], 0);
        assert_eq!(coverage["cpu_s"], coverage["where_asked_s"]);
        // The grandchild is counted once, by its parent.
        let used = run["user_s"].as_f64().unwrap() + run["sys_s"].as_f64().unwrap();
        assert!(
            coverage["cpu_s"].as_f64().unwrap() < 1.5 * used + 0.05,
            "{run}"
        );
    }
    let finding = find_finding(&record, "coverage").unwrap();
    let sentence = finding["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("100.0 % of CPU time ran where asked"),
        "{sentence}"
    );
}

#[test]
fn a_debugger_that_already_traces_the_command_is_named() {
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

/// Tracing takes the rights of a setuid program away.
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
fn settle_is_refused_without_a_bound_placement() {
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

#[test]
fn a_timed_out_run_and_a_killed_pinwise_leave_no_process() {
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
    while count_shells(&folder) < 2 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_all_end(&folder);
}

/// The number of shells that have this in their command line.
fn count_shells(word: &str) -> usize {
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
    wait_until("the end of all shells", || count_shells(word) == 0);
}
