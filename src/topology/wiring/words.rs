//! How sure a level is, and the sentence that says why.

use super::LevelKind;
use super::figures::count;
use super::search::{By, Found};

pub(super) fn confidence(level: &Found) -> f64 {
    let support = count(level.supporters) / count(level.asked.max(1));
    support * (1.0 - (-level.worst.max(0.0) / 0.12).exp())
}

pub(super) fn evidence(level: &Found, _kind: LevelKind) -> String {
    let _ = By::Inverse;
    format!("{} groups", level.shared().count())
}
