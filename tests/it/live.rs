//! Running processes are placed, compared, and restored however pinwise ends.

mod refused;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    PATIENCE, Running, decode_output, find_finding, has_program, pinwise, read_stat_field,
    report_skip, send_signal, split_words, wait_until,
};

fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The CPUs that each thread of a process may use, in the order of the threads' ids.
fn read_masks(process: &str) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let mut threads: Vec<PathBuf> = threads.filter_map(|t| Some(t.ok()?.path())).collect();
    threads.sort();
    let status = threads.iter().filter_map(|path| read(&path.join("status")));
    status
        .filter_map(|status| {
            let line = status
                .lines()
                .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
            Some(line.trim().to_owned())
        })
        .collect()
}

/// The first CPU that this test may use; `None`, with the reason, if it is the only one.
fn find_one_of_two_cpus() -> Option<String> {
    let all = read_masks("self").first().cloned().unwrap_or_default();
    let has_two = all.contains(['-', ',']);
    if !has_two {
        report_skip("this needs two CPUs");
        return None;
    }
    let end = all.find(['-', ',']).unwrap();
    Some(all[..end].to_owned())
}

fn start_pinwise(store: &Path, arguments: &[&str]) -> Running {
    Running::start(pinwise(store).args(arguments))
}

/// Arguments that compare the default with a placement of a process, by its own figure.
fn compare_arguments<'a>(pid: &'a str, place: &'a str, source: [&'a str; 4]) -> Vec<&'a str> {
    let places = ["--place", "os-default", "--place", place];
    [&["compare", "--pid", pid][..], &source, &places].concat()
}

fn run(store: &Path, arguments: &[&str]) -> Output {
    pinwise(store).args(arguments).output().unwrap()
}

#[track_caller]
fn parse_json(output: &Output) -> Value {
    let (out, err) = decode_output(output);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

#[test]
fn a_child_that_is_older_than_pinwise_is_placed() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let own = pinwise(&folder.path().join("store.db"));
    let line = "sleep 600 <&- >&- 2>&- & echo $! > pid; exec \"$0\" apply --for 1s --pid $! --place \"$1\"";
    let variables = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(own.get_program());
    shell.arg(format!("cpu:{cpu}")).envs(variables);
    let output = shell.current_dir(folder.path()).output().unwrap();
    let child = read(&folder.path().join("pid")).unwrap();
    send_signal(child.trim().parse().unwrap(), "KILL");
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    assert!(out.contains(&format!("granted   CPUs {cpu}\n")), "{out}");
}

#[test]
fn a_process_is_placed_and_restored_with_its_children() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    // A name that looks like other fields of /proc/PID/stat, and a child.
    let odd = folder.path().join(") S 1 (\u{1b}[2J");
    std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
    let service = Running::start(Command::new(&odd).args(["-c", "sleep 600 & wait"]));
    let before = read_masks(&service.id());
    let children = format!("/proc/{0}/task/{0}/children", service.id());
    wait_until("the child", || {
        read(Path::new(&children)).is_some_and(|c| !c.trim().is_empty())
    });
    let child = read(Path::new(&children)).unwrap().trim().to_owned();
    let place = format!("cpu:{cpu}");
    let arguments = ["apply", "--pid", &service.id(), "--place", &place];
    for name in ["INT", "TERM", "KILL"] {
        let applying = start_pinwise(&store, &arguments);
        for process in [&service.id(), &child] {
            wait_until(name, || read_masks(process) == [cpu.as_str()]);
        }
        send_signal(applying.0.id(), name);
        for process in [&service.id(), &child] {
            wait_until(name, || read_masks(process) == before);
        }
    }
    // Text and record report it; control characters of the name are not printed.
    let output = run(&store, &[&arguments[..], &["--for", "1s"]].concat());
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    assert!(out.contains(&format!("granted   CPUs {cpu}\n")), "{out}");
    assert!(
        !out.contains('\u{1b}') && !err.contains('\u{1b}'),
        "{out}{err}"
    );
    assert_eq!(read_masks(&service.id()), before);
    let record = parse_json(&run(
        &store,
        &[&arguments[..], &["--for", "300ms", "--format", "json"]].concat(),
    ));
    assert_eq!(record["schema"], "pinwise.applied/1");
    assert_eq!(record["granted_cpus"], cpu.as_str());
    assert_eq!(
        (record["threads"].as_u64(), record["returned"].as_u64()),
        (Some(2), Some(2))
    );
    send_signal(child.parse().unwrap(), "KILL");
}

