//! The two builds: folders as they are, or revisions of the local repository, which are cloned into
//! the user's cache folder and built there once.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cli::args::{GateArgs, Global};
use crate::cli::files::{read_file, write_file};
use crate::cli::surroundings::find_named_folder;
use crate::cli::terminal::Terminal;
use pinwise_record::BuildRecord;
use pinwise_workload::suite::Suite;

/// A build, and the folder that its benchmarks start in.
pub(super) struct Tree {
    pub(super) record: BuildRecord,
    pub(super) folder: PathBuf,
    /// Is it a folder of this host, in which something can be started?
    pub(super) is_real: bool,
    /// The lock of a clone, so that no other gate rebuilds it while it is measured.
    lock: Option<File>,
}

/// The variable in which a build command finds its variant.
const VARIANT: &str = "PINWISE_VARIANT";

/// Extension of the file beside a clone that contains the command which built it.
const STAMP: &str = "built";

/// The number of digits of a commit that are shown.
pub(super) const SHORT_COMMIT: usize = 12;

/// Both builds.
pub(super) enum Builds {
    /// Both exist, the base first.
    Both(Box<(Tree, Tree)>),
    /// HEAD does not build, and why.
    HeadFails(String),
}

/// Finds both builds, and builds them if necessary.
pub(super) fn prepare_both(
    global: &Global,
    args: &GateArgs,
    suite: &Suite,
    terminal: &Terminal,
) -> anyhow::Result<Builds> {
    if !global.machine.is_local() {
        let trees = (simulate_tree(&args.base), simulate_tree(&args.head));
        return Ok(Builds::Both(Box::new(trees)));
    }
    let [base, head] = [("BASE", &args.base), ("HEAD", &args.head)].map(|(argument, name)| {
        let named = format!("{argument} '{name}'");
        let source = find_source(name).with_context(|| named.clone())?;
        anyhow::Ok((source, named))
    });
    let ((base, base_named), (head, head_named)) = (base?, head?);
    let command = suite.build.as_deref().filter(|_| !args.no_build);
    let build = |source, named: &str| build_tree(source, args.variant, command, terminal, named);
    let base = match build(base, &base_named)? {
        Ok(tree) => tree,
        Err(why) => bail!("{base_named}: {why}"),
    };
    let head = match build(head, &head_named)? {
        Ok(tree) => tree,
        Err(why) => return Ok(Builds::HeadFails(format!("{head_named}: {why}"))),
    };
    for tree in [&base, &head] {
        if let Some(lock) = &tree.lock {
            lock.lock_shared().context("the lock of a build")?;
        }
    }
    Ok(Builds::Both(Box::new((base, head))))
}

/// Builds a source; the inner result says why it does not build. Only one gate at a time clones and
/// builds a commit, and none while another measures it. No lock is held on return: waiting for one
/// while holding another could deadlock.
fn build_tree(
    source: Source,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
    named: &str,
) -> anyhow::Result<Result<Tree, String>> {
    let tree = find_folder(source, variant, build, terminal).with_context(|| named.to_owned())?;
    let failed = match build {
        Some(build) => run_build(&tree, build, terminal).with_context(|| named.to_owned())?,
        None => None,
    };
    if let (Some(_), Some(clone)) = (&failed, find_clone(&tree)) {
        // Remove a clone that does not build: a bisection would leave one for each commit.
        let _ = std::fs::remove_dir_all(clone);
    }
    if let Some(lock) = &tree.lock {
        lock.unlock().context("the lock of a build")?;
    }
    Ok(failed.map_or(Ok(tree), Err))
}

/// A build on a simulated machine is only a name.
fn simulate_tree(name: &str) -> Tree {
    Tree {
        is_real: false,
        ..new_tree(name, PathBuf::from(name), None, None)
    }
}

/// The source of a build.
enum Source {
    /// A folder as it is, with its name on the command line.
    Folder(String, PathBuf),
    /// A commit of the local repository.
    Commit {
        /// The name that is shown.
        name: String,
        commit: String,
        repository: PathBuf,
        /// The current folder, relative to the repository.
        within: String,
    },
}

