//! Functions: names for addresses that are the same in every process and run.
//!
//! A function is identified by its module and its symbol. Without symbols its start is unknown, so
//! each [`REGION`] bytes of the module count as a function: single addresses would split every loop.

use super::{Frame, Samples};

/// Bytes of code without symbols that count as one function.
pub const REGION: u64 = 64;

/// The kind of a tree's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Code of the program and its libraries.
    User,
    /// The kernel.
    Kernel,
    /// The wait in a spin hint, as the innermost entry of a stack.
    Pause,
    /// Stacks that are not listed individually.
    LeftOut,
    /// In place of the callers of a truncated stack.
    Broken,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// Its symbol, or else its first address and `+`.
    pub name: String,
    /// Path of its module; empty if unknown.
    pub module: String,
    /// Its kind.
    pub kind: Kind,
}

impl Function {
    /// The wait in a spin hint.
    #[must_use]
    pub fn pause() -> Self {
        Self::marker("[pause]", Kind::Pause)
    }

    /// The entry for what is not listed individually.
    #[must_use]
    pub fn left_out() -> Self {
        Self::marker("[left out]", Kind::LeftOut)
    }

    /// The entry for missing callers of truncated stacks.
    #[must_use]
    pub fn broken() -> Self {
        Self::marker("[broken]", Kind::Broken)
    }

    fn marker(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            module: String::new(),
            kind,
        }
    }

    /// The function of a frame.
    #[must_use]
    pub fn from_frame(samples: &Samples, frame: &Frame) -> Self {
        let module = frame.module.and_then(|index| samples.modules.get(index));
        let module = module.map(|module| module.path.clone()).unwrap_or_default();
        let kind = if frame.is_kernel {
            Kind::Kernel
        } else {
            Kind::User
        };
        let name = match (&frame.symbol, kind) {
            (Some(symbol), _) => symbol.name.clone(),
            (None, Kind::Kernel) => "[kernel]".to_owned(),
            (None, _) => {
                let address = frame.file_address.unwrap_or(frame.address);
                format!("{:#x}+", address - address % REGION)
            }
        };
        Self { name, module, kind }
    }

    /// The functions of a frame, including inlined ones, innermost first.
    #[must_use]
    pub fn all_from_frame(samples: &Samples, frame: &Frame) -> Vec<Self> {
        let outermost = Self::from_frame(samples, frame);
        let inlined = frame.symbol.iter().flat_map(|symbol| symbol.inlined.iter());
        let inlined = inlined.rev().map(|name| Self {
            name: name.clone(),
            ..outermost.clone()
        });
        inlined.chain([outermost.clone()]).collect()
    }

    /// Is it a stretch of code without a symbol?
    #[must_use]
    pub fn is_nameless(&self) -> bool {
        self.kind == Kind::User && self.name.starts_with("0x") && self.name.ends_with('+')
    }

    /// The last part of its module's path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        file_name(&self.module)
    }
}

/// The file name of a path.
#[must_use]
pub(super) fn file_name(path: &str) -> &str {
    // `//anon` is a name, not a path.
    if path.starts_with("//") {
        return path;
    }
    path.rsplit('/').next().unwrap_or(path)
}