/// A shell that starts a hundred processes a second. All are killed when it is dropped.
struct GrowingService(Running);

impl GrowingService {
    fn start() -> Self {
        let script = "i=0; while [ $i -lt 400 ]; do sleep 600 & i=$((i+1)); sleep 0.01; done; wait";
        Self(Running::start(
            Command::new("sh").args(["-c", script]).process_group(0),
        ))
    }

    /// The masks of the shell and of all that it started.
    fn read_masks(&self) -> Vec<String> {
        let own = self.0.id();
        let children = format!("/proc/{own}/task/{own}/children");
        let children = read(Path::new(&children)).unwrap_or_default();
        let children = children.split_whitespace().flat_map(read_masks);
        children.chain(read_masks(&own)).collect()
    }
}

impl Drop for GrowingService {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    }
}

#[test]
fn processes_that_start_during_the_restoration_are_restored() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let place = format!("cpu:{cpu}");
    for name in ["KILL", "INT"] {
        let service = GrowingService::start();
        let before = read_masks(&service.0.id());
        let applying = start_pinwise(
            &store,
            &["apply", "--pid", &service.0.id(), "--place", &place],
        );
        let count_placed = || {
            service
                .read_masks()
                .iter()
                .filter(|mask| **mask == cpu)
                .count()
        };
        wait_until("some that are placed", || count_placed() > 50);
        send_signal(applying.0.id(), name);
        let is_as_before = || {
            service
                .read_masks()
                .iter()
                .all(|mask| before.contains(mask))
        };
        wait_until(name, is_as_before);
        std::thread::sleep(Duration::from_millis(600));
        assert!(is_as_before(), "{name}");
    }
}

#[test]
fn a_process_placed_by_others_meanwhile_is_left_alone() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    if !has_program("taskset") {
        return report_skip("taskset is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let service = Running::start_sleep();
    let other = if cpu == "0" { "1" } else { "0" };
    let taskset = |cpus: &str| {
        let set = Command::new("taskset")
            .args(["-cp", cpus, &service.id()])
            .output();
        set.unwrap().status.success()
    };
    let place = format!("cpu:{cpu}");
    let mut command = pinwise(&store);
    command.args(["apply", "--pid", &service.id(), "--place", &place]);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut applying = Running(command.spawn().unwrap());
    wait_until("the placement", || {
        read_masks(&service.id()) == [cpu.as_str()]
    });
    if !taskset(other) {
        return report_skip("CPU 0 and 1 are not both allowed");
    }
    let mut message = BufReader::new(applying.0.stderr.take().unwrap()).lines();
    let line = message.find(|line| line.as_ref().unwrap().contains("left alone"));
    assert!(line.unwrap().unwrap().contains(&format!("now has {other}")));
    send_signal(applying.0.id(), "INT");
    let rest: Vec<String> = message.map(Result::unwrap).collect();
    assert!(applying.0.wait().unwrap().success());
    assert!(
        rest.iter()
            .any(|l| l.contains("left as somebody else set them: 1")),
        "{rest:?}"
    );
    assert_eq!(read_masks(&service.id()), [other]);
}

/// A command that prints 10 req/s if the process is bound to this CPU, else 20.
fn figure_command(process: &str, cpu: &str) -> String {
    format!(
        "sh -c 'if grep -q \"Cpus_allowed_list:.{cpu}$\" /proc/{process}/status; then echo 10 req/s; else echo 20 req/s; fi'"
    )
}

#[test]
fn placements_of_a_service_are_compared_by_its_own_figure() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let service = Running::start_sleep();
    let before = read_masks(&service.id());
    let (command, place) = (figure_command(&service.id(), &cpu), format!("cpu:{cpu}"));
    let compare = |better: &str, more: &[&str]| {
        let metric = format!("regex:(\\d+) req/s {better}");
        let times = split_words("--sample 40ms --settle 10ms --budget 10m --format json");
        let source = ["--metric-command", &command, "--metric", &metric];
        let id = service.id();
        let arguments = compare_arguments(&id, &place, source);
        run(&store, &[&arguments[..], &times, more].concat())
    };
    let slower = parse_json(&compare("higher", &["--max-runs", "10"]));
    assert_eq!(slower["contrasts"][0]["verdict"], "slower", "{slower:#}");
    assert_eq!(slower["verdict"]["kind"], "leave_alone");
    assert_eq!(
        slower["service"]["pid"].as_u64(),
        Some(u64::from(service.0.id()))
    );
    assert_eq!(slower["service"]["name"], "sleep");
    assert_eq!(slower["service"]["command"][1], "600");
    assert_eq!(slower["service"]["sample_s"], 0.04);
    assert_eq!(slower["arms"][1]["runs"][0]["granted_cpus"], cpu.as_str());
    assert_eq!(read_masks(&service.id()), before);
    let faster = parse_json(&compare("lower", &["--max-runs", "10"]));
    assert_eq!(faster["best"], place.as_str());
    let advice = format!("pinwise apply --pid {} --place {place}", service.id());
    match faster["verdict"]["commands"][0]["line"].as_str() {
        Some(line) => assert_eq!(line, advice),
        // While other programs use CPUs, nothing is recommended.
        None => assert!(
            faster["verdict"]["advice"]
                .to_string()
                .contains("while other processes use"),
            "{faster:#}"
        ),
    }
    // A placement that is far worse is rolled back at once, and the exit status is 1.
    let output = compare("higher", &["--max-runs", "10", "--abort-if-worse", "50%"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        decode_output(&output).1
    );
    let aborted = parse_json(&output);
    let why = aborted["arms"][1]["invalid"].as_str().unwrap();
    assert!(
        why.contains("100 % worse than os-default's running median"),
        "{why}"
    );
    assert_eq!(read_masks(&service.id()), before);
}

/// Starts a server of a page with a counter, which counts five times as fast while the process is
/// not bound to this CPU. Returns its port.
fn start_page_server(process: String, cpu: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(1));
            let is_bound = read_masks(&process) == [cpu.as_str()];
            counted.fetch_add(if is_bound { 1 } else { 5 }, Ordering::Relaxed);
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(&mut stream.unwrap(), count.load(Ordering::Relaxed));
        }
    });
    port
}

