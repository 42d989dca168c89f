//! Fleets among people who do not trust each other: folders, records and nodes
//! that another user made, changed or planted.
//!
//! The other user is one whom root becomes; without root those tests say that
//! they did not run.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::fleet::{QUICK, Site};
use crate::support::{decode_output, report_skip, wait_until};

/// Another user.
const OTHER: u32 = 65_533;
/// A group that has nothing to do with anybody.
const GROUP: u32 = 65_532;

/// Is there another user to test with?
fn has_other() -> bool {
    let program = env!("CARGO_BIN_EXE_pinwise");
    let status = as_other(Command::new(program).arg("--version"), OTHER).output();
    let is_had = status.is_ok_and(|output| output.status.success());
    if !is_had {
        report_skip("it needs root, and a folder of programs that all may enter");
    }
    is_had
}

fn as_other(command: &mut Command, group: u32) -> &mut Command {
    command.uid(OTHER).gid(group)
}

/// Everything in a folder, itself first.
fn walk(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            all.extend(walk(&entry.unwrap().path()));
        }
    }
    all
}

fn hand_over(path: &Path) {
    for path in walk(path) {
        lchown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Can another member of the group do this, with the folder as `$1`?
fn can(folder: &Path, script: &str) -> bool {
    let mut sh = Command::new("sh");
    sh.args(["-c", script, "sh"]).arg(folder);
    as_other(&mut sh, GROUP).output().unwrap().status.success()
}

/// Waits until the first attempt of a fleet's nodes has ended, and with it all
/// that they write.
#[track_caller]
fn settle(site: &Site, folder: &Path) -> Value {
    let status = site.settle(folder.to_str().unwrap());
    for node in std::fs::read_dir(folder.join("nodes")).unwrap() {
        let ended = node.unwrap().path().join("ended-1.json");
        wait_until("the node has ended", || ended.exists());
    }
    status
}

/// A site whose template leaves a mark whenever anything but a submission runs
/// it.
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
        let of = ["--nodelist", "n1", "--id", id, "study.toml"];
        self.site.well(&[&words[..], &of].concat());
        self.site.fleet(id)
    }

    /// Was anything run? The mark is removed.
    fn was_run(&self) -> bool {
        std::fs::remove_file(&self.mark).is_ok()
    }

    /// Runs `fleet` with these words: nothing of the template may run. Returns
    /// standard error.
    #[track_caller]
    fn quiet(&self, words: &[&str], status: i32) -> String {
        let output = self.site.run(&[&["fleet"], words].concat());
        let (out, err) = decode_output(&output);
        assert!(!self.was_run(), "{words:?} ran the template");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {out}{err}");
        format!("{out}{err}")
    }
}

#[test]
fn templates_of_another_user_are_never_run() {
    if !has_other() {
        return;
    }
    let trap = Trap::new();
    let folder = trap.submit("f");
    trap.site.well(&["fleet", "status", "f"]);
    assert!(trap.was_run(), "the trap works where it may");
    hand_over(&folder);
    let belongs = format!("belongs to user {OTHER}");
    // Named by its path it is only read.
    let path = folder.to_str().unwrap();
    for name in [path, "pinwise-fleet/f", "./pinwise-fleet/f"] {
        let reported = trap.quiet(&["status", name], 0);
        assert!(
            reported.contains("The scheduler is not asked"),
            "{reported}"
        );
        assert!(reported.contains(&belongs), "{reported}");
        let reported = trap.quiet(&["collect", name], 0);
        assert!(reported.contains("1 record of 1 node"), "{reported}");
        trap.quiet(&["report", name], 0);
        for verb in ["cancel", "resume"] {
            let reported = trap.quiet(&[verb, name], 2);
            assert!(reported.contains(&belongs), "{verb}: {reported}");
            assert_eq!(reported.lines().count(), 1, "{reported}");
        }
    }
    // Found by an id, here or through the store, it is not followed at all.
    std::fs::rename(&folder, trap.site.path("f")).unwrap();
    for verb in ["status", "collect", "cancel", "resume", "report"] {
        let reported = trap.quiet(&[verb, "f"], 2);
        assert!(reported.contains(&belongs), "{verb}: {reported}");
    }
    std::fs::rename(trap.site.path("f"), &folder).unwrap();
    for verb in ["status", "collect", "cancel", "resume"] {
        let reported = trap.quiet(&[verb, "f"], 2);
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

/// One's own folder, in which others could have written something.
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
        let tight = mode(&what);
        permit(&what, loose);
        let reported = trap.quiet(&["status", path], 0);
        assert!(reported.contains("it is writable by others"), "{reported}");
        for verb in ["cancel", "resume"] {
            let reported = trap.quiet(&[verb, path], 2);
            assert!(
                reported.contains("it is writable by others"),
                "{verb}: {reported}"
            );
            assert_eq!(reported.lines().count(), 1, "{reported}");
            trap.quiet(&[verb, "last"], 2);
        }
        trap.quiet(&["status", "f"], 2);
        permit(&what, tight);
    }
    // Others may make folders of their own beside it, and cannot rename it.
    permit(&parent, 0o3777);
    trap.site.well(&["fleet", "status", path]);
    assert!(trap.was_run(), "a sticky folder above is none of others'");
    trap.quiet(&["collect", path], 0);
}

