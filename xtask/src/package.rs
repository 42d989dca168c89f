//! Packages: static binaries with their documents as archives and Debian packages, the C library, and
//! crates.
//!
//! Everything goes to `target/dist`. A target that cannot be built here is reported as SKIPPED, with
//! the reason.

mod build;
mod crates;
mod debian;
mod notices;
mod tour;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{find, read_output, read_workspace_field, root, step, target};
use crate::web;
use build::{COMMAND, LIBRARY, Target};
use debian::Package;
use notices::Notices;

/// The packages of a run.
struct BuiltFiles {
    version: String,
    /// Debian packages for this machine's architecture.
    command: Option<PathBuf>,
    libraries: Vec<PathBuf>,
    /// The command for another architecture.
    foreign: Vec<(&'static Target, PathBuf)>,
}

/// `cargo xtask package [--try | --only-try]`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        [] => build_all().map(drop),
        ["--try"] => tour::run(&build_all()?),
        ["--only-try"] => tour::run(&find_built()?),
        other => bail!(
            "'package {}' is unknown: the options are --try and --only-try",
            other.join(" ")
        ),
    }
}

/// Writes the notices of the command, the page included.
pub(crate) fn write_notices() -> Result<()> {
    let folder = create_empty(&target().join("dist"))?;
    let path = folder.join("THIRD-PARTY.txt");
    web::install_packages()?;
    let notices = Notices::collect("pinwise", COMMAND[0].triple)?.add_page_packages()?;
    write(&path, &notices.format("pinwise", COMMAND[0].triple)?)?;
    eprintln!("xtask: wrote {}", path.display());
    Ok(())
}

fn build_all() -> Result<BuiltFiles> {
    if find("npm").is_some() {
        web::build()?;
    } else if !root().join("crates/report/page.html").is_file() {
        bail!("packages hold the page of reports: build it with Node, `cargo xtask web`");
    }
    crates::check()?;
    let folder = create_empty(&target().join("dist"))?;
    let mut built = BuiltFiles {
        version: read_workspace_field("version")?,
        command: None,
        libraries: Vec::new(),
        foreign: Vec::new(),
    };
    let mut documents = None;
    for target in &COMMAND {
        match target.find_obstacle() {
            Some(why) => eprintln!("SKIPPED: pinwise for {}: {why}", target.triple),
            None => package_command(target, &folder, &mut documents, &mut built)?,
        }
    }
    for target in &LIBRARY {
        match target.find_obstacle() {
            Some(why) => eprintln!("SKIPPED: libpinwise for {}: {why}", target.triple),
            None => package_library(target, &folder, &mut built)?,
        }
    }
    write_sums(&folder)?;
    Ok(built)
}

/// Finds the packages of an earlier run.
fn find_built() -> Result<BuiltFiles> {
    let folder = target().join("dist");
    let version = read_workspace_field("version")?;
    let package = |name: &str, target: &Target| {
        let path = folder.join(format!("{name}_{version}_{}.deb", target.debian));
        path.is_file().then_some(path)
    };
    let ours = |targets: &'static [Target]| targets.iter().find(|target| target.is_native());
    let libraries = ours(&LIBRARY).into_iter().flat_map(|target| {
        let names = ["libpinwise0", "libpinwise-dev"];
        names
            .into_iter()
            .filter_map(move |name| package(name, target))
    });
    let foreign = COMMAND.iter().filter_map(|target| {
        let binary = target.folder().join("pinwise");
        (!target.is_native() && binary.is_file()).then_some((target, binary))
    });
    Ok(BuiltFiles {
        command: ours(&COMMAND).and_then(|target| package("pinwise", target)),
        libraries: libraries.collect(),
        foreign: foreign.collect(),
        version: version.clone(),
    })
}

