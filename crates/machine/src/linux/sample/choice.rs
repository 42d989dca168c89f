//! Chooses how callers are found if the user does not say: by frame pointers if the program was
//! built with them, otherwise from copies of stacks, which cost more.
//!
//! Only the started program is inspected; nothing is measured.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::spawn::find_program;
use super::super::stack::callers::read_tables;
use super::super::stack::files::{open_program, open_regular};
use crate::Subject;
use pinwise_code::unwind::ParseBudget;
use pinwise_profile::Stacks;

/// In a program that was built with frame pointers at least this share of functions keep them; the
/// others come from the linker or from assembly.
const MIN_SHARE: f64 = 0.8;
/// Most bytes of unwind tables that are processed.
const MAX_TABLE_BYTES: usize = 16 << 20;

/// Chooses how callers are found; never [`Stacks::Auto`].
pub(super) fn choose_stacks(wanted: Stacks, subject: &Subject<'_>, search: &str) -> Stacks {
    if wanted != Stacks::Auto {
        return wanted;
    }
    let program = open_subject(subject, search);
    if program.is_some_and(|program| keeps_frame_pointers(&program)) {
        Stacks::FramePointers
    } else {
        Stacks::Dwarf
    }
}

/// Opens the program that will run or runs.
fn open_subject(subject: &Subject<'_>, search: &str) -> Option<File> {
    match subject {
        Subject::Command(request) => {
            let name = request.workload.command.program();
            let path = find_program(name, search).ok()?.into_string().ok()?;
            open_regular(&std::path::Path::new(&path).canonicalize().ok()?).ok()
        }
        Subject::Process(pid) => {
            let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            open_program(*pid, path.to_str()?)
        }
        Subject::Everything => None,
    }
}

/// Was the program built with frame pointers? For programs without unwind tables, such as Go's,
/// there is no other way.
fn keeps_frame_pointers(file: &File) -> bool {
    let mut magic = [0; 4];
    let is_elf = file.read_exact_at(&mut magic, 0).is_ok() && magic == object::elf::ELFMAG;
    let mut work = ParseBudget::new(MAX_TABLE_BYTES);
    match read_tables(file, &mut work) {
        Some(tables) => tables
            .share_with_frame_pointer(&mut work)
            .is_some_and(|share| share >= MIN_SHARE),
        None => is_elf,
    }
}
