//! The pinwise command. The library does everything, and chooses the exit status.

mod memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    pinwise::cli::main(std::env::args_os()).into()
}
