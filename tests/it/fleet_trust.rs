//! Fleets of users who do not trust each other: folders, records and nodes that another user made,
//! changed or planted.
//!
//! Root becomes the other user; without root these tests are skipped.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::fleet::{QUICK, Site};
use crate::support::{decode_output, report_skip, wait_until};

/// The id of another user.
const OTHER: u32 = 65_533;
/// The id of a group without members.
const GROUP: u32 = 65_532;

/// Whether commands can be run as the other user.
fn can_become_other() -> bool {
    let program = env!("CARGO_BIN_EXE_pinwise");
    let status = become_other(Command::new(program).arg("--version"), OTHER).output();
    let can_become = status.is_ok_and(|output| output.status.success());
    if !can_become {
        report_skip("it needs root, and a folder of programs that all may enter");
    }
    can_become
}

/// Makes a command run as the other user, in this group.
fn become_other(command: &mut Command, group: u32) -> &mut Command {
    command.uid(OTHER).gid(group)
}

/// A folder and everything in it.
fn list_tree(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            all.extend(list_tree(&entry.unwrap().path()));
        }
    }
    all
}

/// Gives a folder and everything in it to the other user.
fn hand_over(path: &Path) {
    for path in list_tree(path) {
        lchown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
}

fn read_mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Whether the other user, as a member of the group, can run this script with the folder as `$1`.
fn can_other_run(folder: &Path, script: &str) -> bool {
    let mut sh = Command::new("sh");
    sh.args(["-c", script, "sh"]).arg(folder);
    become_other(&mut sh, GROUP)
        .output()
        .unwrap()
        .status
        .success()
}

/// Waits until the first attempt of each node has ended and written all its files.
#[track_caller]
fn wait_until_ended(site: &Site, folder: &Path) -> Value {
    let status = site.wait_until_ended(folder.to_str().unwrap());
    for node in std::fs::read_dir(folder.join("nodes")).unwrap() {
        let ended = node.unwrap().path().join("ended-1.json");
        wait_until("the node has ended", || ended.exists());
    }
    status
}

/// A site whose template creates the file `mark` whenever it is run, except for a submission.
struct Trap {
    site: Site,
    mark: PathBuf,
}

impl Trap {
    fn new() -> Self {
        let site = Site::new(QUICK);
        let mark = site.path("mark");
        let template = format!(
            "name = \"trap\"\n[submit]\ncommand = \"{{command}} >>{{log}} 2>&1; echo 1\"\njob = '^(1)$'\n\
             [status]\ncommand = \"touch {mark}; echo ended\"\n\
             states = [{{ pattern = '^ended', stage = \"ended\" }}]\n\
             [cancel]\ncommand = \"touch {mark}\"\n",
            mark = mark.display()
        );
        std::fs::write(site.path("trap.toml"), template).unwrap();
        Self { site, mark }
    }

    #[track_caller]
    fn submit(&self, id: &str) -> PathBuf {
        let words = ["fleet", "submit", "--launcher", "trap.toml"];
        let more = ["--nodelist", "n1", "--id", id, "study.toml"];
        self.site.run_for_text(&[&words[..], &more].concat());
        self.site.fleet_folder(id)
    }

    /// Whether the template was run; removes the mark.
    fn was_run(&self) -> bool {
        std::fs::remove_file(&self.mark).is_ok()
    }

    /// Runs `fleet` with these words, which must not run the template, and checks the exit status.
    /// Returns the output of both streams.
    #[track_caller]
    fn run_untriggered(&self, words: &[&str], status: i32) -> String {
        let output = self.site.run(&[&["fleet"], words].concat());
        let (out, err) = decode_output(&output);
        assert!(!self.was_run(), "{words:?} ran the template");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {out}{err}");
        format!("{out}{err}")
    }
}

#[test]
fn templates_of_another_user_are_never_run() {
    if !can_become_other() {
        return;
    }
    let trap = Trap::new();
    let folder = trap.submit("f");
    trap.site.run_for_text(&["fleet", "status", "f"]);
    assert!(trap.was_run(), "the trap does not work");
    hand_over(&folder);
    let belongs = format!("belongs to user {OTHER}");
    // A fleet that is named by its path is read, but its commands are not run.
    let path = folder.to_str().unwrap();
    for name in [path, "pinwise-fleet/f", "./pinwise-fleet/f"] {
        let reported = trap.run_untriggered(&["status", name], 0);
        assert!(
            reported.contains("The scheduler is not asked"),
            "{reported}"
        );
        assert!(reported.contains(&belongs), "{reported}");
        let reported = trap.run_untriggered(&["collect", name], 0);
        assert!(reported.contains("1 record of 1 node"), "{reported}");
        trap.run_untriggered(&["report", name], 0);
        for verb in ["cancel", "resume"] {
            let reported = trap.run_untriggered(&[verb, name], 2);
            assert!(reported.contains(&belongs), "{verb}: {reported}");
            assert_eq!(reported.lines().count(), 1, "{reported}");
        }
    }
    // A fleet that is found by its id, in the folder or through the store, is refused.
    std::fs::rename(&folder, trap.site.path("f")).unwrap();
    for verb in ["status", "collect", "cancel", "resume", "report"] {
        let reported = trap.run_untriggered(&[verb, "f"], 2);
        assert!(reported.contains(&belongs), "{verb}: {reported}");
    }
    std::fs::rename(trap.site.path("f"), &folder).unwrap();
    for verb in ["status", "collect", "cancel", "resume"] {
        let reported = trap.run_untriggered(&[verb, "f"], 2);
        assert!(reported.contains(&belongs), "{verb}: {reported}");
    }
    let elsewhere = trap.site.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for verb in ["status", "collect", "cancel", "resume"] {
        let output = trap
            .site
            .command(&["fleet", verb, "f"])
            .current_dir(&elsewhere)
            .output()
            .unwrap();
        let (_, err) = decode_output(&output);
        assert!(!trap.was_run(), "{verb}");
        assert_eq!(output.status.code(), Some(2), "{verb}: {err}");
        assert!(err.contains(&belongs) && err.contains("not yours"), "{err}");
    }
}

#[test]
fn templates_that_others_could_write_are_not_run() {
    let trap = Trap::new();
    let folder = trap.submit("f");
    let parent = folder.parent().unwrap().to_owned();
    let path = folder.to_str().unwrap();
    let cases = [
        (folder.clone(), 0o770),
        (folder.clone(), 0o707),
        (folder.clone(), 0o1777),
        (folder.join("fleet.json"), 0o660),
        (folder.join("submission.json"), 0o602),
        (folder.join("pinwise"), 0o720),
        (folder.join("nodes"), 0o2770),
        (folder.join("jobs"), 0o777),
        (parent.clone(), 0o777),
        (parent.clone(), 0o2775),
    ];
    for (what, loose) in cases {
        let tight = read_mode(&what);
        set_mode(&what, loose);
        let reported = trap.run_untriggered(&["status", path], 0);
        assert!(reported.contains("it is writable by others"), "{reported}");
        for verb in ["cancel", "resume"] {
            let reported = trap.run_untriggered(&[verb, path], 2);
            assert!(
                reported.contains("it is writable by others"),
                "{verb}: {reported}"
            );
            assert_eq!(reported.lines().count(), 1, "{reported}");
            trap.run_untriggered(&[verb, "last"], 2);
        }
        trap.run_untriggered(&["status", "f"], 2);
        set_mode(&what, tight);
    }
    // In a sticky folder others may create other folders, but cannot rename this one.
    set_mode(&parent, 0o3777);
    trap.site.run_for_text(&["fleet", "status", path]);
    assert!(trap.was_run(), "a sticky parent folder is trusted");
    trap.run_untriggered(&["collect", path], 0);
}

#[test]
fn parent_folders_must_belong_to_the_user() {
    let site = Site::new(QUICK);
    let submit = |dir: &str| {
        let words = ["fleet", "submit", "--launcher", "local", "--nodes", "1"];
        let more = ["--id", "f", "--dir", dir, "study.toml"];
        site.run(&[&words[..], &more].concat())
    };
    let shared = site.path("shared");
    std::fs::create_dir_all(shared.join("inner")).unwrap();
    set_mode(&shared, 0o2775);
    for dir in ["shared/f", "shared/inner/f", "shared/new/f"] {
        let output = submit(dir);
        let (_, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{dir}: {err}");
        assert!(
            err.contains("shared: it is writable by others"),
            "{dir}: {err}"
        );
        assert!(err.contains("--dir"), "{err}");
        assert!(!site.path(dir).exists(), "{dir}");
    }
    assert!(!shared.join("new").exists(), "no parent folder is created");
    set_mode(&shared, 0o3775);
    if can_become_other() {
        chown(&shared, Some(OTHER), None).unwrap();
        let (_, err) = decode_output(&submit("shared/f"));
        assert!(err.contains("could replace files in it"), "{err}");
        chown(&shared, Some(0), None).unwrap();
    }
    let output = submit("shared/f");
    assert!(output.status.success(), "{:?}", decode_output(&output));
    site.wait_until_ended("f");
}

/// As in the shared folder of a project.
#[test]
fn other_users_cannot_enter_a_fleet_whatever_the_umask() {
    let site = Site::new(QUICK);
    set_mode(site.path("").as_path(), 0o755);
    let project = site.path("project");
    std::fs::create_dir(&project).unwrap();
    let is_root = chown(&project, None, Some(GROUP)).is_ok();
    set_mode(&project, 0o3777);
    for umask in ["0000", "0002", "0077"] {
        let id = format!("f{umask}");
        let folder = project.join(&id);
        let careless = format!("umask {umask}; exec \"$@\"");
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &careless,
                "sh",
                env!("CARGO_BIN_EXE_pinwise"),
                "fleet",
                "submit",
            ])
            .args(["--launcher", "local", "--nodes", "2", "--id", &id, "--dir"])
            .arg(&folder)
            .arg("study.toml")
            .env("PINWISE_STORE", "none")
            .current_dir(site.path(""));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{umask}: {:?}",
            decode_output(&output)
        );
        let status = wait_until_ended(&site, &folder);
        assert_eq!(status["done"], 2, "{umask}: {status:#}");
        for path in list_tree(&folder) {
            let mode = read_mode(&path);
            assert_eq!(mode & 0o077, 0, "{umask}: {} {mode:o}", path.display());
        }
        assert_eq!(read_mode(&folder.join("pinwise")), 0o700);
        if is_root && can_become_other() {
            let attack = "cp /bin/true \"$1/pinwise\" || mv \"$1\" \"$1.old\" || ls \"$1\"";
            assert!(!can_other_run(&folder, attack), "{umask}");
        }
    }
}

