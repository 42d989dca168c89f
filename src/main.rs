//! The pinwise command. Everything is in the library; the exit status is
//! chosen there once and only handed on here.

mod memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    pinwise::cli::main(std::env::args_os()).into()
}
