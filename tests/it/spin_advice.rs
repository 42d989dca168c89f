//! Values that `spin advise` suggests are accepted by the runtimes that are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{decode_output, has_program, report_skip, run_for_json};

/// A program with a team of OpenMP threads.
const TEAM: &str = "
int main(void) {
  int n = 0;
#pragma omp parallel reduction(+ : n)
  n++;
  return n == 0;
}
";

/// The advice about this algorithm.
fn list_advice(algorithm: &str) -> Vec<Value> {
    let record = run_for_json(&["--format", "json", "spin", "advise", "--chip", "skylake-sp"]);
    let rows = record["advice"].as_array().unwrap().iter();
    let found: Vec<Value> = rows
        .filter(|row| row["algorithm"] == algorithm)
        .cloned()
        .collect();
    assert!(!found.is_empty(), "no advice for {algorithm}");
    found
}

/// The usual and the suggested value: the usual one where it is right on this machine.
fn read_values(row: &Value) -> [&str; 2] {
    let usual = row["usual"].as_str().unwrap();
    [usual, row["suggested"].as_str().unwrap_or(usual)]
}

/// Runs a program with these environment variables, and returns both of its streams.
fn run_with(program: &Path, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    for name in [
        "GOMP_SPINCOUNT",
        "KMP_BLOCKTIME",
        "LD_PRELOAD",
        "MALLOC_CONF",
    ] {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let (out, err) = decode_output(&output);
    out + &err
}

/// Finds a library whose file name begins like this in the usual folders.
fn find_library(name: &str) -> Option<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect()
    };
    let mut folders = vec![PathBuf::from("/usr/lib"), PathBuf::from("/usr/lib64")];
    folders.extend(list(Path::new("/usr/lib")));
    let inner: Vec<PathBuf> = folders.iter().map(|folder| folder.join("lib")).collect();
    folders.extend(inner);
    let mut all = folders.iter().flat_map(|folder| list(folder));
    all.find(|path| {
        let file = path.file_name().and_then(|file| file.to_str());
        file.is_some_and(|file| file.starts_with(name))
    })
}

/// Compiles the program; `None`, with a message, if that is impossible.
fn compile_team(folder: &Path) -> Option<PathBuf> {
    if !has_program("cc") {
        report_skip("no C compiler (cc)");
        return None;
    }
    let (source, program) = (folder.join("team.c"), folder.join("team"));
    std::fs::write(&source, TEAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .arg("-fopenmp")
        .arg("-o")
        .arg(&program)
        .arg(&source);
    let output = compiler.output().unwrap();
    if !output.status.success() {
        report_skip("the compiler has no OpenMP");
        return None;
    }
    Some(program)
}

#[test]
fn libomp_accepts_the_values_for_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = find_library("libomp.so") else {
        return report_skip("libomp is not installed");
    };
    let Some(program) = compile_team(folder.path()) else {
        return;
    };
    let path = std::fs::canonicalize(&library).unwrap();
    let path = path.to_str().unwrap();
    let refuses = |value: &str| {
        let message = run_with(&program, &[("LD_PRELOAD", path), ("KMP_BLOCKTIME", value)]);
        message.contains("KMP_BLOCKTIME")
    };
    assert!(refuses("nonsense"), "{path} does not read KMP_BLOCKTIME");
    let knows_units = !refuses("1ms");
    // If the folder names the version, the advice names the same one.
    let version = path.split("/llvm-").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    assert!(version.is_none_or(|version| (version >= 18) == knows_units));
    let rows = list_advice("libomp");
    let versions = if knows_units {
        "18 and later"
    } else {
        "before 18"
    };
    let mut rows = rows.iter();
    let row = rows.find(|row| row["versions"].as_str().unwrap().contains(versions));
    for value in read_values(row.unwrap()) {
        assert!(!refuses(value), "KMP_BLOCKTIME={value} with {path}");
    }
}

#[test]
fn libgomp_accepts_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_team(folder.path()) else {
        return;
    };
    let show = |value: &str| {
        let environment = [("OMP_DISPLAY_ENV", "VERBOSE"), ("GOMP_SPINCOUNT", value)];
        run_with(&program, &environment)
    };
    if !show("1").contains("GOMP_SPINCOUNT") {
        return report_skip("the compiler's OpenMP is not libgomp");
    }
    for row in list_advice("libgomp") {
        for value in read_values(&row) {
            let shown = show(value);
            assert!(
                shown.contains(&format!("GOMP_SPINCOUNT = '{value}'")),
                "{shown}"
            );
        }
    }
}

#[test]
fn jemalloc_accepts_its_values() {
    let Some(library) = find_library("libjemalloc.so.2") else {
        return report_skip("jemalloc is not installed");
    };
    let show = |value: &str| {
        let setting = format!("stats_print:true,mutex_max_spin:{value}");
        let preload = library.to_str().unwrap();
        let environment = [("LD_PRELOAD", preload), ("MALLOC_CONF", setting.as_str())];
        run_with(Path::new("/bin/true"), &environment)
    };
    let first = show("1");
    let is_old = ["Version: \"5.0", "Version: \"5.1", "Version: \"5.2"];
    if is_old.iter().any(|version| first.contains(version)) {
        return report_skip("jemalloc is older than 5.3");
    }
    for row in list_advice("jemalloc") {
        for value in read_values(&row) {
            let shown = show(value);
            assert!(
                shown.contains(&format!("opt.mutex_max_spin: {value}\n")),
                "{shown}"
            );
        }
    }
}

#[test]
fn glibc_accepts_its_values() {
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let Some(loader) = loaders.into_iter().find(|path| Path::new(path).exists()) else {
        return report_skip("no glibc");
    };
    for row in list_advice("glibc_adaptive") {
        let name = row["setting"].as_str().unwrap();
        for value in read_values(&row) {
            let output = Command::new(loader)
                .arg("--list-tunables")
                .env("GLIBC_TUNABLES", format!("{name}={value}"))
                .output()
                .unwrap();
            let (out, _) = decode_output(&output);
            let Some(line) = out.lines().find(|line| line.starts_with(name)) else {
                return report_skip("the loader does not list this setting");
            };
            assert!(line.starts_with(&format!("{name}: {value} (")), "{line}");
        }
    }
}

#[test]
fn databases_accept_their_values() {
    for (server, algorithm) in [("mysqld", "innodb_8"), ("mariadbd", "mariadb_srw")] {
        if !has_program(server) {
            report_skip(&format!("{server} is not installed"));
            continue;
        }
        for row in list_advice(algorithm) {
            let name = row["setting"].as_str().unwrap().replace('_', "-");
            for value in read_values(&row) {
                let setting = format!("--{name}={value}");
                let output = Command::new(server)
                    .args(["--no-defaults", &setting, "--verbose", "--help"])
                    .output()
                    .unwrap();
                let (out, err) = decode_output(&output);
                let line = out.lines().find(|line| line.starts_with(&name));
                let is_accepted = line.is_some_and(|line| line.ends_with(&format!(" {value}")));
                assert!(is_accepted, "{server} {setting}: {line:?} {err}");
            }
        }
    }
}