fn answer(stream: &mut TcpStream, count: u64) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap_or(0);
    let is_page = request[..read].starts_with(b"GET /metrics HTTP/1.1\r\n");
    let body = format!("# TYPE reqs_total counter\nreqs_total{{path=\"/\"}} {count}\n");
    let status = if is_page { "200 OK" } else { "404 Not Found" };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
}

#[test]
fn a_page_in_prometheus_text_is_read() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let service = Running::start_sleep();
    let port = start_page_server(service.id(), cpu.clone());
    let place = format!("cpu:{cpu}");
    let compare = |url: &str, metric: &str| {
        let times = split_words("--sample 200ms --settle 20ms --max-runs 8 --format json");
        let source = ["--metric-url", url, "--metric", metric];
        let id = service.id();
        let arguments = compare_arguments(&id, &place, source);
        run(&store, &[&arguments[..], &times].concat())
    };
    let url = format!("http://127.0.0.1:{port}/metrics");
    let deadline = Instant::now() + PATIENCE;
    // On a busy machine the rate may drift over eight runs, which withholds a verdict.
    let record = loop {
        let record = parse_json(&compare(&url, "prometheus:rate(reqs_total) higher"));
        let contrast = &record["contrasts"][0];
        let ratio = contrast["ratio"].as_f64();
        assert!(ratio.is_none_or(|ratio| ratio > 2.0), "{record}");
        if contrast["verdict"] == "slower" {
            break record;
        }
        assert!(Instant::now() < deadline, "{record}");
    };
    assert_eq!(record["service"]["metric_source"], url.as_str());
    let (_, err) = decode_output(&compare(&url, "prometheus:rate(answers_total) higher"));
    assert!(err.contains("no such metric: answers_total"), "{err}");
    assert!(err.contains("gave '# TYPE reqs_total counter'"), "{err}");
    let other = format!("http://127.0.0.1:{port}/other");
    let refused = compare(&other, "prometheus:reqs_total higher");
    assert_eq!(refused.status.code(), Some(2));
    assert!(decode_output(&refused).1.contains("404 Not Found"));
    // Nothing listens there.
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = compare(&format!("http://{closed}/"), "prometheus:reqs_total higher");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        decode_output(&refused).1.contains("refused"),
        "{}",
        decode_output(&refused).1
    );
}

