//! The two builds: folders as they are, or revisions of the local repository, which are cloned into
//! the user's cache folder and built there once.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cli::args::{GateArgs, Global};
use crate::cli::files::{read_file, write_file};
use crate::cli::surroundings::named_folder;
use crate::cli::terminal::Terminal;
use pinwise_record::BuildRecord;
use pinwise_workload::suite::Suite;

/// A build, and the folder that its benchmarks start in.
pub(super) struct Tree {
    pub(super) record: BuildRecord,
    pub(super) folder: PathBuf,
    /// Is it a folder of this host, in which something can be started?
    pub(super) is_real: bool,
    /// The lock of a clone: nobody may rebuild it while it is measured.
    lock: Option<File>,
}

/// The variable in which a build command finds its variant.
const VARIANT: &str = "PINWISE_VARIANT";

/// The file beside a clone that says by which command it was built.
const BUILT: &str = "built";

/// Digits of a commit that are shown.
pub(super) const SHORT_COMMIT: usize = 12;

/// Both builds.
pub(super) enum Builds {
    /// Both exist, the base first.
    Both(Box<(Tree, Tree)>),
    /// The judged build fails, and why.
    HeadFails(String),
}

/// Both builds, built if necessary.
pub(super) fn both(
    global: &Global,
    args: &GateArgs,
    suite: &Suite,
    terminal: &Terminal,
) -> anyhow::Result<Builds> {
    if !global.machine.is_local() {
        let both = (simulate_tree(&args.base), simulate_tree(&args.head));
        return Ok(Builds::Both(Box::new(both)));
    }
    let [base, head] = [("BASE", &args.base), ("HEAD", &args.head)].map(|(argument, name)| {
        let named = format!("{argument} '{name}'");
        let source = source(name).with_context(|| named.clone())?;
        anyhow::Ok((source, named))
    });
    let ((base, base_named), (head, head_named)) = (base?, head?);
    let build = suite.build.as_deref().filter(|_| !args.no_build);
    let build = |source, named: &str| build_tree(source, args.variant, build, terminal, named);
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

/// The tree of a source, built; or why it does not build. One gate at a time clones and builds a
/// commit, and none while another measures it. No lock is held on return: waiting for one while
/// holding another could deadlock.
fn build_tree(
    source: Source,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
    named: &str,
) -> anyhow::Result<Result<Tree, String>> {
    let tree = find_folder(source, variant, build, terminal).with_context(|| named.to_owned())?;
    let failed = match build {
        Some(build) => make(&tree, build, terminal).with_context(|| named.to_owned())?,
        None => None,
    };
    if let (Some(_), Some(clone)) = (&failed, clone_of(&tree)) {
        // Nothing measures it, and a bisection would leave one for each commit.
        let _ = std::fs::remove_dir_all(clone);
    }
    if let Some(lock) = &tree.lock {
        lock.unlock().context("the lock of a build")?;
    }
    Ok(failed.map_or(Ok(tree), Err))
}

/// On a simulated machine a build is its name.
fn simulate_tree(name: &str) -> Tree {
    Tree {
        is_real: false,
        ..tree(name, PathBuf::from(name), None, None)
    }
}

/// The source of a build.
enum Source {
    /// A folder with uncommitted changes, and its name.
    Folder(String, PathBuf),
    /// A commit of the repository here.
    Commit {
        /// As it is shown.
        name: String,
        commit: String,
        repository: PathBuf,
        /// The folder within, in which the suite is.
        within: String,
    },
}

fn source(name: &str) -> anyhow::Result<Source> {
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
    let commit = git(
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
    // The beginning of a commit's name is enough.
    let shown = match name == commit {
        true => name.get(..SHORT_COMMIT).unwrap_or(name),
        false => name,
    };
    Ok(Source::Commit {
        name: shown.to_owned(),
        repository: PathBuf::from(git(None, &["rev-parse", "--show-toplevel"])?),
        within: git(None, &["rev-parse", "--show-prefix"])?,
        commit,
    })
}

/// What is checked out here: `feature`, `feature, modified`, or the commit without a branch.
fn name_checkout(folder: &Path) -> anyhow::Result<String> {
    let branch = git(Some(folder), &["rev-parse", "--abbrev-ref", "HEAD"])?;
    let name = match branch.as_str() {
        "HEAD" => git(Some(folder), &["rev-parse", "--short", "HEAD"])?,
        _ => branch,
    };
    let changes = git(
        Some(folder),
        &["status", "--porcelain", "--untracked-files=no"],
    )?;
    Ok(match changes.is_empty() {
        true => name,
        false => format!("{name}, modified"),
    })
}

/// The folder of a source, locked if it is a clone.
fn find_folder(
    source: Source,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
) -> anyhow::Result<Tree> {
    match source {
        Source::Folder(name, folder) => Ok(tree(&name, folder, None, variant)),
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
                ..tree(&name, folder, Some(commit), variant)
            })
        }
    }
}

