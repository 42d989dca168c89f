//! Packages installed in clean roots and used as a user without privileges.
//!
//! Two roots: one with nothing but the package, which shows that the binary is
//! static, and a minimal Debian. Both need root, namespaces and `dpkg`; what is
//! missing is named as SKIPPED.

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

pub(super) fn run(made: &BuiltFiles) -> Result<()> {
    try_foreign_command(made)?;
    try_c_program(made)?;
    let Some(package) = &made.command else {
        eprintln!("SKIPPED: clean roots: no Debian package was made for this machine");
        return Ok(());
    };
    if let Some(why) = find_refusal() {
        eprintln!("SKIPPED: clean roots: {why}");
        return Ok(());
    }
    let bare = tempfile::tempdir()?;
    install_in_nothing(bare.path(), package)?;
    run_tour(&made.version, bare.path())?;
    eprintln!("xtask: pinwise works in a root that holds nothing else");
    match debian() {
        Err(why) => eprintln!("SKIPPED: a clean Debian: {why:#}"),
        Ok(folder) => {
            install(&folder, made)?;
            let packages = std::iter::once(package).chain(&made.libraries);
            eprintln!("xtask: installed {} packages", packages.count());
            run_tour(&made.version, &folder)?;
            eprintln!("xtask: pinwise works in a clean Debian");
        }
    }
    Ok(())
}

/// Why roots cannot be entered here.
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

/// An empty folder becomes a root by what dpkg unpacks there.
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

/// A minimal Debian of this host's release, fetched once.
fn debian() -> Result<PathBuf> {
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

/// With dpkg of that root, which checks what the packages depend on.
fn install(folder: &Path, made: &BuiltFiles) -> Result<()> {
    let mut dpkg = Command::new("chroot");
    dpkg.arg(folder).args(["dpkg", "--install"]);
    let packages = made.command.iter().chain(&made.libraries);
    for package in packages {
        let name = package.file_name().context("a package without a name")?;
        let inside = Path::new("tmp").join(name);
        std::fs::copy(package, folder.join(&inside))?;
        dpkg.arg(Path::new("/").join(inside));
    }
    step(&mut dpkg)
}

/// What a new user does first.
fn run_tour(version: &str, root: &Path) -> Result<()> {
    let printed = pinwise(root, &["--version"])?;
    ensure!(
        printed.trim() == format!("pinwise {version}"),
        "--version said '{printed}'"
    );
    let printed = pinwise(root, &["topology"])?;
    ensure!(printed.contains("CPU"), "topology said:\n{printed}");
    let printed = pinwise(
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
    pinwise(
        root,
        &["record", "report", "last", "--output", "/tmp/report.html"],
    )?;
    let path = root.join("tmp/report.html");
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    for part in ["Content-Security-Policy", "pinwise bench kernel whetstone"] {
        ensure!(page.contains(part), "the report lacks '{part}'");
    }
    let printed = pinwise(root, &["doctor"])?;
    ensure!(!printed.trim().is_empty(), "doctor said nothing");
    for file in ["man/man1/pinwise.1.gz", "doc/pinwise/THIRD-PARTY.txt"] {
        let path = root.join("usr/share").join(file);
        ensure!(path.is_file(), "{} is not installed", path.display());
    }
    Ok(())
}

fn pinwise(root: &Path, arguments: &[&str]) -> Result<String> {
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

/// The command of another architecture, if QEMU can run it.
fn try_foreign_command(made: &BuiltFiles) -> Result<()> {
    for (target, binary) in &made.foreign {
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

/// A C program, built with pkg-config's options for the packages.
fn try_c_program(made: &BuiltFiles) -> Result<()> {
    if made.libraries.is_empty() {
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
    for package in &made.libraries {
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
