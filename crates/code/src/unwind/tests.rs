//! Handmade tables, in the smallest ELF file that holds them.

use proptest::prelude::*;

use super::*;

/// Address and length of the function that the tables describe.
const CODE: u64 = 0x1000;
const LENGTH: u64 = 0x100;
const SP: u64 = 0x7ff0_0000;
/// Address of `.eh_frame`.
const TABLES: u64 = 0x2000;

/// A file with this section `.eh_frame`, which readers find only by its name.
fn build_elf(eh_frame: &[u8]) -> Vec<u8> {
    let names = b"\0.eh_frame\0.names\0";
    let (at_tables, at_names) = (64 + 56, 64 + 56 + eh_frame.len());
    let at_sections = at_names + names.len();
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    let words = [0, 64, at_sections as u64];
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    file.extend([0u8; 4]);
    for half in [64u16, 56, 1, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    // Code: its address equals its offset in the file.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let loaded = [0, 0, 0, 0x10_0000, 0x10_0000, 0x1000u64];
    file.extend(loaded.iter().flat_map(|word| word.to_le_bytes()));
    file.extend(eh_frame);
    file.extend(names);
    let mut section = |name: u32, kind: u32, address: u64, at: usize, length: usize| {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        let words = [0, address, at as u64, length as u64, 0, 1, 0];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    section(0, 0, 0, 0, 0);
    section(1, 1, TABLES, at_tables, eh_frame.len());
    section(11, 3, 0, at_names, names.len());
    file
}

/// One function: `common` applies to all of it, `own` changes that.
fn build_entries(common: &[u8], own: &[u8]) -> Vec<u8> {
    let mut cie = b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\0".to_vec();
    cie.extend(common);
    let mut bytes = add_length(cie);
    let back = u32::try_from(bytes.len() + 4).unwrap();
    let mut fde = back.to_le_bytes().to_vec();
    fde.extend(CODE.to_le_bytes());
    fde.extend(LENGTH.to_le_bytes());
    fde.push(0);
    fde.extend(own);
    bytes.extend(add_length(fde));
    bytes.extend([0; 4]);
    bytes
}

fn add_length(mut entry: Vec<u8>) -> Vec<u8> {
    entry.resize(entry.len().next_multiple_of(8) + 4, 0);
    let length = u32::try_from(entry.len()).unwrap();
    [&length.to_le_bytes()[..], &entry].concat()
}

fn read_tables(file: &[u8], work: &mut ParseBudget) -> Option<CallFrames> {
    let read = &mut |offset: u64, length: usize| {
        let from = usize::try_from(offset).ok()?;
        Some(file.get(from..from.checked_add(length)?)?.to_vec())
    };
    CallFrames::read(read, work)
}

/// CFA = RSP + 8, return address below it.
const USUAL_RULES: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

/// The caller of code at this address, with this stack; RBX is 3.
fn unwind_once(common: &[u8], own: &[u8], address: u64, stack: &[u64]) -> Option<Caller> {
    let mut work = ParseBudget::new(1 << 20);
    let tables = read_tables(&build_elf(&build_entries(common, own)), &mut work).unwrap();
    let rule = tables.find_rule(address, &mut work)?;
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let copy = StackCopy {
        start: SP,
        bytes: &bytes,
    };
    let registers = Registers::new(Arch::X86_64, address, [(7, SP), (3, 3)]);
    Some(find_caller(&tables, &rule, &registers, &copy))
}

fn expect_frame(caller: Option<Caller>) -> Registers {
    match caller {
        Some(Caller::Frame(registers)) => registers,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn the_rules_of_the_instruction_apply() {
    // After one byte: pushed RBX.
    let own = [0x41, 0x0e, 16, 0x83, 2];
    let first = expect_frame(unwind_once(&USUAL_RULES, &own, CODE, &[0x55, 0x66]));
    assert_eq!((first.address, first.stack_pointer()), (0x55, Some(SP + 8)));
    assert_eq!(first.values[3], Some(3));
    let after = expect_frame(unwind_once(&USUAL_RULES, &own, CODE + 1, &[0x55, 0x66]));
    assert_eq!(
        (after.address, after.stack_pointer()),
        (0x66, Some(SP + 16))
    );
    assert_eq!(after.values[3], Some(0x55));
    assert_eq!(after.lookup_address(), 0x65);
    assert_eq!(
        unwind_once(&USUAL_RULES, &own, CODE + LENGTH, &[0x55, 0x66]),
        None
    );
    assert_eq!(
        unwind_once(&USUAL_RULES, &own, CODE - 1, &[0x55, 0x66]),
        None
    );
}

#[test]
fn values_outside_the_copy_are_unknown() {
    assert_eq!(
        unwind_once(&USUAL_RULES, &[], CODE, &[]),
        Some(Caller::Unknown)
    );
    // CFA = RSI + 8, which is not known.
    let elsewhere = [0x0c, 4, 8, 0x90, 1];
    assert_eq!(
        unwind_once(&elsewhere, &[], CODE, &[1, 2]),
        Some(Caller::Unknown)
    );
    // CFA = RSP: a caller's frame must be higher.
    let same = [0x0c, 7, 0, 0x90, 0];
    assert_eq!(
        unwind_once(&same, &[], CODE, &[1, 2]),
        Some(Caller::Unknown)
    );
}

#[test]
fn a_function_without_return_address_is_the_outermost() {
    let undefined = [0x0c, 7, 8, 0x07, 16];
    assert_eq!(unwind_once(&undefined, &[], CODE, &[1]), Some(Caller::None));
    assert_eq!(
        unwind_once(&USUAL_RULES, &[], CODE, &[0]),
        Some(Caller::None)
    );
}

#[test]
fn expressions_read_the_stack_and_end() {
    // CFA = *(RSP + 8)
    let saved = [0x0f, 3, 0x77, 8, 0x06, 0x90, 1];
    let found = expect_frame(unwind_once(&saved, &[], CODE, &[0x55, SP + 16]));
    assert_eq!(
        (found.address, found.stack_pointer()),
        (SP + 16, Some(SP + 16))
    );
    // An expression that jumps back to its own start.
    let endless = [0x0f, 3, 0x2f, 0xfd, 0xff, 0x90, 1];
    assert_eq!(
        unwind_once(&endless, &[], CODE, &[1, 2]),
        Some(Caller::Unknown)
    );
}

#[test]
fn frame_pointers_must_ascend() {
    let words = [SP + 32, 0x77, 9, 9];
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word: &u64| word.to_le_bytes())
        .collect();
    let copy = StackCopy {
        start: SP,
        bytes: &bytes,
    };
    let from = |pointer: u64, sp: u64| {
        let registers = Registers::new(Arch::X86_64, CODE, [(6, pointer), (7, sp)]);
        find_caller_by_frame_pointer(&registers, &copy)
    };
    let next = expect_frame(Some(from(SP, SP)));
    assert_eq!((next.address, next.stack_pointer()), (0x77, Some(SP + 16)));
    assert_eq!(from(0, SP), Caller::None);
    for pointer in [SP + 64, u64::MAX, u64::MAX - 15] {
        assert_eq!(from(pointer, SP), Caller::Unknown, "{pointer:#x}");
    }
    assert_eq!(from(SP, SP + 8), Caller::Unknown);
}

#[test]
fn frame_pointers_are_recognised() {
    let share = |own: &[u8]| {
        let mut work = ParseBudget::new(1 << 20);
        let tables = read_tables(&build_elf(&build_entries(&USUAL_RULES, own)), &mut work).unwrap();
        tables.share_with_frame_pointer(&mut work)
    };
    // After four bytes CFA = RBP + 16.
    assert_eq!(share(&[0x44, 0x86, 2, 0x0c, 6, 16]), Some(1.0));
    assert_eq!(share(&[0x44, 0x0e, 32]), Some(0.0));
    // With nothing on the stack, functions with and without frame pointers look the same.
    assert_eq!(share(&[]), None);
}

#[test]
fn parsing_stops_when_its_budget_is_spent() {
    let file = build_elf(&build_entries(&USUAL_RULES, &[]));
    assert!(read_tables(&file, &mut ParseBudget::new(8)).is_none());
    let mut work = ParseBudget::new(1 << 10);
    let tables = read_tables(&file, &mut work).unwrap();
    let rules = (0..1_000).map_while(|_| tables.find_rule(CODE, &mut work));
    assert!(rules.count() < 1_000);
}

proptest! {
    #[test]
    fn any_tables_are_read_in_bounded_work(
        common in prop::collection::vec(any::<u8>(), 0..60),
        own in prop::collection::vec(any::<u8>(), 0..60),
        stack in prop::collection::vec(any::<u64>(), 0..8),
        cut in 0usize..400,
    ) {
        let _ = unwind_once(&common, &own, CODE + 4, &stack);
        let file = build_elf(&build_entries(&common, &own));
        let mut work = ParseBudget::new(1 << 16);
        if let Some(found) = read_tables(&file[..cut.min(file.len())], &mut work) {
            let _ = found.find_rule(CODE, &mut work);
            let _ = found.share_with_frame_pointer(&mut work);
        }
    }

    #[test]
    fn any_section_is_read_in_bounded_work(section in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut work = ParseBudget::new(1 << 16);
        if let Some(found) = read_tables(&build_elf(&section), &mut work) {
            let _ = found.find_rule(CODE, &mut work);
        }
    }
}
