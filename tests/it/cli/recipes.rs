//! `bench recipes` and `compare --recipe`: the list, refusals, and recipes that really run.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::Stage;
use crate::support::{decode_output, report_skip, wait_until};

/// A small recipe that needs only a shell and sort.
const TINY: &str = r#"name = "tiny"
about = "Sorts."
threads = "One."
timeout_s = 20
generate = "for i in 3 1 2; do echo $i; done > in"
command = "{sort} --parallel={threads} -o {folder}/out {folder}/in"
verify = "test \"$(head -n 1 out)\" = 1"
conclude = "rm out"

[programs]
sort = { package = "coreutils" }

[parameters]
threads = { default = "1", about = "threads of sort" }
"#;

/// A stage with a folder for temporary files, which other users may enter.
fn new_stage() -> Stage {
    let stage = Stage::new();
    let tmp = stage.folder.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    // A recipe that root starts runs as another user, whatever the umask.
    for folder in [stage.folder.path(), &tmp] {
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    stage
}

/// Runs a line with the temporary folder of the stage, which must be empty afterwards. Returns
/// standard output, standard error and exit status.
#[track_caller]
fn run_clean(stage: &Stage, line: &str) -> (String, String, i32) {
    let tmp = stage.folder.path().join("tmp");
    let output = stage.command(line).env("TMPDIR", &tmp).output().unwrap();
    let (out, err) = decode_output(&output);
    let left = list_left_files(&tmp);
    assert!(left.is_empty(), "{line}: {left:?}: {err}");
    (out, err, output.status.code().unwrap_or(-1))
}

fn list_left_files(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn recipes_are_listed_and_shown_in_full() {
    let stage = Stage::new();
    let list = stage.run_for_json("bench recipes");
    let names: Vec<&str> = list["recipes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|recipe| recipe["name"].as_str().unwrap())
        .collect();
    for name in ["xz", "x264", "redis", "postgres", "compile", "python-nbody"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for recipe in list["recipes"].as_array().unwrap() {
        let missing = recipe["missing"].as_array().unwrap();
        assert_eq!(recipe["available"], missing.is_empty(), "{recipe}");
    }
    let text = stage.run_ok("bench recipes");
    text.check_form();
    let shown = stage.run_ok("bench recipes xz");
    stage.write("mine.toml", &shown.out);
    let again = stage.run_ok("bench recipes ./mine.toml");
    assert_eq!(again.out, shown.out);
}

#[test]
fn a_recipe_runs_and_leaves_nothing_behind() {
    let stage = new_stage();
    stage.write("tiny.toml", TINY);
    let line = "--format json compare --recipe ./tiny.toml --parameter threads=1,2 --max-runs 3";
    let (out, err, status) = run_clean(&stage, line);
    assert_eq!(status, 0, "{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let arms = record["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["threads=1", "threads=2"]);
    for arm in arms {
        assert_eq!(arm["workload"]["recipe"], "tiny");
        assert_eq!(arm["runs"].as_array().unwrap().len(), 3);
    }
    assert_eq!(record["metric"]["name"], "wall");
}

#[test]
fn wrong_output_makes_the_arm_invalid() {
    let stage = new_stage();
    stage.write("tiny.toml", &TINY.replace("= 1\"", "= {threads}\""));
    let line = "--format json compare --recipe ./tiny.toml --parameter threads=1,1,2 --max-runs 3";
    let (out, err, status) = run_clean(&stage, line);
    assert_eq!(status, 2, "{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let arms = record["arms"].as_array().unwrap();
    assert_eq!(arms[0]["invalid"], Value::Null);
    assert_eq!(
        arms[2]["invalid"],
        "wrong output: its check says exit status 1"
    );
    assert!(arms[2]["runs"].as_array().unwrap().is_empty());
    stage.write(
        "silent.toml",
        &TINY.replace("verify", "expect = \"^done$\"\nverify"),
    );
    let (_, err, status) = run_clean(
        &stage,
        "compare --recipe ./silent.toml --parameter threads=1,2 --max-runs 3",
    );
    assert_eq!(status, 2);
    let expected = "wrong output: nothing in it matches '^done$'";
    assert!(err.contains(expected), "{err}");
}

/// Whether a process with this argument is alive.
fn is_alive(argument: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0)
            .any(|part| part == argument.as_bytes())
    })
}

#[test]
fn servers_that_do_not_stop_are_killed() {
    let stage = new_stage();
    for (name, per, stop, time) in [
        ("whole", "experiment", "", "86411.5"),
        ("each", "run", "stop = \"kill $(cat pid)\"", "86412.5"),
    ] {
        let server = format!(
            "\n[server]\nstart = '''sleep {time} > /dev/null 2>&1 &\necho $! > pid\n'''\n{stop}\nper = \"{per}\"\n"
        );
        // The command succeeds only while the server is there.
        let recipe = TINY.replace(
            "command = \"{sort} --parallel={threads} -o {folder}/out {folder}/in\"",
            "script = \"kill -0 $(cat pid); {sort} --parallel={threads} -o out in\"",
        );
        stage.write(&format!("{name}.toml"), &format!("{recipe}{server}"));
        let line = format!("compare --recipe ./{name}.toml --parameter threads=1,2 --max-runs 2");
        let (_, err, status) = run_clean(&stage, &line);
        assert_eq!(status, 0, "{name}: {err}");
        assert!(!is_alive(time), "{name}: the server is still there");
    }
}

#[test]
fn leftovers_of_a_killed_pinwise_are_removed_by_the_next() {
    let stage = new_stage();
    stage.write(
        "slow.toml",
        &TINY.replace("generate = \"", "generate = \"sleep 86413.5; "),
    );
    stage.write("tiny.toml", TINY);
    let tmp = stage.folder.path().join("tmp");
    let mut child = stage
        .command("compare --recipe ./slow.toml --place os-default --place cpu:0")
        .env("TMPDIR", &tmp)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the input is generated", || is_alive("86413.5"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        list_left_files(&tmp).len(),
        2,
        "the folder, and the file with its lock"
    );
    let (_, err, status) = run_clean(
        &stage,
        "compare --recipe ./tiny.toml --parameter threads=1,2 --max-runs 2",
    );
    assert_eq!(status, 0, "{err}");
}

#[test]
fn a_simulated_machine_takes_the_recipes_name_as_workload() {
    let stage = new_stage();
    stage.write(
        "two.toml",
        "topology = \"core:2 pu:1\"\n[workload.redis]\nbase_s = 0.5\n[effects]\n\"cpu:0\" = 0.7\n[noise]\nsd = 0.01\n",
    );
    let line = "--machine sim:two.toml --format json compare --recipe redis --seed 1 --place os-default --place cpu:0 --max-runs 12";
    let (out, err, status) = run_clean(&stage, line);
    assert_eq!(status, 0, "{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["best"], "cpu:0");
    assert_eq!(record["arms"][0]["command"], serde_json::json!(["redis"]));
    assert!(
        record["verdict"]["commands"][0]["line"]
            .as_str()
            .unwrap()
            .contains("PROGRAM")
    );
}

/// Each recipe runs once if its programs are installed.
#[test]
fn built_in_recipes_run() {
    let stage = new_stage();
    let list = stage.run_for_json("bench recipes");
    for recipe in list["recipes"].as_array().unwrap() {
        let name = recipe["name"].as_str().unwrap();
        if recipe["available"] != true {
            let missing = &recipe["missing"][0]["program"];
            report_skip(&format!("{name}: no {missing}"));
            continue;
        }
        if name == "redis-net" && !can_create_network_namespaces() {
            report_skip("redis-net: this system refuses network namespaces");
            continue;
        }
        let line = format!(
            "--format json compare --recipe {name} --place os-default --warmup 0 --max-runs 1"
        );
        let (out, err, status) = run_clean(&stage, &line);
        assert_eq!(status, 0, "{name}: {err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        for arm in record["arms"].as_array().unwrap() {
            assert_eq!(arm["invalid"], Value::Null, "{name}");
            assert_eq!(arm["runs"].as_array().unwrap().len(), 1, "{name}: {err}");
        }
    }
}

/// Some systems forbid namespaces to users.
fn can_create_network_namespaces() -> bool {
    let tried = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "true"])
        .output();
    tried.is_ok_and(|output| output.status.success())
}
