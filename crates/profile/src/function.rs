//! Functions: how an address is named, the same in every process and run.
//!
//! A function is its module and its symbol. Where there is no symbol it is a
//! stretch of [`REGION`] bytes of its module: single addresses would tear every
//! loop apart, and where such a function begins nobody says.

use super::{Frame, Samples};

/// Bytes of code without symbols that count as one function.
pub const REGION: u64 = 64;

/// What kind of thing took time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Code of the program and its libraries.
    User,
    /// The kernel.
    Kernel,
    /// The wait in a spin hint, as the innermost entry of a stack.
    Pause,
    /// Stacks that are not listed one by one.
    LeftOut,
    /// In place of the callers of a stack that ends early.
    Broken,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// Its symbol, or where there is none its first address and `+`.
    pub name: String,
    /// Path of its module; empty if unknown.
    pub module: String,
    /// Whose it is.
    pub kind: Kind,
}

impl Function {
    /// The wait in a spin hint.
    #[must_use]
    pub fn pause() -> Self {
        Self::marker("[pause]", Kind::Pause)
    }

    /// What is not listed one by one.
    #[must_use]
    pub fn left_out() -> Self {
        Self::marker("[left out]", Kind::LeftOut)
    }

    /// The callers that are missing of stacks that end early.
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

    /// What a frame is named.
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

    /// What a frame is named, functions that the compiler put into another
    /// one by one, innermost first.
    #[must_use]
    pub fn all_of(samples: &Samples, frame: &Frame) -> Vec<Self> {
        let outermost = Self::from_frame(samples, frame);
        let inlined = frame.symbol.iter().flat_map(|symbol| symbol.inlined.iter());
        let inlined = inlined.rev().map(|name| Self {
            name: name.clone(),
            ..outermost.clone()
        });
        inlined.chain([outermost.clone()]).collect()
    }

    /// Is it a stretch of code that no symbol names?
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

/// The last part of a path.
#[must_use]
pub(super) fn file_name(path: &str) -> &str {
    // `//anon` is a name, not a path.
    if path.starts_with("//") {
        return path;
    }
    path.rsplit('/').next().unwrap_or(path)
}