#[test]
fn a_service_that_dies_leaves_a_record_and_an_interrupted_comparison_restores_it() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let place = format!("cpu:{cpu}");
    let start_comparison = |service: &Running| {
        let command = figure_command(&service.id(), &cpu);
        let metric = "regex:(\\d+) req/s higher";
        let source = ["--metric-command", &command, "--metric", metric];
        let times = split_words("--sample 60ms --settle 10ms --max-runs 100000 --format json");
        let mut command = pinwise(&store);
        command.args(compare_arguments(&service.id(), &place, source));
        command
            .args(times)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut service = Running::start_sleep();
    let pinwise = start_comparison(&service);
    wait_until("the placement", || {
        read_masks(&service.id()) == [cpu.as_str()]
    });
    service.0.kill().unwrap();
    service.0.wait().unwrap();
    let output = pinwise.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        decode_output(&output).1
    );
    let record = parse_json(&output);
    assert!(find_finding(&record, "service_ended").is_some(), "{record}");
    let stored = parse_json(&run(
        &store,
        &["record", "show", "last", "--format", "json"],
    ));
    assert_eq!(stored["id"], record["id"]);
    for (name, status) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        let service = Running::start_sleep();
        let before = read_masks(&service.id());
        let pinwise = start_comparison(&service);
        wait_until(name, || read_masks(&service.id()) == [cpu.as_str()]);
        send_signal(pinwise.id(), name);
        let output = pinwise.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            status,
            "{name}: {}",
            decode_output(&output).1
        );
        wait_until(name, || read_masks(&service.id()) == before);
        // No process of pinwise changes it later.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(read_masks(&service.id()), before, "{name}");
    }
}

/// A cgroup that is removed when it is dropped.
struct OwnCgroup(PathBuf);

impl OwnCgroup {
    fn create(mount: &str, name: &str) -> Option<Self> {
        let folder = Path::new(mount).join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }

    fn take(&self, process: &Running) -> bool {
        std::fs::write(self.0.join("cgroup.procs"), process.id()).is_ok()
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // For a moment the kernel still counts the last process to the group.
        wait_until("an empty cgroup", || std::fs::remove_dir(&self.0).is_ok());
    }
}

/// The mount point of cgroups with this option, or of version 2 for `cgroup2`.
fn find_mount(option: &str) -> Option<String> {
    let table = read(Path::new("/proc/mounts"))?;
    let mut lines = table
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = lines.find(|fields| match option {
        "cgroup2" => fields[2] == "cgroup2",
        option => fields[2] == "cgroup" && fields[3].split(',').any(|own| own == option),
    });
    found.map(|fields| fields[1].to_owned())
}

#[test]
fn cgroups_and_units_are_found_and_their_cpusets_reported() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let place = format!("cpu:{cpu}");
    let name = format!("pinwise-test-{}.service", std::process::id());
    let mut found = 0;
    for option in ["name=systemd", "cgroup2", "cpuset"] {
        let Some(mount) = find_mount(option) else {
            continue;
        };
        let Some(cgroup) = OwnCgroup::create(&mount, &name) else {
            continue;
        };
        if option == "cpuset" {
            for (file, text) in [("cpuset.cpus", cpu.as_str()), ("cpuset.mems", "0")] {
                std::fs::write(cgroup.0.join(file), text).unwrap();
            }
        }
        let service = Running::start_sleep();
        if !cgroup.take(&service) {
            continue;
        }
        found += 1;
        let path = format!("/{name}");
        for (option, value) in [("--cgroup", path.as_str()), ("--unit", name.as_str())] {
            let arguments = [
                "apply", option, value, "--place", &place, "--for", "100ms", "--format", "json",
            ];
            let record = parse_json(&run(&store, &arguments));
            assert_eq!(
                record["service"]["pid"].as_u64(),
                Some(u64::from(service.0.id()))
            );
            assert_eq!(record["returned"], 1, "{record}");
        }
        if option == "cpuset" {
            let other = if cpu == "0" { "cpu:1" } else { "cpu:0" };
            let output = run(&store, &["apply", "--cgroup", &path, "--place", other]);
            let (_, err) = decode_output(&output);
            let by = format!("the cpuset {mount}/{name} leaves only {cpu}");
            assert!(err.contains(&by), "{err}");
        }
        drop(service);
    }
    if found == 0 {
        report_skip("no cgroup can be made here");
    }
}

