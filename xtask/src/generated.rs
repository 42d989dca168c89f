//! Documents generated from the command line's definition, and captures.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::programs::{cargo, root, step, target};
use crate::records;

/// The reference, which is committed; man pages and completions are generated for packages only.
const REFERENCE: &str = "cli.md";

/// Writes the reference to `docs`, the schema of records to `schema`, and tables of records, man
/// pages and completions to `target/generated`.
pub(crate) fn write() -> Result<()> {
    generate("reference", &root().join("docs"))?;
    records::write()?;
    let folder = target().join("generated");
    generate("man", &folder.join("man"))?;
    generate("completions", &folder.join("completions"))?;
    eprintln!(
        "xtask: man pages and completions are in {}",
        folder.display()
    );
    Ok(())
}

/// Checks that the reference is up to date; a unit test checks the schema.
pub(crate) fn check() -> Result<()> {
    let folder = tempfile::tempdir()?;
    generate("reference", folder.path())?;
    let fresh = std::fs::read_to_string(folder.path().join(REFERENCE))?;
    let path = root().join("docs").join(REFERENCE);
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if fresh != kept {
        bail!(
            "docs/{REFERENCE} differs from the command line; run `cargo xtask gen` and commit it"
        );
    }
    Ok(())
}

/// Has the command write documents of one kind.
pub(crate) fn generate(what: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let folder = folder.to_str().context("a path that is not UTF-8")?;
    step(&mut cargo(&[
        "run", "--quiet", "--locked", "--", "generate", what, folder,
    ]))
}

/// Saves this machine as a fixture.
pub(crate) fn capture(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if !name.chars().all(is_plain) || name.is_empty() {
        bail!("'{name}' is not a name of letters, digits, '-' and '.', such as 2s8c2t");
    }
    let path = root().join(format!("tests/data/machines/{name}.capture"));
    let path = path.to_str().context("a path that is not UTF-8")?;
    step(&mut cargo(&[
        "run", "--quiet", "--locked", "--", "topology", "--save", path,
    ]))?;
    eprintln!("xtask: review it before you commit it: it names this host");
    Ok(())
}