fn find_source(name: &str) -> anyhow::Result<Source> {
    let path = Path::new(name);
    if path.is_dir() {
        let shown = match name {
            "." => name_checkout(path).unwrap_or_else(|_| name.to_owned()),
            _ => name.to_owned(),
        };
        return Ok(Source::Folder(shown, path.canonicalize()?));
    }
    if path.is_file() {
        bail!("it is a file: name the folder of a build, or a revision");
    }
    let revision = format!("{name}^{{commit}}");
    let commit = run_git(
        None,
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &revision,
        ],
    );
    let commit = match commit {
        Ok(commit) => commit,
        Err(error) if error.is::<std::io::Error>() => {
            bail!("it is no folder, and a revision needs git, which cannot be run: {error:#}")
        }
        Err(_) => bail!("it is neither a folder nor a revision of a git repository here"),
    };
    // A full commit hash is shown shortened.
    let shown = match name == commit {
        true => name.get(..SHORT_COMMIT).unwrap_or(name),
        false => name,
    };
    Ok(Source::Commit {
        name: shown.to_owned(),
        repository: PathBuf::from(run_git(None, &["rev-parse", "--show-toplevel"])?),
        within: run_git(None, &["rev-parse", "--show-prefix"])?,
        commit,
    })
}

/// What is checked out here: `feature`, `feature, modified`, or the commit without a branch.
fn name_checkout(folder: &Path) -> anyhow::Result<String> {
    let branch = run_git(Some(folder), &["rev-parse", "--abbrev-ref", "HEAD"])?;
    let name = match branch.as_str() {
        "HEAD" => run_git(Some(folder), &["rev-parse", "--short", "HEAD"])?,
        _ => branch,
    };
    let changes = run_git(
        Some(folder),
        &["status", "--porcelain", "--untracked-files=no"],
    )?;
    Ok(match changes.is_empty() {
        true => name,
        false => format!("{name}, modified"),
    })
}

/// Finds the folder of a source, and clones a commit; a clone is locked.
fn find_folder(
    source: Source,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
) -> anyhow::Result<Tree> {
    match source {
        Source::Folder(name, folder) => Ok(new_tree(&name, folder, None, variant)),
        Source::Commit {
            name,
            commit,
            repository,
            within,
        } => {
            let (clone, lock) = clone_commit(&repository, &commit, variant, build, terminal)?;
            let folder = clone.join(&within);
            if !folder.is_dir() {
                bail!("the commit has no folder {within}");
            }
            Ok(Tree {
                lock: Some(lock),
                ..new_tree(&name, folder, Some(commit), variant)
            })
        }
    }
}

fn new_tree(name: &str, folder: PathBuf, commit: Option<String>, variant: Option<u32>) -> Tree {
    Tree {
        record: BuildRecord {
            name: name.to_owned(),
            folder: folder.display().to_string(),
            commit,
            variant,
        },
        folder,
        is_real: true,
        lock: None,
    }
}

