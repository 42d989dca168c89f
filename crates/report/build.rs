//! Embeds the page that reports and `serve` need, where it was built.
//!
//! `cargo xtask web` builds it, with Node. Without it everything else works,
//! and the two commands say how to get it.

use std::path::Path;

fn main() {
    // The folder is always there: a missing file would have cargo build anew
    // every time.
    println!("cargo::rerun-if-changed=../../web/dist");
    println!("cargo::rustc-check-cfg=cfg(has_page)");
    if Path::new("../../web/dist/page.html").is_file() {
        println!("cargo::rustc-cfg=has_page");
    }
}