fn tree(name: &str, folder: PathBuf, commit: Option<String>, variant: Option<u32>) -> Tree {
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

/// The commit in a clone of its own for each variant, which leaves no trace in the repository, and
/// the lock on it.
fn clone_commit(
    repository: &Path,
    commit: &str,
    variant: Option<u32>,
    build: Option<&str>,
    terminal: &Terminal,
) -> anyhow::Result<(PathBuf, File)> {
    let cache = named_folder("XDG_CACHE_HOME")
        .or_else(|| named_folder("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: builds of revisions need a folder")?;
    let name = repository.display().to_string().replace('/', "-");
    let folder = cache.join("pinwise/gate").join(name.trim_matches('-'));
    let clone = folder.join(clone_name(commit, variant));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let is_ready = || {
        let built_by = read_file(&clone.with_extension(BUILT)).ok();
        clone.join(".git").exists() && build.is_none_or(|build| built_by.as_deref() == Some(build))
    };
    let lock = lock_clone(&clone.with_extension("lock"), is_ready, terminal)?;
    if clone.join(".git").exists() {
        return Ok((clone, lock));
    }
    if let Err(error) = check_out(repository, &clone, commit) {
        // Half a checkout must not be mistaken for a whole one.
        let _ = std::fs::remove_dir_all(&clone);
        return Err(error);
    }
    Ok((clone, lock))
}

/// The lock of a clone: shared if it is ready, otherwise exclusive, which waits for those who
/// measure it.
#[expect(clippy::disallowed_methods, reason = "a lock is no file that is read")]
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
    git(
        None,
        &["clone", "--quiet", "--shared", "--no-checkout", &from, &to],
    )?;
    git(Some(clone), &["checkout", "--quiet", "--detach", commit])?;
    let entries = git(Some(clone), &["ls-files", "--stage", "-z"])?;
    for (commit, path) in entries.split('\0').filter_map(submodule) {
        let source = repository.join(path);
        if !source.join(".git").exists() {
            bail!("the submodule {path} is missing: git submodule update --init --recursive");
        }
        check_out(&source, &clone.join(path), commit)
            .with_context(|| format!("the submodule {path}"))?;
    }
    Ok(())
}

/// The commit and the path of an entry that is a submodule.
fn submodule(entry: &str) -> Option<(&str, &str)> {
    let (fields, path) = entry.split_once('\t')?;
    let mut fields = fields.split(' ');
    let is_it = fields.next() == Some("160000");
    is_it.then_some((fields.next()?, path))
}

/// What git prints, without the end of its line.
#[expect(clippy::disallowed_methods, reason = "revisions are git's")]
pub(super) fn git(folder: Option<&Path>, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    // Those of a hook, for example, would make it work on the user's own tree.
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

/// The clone that a tree is in.
fn clone_of(tree: &Tree) -> Option<&Path> {
    let name = clone_name(tree.record.commit.as_ref()?, tree.record.variant);
    let mut around = tree.folder.ancestors();
    around.find(|folder| folder.ends_with(&name))
}

/// The file beside a clone that says which command built it.
fn stamp(tree: &Tree) -> Option<PathBuf> {
    Some(clone_of(tree)?.with_extension(BUILT))
}

/// A shell script that runs its argument and ends it, with everything it started, when the pipe on
/// standard input is closed: when pinwise has ended.
const ATTENDED: &str = r#"exec 3<&0
(read -r _ <&3; kill -TERM -$$) & guard=$!
(eval "$1") >&2 </dev/null 3<&-
status=$?
kill "$guard"
exit "$status""#;

/// Runs the suite's build command, unless it built this clone before; why it does not build, if so.
#[expect(clippy::disallowed_methods, reason = "the suite says how to build")]
fn make(tree: &Tree, build: &str, terminal: &Terminal) -> anyhow::Result<Option<String>> {
    let stamp = stamp(tree);
    let built_by = stamp.as_deref().and_then(|path| read_file(path).ok());
    if built_by.as_deref() == Some(build) {
        return Ok(None);
    }
    if let Some(path) = &stamp {
        // A build that failed half-way does not count.
        let _ = std::fs::remove_file(path);
    }
    terminal.note(&format!("building {}: {build}", tree.record.name));
    // Its output is not a result: all of it goes to standard error.
    let variant = tree.record.variant.map(|number| number.to_string());
    let mut child = Command::new("sh")
        .args(["-c", ATTENDED, "sh", build])
        .envs(variant.map(|number| (VARIANT, number)))
        .current_dir(&tree.folder)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("sh")?;
    let attended = child.stdin.take();
    let status = child.wait().context("sh")?;
    drop(attended);
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
