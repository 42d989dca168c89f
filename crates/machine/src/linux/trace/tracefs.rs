//! Reads the formats of tracepoints from tracefs.
//!
//! It mounts nothing: if tracefs is missing, it says how to mount it.

use std::io::{self, Read};
use std::path::Path;

use super::super::capture;
use super::permission;
use pinwise_sched::{FormatError, Refusal, TracepointFormat};

/// The usual mount points of tracefs.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Most bytes that are read of a format, which has about one thousand.
const MAX_FORMAT_BYTES: u64 = 64 * 1024;

/// Formats of the tracepoints that a trace requires.
#[derive(Debug)]
pub(super) struct Tracepoints {
    pub(super) switch: TracepointFormat,
    pub(super) wakeup: TracepointFormat,
    pub(super) wakeup_new: TracepointFormat,
}

/// Reads the formats; an error says why that is not possible.
pub(super) fn read_tracepoints() -> Result<Tracepoints, Refusal> {
    let tracefs = Tracefs::find()?;
    let read = |name: &str| tracefs.read_format("sched", name, "trace …");
    Ok(Tracepoints {
        switch: read("sched_switch")?,
        wakeup: read("sched_wakeup")?,
        wakeup_new: read("sched_wakeup_new")?,
    })
}

/// The mount point of tracefs.
#[derive(Debug)]
pub(in crate::linux) struct Tracefs(&'static Path);

impl Tracefs {
    /// Finds it; an error says why that is not possible.
    pub(in crate::linux) fn find() -> Result<Self, Refusal> {
        MOUNT_POINTS
            .iter()
            .map(Path::new)
            .find(|place| !is_absent(&place.join("events/sched/sched_switch/format")))
            .map(Self)
            .ok_or_else(explain_missing)
    }

    /// Reads the format of a tracepoint; `command`: the pinwise command that needs it.
    pub(in crate::linux) fn read_format(
        &self,
        system: &str,
        name: &str,
        command: &str,
    ) -> Result<TracepointFormat, Refusal> {
        let path = self.0.join("events").join(system).join(name).join("format");
        let text = read_text(&path).map_err(|error| explain_unreadable(&path, &error, command))?;
        TracepointFormat::parse(&text).map_err(|error| explain_unknown_format(&error))
    }

    /// Lists the tracepoints of a subsystem; empty if it does not exist.
    pub(in crate::linux) fn list_tracepoints(&self, system: &str) -> Vec<String> {
        capture::list_names(&self.0.join("events").join(system))
    }
}

/// The refusal for a tracepoint with an unknown format.
pub(in crate::linux) fn explain_unknown_format(error: &FormatError) -> Refusal {
    Refusal {
        reason: format!("this kernel's scheduler tracepoints are not understood: a format {error}"),
        remedy: None,
    }
}

fn is_absent(path: &Path) -> bool {
    match path.metadata() {
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn explain_missing() -> Refusal {
    if !Path::new(MOUNT_POINTS[0]).exists() {
        return Refusal {
            reason: "this kernel has no tracefs (CONFIG_FTRACE)".to_owned(),
            remedy: None,
        };
    }
    Refusal {
        reason: "tracefs is not mounted".to_owned(),
        remedy: Some(permission::with_sudo(
            "mount -t tracefs nodev /sys/kernel/tracing",
        )),
    }
}

fn explain_unreadable(path: &Path, error: &io::Error, command: &str) -> Refusal {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    Refusal {
        reason: format!(
            "{} cannot be read: {}",
            path.display(),
            permission::message_of(error)
        ),
        remedy: is_denied.then(|| permission::sudo_pinwise(command)),
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads tracefs")]
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    file.take(MAX_FORMAT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