/// Redis under the load of its own benchmark.
struct Redis {
    server: Running,
    _load: Running,
    port: u16,
}

impl Redis {
    fn start(folder: &Path) -> Option<Self> {
        for program in ["redis-server", "redis-benchmark", "redis-cli"] {
            if !has_program(program) {
                report_skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let text = port.to_string();
        let server = Running::start(
            Command::new("redis-server")
                .args(["--port", &text, "--save", ""])
                .args(split_words("--bind 127.0.0.1 --daemonize no"))
                .current_dir(folder),
        );
        wait_until("redis", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let load = Running::start(Command::new("redis-benchmark").args([
            "-p", &text, "-t", "get", "-l", "-n", "1000000", "-c", "8", "-q",
        ]));
        Some(Self {
            server,
            _load: load,
            port,
        })
    }
}

/// CPU time of a process in user mode and in the kernel, ticks.
fn read_cpu_ticks(process: &str) -> u64 {
    let ticks = |field| read_stat_field(process, field).parse::<u64>().unwrap();
    ticks(14) + ticks(15)
}

#[test]
fn redis_is_compared_under_load_and_restored() {
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let Some(redis) = Redis::start(folder.path()) else {
        return;
    };
    let pid = redis.server.id();
    // Its background threads start after it listens.
    wait_until("redis's threads", || read_masks(&pid).len() > 4);
    let before = read_masks(&pid);
    let (command, place) = (
        format!("redis-cli -p {} info stats", redis.port),
        format!("cpu:{cpu}"),
    );
    let metric = "regex:instantaneous_ops_per_sec:(\\d+) higher";
    let source = ["--metric-command", &command, "--metric", metric];
    let times = split_words("--sample 200ms --settle 100ms --format json --max-runs 7");
    let arguments = [compare_arguments(&pid, &place, source), times].concat();
    let mut compared = None;
    // On a busy machine it may answer no request in the interval of its figure.
    wait_until("a figure above 0", || {
        let ticks_before = read_cpu_ticks(&pid);
        let output = run(&store, &arguments);
        let (_, err) = decode_output(&output);
        let is_done = output.status.success();
        assert!(is_done || err.contains("it must be above 0"), "{err}");
        compared = is_done.then(|| (parse_json(&output), read_cpu_ticks(&pid) - ticks_before));
        is_done
    });
    let (record, used) = compared.unwrap();
    assert_eq!(record["blocks"], 7, "{record}");
    assert_eq!(record["service"]["name"], "redis-server");
    let arms = record["arms"].as_array().unwrap();
    let runs = arms.iter().flat_map(|arm| arm["runs"].as_array().unwrap());
    let runs: Vec<&Value> = runs.collect();
    assert_eq!(arms[1]["runs"][0]["granted_cpus"], cpu.as_str());
    let sum = |figure: fn(&Value) -> &Value| -> f64 {
        runs.iter().filter_map(|run| figure(run).as_f64()).sum()
    };
    // On a busy machine it may get hardly any CPU time.
    assert!(used < 20 || sum(|run| &run["user_s"]) + sum(|run| &run["sys_s"]) > 0.0);
    assert!(sum(|run| &run["metric"]["value"]) > 100.0);
    assert_eq!(read_masks(&pid), before);
    // pinwise is killed while each thread is bound to one CPU.
    let applying = start_pinwise(
        &store,
        &["apply", "--pid", &pid, "--place", "compact/bound"],
    );
    let is_bound = || {
        read_masks(&pid)
            .iter()
            .all(|mask| mask.parse::<usize>().is_ok())
    };
    wait_until("bound threads", is_bound);
    send_signal(applying.0.id(), "KILL");
    wait_until("their old masks", || read_masks(&pid) == before);
}
