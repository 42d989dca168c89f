//! Names of functions as in their source.

/// Limits the bytes of a symbol that is demangled; longer ones are shown unchanged.
const MAX_SYMBOL_BYTES: usize = 4096;

/// Demangles a symbol of Rust or C++; any other is returned unchanged.
#[must_use]
pub fn demangle(symbol: &str) -> String {
    if symbol.len() > MAX_SYMBOL_BYTES {
        return symbol.to_owned();
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    if !symbol.starts_with("_Z") {
        return symbol.to_owned();
    }
    let parsed = cpp_demangle::Symbol::new(symbol).ok();
    let name = parsed.and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_are_those_of_the_source() {
        let names = [
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            (
                "_ZN13ObjectMonitor7TrySpinEP6Thread",
                "ObjectMonitor::TrySpin(Thread*)",
            ),
            ("main", "main"),
            ("_Z!", "_Z!"),
            ("", ""),
        ];
        for (symbol, name) in names {
            assert_eq!(demangle(symbol), name);
        }
    }
}