#[test]
fn a_group_reads_results_and_nothing_else() {
    if !can_become_other() {
        return;
    }
    let site = Site::new(QUICK);
    set_mode(site.path("").as_path(), 0o755);
    let group = GROUP.to_string();
    let careless = ["-c", "umask 0; exec \"$@\"", "sh"];
    let output = Command::new("sh")
        .args(careless)
        .args([env!("CARGO_BIN_EXE_pinwise"), "fleet", "submit"])
        .args(["--launcher", "local", "--nodes", "1", "--id", "f"])
        .args(["--share-with", &group, "study.toml"])
        .env("PINWISE_STORE", "none")
        .current_dir(site.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", decode_output(&output));
    let folder = site.fleet_folder("f");
    let path = folder.to_str().unwrap();
    assert_eq!(wait_until_ended(&site, &folder)["done"], 1);
    for path in list_tree(&folder) {
        let found = path.symlink_metadata().unwrap();
        let mode = found.mode() & 0o7777;
        assert_eq!(mode & 0o027, 0, "{} {mode:o}", path.display());
        assert!(
            mode & 0o070 == 0 || found.gid() == GROUP,
            "{}",
            path.display()
        );
    }
    let mine = tempfile::tempdir().unwrap();
    chown(mine.path(), Some(OTHER), None).unwrap();
    let run = |group: u32, words: &[&str]| -> Output {
        let mut command = crate::support::pinwise(&mine.path().join("store.db"));
        command.args(words).current_dir(mine.path());
        become_other(&mut command, group).output().unwrap()
    };
    let (out, err) = decode_output(&run(GROUP, &["fleet", "collect", path]));
    assert_eq!(out, "Fleet f: 1 record of 1 node, 1 new.\n", "{err}");
    let output = run(GROUP, &["fleet", "status", path]);
    assert!(output.status.success(), "{:?}", decode_output(&output));
    let (_, err) = decode_output(&run(OTHER, &["fleet", "collect", path]));
    assert!(err.contains("Permission denied"), "{err}");
    for secret in [
        "submission.json",
        "pinwise",
        "files",
        "jobs",
        "turn",
        "nodes/local-1/.own",
    ] {
        assert!(
            !can_other_run(&folder, &format!("test -r \"$1/{secret}\"")),
            "{secret}"
        );
    }
    for attack in [
        "echo x >>\"$1/nodes/local-1/log\"",
        "echo x >\"$1/nodes/local-1/x.json\"",
        "mkdir \"$1/nodes/x\"",
        "rm -f \"$1/fleet.json\" && ! test -e \"$1/fleet.json\"",
    ] {
        assert!(!can_other_run(&folder, attack), "{attack}");
    }
    assert!(can_other_run(
        &folder,
        "test -r \"$1/nodes/local-1/quick.json\""
    ));
    let submit = ["fleet", "submit", "--launcher", "local", "--nodes", "1"];
    let share = ["--share-with", "no such group", "study.toml"];
    let err = site.check_refusal(&[&submit[..], &share].concat());
    assert!(err.contains("--share-with 'no such group'"), "{err}");
}

/// Several users share the store, and the newest fleet in it is another user's.
#[test]
fn last_means_the_users_own_fleets() {
    if !can_become_other() {
        return;
    }
    let trap = Trap::new();
    trap.submit("mine");
    let theirs = trap.submit("theirs");
    hand_over(&theirs);
    for verb in ["status", "collect", "report", "cancel", "resume"] {
        let out = trap.site.run_for_text(&["fleet", verb]);
        assert!(
            out.contains("mine") && !out.contains("theirs"),
            "{verb}: {out}"
        );
    }
    // A folder that is called `last` is not meant.
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(&theirs).arg(trap.site.path("last"));
    assert!(copy.status().unwrap().success());
    let out = trap.site.run_for_text(&["fleet", "status", "last"]);
    assert!(out.contains("Fleet mine"), "{out}");
    assert!(trap.was_run(), "the user's own template is run");
    hand_over(&trap.site.fleet_folder("mine"));
    let err = trap.run_untriggered(&["status"], 2);
    assert!(err.contains("no fleet of yours"), "{err}");
}

#[test]
fn cancelled_and_resumed_fleets_are_named() {
    let trap = Trap::new();
    let folder = trap.submit("f");
    let words = format!(", in {})", folder.canonicalize().unwrap().display());
    let out = trap.site.run_for_text(&["fleet", "cancel"]);
    assert!(out.starts_with("Fleet f (submitted 20"), "{out}");
    assert!(out.contains(&words), "{out}");
    assert!(
        out.contains("cancelling 1 job through trap: 1 (n1).\n"),
        "{out}"
    );
    std::fs::remove_file(folder.join("nodes/n1/quick.json")).unwrap();
    let out = trap.site.run_for_text(&["fleet", "resume"]);
    assert!(out.contains(&words), "{out}");
    assert!(
        out.contains("submitting again through trap: n1.\n"),
        "{out}"
    );
}

/// Puts a script in the place of ssh that writes down its arguments. Returns the file of these, and
/// the `PATH`.
fn fake_ssh(site: &Site) -> (PathBuf, std::ffi::OsString) {
    let bin = site.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let log = site.path("asked");
    let script = format!("#!/bin/sh\necho \"$*\" >>'{}'\necho 1\n", log.display());
    std::fs::write(bin.join("ssh"), script).unwrap();
    set_mode(&bin.join("ssh"), 0o755);
    let mut path = vec![bin];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    (log, std::env::join_paths(path).unwrap())
}

#[test]
fn odd_names_of_nodes_never_reach_ssh() {
    let site = Site::new(QUICK);
    let (asked, path) = fake_ssh(&site);
    let run = |words: &[&str]| site.command(words).env("PATH", &path).output().unwrap();
    let submit = ["fleet", "submit", "--launcher", "ssh", "--nodelist", "n1"];
    let output = run(&[&submit[..], &["--id", "f", "study.toml"]].concat());
    assert!(output.status.success(), "{:?}", decode_output(&output));
    let file = site.fleet_folder("f").join("fleet.json");
    let good: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&asked).unwrap();
    let odd = [
        "-oProxyCommand=touch x",
        "a b",
        "u@h",
        "n1\nn2",
        "$(touch x)",
        "",
        "../n1",
    ];
    let mut cases: Vec<(&str, Value)> = Vec::new();
    for name in odd {
        cases.push(("/jobs/0/node", json!(name)));
        cases.push(("/nodes/0", json!(name)));
    }
    cases.push(("/jobs/0/id", json!("-1")));
    cases.push(("/jobs/0/id", json!("")));
    for (place, value) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value.clone();
        std::fs::write(&file, bad.to_string()).unwrap();
        for verb in ["status", "collect", "cancel", "resume"] {
            let output = run(&["fleet", verb, "pinwise-fleet/f"]);
            let (_, err) = decode_output(&output);
            assert_eq!(output.status.code(), Some(2), "{verb} {value}: {err}");
            assert!(
                err.contains("fleet.json: ") && err.contains("is not "),
                "{err}"
            );
            assert!(!asked.exists(), "{verb} {value}: ssh was asked");
        }
    }
}