#[test]
fn parent_folders_must_belong_to_the_user() {
    let site = Site::new(QUICK);
    let submit = |dir: &str| {
        let words = ["fleet", "submit", "--launcher", "local", "--nodes", "1"];
        let of = ["--id", "f", "--dir", dir, "study.toml"];
        site.run(&[&words[..], &of].concat())
    };
    let shared = site.path("shared");
    std::fs::create_dir_all(shared.join("inner")).unwrap();
    permit(&shared, 0o2775);
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
    assert!(!shared.join("new").exists(), "nothing is made on the way");
    permit(&shared, 0o3775);
    if has_other() {
        chown(&shared, Some(OTHER), None).unwrap();
        let (_, err) = decode_output(&submit("shared/f"));
        assert!(err.contains("could replace files in it"), "{err}");
        chown(&shared, Some(0), None).unwrap();
    }
    let output = submit("shared/f");
    assert!(output.status.success(), "{:?}", decode_output(&output));
    site.settle("f");
}

/// As in a project's folder that all members share, with a careless umask.
#[test]
fn other_users_cannot_enter_a_fleet_whatever_the_umask() {
    let site = Site::new(QUICK);
    permit(site.path("").as_path(), 0o755);
    let project = site.path("project");
    std::fs::create_dir(&project).unwrap();
    let is_root = chown(&project, None, Some(GROUP)).is_ok();
    permit(&project, 0o3777);
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
        let status = settle(&site, &folder);
        assert_eq!(status["done"], 2, "{umask}: {status:#}");
        for path in walk(&folder) {
            let mode = mode(&path);
            assert_eq!(mode & 0o077, 0, "{umask}: {} {mode:o}", path.display());
        }
        assert_eq!(mode(&folder.join("pinwise")), 0o700);
        if is_root && has_other() {
            let attack = "cp /bin/true \"$1/pinwise\" || mv \"$1\" \"$1.old\" || ls \"$1\"";
            assert!(!can(&folder, attack), "{umask}");
        }
    }
}

#[test]
fn a_group_reads_results_and_nothing_else() {
    if !has_other() {
        return;
    }
    let site = Site::new(QUICK);
    permit(site.path("").as_path(), 0o755);
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
    let folder = site.fleet("f");
    let path = folder.to_str().unwrap();
    assert_eq!(settle(&site, &folder)["done"], 1);
    for path in walk(&folder) {
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
        as_other(&mut command, group).output().unwrap()
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
            !can(&folder, &format!("test -r \"$1/{secret}\"")),
            "{secret}"
        );
    }
    for attack in [
        "echo x >>\"$1/nodes/local-1/log\"",
        "echo x >\"$1/nodes/local-1/x.json\"",
        "mkdir \"$1/nodes/x\"",
        "rm -f \"$1/fleet.json\" && ! test -e \"$1/fleet.json\"",
    ] {
        assert!(!can(&folder, attack), "{attack}");
    }
    assert!(can(&folder, "test -r \"$1/nodes/local-1/quick.json\""));
    let submit = ["fleet", "submit", "--launcher", "local", "--nodes", "1"];
    let share = ["--share-with", "no such group", "study.toml"];
    let err = site.expect_refusal(&[&submit[..], &share].concat());
    assert!(err.contains("--share-with 'no such group'"), "{err}");
}

