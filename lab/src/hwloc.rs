//! The machines of hwloc's own tests, as `lstopo` and as pinwise count them.
//!
//! Takes the folder `tests/hwloc` of hwloc's sources: `xml/*.xml`, `linux/*.xml`, and
//! the copies of `/sys` and `/proc` in `linux/*.tar.bz2`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pinwise_machine::linux::capture_folder;
use pinwise_topology::{CacheType, Topology};

use crate::table::Table;
use xtask::programs::{find_or_install, read_output, target};

/// The counted units, with hwloc's names.
const COUNTED: [(&str, &str); 5] = [
    ("CPUs", "PU"),
    ("cores", "Core"),
    ("L3", "L3Cache"),
    ("packages", "Package"),
    ("nodes", "NUMANode"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [folder] = arguments else {
        eprintln!("lab: not run without the folder tests/hwloc of hwloc's sources");
        return Ok(());
    };
    let lstopo = find_or_install("lstopo-no-graphics", "hwloc-nox")?;
    let folder = Path::new(folder);
    let mut differing = Table::new("hwloc_differing", "machine | what | lstopo | pinwise");
    let mut summary = Table::new("hwloc", "form | machines | equal in all counts");
    let xml = [
        list_files(&folder.join("xml"), "xml")?,
        list_files(&folder.join("linux"), "xml")?,
    ]
    .concat();
    for (form, inputs) in [
        ("XML", xml),
        ("sysfs", list_files(&folder.join("linux"), "bz2")?),
    ] {
        let mut equal = 0;
        for input in &inputs {
            equal += usize::from(compare(&lstopo, input, &mut differing)?);
        }
        summary.add_row(format!("{form} | {} | {equal}", inputs.len()));
    }
    summary.publish()?;
    differing.publish()
}

fn list_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|own| own == extension));
    paths.sort();
    Ok(paths)
}

/// Adds a row for each different count; returns whether all are equal.
fn compare(lstopo: &Path, input: &Path, differing: &mut Table) -> Result<bool> {
    let name = input
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let unpacked = tempfile::tempdir_in(target())?;
    let is_xml = input.extension().is_some_and(|own| own == "xml");
    let (root, own) = if is_xml {
        let text = std::fs::read_to_string(input)?;
        // lstopo of hwloc 2 reads what these files of version 3 have.
        let old = text.replacen("<topology version=\"3.0\"", "<topology version=\"2.0\"", 1);
        let root = unpacked.path().join("machine.xml");
        std::fs::write(&root, old)?;
        (root, Topology::from_hwloc_xml(&text)?.0)
    } else {
        let root = unpack(input, unpacked.path())?;
        let own = Topology::from_capture(&capture_folder(&root)?).0;
        (root, own)
    };
    let mut command = Command::new(lstopo);
    let form = if is_xml { "xml" } else { "fsroot" };
    command.args(["--if", form, "-i"]).arg(&root);
    let theirs = read_output(command.args(["--no-io", "--of", "xml", "-"]));
    let Ok(theirs) = theirs else {
        differing.add_row(format!(
            "{name} | all | refused | {} CPUs",
            own.counts().cpus
        ));
        return Ok(false);
    };
    let mut is_equal = true;
    for ((what, object), own) in COUNTED.iter().zip(count(&own)) {
        let theirs = theirs
            .matches(&format!("<object type=\"{object}\""))
            .count();
        if theirs != own {
            is_equal = false;
            differing.add_row(format!("{name} | {what} | {theirs} | {own}"));
        }
    }
    Ok(is_equal)
}

/// In the order of [`COUNTED`].
fn count(topology: &Topology) -> [usize; 5] {
    let counts = topology.counts();
    let caches = topology.caches.iter();
    let l3 = caches.filter(|c| c.level == 3 && c.kind != CacheType::Instruction);
    let nodes = topology.numa_nodes.iter().filter(|node| node.allowed);
    [
        counts.cpus,
        counts.cores,
        l3.filter(|cache| cache.cpus.intersects(&topology.allowed))
            .count(),
        counts.packages,
        nodes.count(),
    ]
}

/// Unpacks an archive; it holds the folders of a system, or one folder with them.
fn unpack(archive: &Path, folder: &Path) -> Result<PathBuf> {
    let mut command = Command::new("tar");
    read_output(command.arg("xjf").arg(archive).arg("-C").arg(folder))?;
    let inside = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    match inside.as_slice() {
        [] => bail!("{}: empty", archive.display()),
        [only] if !only.path().join("devices").is_dir() => Ok(only.path()),
        _ => Ok(folder.to_owned()),
    }
}