/// Another user created folders among those of nodes.
#[test]
fn planted_folders_are_not_submitted() {
    let site = Site::new(QUICK);
    let (asked, path) = fake_ssh(&site);
    let run = |words: &[&str]| {
        let output = site.command(words).env("PATH", &path).output().unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out
    };
    let submit = ["fleet", "submit", "--launcher", "ssh", "--nodelist", "n1"];
    run(&[&submit[..], &["--id", "f", "study.toml"]].concat());
    let nodes = site.fleet_folder("f").join("nodes");
    for name in ["evil.example.com", "open.example.com"] {
        std::fs::create_dir(nodes.join(name)).unwrap();
        set_mode(&nodes.join(name), 0o700);
    }
    std::fs::write(nodes.join("evil.example.com/begun-1.json"), "{}").unwrap();
    set_mode(&nodes.join("open.example.com"), 0o777);
    std::fs::remove_file(&asked).unwrap();
    let status = run(&["fleet", "status", "f", "--format", "json"]);
    for words in [
        "evil.example.com",
        "open.example.com: it is writable by others",
    ] {
        assert!(status.contains(words), "{words}: {status}");
    }
    let out = run(&["fleet", "resume", "f"]);
    assert!(out.contains("through ssh: n1.\n"), "{out}");
    let asked = std::fs::read_to_string(&asked).unwrap();
    assert!(
        asked.contains(" n1 ") && !asked.contains("example.com"),
        "{asked}"
    );
}

