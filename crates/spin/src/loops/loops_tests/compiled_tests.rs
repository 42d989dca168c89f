//! Loops as compilers make them, if there are compilers.

use std::process::Command;

use super::*;
use pinwise_code::elf;

/// Kind and gap of the innermost loop with a hint, or of the first one.
fn waits_of(binary: &elf::Binary, name: &str) -> Option<(LoopKind, Option<u64>)> {
    let function = binary.function(name)?;
    let code = binary.code_at(function.start)?;
    let all = pinwise_code::disassemble(code, function.start, function.start + function.size);
    let hint = all.iter().find(|one| one.is_hint);
    let at = hint.map(|one| one.address);
    let found = match at {
        Some(at) => loop_at(code, at),
        None => all.iter().find_map(|one| loop_at(code, one.address)),
    };
    found.map(|one| (one.kind, one.gap))
}

/// The loops of `waits.c` by function name.
const NAMED: [(&str, LoopKind, Option<u64>); 19] = [
    ("polling_flag", LoopKind::Polling, Some(1)),
    ("polling_counted", LoopKind::Polling, Some(1)),
    ("polling_exchange", LoopKind::Polling, Some(1)),
    ("polling_compare_exchange", LoopKind::Polling, Some(1)),
    ("blind_thirty", LoopKind::BlindDelay, Some(30)),
    ("blind_countdown", LoopKind::BlindDelay, Some(250)),
    ("blind_argument", LoopKind::BlindDelay, None),
    ("netfx_lock", LoopKind::BlindDelay, None),
    ("nested_thirty", LoopKind::BlindDelay, Some(30)),
    ("bare_flag", LoopKind::BareLoad, None),
    ("bare_counted", LoopKind::BareLoad, None),
    ("yield_until", LoopKind::Yielding, None),
    ("work_length", LoopKind::Work, None),
    ("work_search", LoopKind::Work, None),
    ("work_sum", LoopKind::Work, None),
    ("work_walk", LoopKind::Work, None),
    ("work_add", LoopKind::Work, None),
    ("work_copy", LoopKind::Work, None),
    ("work_polynomial", LoopKind::Work, None),
];

/// Compiles the fixture; `None` without such a compiler.
#[expect(
    clippy::disallowed_methods,
    reason = "the fixture is compiled and read by the test, not by the library"
)]
fn compile(compiler: &str, options: &[&str]) -> Option<elf::Binary> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("waits");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/code/waits.c");
    let mut command = Command::new(compiler);
    command.args(["-nostdlib", "-static", "-fno-builtin", "-Wl,-e,main"]);
    let status = command.args(options).arg("-o").arg(&out).arg(source);
    let output = status.output().ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(elf::read(&std::fs::read(out).unwrap()).unwrap())
}

#[track_caller]
fn check_compiled_waits(compiler: &str, options: &[&str]) {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let all: Vec<&str> = options.iter().copied().chain([level]).collect();
        let Some(binary) = compile(compiler, &all) else {
            println!("SKIPPED: no {compiler}");
            return;
        };
        for (name, kind, gap) in NAMED {
            // A compiler may unroll work, or make a call of it.
            let Some(found) = waits_of(&binary, name) else {
                assert_eq!(kind, LoopKind::Work, "{name} at {level} has no loop");
                continue;
            };
            assert_eq!(found, (kind, gap), "{name} of {compiler} {all:?}");
        }
    }
}

#[test]
fn compiled_waits_match_their_names() {
    if cfg!(target_arch = "x86_64") {
        check_compiled_waits("cc", &[]);
    } else {
        println!("SKIPPED: the fixture's names are held against x86 compilers");
    }
}

#[test]
fn compiled_arm64_waits_match_their_names() {
    check_compiled_waits("aarch64-linux-gnu-gcc", &["-mno-outline-atomics"]);
    check_compiled_waits("aarch64-linux-gnu-gcc", &["-march=armv8.1-a"]);
}