/// A store that several users share, with another user's newer fleet in it.
#[test]
fn last_means_the_users_own_fleets() {
    if !has_other() {
        return;
    }
    let trap = Trap::new();
    trap.submit("mine");
    let theirs = trap.submit("theirs");
    hand_over(&theirs);
    for verb in ["status", "collect", "report", "cancel", "resume"] {
        let out = trap.site.well(&["fleet", verb]);
        assert!(
            out.contains("mine") && !out.contains("theirs"),
            "{verb}: {out}"
        );
    }
    // A folder of this name means nothing.
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(&theirs).arg(trap.site.path("last"));
    assert!(copy.status().unwrap().success());
    let out = trap.site.well(&["fleet", "status", "last"]);
    assert!(out.contains("Fleet mine"), "{out}");
    // One's own is asked about, of course.
    assert!(trap.was_run());
    hand_over(&trap.site.fleet("mine"));
    let err = trap.quiet(&["status"], 2);
    assert!(err.contains("no fleet of yours"), "{err}");
}

#[test]
fn cancelled_and_resumed_fleets_are_named() {
    let trap = Trap::new();
    let folder = trap.submit("f");
    let words = format!(", in {})", folder.canonicalize().unwrap().display());
    let out = trap.site.well(&["fleet", "cancel"]);
    assert!(out.starts_with("Fleet f (submitted 20"), "{out}");
    assert!(out.contains(&words), "{out}");
    assert!(
        out.contains("cancelling 1 job through trap: 1 (n1).\n"),
        "{out}"
    );
    std::fs::remove_file(folder.join("nodes/n1/quick.json")).unwrap();
    let out = trap.site.well(&["fleet", "resume"]);
    assert!(out.contains(&words), "{out}");
    assert!(
        out.contains("submitting again through trap: n1.\n"),
        "{out}"
    );
}

/// Programs in the place of ssh that write down their arguments.
fn fake_ssh(site: &Site) -> (PathBuf, std::ffi::OsString) {
    let bin = site.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let log = site.path("asked");
    let script = format!("#!/bin/sh\necho \"$*\" >>'{}'\necho 1\n", log.display());
    std::fs::write(bin.join("ssh"), script).unwrap();
    permit(&bin.join("ssh"), 0o755);
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
    let file = site.fleet("f").join("fleet.json");
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

/// Folders among those of nodes that no node made.
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
    let nodes = site.fleet("f").join("nodes");
    for name in ["evil.example.com", "open.example.com"] {
        std::fs::create_dir(nodes.join(name)).unwrap();
        permit(&nodes.join(name), 0o700);
    }
    std::fs::write(nodes.join("evil.example.com/begun-1.json"), "{}").unwrap();
    permit(&nodes.join("open.example.com"), 0o777);
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
        settle(&site, &site.fleet("f"));
        let elsewhere = site.path("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("file"), "as it was").unwrap();
        let node = site.node("f", "n1");
        std::fs::remove_dir_all(&node).unwrap();
        std::fs::create_dir(&node).unwrap();
        permit(&node, 0o700);
        let link = site.fleet("f").join(place);
        let _ = std::fs::remove_dir_all(&link);
        symlink(elsewhere.join(target), &link).unwrap();
        let folder = site.fleet("f").display().to_string();
        let output = site.run(&["fleet", "node", &folder, "--node", "n1"]);
        let left: Vec<PathBuf> = walk(&elsewhere);
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
    // A file's name is used, not the target that it points to.
    check("nodes/n1/node.json", "file");
    check("nodes/n1/.quick.1.stdout", "file");
}

#[test]
fn nodes_run_no_steps_of_another_user() {
    if !has_other() {
        return;
    }
    let site = Site::new(QUICK);
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    settle(&site, &site.fleet("f"));
    let node = site.node("f", "n1");
    std::fs::remove_dir_all(&node).unwrap();
    hand_over(&site.fleet("f"));
    let folder = site.fleet("f").display().to_string();
    let words = ["fleet", "node", &folder, "--node", "n1"];
    let err = site.expect_refusal(&words);
    assert!(err.contains(&format!("belongs to user {OTHER}")), "{err}");
    assert!(!node.exists());
    // A container's root, which knows from the job whose fleet it is: what it makes is
    // the submitter's.
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

/// What waits for a writer is not waited for.
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
            let reported = trap.quiet(&[verb, "pinwise-fleet/f"], 2);
            assert!(
                reported.contains("it is not a regular file"),
                "{verb}: {reported}"
            );
        }
    }
}
