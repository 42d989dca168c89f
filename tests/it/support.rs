//! What several tests need: the command, folders, a way to say why a test did
//! not run.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What takes longer never comes, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pinwise command, with a store of its own.
pub(crate) fn pinwise(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinwise"));
    command
        .env("PINWISE_STORE", format!("sqlite:{}", store.display()))
        .env("NO_COLOR", "1")
        // The defaults of the tests' user are not tested.
        .env("PINWISE_CONFIG", "")
        .env_remove("PINWISE_RUN")
        .env_remove("PINWISE_PAGE");
    // What is tested is what goes into a page; its own tests see the real one.
    if pinwise_report::page::PAGE.is_none() {
        command.env("PINWISE_PAGE", root().join("tests/data/page.html"));
    }
    heed_signals(&mut command);
    command
}

/// Signals end the command as they do at a terminal, even if the tests' parent ignores some, as
/// `nohup` and shells in the background do.
pub(crate) fn heed_signals(command: &mut Command) {
    const SIGNALS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];
    let heed = || {
        for signal in SIGNALS {
            #[expect(unsafe_code, reason = "no handler is set, only taken away")]
            // SAFETY: signal may be called between fork and exec.
            let before = unsafe { libc::signal(signal, libc::SIG_DFL) };
            if before == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    if is_ignored(&SIGNALS) {
        #[expect(unsafe_code, reason = "std has no other way")]
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(heed);
        }
    }
}

/// Is one of these signals ignored by this process?
fn is_ignored(signals: &[libc::c_int]) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    signals.iter().any(|signal| mask >> (signal - 1) & 1 == 1)
}

/// Runs pinwise with these arguments and a throw-away store.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    pinwise(&folder.path().join("store.db"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The words of a line of arguments.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Standard output and error as text.
pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Standard output as JSON, of a run that must succeed.
#[track_caller]
pub(crate) fn json(arguments: &[&str]) -> serde_json::Value {
    parse_json(arguments, &run(arguments))
}

/// The same in a session of its own.
#[track_caller]
pub(crate) fn json_in_session(arguments: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pinwise(&folder.path().join("store.db"));
    let command = start_in_session(&mut command);
    parse_json(arguments, &command.args(arguments).output().unwrap())
}

/// Gives a command a session of its own, whose share of the CPUs is that of all other
/// sessions: a thread that yields to a session full of other tests hardly runs.
pub(crate) fn start_in_session(command: &mut Command) -> &mut Command {
    #[expect(unsafe_code, reason = "std has no other way")]
    // SAFETY: the closure makes system calls only.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    }
}

#[track_caller]
fn parse_json(arguments: &[&str], output: &Output) -> serde_json::Value {
    let (out, err) = texts(output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Says why a test does nothing here. It goes past the test harness's capture,
/// which takes only what the macros print, so that a skipped test is seen.
pub(crate) fn skipped(reason: &str) {
    let line = format!("SKIPPED {}: {reason}\n", test_name());
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The name of this test, which is that of its thread.
pub(crate) fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("a thread of a test").to_owned()
}

/// The folder of captured machines and recorded runs, if there is one.
pub(crate) fn corpus() -> Option<PathBuf> {
    match std::env::var_os("PINWISE_CORPUS") {
        Some(folder) if Path::new(&folder).is_dir() => Some(PathBuf::from(folder)),
        Some(folder) => panic!("PINWISE_CORPUS names no folder: {}", folder.display()),
        None => {
            skipped("PINWISE_CORPUS is not set");
            None
        }
    }
}

/// Copies a program that is then started. A file that this process had open to write is
/// busy while a child that another test starts at that moment still has it, too.
#[track_caller]
pub(crate) fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status();
    assert!(copied.unwrap().success());
}

/// For all programs in Go, whose standard library is compiled once and kept.
pub(crate) fn go_settings() -> [(&'static str, PathBuf); 4] {
    [
        ("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")),
        ("GOFLAGS", "-trimpath".into()),
        ("GOTOOLCHAIN", "local".into()),
        ("CGO_ENABLED", "0".into()),
    ]
}

/// Is a program there?
pub(crate) fn has_program(name: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// How many of these replays a test makes: a fifth, unless `PINWISE_REPLAYS=all` asks
/// for all of them. Limits allow for what chance does in that number.
pub(crate) fn replays(all: usize) -> usize {
    match makes_all_replays() {
        true => all,
        false => all.div_ceil(5).max(all.min(2)),
    }
}

/// Does `cargo xtask check --all` run the tests?
pub(crate) fn makes_all_replays() -> bool {
    std::env::var("PINWISE_REPLAYS").is_ok_and(|which| which == "all")
}

/// The content of a file of `tests/data/traces`.
pub(crate) fn recorded_trace(name: &str) -> Vec<u8> {
    unpacked(&format!("traces/{name}.xz"))
}

/// The content of a packed file of `tests/data`.
pub(crate) fn unpacked(name: &str) -> Vec<u8> {
    let packed = std::fs::File::open(root().join("tests/data").join(name)).unwrap();
    let mut content = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(packed, true);
    std::io::Read::read_to_end(&mut reader, &mut content).unwrap();
    content
}

/// A field of `proc_pid_stat(5)`, as the manual numbers them, from 3 on.
pub(crate) fn stat_field(process: impl std::fmt::Display, number: usize) -> String {
    let line = std::fs::read(format!("/proc/{process}/stat")).unwrap();
    let line = String::from_utf8_lossy(&line);
    // A name may hold anything but ends with the last parenthesis.
    let (_, fields) = line.rsplit_once(')').unwrap();
    let mut fields = fields.split_whitespace();
    fields.nth(number - 3).unwrap().to_owned()
}

/// What `/proc/PID/status` says after this word; "gone" without the process.
pub(crate) fn status_line(process: impl std::fmt::Display, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or("gone").trim().to_owned()
}

/// The CPUs that a thread may use.
pub(crate) fn cpus_of(thread: impl std::fmt::Display) -> String {
    status_line(thread, "Cpus_allowed_list:")
}

/// Sends a signal by its name.
#[track_caller]
pub(crate) fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &process.to_string()]).status();
    assert!(sent.unwrap().success(), "kill -s {name} {process}");
}

/// A process of a test's, ended with it.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(quiet.stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn sleeper() -> Self {
        Self::start(Command::new("sleep").arg("600"))
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for an event.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let waited = start.elapsed();
        assert!(waited < PATIENCE, "{what}: not in {waited:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
