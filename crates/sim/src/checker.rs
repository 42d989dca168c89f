//! Checks of a description, and why one is refused.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pinwise_placement::Placement;
use pinwise_topology::{CpuSet, Topology};

/// Limits the bytes of a description: parsing takes a hundred times as much memory.
pub(super) const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// Why a description was refused.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// A file cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The TOML is malformed, or has an unknown key or a value of the wrong
    /// type.
    #[error("{path}:{line}: {reason}")]
    Toml {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// An invalid synthetic topology as the whole description.
    #[error("{0}")]
    Topology(String),
    /// An invalid value.
    #[error("{path}: {key}: {reason}")]
    Value {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<DescriptionError> for pinwise_machine::MachineError {
    fn from(error: DescriptionError) -> Self {
        Self::Description(Box::new(error))
    }
}

/// Checks values of one description, and names the key of a refused one.
pub(super) struct Checker<'a> {
    /// The file, for messages.
    pub(super) path: &'a str,
    /// The section that keys are in, for messages; empty at the top.
    pub(super) section: &'a str,
}

impl<'a> Checker<'a> {
    /// A checker for the keys of one section.
    pub(super) const fn with_section(&self, section: &'a str) -> Self {
        Self { section, ..*self }
    }

    /// Checks effects and resolves their placements to CPUs.
    pub(super) fn resolve_effects(
        &self,
        key: &str,
        effects: &BTreeMap<String, f64>,
        topology: &Topology,
    ) -> Result<Vec<(CpuSet, f64)>, DescriptionError> {
        effects
            .iter()
            .map(|(name, &effect)| {
                let key = format!("{key}.\"{name}\"");
                self.check_positive(&key, effect)?;
                Ok((self.realise_placement(&key, name, topology)?, effect))
            })
            .collect()
    }

    /// The CPUs of a placement.
    pub(super) fn realise_placement(
        &self,
        key: &str,
        name: &str,
        topology: &Topology,
    ) -> Result<CpuSet, DescriptionError> {
        let placement: Placement = name
            .parse()
            .map_err(|error| self.value_error(key, &format!("{error}")))?;
        let realised = placement
            .realise(topology)
            .map_err(|error| self.value_error(key, &error.to_string()))?;
        Ok(realised.cpus)
    }

    pub(super) fn check_positive(&self, key: &str, value: f64) -> Result<(), DescriptionError> {
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(self.value_error(key, &format!("{value} must be above 0")))
    }

    pub(super) fn check_range(
        &self,
        key: &str,
        value: f64,
        low: f64,
        high: f64,
    ) -> Result<(), DescriptionError> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.value_error(key, &format!("{value} must be from {low} to {high}")))
    }

    /// An error that names the file and the key.
    pub(super) fn value_error(&self, key: &str, reason: &str) -> DescriptionError {
        let key = match self.section {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        };
        DescriptionError::Value {
            path: self.path.to_owned(),
            key,
            reason: reason.to_owned(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a simulated machine is made of its files; this is the Edge"
)]
pub(super) fn read_text(path: &Path) -> Result<String, DescriptionError> {
    let mut text = String::new();
    let max_bytes = MAX_DESCRIPTION_BYTES as u64 + 1;
    std::fs::File::open(path)
        .and_then(|file| file.take(max_bytes).read_to_string(&mut text))
        .map_err(|error| DescriptionError::Unreadable {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
    Ok(text)
}
