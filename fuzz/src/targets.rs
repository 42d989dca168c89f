//! The targets; each documents its input and its invariants.

macro_rules! modules {
    ($($name:ident)+) => {
        $(pub(crate) mod $name;)+
    };
}

crate::with_targets!(modules);
