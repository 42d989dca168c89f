//! Links between GPUs, from `nvidia-smi` and AMD's driver.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::capture::{list_names, read_file};
use pinwise_topology::links::{KFD_DIR, NVIDIA_MATRIX};
use pinwise_topology::{Capture, Topology, Warning};

/// Has a folder for each GPU if NVIDIA's driver runs.
const NVIDIA_DIR: &str = "/proc/driver/nvidia/gpus";
/// Without its daemon the driver first wakes every GPU, which takes seconds.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Adds the links between this machine's GPUs. It starts `nvidia-smi`, so call it only if they are
/// needed.
pub fn read_links(topology: &mut Topology) -> Vec<Warning> {
    let mut capture = Capture::new();
    capture_links(&mut capture);
    topology.read_links(&capture)
}

/// Adds the links that this machine's drivers know to a capture of it.
pub fn capture_links(capture: &mut Capture) {
    let insert_properties = |capture: &mut Capture, folder: &str| {
        let path = format!("{folder}/properties");
        if let Some(text) = read_file(&Path::new("/").join(&path)) {
            capture.insert(path, text);
        }
    };
    let list = |folder: &str| list_names(&Path::new("/").join(folder));
    for node in list(KFD_DIR) {
        let node = format!("{KFD_DIR}/{node}");
        insert_properties(capture, &node);
        let links = format!("{node}/io_links");
        for link in list(&links) {
            insert_properties(capture, &format!("{links}/{link}"));
        }
    }
    // A single GPU has no links, and the tool takes ten times as long as everything else.
    if list_names(Path::new(NVIDIA_DIR)).len() > 1
        && let Some(text) = run_nvidia_smi()
    {
        capture.insert(NVIDIA_MATRIX, text);
    }
}

/// Returns the output of `nvidia-smi topo -m`; `None` if it is not installed or too slow.
fn run_nvidia_smi() -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "asks the vendor's tool, which ends before this returns"
    )]
    let mut command = Command::new("nvidia-smi");
    log::info!("asking nvidia-smi topo -m for links between GPUs");
    let command = command.args(["topo", "-m"]).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    let (sender, printed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.read_to_end(&mut text);
        // The receiver is gone after the longest wait.
        let _ = sender.send(read.map(|_| text));
    });
    let text = printed.recv_timeout(LONGEST_WAIT);
    if text.is_err() {
        // An error means that it has ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    let text = text.ok()?.ok()?;
    status
        .success()
        .then(|| String::from_utf8_lossy(&text).into_owned())
}
