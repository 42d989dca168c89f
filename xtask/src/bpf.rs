//! Compiles the BPF program of traces and writes a note with the hashes of source and object.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{find, read_output, root, step};

const SOURCE: &str = "sched.bpf.c";
const OBJECT: &str = "sched.bpf.o";
const NOTE: &str = "sched.bpf.hash";

/// The compiler and its tools, of the same version.
struct Tools {
    clang: PathBuf,
    strip: PathBuf,
    /// The compiler's own name for it.
    version: String,
}

/// Compiles the program and writes object and note.
pub(crate) fn write() -> Result<()> {
    let tools = Tools::find()?.context(
        "clang and llvm-strip are missing: install them with `apt-get install clang llvm` as root",
    )?;
    compile(&tools, &folder().join(OBJECT))?;
    let note = format_note(&folder().join(OBJECT), &tools.version)?;
    std::fs::write(folder().join(NOTE), note)?;
    eprintln!("xtask: wrote {OBJECT} and {NOTE}; commit them with {SOURCE}");
    Ok(())
}

/// Checks that the committed object belongs to the source. With another version of clang, or none,
/// only the note is compared.
pub(crate) fn check() -> Result<()> {
    let kept = std::fs::read_to_string(folder().join(NOTE)).unwrap_or_default();
    let made_by = kept.lines().find_map(|line| line.strip_prefix("by "));
    let made_by = made_by.unwrap_or("nothing");
    if format_note(&folder().join(OBJECT), made_by)? != kept {
        bail!("{OBJECT} was not compiled from {SOURCE}; run `cargo xtask bpf` and commit it");
    }
    match Tools::find()? {
        Some(tools) if tools.version == made_by => {
            let scratch = tempfile::tempdir()?;
            let fresh = scratch.path().join(OBJECT);
            compile(&tools, &fresh)?;
            if std::fs::read(fresh)? != std::fs::read(folder().join(OBJECT))? {
                bail!("{made_by} compiles {SOURCE} to another {OBJECT}; run `cargo xtask bpf`");
            }
        }
        Some(tools) => eprintln!(
            "SKIPPED: {OBJECT} was made by {made_by}, here is {}",
            tools.version
        ),
        None => eprintln!("SKIPPED: {OBJECT} is not compiled again: there is no clang"),
    }
    Ok(())
}

impl Tools {
    /// Finds the tools without a number, else the oldest ones: more kernels accept their objects.
    fn find() -> Result<Option<Self>> {
        let suffixes = std::iter::once(String::new()).chain((12..40).map(|n| format!("-{n}")));
        for suffix in suffixes {
            let pair = find(&format!("clang{suffix}")).zip(find(&format!("llvm-strip{suffix}")));
            if let Some((clang, strip)) = pair {
                let output = read_output(Command::new(&clang).arg("--version"))?;
                let version = output.lines().next().unwrap_or("?").trim().to_owned();
                return Ok(Some(Self {
                    clang,
                    strip,
                    version,
                }));
            }
        }
        Ok(None)
    }
}

fn folder() -> PathBuf {
    root().join("crates/machine/src/linux/trace/bpf")
}

/// Keeps BTF, with which the object fits other kernels, and no other debugging information or path of
/// this machine.
fn compile(tools: &Tools, object: &Path) -> Result<()> {
    let mut clang = Command::new(&tools.clang);
    clang.current_dir(folder());
    clang.args(["-target", "bpfel", "-mcpu=v3", "-O2", "-g"]);
    clang.args(["-Wall", "-Wextra", "-Werror", "-fdebug-compilation-dir=."]);
    step(clang.args(["-c", SOURCE, "-o"]).arg(object))?;
    step(Command::new(&tools.strip).arg("-g").arg(object))
}

fn format_note(object: &Path, version: &str) -> Result<String> {
    let hash = |path: &Path| -> Result<u64> {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok(hash_bytes(&bytes))
    };
    Ok(format!(
        "source {:016x}\nobject {:016x}\nby {version}\n",
        hash(&folder().join(SOURCE))?,
        hash(object)?,
    ))
}

/// FNV-1a, 64 bits: enough to detect a forgotten compilation.
fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