#[test]
fn nodes_follow_no_symbolic_links() {
    let check = |place: &str, target: &str| {
        let site = Site::new(QUICK);
        site.submit(&["--nodelist", "n1", "--id", "f"]);
        wait_until_ended(&site, &site.fleet_folder("f"));
        let elsewhere = site.path("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("file"), "as it was").unwrap();
        let node = site.node_folder("f", "n1");
        std::fs::remove_dir_all(&node).unwrap();
        std::fs::create_dir(&node).unwrap();
        set_mode(&node, 0o700);
        let link = site.fleet_folder("f").join(place);
        let _ = std::fs::remove_dir_all(&link);
        symlink(elsewhere.join(target), &link).unwrap();
        let folder = site.fleet_folder("f").display().to_string();
        let output = site.run(&["fleet", "node", &folder, "--node", "n1"]);
        let left: Vec<PathBuf> = list_tree(&elsewhere);
        assert_eq!(left.len(), 2, "{place}: {left:?}");
        let text = std::fs::read_to_string(elsewhere.join("file")).unwrap();
        assert_eq!(text, "as it was", "{place}");
        output
    };
    for place in ["nodes", "nodes/n1", "nodes/n1/.own"] {
        let output = check(place, "");
        assert_eq!(
            output.status.code(),
            Some(2),
            "{place}: {:?}",
            decode_output(&output)
        );
    }
    // These links are replaced by files.
    check("nodes/n1/node.json", "file");
    check("nodes/n1/.quick.1.stdout", "file");
}

#[test]
fn nodes_run_no_steps_of_another_user() {
    if !can_become_other() {
        return;
    }
    let site = Site::new(QUICK);
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    wait_until_ended(&site, &site.fleet_folder("f"));
    let node = site.node_folder("f", "n1");
    std::fs::remove_dir_all(&node).unwrap();
    hand_over(&site.fleet_folder("f"));
    let folder = site.fleet_folder("f").display().to_string();
    let words = ["fleet", "node", &folder, "--node", "n1"];
    let err = site.check_refusal(&words);
    assert!(err.contains(&format!("belongs to user {OTHER}")), "{err}");
    assert!(!node.exists());
    // Root in a container gets the owner of the fleet from the job, and gives its files to them.
    let owner = OTHER.to_string();
    let output = site.run(&[&words[..], &["--owner", &owner]].concat());
    assert!(output.status.success(), "{:?}", decode_output(&output));
    for name in [
        "",
        "quick.json",
        "node.json",
        "begun-1.json",
        "ended-1.json",
    ] {
        let found = node.join(name).metadata().unwrap();
        assert_eq!((found.uid(), found.mode() & 0o077), (OTHER, 0), "{name}");
    }
}

/// Reading them would block.
#[test]
fn pipes_in_the_place_of_files_are_refused() {
    for name in ["fleet.json", "submission.json"] {
        let trap = Trap::new();
        let folder = trap.submit("f");
        std::fs::remove_file(folder.join(name)).unwrap();
        let mut mkfifo = Command::new("mkfifo");
        mkfifo.args(["-m", "600"]).arg(folder.join(name));
        assert!(mkfifo.status().unwrap().success());
        for verb in ["status", "cancel", "resume"] {
            let reported = trap.run_untriggered(&[verb, "pinwise-fleet/f"], 2);
            assert!(
                reported.contains("it is not a regular file"),
                "{verb}: {reported}"
            );
        }
    }
}
