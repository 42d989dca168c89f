//! Programs whose files name their generated functions (lists, dumps, and pipes that must not
//! block pinwise), and signals in calls that block.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    PATIENCE, Running, decode_output, has_program, pinwise, report_skip, wait_until,
};

/// Generates code, prints `ready`, and executes the code for half a second, or for ever. Depending
/// on its first argument it names that code in a list, at once or when it ends, or in a dump; or it
/// puts pipes in place of the list and of its own program file.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
/* mov eax, 1000000; dec eax; jne; ret */
static const unsigned char code[] = {0xb8,0x40,0x42,0x0f,0,0xff,0xc8,0x75,0xfc,0xc3};
#else
/* mov w0, 0x10000; subs w0, w0, 1; b.ne; ret */
static const unsigned code[] = {0x52a00020,0x71000400,0x54ffffe1,0xd65f03c0};
#endif
static void list(const char *path, void *page) {
  FILE *map = fopen(path, "w");
  fprintf(map, "%lx 20 made_at_run_time\n", (unsigned long)page);
  fclose(map);
}
int main(int argc, char **argv) {
  char path[4096];
  void (*made)(void);
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof code);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  memcpy(&made, &page, sizeof made);
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  unlink(path);
  if (!strcmp(argv[1], "pipe")) {
    mkfifo(path, 0600);
  } else if (!strcmp(argv[1], "dump")) {
    struct {
      unsigned magic, version, header, machine, zero, pid;
      unsigned long long time, flags;
      unsigned load, size;
      unsigned long long load_time;
      unsigned load_pid, thread;
      unsigned long long file_address, address, bytes, index;
      char name[17];
    } __attribute__((packed)) dump = {.magic = 0x4a695444, .version = 1, .header = 40,
        .size = 73, .address = (unsigned long long)page, .bytes = 32,
        .name = "made_at_run_time"};
    snprintf(path, sizeof path, "%s/jit-%d.dump", argv[2], (int)getpid());
    FILE *file = fopen(path, "w+");
    fwrite(&dump, sizeof dump, 1, file);
    fflush(file);
    if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
      return 3;
    fclose(file);
  } else if (!strcmp(argv[1], "list")) {
    list(path, page);
  }
  if (!strcmp(argv[1], "pipe")) {
    char gone[4096];
    ssize_t length = readlink("/proc/self/exe", gone, sizeof gone - 16);
    gone[length] = 0;
    unlink(gone);
    strcat(gone, " (deleted)");
    mkfifo(gone, 0600);
  }
  printf("ready\n");
  fflush(stdout);
  clock_t end = clock() + CLOCKS_PER_SEC / 2;
  while (!strcmp(argv[1], "pipe") || clock() < end) made();
  if (!strcmp(argv[1], "late list")) {
    /* As Java does it. The test removes the list. */
    char link[4096];
    list(path, page);
    snprintf(link, sizeof link, "%s/late", argv[2]);
    if (symlink(path, link)) return 3;
  } else {
    unlink(path);
  }
  return 0;
}
"#;

/// Compiles the program in a folder; `None`, with a message, if there is no compiler.
fn compile_program(folder: &Path) -> Option<PathBuf> {
    if !has_program("cc") {
        report_skip("no C compiler (cc)");
        return None;
    }
    let (source, program) = (folder.join("makes.c"), folder.join("makes"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", decode_output(&output).1);
    Some(program)
}

/// A process that is killed when this is dropped, with its list of names.
struct ProcessWithList(Child);

impl Drop for ProcessWithList {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let map = format!("/tmp/perf-{}.map", self.0.id());
        let _ = std::fs::remove_file(map);
    }
}

/// The record of `pinwise profile` with these arguments; `None`, with the reason, if nothing can be
/// sampled here.
#[track_caller]
fn profile(folder: &Path, arguments: &[&str]) -> Option<Value> {
    let out = folder.join("profile.json");
    let mut command = pinwise(&folder.join("store"));
    command
        .args(["profile", "--store", "none", "--export-json"])
        .arg(&out);
    command.args(arguments).stdout(Stdio::null());
    let mut child = Running(command.spawn().unwrap());
    wait_until("the end of pinwise", || {
        child.0.try_wait().unwrap().is_some()
    });
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let record: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    if record["event"] == "proc" {
        report_skip(&format!("no samples here: {}", record["notes"]));
        return None;
    }
    Some(record)
}

/// Share of the CPU time in functions of this name.
fn cpu_share(record: &Value, name: &str) -> f64 {
    let functions = record["functions"].as_array().unwrap().iter();
    let seconds = |one: &Value| one["own"]["cpu_s"].as_f64().unwrap();
    let all: f64 = functions.clone().map(seconds).sum();
    let named = functions.filter(|one| one["name"].as_str().unwrap().contains(name));
    named.map(seconds).sum::<f64>() / all
}

#[test]
fn a_pipe_in_place_of_a_list_or_a_program_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_program(folder.path()) else {
        return;
    };
    let mut command = Command::new(&program);
    command.args(["pipe", "endless"]).stdout(Stdio::piped());
    let mut hostile = ProcessWithList(command.spawn().unwrap());
    let mut ready = String::new();
    let out = hostile.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let pid = hostile.0.id().to_string();
    let Some(record) = profile(folder.path(), &["--pid", &pid, "--for", "300ms"]) else {
        return;
    };
    let notes = record["notes"].to_string();
    assert!(notes.contains("it is not a regular file"), "{notes}");
}

