//! The path of this program, and the folders that its environment names.

use std::path::PathBuf;

use anyhow::Context;

/// The path of this executable, which also runs kernels, ranks and fleet steps.
pub(super) fn find_own_program() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("finding pinwise itself")?;
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the path of pinwise is not UTF-8: {}", path.display()))
}

/// The folder for temporary files.
pub(super) fn find_temporary_folder() -> PathBuf {
    find_named_folder("TMPDIR").unwrap_or_else(|| "/tmp".into())
}

/// The folder that an environment variable names; `None` if it is unset or empty.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
pub(super) fn find_named_folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
