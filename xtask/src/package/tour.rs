//! Installs packages in clean roots and uses them without privileges.
//!
//! The roots are one with only the package, which shows that the binary is static, and a minimal
//! Debian. Both need root, namespaces and `dpkg`; without them they are SKIPPED.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};

use super::{BuiltFiles, write};
use crate::programs::{find, root, step, target};

/// Enters a root with private mounts, as `nobody`, with the host's `/sys` and `/dev`.
const ENTER: &str = r#"
root=$1
shift
mkdir -p "$root/proc" "$root/sys" "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot --userspec=65534:65534 --groups= "$root" "$@"
"#;

pub(super) fn run(built: &BuiltFiles) -> Result<()> {
    try_foreign_command(built)?;
    try_c_program(built)?;
    let Some(package) = &built.command else {
        eprintln!("SKIPPED: clean roots: no Debian package was built for this machine");
        return Ok(());
    };
    if let Some(why) = find_refusal() {
        eprintln!("SKIPPED: clean roots: {why}");
        return Ok(());
    }
    let bare = tempfile::tempdir()?;
    install_in_nothing(bare.path(), package)?;
    run_tour(&built.version, bare.path())?;
    eprintln!("xtask: pinwise works in a root that holds nothing else");
    match prepare_debian() {
        Err(why) => eprintln!("SKIPPED: a clean Debian: {why:#}"),
        Ok(folder) => {
            install(&folder, built)?;
            let packages = std::iter::once(package).chain(&built.libraries);
            eprintln!("xtask: installed {} packages", packages.count());
            run_tour(&built.version, &folder)?;
            eprintln!("xtask: pinwise works in a clean Debian");
        }
    }
    Ok(())
}

/// The reason why roots cannot be entered here.
fn find_refusal() -> Option<String> {
    for program in ["dpkg", "unshare", "mount", "chroot"] {
        if find(program).is_none() {
            return Some(format!("no {program} in PATH"));
        }
    }
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    match probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "namespaces need root: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// Installs a package in an otherwise empty root.
fn install_in_nothing(folder: &Path, package: &Path) -> Result<()> {
    for name in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    write(&folder.join("var/lib/dpkg/status"), "")?;
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary)?;
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o1777))?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", folder.display()));
    step(
        dpkg.args(["--force-script-chrootless", "--install"])
            .arg(package),
    )
}

/// A minimal Debian of this host's release, downloaded once.
fn prepare_debian() -> Result<PathBuf> {
    ensure!(
        find("debootstrap").is_some(),
        "no debootstrap in PATH (apt-get install debootstrap)"
    );
    let release = std::fs::read_to_string("/etc/os-release")?;
    let printed = |name: &str| release.lines().find_map(|line| line.strip_prefix(name));
    ensure!(printed("ID=") == Some("debian"), "this host is not Debian");
    let suite = printed("VERSION_CODENAME=").context("/etc/os-release names no release")?;
    let folder = target().join(format!("clean-{suite}"));
    let stamp = folder.join("var/lib/dpkg/clean");
    if !stamp.exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", suite]).arg(&folder);
        step(debootstrap.stdout(std::process::Stdio::null()))?;
        write(&stamp, "")?;
    }
    Ok(folder)
}

/// Installs packages with the root's own dpkg, which checks their dependencies.
fn install(folder: &Path, built: &BuiltFiles) -> Result<()> {
    let mut dpkg = Command::new("chroot");
    dpkg.arg(folder).args(["dpkg", "--install"]);
    let packages = built.command.iter().chain(&built.libraries);
    for package in packages {
        let name = package.file_name().context("a package without a name")?;
        let inside = Path::new("tmp").join(name);
        std::fs::copy(package, folder.join(&inside))?;
        dpkg.arg(Path::new("/").join(inside));
    }
    step(&mut dpkg)
}

