//! Instructions as assemblers produce them.

use super::{Arch, Code, Flow, decode_one, disassemble};

fn new_code(arch: Arch, start: u64, bytes: &[u8]) -> Code {
    Code {
        arch,
        start,
        bytes: bytes.to_vec(),
    }
}

fn arm_code(start: u64, words: &[u32]) -> Code {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    new_code(Arch::Aarch64, start, &bytes)
}

fn disassemble_texts(code: &Code) -> Vec<String> {
    disassemble(code, code.start, code.end())
        .into_iter()
        .map(|one| one.text)
        .collect()
}

#[test]
fn x86_is_disassembled_as_assemblers_write_it() {
    let code = new_code(
        Arch::X86_64,
        0x40_1000,
        &[
            0xf3, 0x90, // pause
            0x8b, 0x07, // mov eax, [rdi]
            0x85, 0xc0, // test eax, eax
            0x75, 0xf8, // jne 0x401000
            0xe8, 0x00, 0x01, 0x00, 0x00, // call 0x40110d
            0x0f, 0x05, // syscall
            0x8b, 0x05, 0x10, 0x00, 0x00, 0x00, // mov eax, [rip+0x10]
            0xff, 0xe0, // jmp rax
            0xc3, // ret
        ],
    );
    assert_eq!(
        disassemble_texts(&code),
        [
            "pause",
            "mov eax, [rdi]",
            "test eax, eax",
            "jne 0x401000",
            "call 0x40110d",
            "syscall",
            "mov eax, [0x401025]",
            "jmp rax",
            "ret",
        ]
    );
    let all = disassemble(&code, code.start, code.end());
    let flows: Vec<Flow> = all.iter().map(|one| one.flow).collect();
    assert_eq!(
        flows,
        [
            Flow::Next,
            Flow::Next,
            Flow::Next,
            Flow::Branch(0x40_1000),
            Flow::Call(Some(0x40_110d)),
            Flow::System,
            Flow::Next,
            Flow::Jump(None),
            Flow::Return,
        ]
    );
    assert!(all[0].is_hint && all.iter().filter(|one| one.is_hint).count() == 1);
}

#[test]
fn hints_of_both_architectures_are_recognised() {
    let x86: [&[u8]; 3] = [
        &[0xf3, 0x90],             // pause
        &[0x66, 0x0f, 0xae, 0xf1], // tpause ecx
        &[0xf2, 0x0f, 0xae, 0xf1], // umwait ecx
    ];
    for bytes in x86 {
        let one = decode_one(&new_code(Arch::X86_64, 0, bytes), 0).unwrap();
        assert!(one.is_hint, "{}", one.text);
    }
    // yield, wfe, isb, sb, wfet x3.
    let arm = arm_code(
        0,
        &[
            0xd503_203f,
            0xd503_205f,
            0xd503_3fdf,
            0xd503_30ff,
            0xd503_1003,
        ],
    );
    let all = disassemble(&arm, 0, arm.end());
    assert_eq!(all.len(), 5);
    assert!(all.iter().all(|one| one.is_hint), "{all:?}");
    assert_eq!(all[0].text, "yield");
    // nop, dmb ish, wfi.
    let other = arm_code(0, &[0xd503_201f, 0xd503_3bbf, 0xd503_207f]);
    let all = disassemble(&other, 0, other.end());
    assert!(
        all.len() == 3 && all.iter().all(|one| !one.is_hint),
        "{all:?}"
    );
}

#[test]
fn arm64_targets_are_absolute() {
    let code = arm_code(
        0x1000,
        &[
            0x5400_0041, // b.ne +8
            0x35ff_ffe0, // cbnz w0, -4
            0x3600_0040, // tbz w0, #0, +8
            0x1400_0002, // b +8
            0x97ff_fffc, // bl -16
            0xd400_0001, // svc #0
            0xd65f_03c0, // ret
            0xd61f_0200, // br x16
            0xd63f_0000, // blr x0
            0x0000_0000, // udf
        ],
    );
    let all = disassemble(&code, code.start, code.end());
    let flows: Vec<Flow> = all.iter().map(|one| one.flow).collect();
    assert_eq!(
        flows,
        [
            Flow::Branch(0x1008),
            Flow::Branch(0x1000),
            Flow::Branch(0x1010),
            Flow::Jump(Some(0x1014)),
            Flow::Call(Some(0x1000)),
            Flow::System,
            Flow::Return,
            Flow::Jump(None),
            Flow::Call(None),
            Flow::Stop,
        ],
        "{all:?}"
    );
    assert_eq!(all[0].text, "b.ne 0x1008");
    assert_eq!(all[4].text, "bl 0x1000");
}

#[test]
fn invalid_bytes_are_skipped() {
    // 06 is invalid in 64-bit mode; the stretch ends within an instruction.
    let code = new_code(Arch::X86_64, 0x10, &[0x06, 0x90, 0xe8, 0x00]);
    assert_eq!(disassemble_texts(&code), ["nop"]);
    assert_eq!(decode_one(&code, 0x10), None);
    assert_eq!(decode_one(&code, 0xf), None);
    assert_eq!(decode_one(&code, 0x14), None);
}
