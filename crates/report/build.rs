//! Embeds the page that reports and `serve` need, if it was built.
//!
//! `cargo xtask web` builds it, with Node; `page.html` is a link to it, which
//! becomes a file of its own in what `cargo package` makes. Without it
//! everything else works, and the two commands say how to get it.

use std::path::Path;

/// The folder of the built page, in the project's own tree.
const BUILT: &str = "../../web/dist";

fn main() {
    // The folder is always there: a missing file would have cargo build anew
    // every time.
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
