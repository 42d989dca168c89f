//! Functions that several tests need: to run the command, to find data, to wait, and to say why a
//! test did not run.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Longer than anything takes on a loaded machine: the event that a test waits for never comes.
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
        // No defaults from the configuration of the user who runs the tests.
        .env("PINWISE_CONFIG", "")
        .env_remove("PINWISE_RUN")
        .env_remove("PINWISE_PAGE");
    // Tests of this crate read what pinwise puts into a page; the page has tests of its own.
    if pinwise_report::page::PAGE.is_none() {
        command.env("PINWISE_PAGE", root().join("tests/data/page.html"));
    }
    reset_signals(&mut command);
    command
}

/// Makes signals end the command as at a terminal, even if the parent of the tests ignores some,
/// as `nohup` and shells in the background do.
pub(crate) fn reset_signals(command: &mut Command) {
    const SIGNALS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];
    let reset = || {
        for signal in SIGNALS {
            #[expect(unsafe_code, reason = "std cannot reset a signal")]
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
            command.pre_exec(reset);
        }
    }
}

/// Whether this process ignores one of these signals.
fn is_ignored(signals: &[libc::c_int]) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    signals.iter().any(|signal| mask >> (signal - 1) & 1 == 1)
}

/// Runs pinwise with these arguments and a temporary store.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    pinwise(&folder.path().join("store.db"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Splits a line of arguments at each space.
pub(crate) fn split_words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Standard output and error as text.
pub(crate) fn decode_output(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Standard output as JSON, of a run that must succeed.
#[track_caller]
pub(crate) fn run_for_json(arguments: &[&str]) -> serde_json::Value {
    parse_json(arguments, &run(arguments))
}

/// The same in a session of its own.
#[track_caller]
pub(crate) fn run_for_json_in_session(arguments: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pinwise(&folder.path().join("store.db"));
    let command = start_in_session(&mut command);
    parse_json(arguments, &command.args(arguments).output().unwrap())
}

/// Runs a measurement and parses its JSON; `None`, with the reason, if another pinwise keeps
/// measuring on this machine, as only one may at a time.
#[track_caller]
pub(crate) fn run_for_json_unless_busy(arguments: &[&str]) -> Option<serde_json::Value> {
    let output = run(arguments);
    let (_, err) = decode_output(&output);
    if err.contains("another pinwise") {
        report_skip(err.trim());
        return None;
    }
    Some(parse_json(arguments, &output))
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
    let (out, err) = decode_output(output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Prints why a test does nothing here. The test harness captures only what macros print: this
/// line is always shown.
pub(crate) fn report_skip(reason: &str) {
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
            report_skip("PINWISE_CORPUS is not set");
            None
        }
    }
}

/// Copies a program that is then started, by another process: a file that this process had open to
/// write is busy while a child of another test holds the descriptor.
#[track_caller]
pub(crate) fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status();
    assert!(copied.unwrap().success());
}

/// Environment variables for programs in Go, whose standard library is compiled once and kept.
pub(crate) fn go_settings() -> [(&'static str, PathBuf); 4] {
    [
        ("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")),
        ("GOFLAGS", "-trimpath".into()),
        ("GOTOOLCHAIN", "local".into()),
        ("CGO_ENABLED", "0".into()),
    ]
}

/// A generator for tests at random moments. It prints its seed, which `PINWISE_TEST_SEED` sets.
pub(crate) fn random_generator() -> ChaCha8Rng {
    let seed = match std::env::var("PINWISE_TEST_SEED") {
        Ok(text) => text.parse().expect("PINWISE_TEST_SEED is a number"),
        Err(_) => std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
    };
    eprintln!("PINWISE_TEST_SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// Whether a program is installed.
pub(crate) fn has_program(name: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The number of `all` replays that a test runs: a fifth, or all with `PINWISE_REPLAYS=all`. The
/// limits of such tests allow for chance in that number.
pub(crate) fn replay_count(all: usize) -> usize {
    match runs_all_replays() {
        true => all,
        false => all.div_ceil(5).max(all.min(2)),
    }
}

/// Whether all replays are requested, as by `cargo xtask check --all`.
pub(crate) fn runs_all_replays() -> bool {
    std::env::var("PINWISE_REPLAYS").is_ok_and(|which| which == "all")
}

/// Unpacks a file of `tests/data/traces`.
pub(crate) fn read_recorded_trace(name: &str) -> Vec<u8> {
    unpack(&format!("traces/{name}.xz"))
}

/// Unpacks a file of `tests/data` that xz has packed.
pub(crate) fn unpack(name: &str) -> Vec<u8> {
    let packed = std::fs::File::open(root().join("tests/data").join(name)).unwrap();
    let mut content = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(packed, true);
    std::io::Read::read_to_end(&mut reader, &mut content).unwrap();
    content
}

/// A field of `proc_pid_stat(5)`, as the manual numbers them, from 3 on.
pub(crate) fn read_stat_field(process: impl std::fmt::Display, number: usize) -> String {
    let line = std::fs::read(format!("/proc/{process}/stat")).unwrap();
    let line = String::from_utf8_lossy(&line);
    // A name may hold anything but ends with the last parenthesis.
    let (_, fields) = line.rsplit_once(')').unwrap();
    let mut fields = fields.split_whitespace();
    fields.nth(number - 3).unwrap().to_owned()
}

/// The value of a key in `/proc/PID/status`; "gone" if there is no such process.
pub(crate) fn read_status_line(process: impl std::fmt::Display, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or("gone").trim().to_owned()
}

/// The CPUs that a thread may use, as a list.
pub(crate) fn read_allowed_cpus(thread: impl std::fmt::Display) -> String {
    read_status_line(thread, "Cpus_allowed_list:")
}

/// Sends a signal by its name.
#[track_caller]
pub(crate) fn send_signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &process.to_string()]).status();
    assert!(sent.unwrap().success(), "kill -s {name} {process}");
}

/// A process that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(quiet.stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn start_shell(line: &str) -> Self {
        Self::start(Command::new("sh").args(["-c", line]))
    }

    pub(crate) fn start_sleep() -> Self {
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

/// The finding of a check in a record.
pub(crate) fn find_finding<'a>(
    record: &'a serde_json::Value,
    check: &str,
) -> Option<&'a serde_json::Value> {
    let findings = record["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["check"] == check)
}

/// Waits until a condition holds; panics with the name of the event if it never does.
#[track_caller]
pub(crate) fn wait_until(event: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let waited = start.elapsed();
        assert!(waited < PATIENCE, "{event}: not in {waited:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
