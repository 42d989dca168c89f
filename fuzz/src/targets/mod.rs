//! The targets; each says at its head what it reads and what must hold.

macro_rules! modules {
    ($($name:ident)+) => {
        $(pub(crate) mod $name;)+
    };
}

crate::with_targets!(modules);