/// The first commands of a new user.
fn run_tour(version: &str, root: &Path) -> Result<()> {
    let printed = run_pinwise(root, &["--version"])?;
    ensure!(
        printed.trim() == format!("pinwise {version}"),
        "--version said '{printed}'"
    );
    let printed = run_pinwise(root, &["topology"])?;
    ensure!(printed.contains("CPU"), "topology said:\n{printed}");
    let printed = run_pinwise(
        root,
        &[
            "compare",
            "--budget",
            "10s",
            "pinwise bench kernel whetstone --threads 1 --work 4",
            "pinwise bench kernel whetstone --threads 1 --work 12",
        ],
    )?;
    ensure!(printed.contains("slower"), "compare said:\n{printed}");
    run_pinwise(
        root,
        &["record", "report", "last", "--output", "/tmp/report.html"],
    )?;
    let path = root.join("tmp/report.html");
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    for part in ["Content-Security-Policy", "pinwise bench kernel whetstone"] {
        ensure!(page.contains(part), "the report lacks '{part}'");
    }
    let printed = run_pinwise(root, &["doctor"])?;
    ensure!(!printed.trim().is_empty(), "doctor said nothing");
    for file in ["man/man1/pinwise.1.gz", "doc/pinwise/THIRD-PARTY.txt"] {
        let path = root.join("usr/share").join(file);
        ensure!(path.is_file(), "{} is not installed", path.display());
    }
    Ok(())
}

fn run_pinwise(root: &Path, arguments: &[&str]) -> Result<String> {
    eprintln!(
        "xtask: in {}: pinwise {}",
        root.display(),
        arguments.join(" ")
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount"])
        .args(["sh", "-euc", ENTER, "sh"])
        .arg(root)
        .arg("/usr/bin/pinwise")
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", "/tmp");
    check_success(&command.output()?, arguments)
}

fn check_success(output: &Output, arguments: &[&str]) -> Result<String> {
    if !output.status.success() {
        bail!(
            "'{}' failed ({}):\n{}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs the command for another architecture in QEMU, if installed.
fn try_foreign_command(built: &BuiltFiles) -> Result<()> {
    for (target, binary) in &built.foreign {
        let architecture = target.triple.split('-').next().unwrap_or_default();
        let names = [
            format!("qemu-{architecture}-static"),
            format!("qemu-{architecture}"),
        ];
        let Some(qemu) = names.iter().find_map(|name| find(name)) else {
            eprintln!(
                "SKIPPED: pinwise for {}: no {} (apt-get install qemu-user-static)",
                target.triple, names[0]
            );
            continue;
        };
        for arguments in [&["--version"][..], &["topology"]] {
            let mut command = Command::new(&qemu);
            command.args(["-L", &format!("/usr/{}", target.multiarch())]);
            let printed = check_success(&command.arg(binary).args(arguments).output()?, arguments)?;
            ensure!(!printed.trim().is_empty(), "{arguments:?} said nothing");
        }
        eprintln!("xtask: pinwise for {} runs in QEMU", target.triple);
    }
    Ok(())
}

/// Builds a C program with pkg-config's options for the packages, and runs it.
fn try_c_program(built: &BuiltFiles) -> Result<()> {
    if built.libraries.is_empty() {
        eprintln!("SKIPPED: a C program: no library was packed for this machine");
        return Ok(());
    }
    for (program, package) in [("cc", "gcc"), ("pkg-config", "pkg-config")] {
        if find(program).is_none() {
            eprintln!("SKIPPED: a C program: no {program} (apt-get install {package})");
            return Ok(());
        }
    }
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().display();
    for package in &built.libraries {
        step(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(package)
                .arg(scratch.path()),
        )?;
    }
    let script = format!(
        "export PKG_CONFIG_SYSROOT_DIR={folder}
         export PKG_CONFIG_PATH=$(dirname {folder}/usr/lib/*/pkgconfig/pinwise.pc)
         cc {} $(pkg-config --cflags --libs pinwise) -o {folder}/place
         LD_LIBRARY_PATH=$(echo {folder}/usr/lib/*-linux-gnu) {folder}/place",
        root().join("capi/examples/place.c").display()
    );
    let output = Command::new("sh").args(["-euc", &script]).output()?;
    check_success(&output, &["a C program"])?;
    eprintln!("xtask: a C program finds and uses the library");
    Ok(())
}
