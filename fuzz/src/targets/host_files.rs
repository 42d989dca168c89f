//! The files of `/sys` and `/proc` that `doctor` and `topology --from FOLDER` read, given in the
//! text form of a capture and written to a folder.

use std::path::{Component, Path, PathBuf};

use crate::invariants::check_topology;
use pinwise_machine::linux::{capture_folder, read_host_facts, read_isolation};
use pinwise_topology::{Topology, interrupts};

/// More files or deeper folders only make a run slower.
const MAX_FILES: usize = 24;
const MAX_DEPTH: usize = 8;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    // The target `capture` tests the reader of that form, which does not list paths.
    let folder = crate::invariants::create_folder();
    for line in text.lines().take(MAX_FILES) {
        if let Some((path, content)) = line.split_once('\t')
            && let Some(path) = resolve(folder.path(), path)
        {
            let content = content.replace("\\n", "\n");
            let _ = interrupts::lines(&content);
            write_file(&path, &content);
        }
    }
    let _ = read_isolation(folder.path());
    let facts = read_host_facts(folder.path());
    assert!(facts.load_average.is_none_or(|load| !load.is_infinite()));
    if let Ok(capture) = capture_folder(folder.path()) {
        let (topology, warnings) = Topology::from_capture(&capture);
        check_topology(&topology, &warnings);
    }
}

/// The path below the folder, unless it would lead out of it.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_good = path.components().all(is_plain) && path.components().count() <= MAX_DEPTH;
    is_good.then(|| folder.join(path))
}

/// Impossible names (too long, a file where a folder is needed) are skipped.
fn write_file(path: &Path, content: &str) {
    if let Some(folder) = path.parent()
        && std::fs::create_dir_all(folder).is_ok()
    {
        let _ = std::fs::write(path, content);
    }
}
