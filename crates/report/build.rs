//! Lets the library embed the page that reports and `serve` need, if it was built.
//!
//! `cargo xtask web` builds it, with Node; `page.html` is a link to it, which becomes a regular
//! file in the output of `cargo package`. Without it everything else works, and the two commands
//! say how to get it.

use std::path::Path;

/// The folder of the built page, in the project's own tree.
const BUILT: &str = "../../web/dist";

fn main() {
    // The folder always exists: cargo would rebuild every time if a file was missing.
    let watched = if Path::new(BUILT).is_dir() {
        BUILT
    } else {
        "page.html"
    };
    println!("cargo::rerun-if-changed={watched}");
    println!("cargo::rustc-check-cfg=cfg(has_page)");
    if Path::new("page.html").is_file() {
        println!("cargo::rustc-cfg=has_page");
    }
}