#[test]
fn generated_code_has_the_names_that_its_program_gives() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_program(folder.path()) else {
        return;
    };
    let (program, here) = (program.to_str().unwrap(), folder.path().to_str().unwrap());
    // By the time that names are looked up, the program is gone.
    for way in ["list", "late list", "dump"] {
        let record = profile(folder.path(), &["--", program, way, here]);
        if let Ok(list) = std::fs::read_link(folder.path().join("late")) {
            let _ = std::fs::remove_file(list);
        }
        let Some(record) = record else { return };
        assert!(
            cpu_share(&record, "made_at_run_time") > 0.5,
            "{way}: {record:#}"
        );
    }
}

#[test]
fn functions_of_node_have_the_names_of_its_dump() {
    if !has_program("node") {
        return report_skip("no node");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let hot = "function hotSum(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1009; return s; }\n\
        let all = 0; while (process.cpuUsage().user < 7e5) all += hotSum(100000); console.log(all);\n";
    std::fs::write(here.join("sum.js"), hot).unwrap();
    let command = format!("cd {} && exec node --perf-prof sum.js", here.display());
    let Some(record) = profile(here, &["--", "sh", "-c", &command]) else {
        return;
    };
    assert!(cpu_share(&record, "hotSum") > 0.4, "{record:#}");
}

/// The number of the system call in which a process waits.
fn read_system_call(pid: u32) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    text.split(' ').next()?.parse().ok()
}

#[test]
fn a_second_signal_ends_pinwise_even_in_a_blocking_call() {
    if read_system_call(std::process::id()).is_none() && !Path::new("/proc/self/syscall").exists() {
        return report_skip("the kernel does not show system calls (/proc/PID/syscall)");
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        // pinwise checks the name before the command makes a pipe of it. No process reads the
        // pipe: opening it never returns.
        let mut command = pinwise(&folder.path().join("store"));
        command.args(["spin", "attach", "--store", "none", "--export-json"]);
        command.arg(&pipe).args(["--", "mkfifo"]).arg(&pipe);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the call is permitted between fork and exec.
        #[expect(unsafe_code, reason = "a test may have been started with it ignored")]
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = Running(command.spawn().unwrap());
        let pid = child.0.id();
        let start = Instant::now();
        let mut opens = 0;
        while opens < 5 {
            let is_opening = read_system_call(pid) == Some(libc::SYS_openat);
            opens = if is_opening { opens + 1 } else { 0 };
            assert!(start.elapsed() < PATIENCE, "pinwise does not open the pipe");
            assert!(child.0.try_wait().unwrap().is_none(), "pinwise ended early");
            std::thread::sleep(Duration::from_millis(20));
        }
        let send = |signal: libc::c_int| {
            let mut kill = Command::new("kill");
            kill.arg(format!("-{signal}")).arg(pid.to_string());
            kill.status().unwrap();
        };
        // After the first signal pinwise would end by itself if it could.
        send(signal);
        assert!(child.0.try_wait().unwrap().is_none());
        while child.0.try_wait().unwrap().is_none() {
            assert!(
                start.elapsed() < PATIENCE,
                "a second signal does not end pinwise"
            );
            std::thread::sleep(Duration::from_millis(50));
            send(signal);
        }
        assert_eq!(child.0.wait().unwrap().signal(), Some(signal));
    }
}