/// Packages the command for one target: an archive and a Debian package.
fn package_command(
    target: &'static Target,
    folder: &Path,
    documents: &mut Option<tempfile::TempDir>,
    made: &mut BuiltFiles,
) -> Result<()> {
    let binary = target.build("pinwise")?.join("pinwise");
    if documents.is_none() {
        *documents = Some(tree::generate_documents(
            target.is_native().then_some(&*binary),
        )?);
    }
    let documents = documents.as_ref().context("no documents")?.path();
    let third_parties = Notices::collect("pinwise", target.triple)?
        .add_page_packages()?
        .format("pinwise", target.triple)?;
    let scratch = tempfile::tempdir()?;
    let name = format!("pinwise-{}-{}", made.version, target.triple);
    let prefix = scratch.path().join(&name);
    tree::install_command(
        &prefix,
        &binary,
        documents,
        "site-functions",
        &third_parties,
    )?;
    archive(scratch.path(), &name, folder)?;

    let staged = scratch.path().join("debian");
    let usr = staged.join("usr");
    tree::install_command(
        &usr,
        &binary,
        documents,
        "vendor-completions",
        &third_parties,
    )?;
    let package = Package {
        name: "pinwise",
        version: &made.version,
        architecture: target.debian,
        section: "utils",
        depends: build::libraries_needed(&binary)?,
        synopsis: "where should this program's threads run, and does it matter?",
    };
    let package = package.build(&staged, folder)?;
    if target.is_native() {
        made.command = package;
    } else {
        made.foreign.push((target, binary));
    }
    Ok(())
}

/// Packages the C library for one target: a relocatable archive, and two Debian packages, split as in
/// that distribution.
fn package_library(target: &Target, folder: &Path, made: &mut BuiltFiles) -> Result<()> {
    let built = target.build("pinwise-capi")?;
    let shared = built.join("libpinwise.so");
    let third_parties =
        Notices::collect("pinwise-capi", target.triple)?.format("libpinwise", target.triple)?;
    let scratch = tempfile::tempdir()?;
    let name = format!("libpinwise-{}-{}", made.version, target.triple);
    let prefix = scratch.path().join(&name);
    tree::install_shared_library(&prefix.join("lib"), &shared)?;
    tree::install_development_files(&prefix, "${pcfiledir}/../..", "lib", &built, &made.version)?;
    tree::install_legal_texts(&prefix.join("share/doc/libpinwise"), &third_parties)?;
    archive(scratch.path(), &name, folder)?;

    let libraries = format!("lib/{}", target.multiarch());
    let running = scratch.path().join("running");
    tree::install_shared_library(&running.join("usr").join(&libraries), &shared)?;
    tree::install_legal_texts(&running.join("usr/share/doc/libpinwise0"), &third_parties)?;
    let needed = build::libraries_needed(&shared)?;
    let package = Package {
        name: "libpinwise0",
        version: &made.version,
        architecture: target.debian,
        section: "libs",
        depends: needed,
        synopsis: "programs that place their own threads: shared library",
    };
    let running = package.build(&running, folder)?;

    let building = scratch.path().join("building");
    tree::install_development_files(
        &building.join("usr"),
        "/usr",
        &libraries,
        &built,
        &made.version,
    )?;
    tree::install_legal_texts(
        &building.join("usr/share/doc/libpinwise-dev"),
        &third_parties,
    )?;
    let package = Package {
        name: "libpinwise-dev",
        section: "libdevel",
        depends: vec![format!("libpinwise0 (= {})", made.version)],
        synopsis: "programs that place their own threads: header and libraries",
        ..package
    };
    let building = package.build(&building, folder)?;
    if target.is_native() {
        made.libraries
            .extend([running, building].into_iter().flatten());
    }
    Ok(())
}

/// Writes `NAME.tar.gz` of the folder of that name, reproducibly.
fn archive(folder: &Path, name: &str, into: &Path) -> Result<()> {
    let path = into.join(format!("{name}.tar.gz"));
    tree::make_readable(&folder.join(name))?;
    step(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", read_commit_time()?))
            .args(["--use-compress-program", "gzip -9n", "-cf"])
            .arg(&path)
            .arg("-C")
            .arg(folder)
            .arg(name),
    )
}

/// Writes the SHA-256 of every file, and prints their sizes.
fn write_sums(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.sort();
    let mut command = Command::new("sha256sum");
    let text = read_output(command.current_dir(folder).args(&names))?;
    write(&folder.join("SHA256SUMS"), &text)?;
    for name in &names {
        let bytes = folder.join(name).metadata()?.len();
        println!("{:>9} KiB  {}", bytes.div_ceil(1024), name.display());
    }
    eprintln!("xtask: packages are in {}", folder.display());
    Ok(())
}

/// The time of files in packages, in seconds since 1970: the commit's, so that the same commit gives
/// the same packages.
fn read_commit_time() -> Result<String> {
    if let Ok(seconds) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(seconds);
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root());
    let text = read_output(&mut git).context("outside a git checkout set SOURCE_DATE_EPOCH")?;
    Ok(text.trim().to_owned())
}

fn create_empty(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    Ok(folder.to_owned())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