/// Clones a commit into a folder of its own for each variant, unless it is there already, and locks
/// it. The repository itself is not changed.
fn clone_commit(
    repository: &Path,
    commit: &str,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
) -> anyhow::Result<(PathBuf, File)> {
    let cache = find_named_folder("XDG_CACHE_HOME")
        .or_else(|| find_named_folder("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: builds of revisions need a folder")?;
    let name = repository.display().to_string().replace('/', "-");
    let folder = cache.join("pinwise/gate").join(name.trim_matches('-'));
    let clone = folder.join(clone_name(commit, variant));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let is_ready = || {
        let built_by = read_file(&clone.with_extension(STAMP)).ok();
        clone.join(".git").exists() && build.is_none_or(|build| built_by.as_deref() == Some(build))
    };
    let lock = lock_clone(&clone.with_extension("lock"), is_ready, terminal)?;
    if clone.join(".git").exists() {
        return Ok((clone, lock));
    }
    if let Err(error) = check_out(repository, &clone, commit) {
        // An incomplete checkout must not be mistaken for a complete one.
        let _ = std::fs::remove_dir_all(&clone);
        return Err(error);
    }
    Ok((clone, lock))
}

/// Locks a clone: shared if it is built, otherwise exclusively, which waits until no other gate
/// measures it.
#[expect(clippy::disallowed_methods, reason = "a lock file is not read")]
fn lock_clone(
    path: &Path,
    is_ready: impl Fn() -> bool,
    terminal: &Terminal,
) -> anyhow::Result<File> {
    let named = || path.display().to_string();
    let lock = File::create(path).with_context(named)?;
    if lock.try_lock_shared().is_err() {
        terminal.note("waiting for another gate to build the same commit");
        lock.lock_shared().with_context(named)?;
    }
    if is_ready() {
        return Ok(lock);
    }
    lock.unlock().with_context(named)?;
    if lock.try_lock().is_err() {
        terminal.note("waiting for another gate to build or measure the same commit");
        lock.lock().with_context(named)?;
    }
    Ok(lock)
}

fn clone_name(commit: &str, variant: Option<u32>) -> String {
    match variant {
        Some(variant) => format!("{commit}-{variant}"),
        None => commit.to_owned(),
    }
}

/// Clones a repository with its submodules, from their local copies: nothing is fetched.
fn check_out(repository: &Path, clone: &Path, commit: &str) -> anyhow::Result<()> {
    let from = repository.display().to_string();
    let to = clone.display().to_string();
    run_git(
        None,
        &["clone", "--quiet", "--shared", "--no-checkout", &from, &to],
    )?;
    run_git(Some(clone), &["checkout", "--quiet", "--detach", commit])?;
    let entries = run_git(Some(clone), &["ls-files", "--stage", "-z"])?;
    for (commit, path) in entries.split('\0').filter_map(parse_submodule) {
        let source = repository.join(path);
        if !source.join(".git").exists() {
            bail!("the submodule {path} is missing: git submodule update --init --recursive");
        }
        check_out(&source, &clone.join(path), commit)
            .with_context(|| format!("the submodule {path}"))?;
    }
    Ok(())
}

/// Parses the commit and the path of an entry that is a submodule.
fn parse_submodule(entry: &str) -> Option<(&str, &str)> {
    let (fields, path) = entry.split_once('\t')?;
    let mut fields = fields.split(' ');
    let is_submodule = fields.next() == Some("160000");
    is_submodule.then_some((fields.next()?, path))
}

/// Runs git; what it prints, without the last line's end.
#[expect(clippy::disallowed_methods, reason = "revisions are git's")]
pub(super) fn run_git(folder: Option<&Path>, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    // Variables of a git hook, for example, would make it work on the user's own tree.
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("git")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or("no message").trim();
        bail!("git {}: {last}", arguments.first().unwrap_or(&""));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The clone that contains a tree; `None` if it is in none.
fn find_clone(tree: &Tree) -> Option<&Path> {
    let name = clone_name(tree.record.commit.as_ref()?, tree.record.variant);
    let mut around = tree.folder.ancestors();
    around.find(|folder| folder.ends_with(&name))
}

/// The file with the command that built a clone.
fn stamp_path(tree: &Tree) -> Option<PathBuf> {
    Some(find_clone(tree)?.with_extension(STAMP))
}

/// A shell script that runs its argument and ends it, with everything it started, when the pipe on
/// standard input is closed: when pinwise has ended.
const KILLED_WITH_PINWISE: &str = r#"exec 3<&0
(read -r _ <&3; kill -TERM -$$) & guard=$!
(eval "$1") >&2 </dev/null 3<&-
status=$?
kill "$guard"
exit "$status""#;

/// Runs the suite's build command, unless it built this clone before; `Some` says why it failed.
#[expect(clippy::disallowed_methods, reason = "the suite says how to build")]
fn run_build(tree: &Tree, build: &str, terminal: &Terminal) -> anyhow::Result<Option<String>> {
    let stamp = stamp_path(tree);
    let built_by = stamp.as_deref().and_then(|path| read_file(path).ok());
    if built_by.as_deref() == Some(build) {
        return Ok(None);
    }
    if let Some(path) = &stamp {
        // If the build fails, the clone must not count as built.
        let _ = std::fs::remove_file(path);
    }
    terminal.note(&format!("building {}: {build}", tree.record.name));
    // All output of the build goes to standard error: standard output is for results.
    let variant = tree.record.variant.map(|number| number.to_string());
    let mut child = Command::new("sh")
        .args(["-c", KILLED_WITH_PINWISE, "sh", build])
        .envs(variant.map(|number| (VARIANT, number)))
        .current_dir(&tree.folder)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("sh")?;
    let pipe = child.stdin.take();
    let status = child.wait().context("sh")?;
    drop(pipe);
    if !status.success() {
        return Ok(Some(format!(
            "the build failed: '{build}' ended with {status}"
        )));
    }
    if let Some(path) = stamp {
        write_file(&path, build)?;
    }
    Ok(None)
}
