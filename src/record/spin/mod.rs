//! What the spin-wait laboratory finds.

mod attach;

pub use attach::{
    SPIN_ATTACH_SCHEMA, SpinAttachRecord, SpinCaller, SpinMatch, SpinPlace, SpinShares, SpinThread,
};
