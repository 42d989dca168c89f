//! The outputs of a measured machine: text, hwloc XML and the diff, on invented machines with known
//! figures.

mod diff;
mod fixture;
mod hostile;
mod text;
pub(crate) mod xml;

/// Compares a text with its snapshot in `tests/it/snapshots`.
#[track_caller]
fn check_text(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("outputs-{name}"), text));
}
