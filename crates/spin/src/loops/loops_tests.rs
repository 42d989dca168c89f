//! Loops from compilers: hand-assembled bytes, and C compiled here.

mod compiled_tests;

use proptest::prelude::*;

use super::{LoopKind, SpinLoop, is_hint_function, loop_at, loops_at};
use pinwise_code::{Arch, Code};

fn x86(bytes: &[u8]) -> Code {
    Code {
        arch: Arch::X86_64,
        start: 0x1000,
        bytes: bytes.to_vec(),
    }
}

fn arm64(words: &[u32]) -> Code {
    Code {
        arch: Arch::Aarch64,
        start: 0x1000,
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

#[track_caller]
fn check_loop(code: &Code, offset: u64, kind: LoopKind, gap_hints: Option<u64>) -> SpinLoop {
    let found = loop_at(code, 0x1000 + offset).expect("a loop");
    assert_eq!((found.kind, found.gap), (kind, gap_hints), "{found:?}");
    found
}

/// Test, PAUSE, jump.
const POLLING: [u8; 9] = [
    0x8b, 0x07, // 0: mov eax, [rdi]
    0x85, 0xc0, // 2: test eax, eax
    0x74, 0x04, // 4: je a
    0xf3, 0x90, // 6: pause
    0xeb, // 8: jmp 0
];

#[test]
fn a_loop_that_tests_and_pauses_polls() {
    let mut bytes = POLLING.to_vec();
    // Back to the beginning; RET.
    bytes.extend([0xf6, 0xc3]);
    let found = check_loop(&x86(&bytes), 8, LoopKind::Polling, Some(1));
    assert_eq!((found.start, found.end), (0x1000, 0x100a));
    assert_eq!((found.hints, found.looks, found.instructions), (1, 1, 5));
    assert_eq!(found.hinting, [0x1006]);
    // The RET after it is in no loop.
    assert_eq!(loop_at(&x86(&bytes), 0x100a), None);
}

#[test]
fn cold_parts_elsewhere_belong_to_the_loop() {
    let bytes = [
        0x8b, 0x07, // 0: mov eax, [rdi]
        0x85, 0xc0, // 2: test eax, eax
        0x75, 0x08, // 4: jne e
        0x89, 0x06, // 6: mov [rsi], eax: not of the loop
        0x89, 0x06, // 8
        0xc3, 0x90, 0x90, 0x90, // a: ret
        0xf3, 0x90, // e: pause
        0xeb, 0xee, // 10: jmp 0
    ];
    let found = check_loop(&x86(&bytes), 0x10, LoopKind::Polling, Some(1));
    assert_eq!(found.instructions, 5);
    assert!(found.calls.is_empty());
}

/// `while (!lock.compareAndSet(null, self)) {}` as compiled by `HotSpot` with G1's bookkeeping of a
/// success: it begins in its middle, and other code leads back to its beginning.
#[test]
fn a_loop_that_is_entered_anywhere_waits_all_the_same() {
    let bytes = [
        0xeb, 0x0b, // 0: jmp d
        0x85, 0xed, // 2: test ebp, ebp
        0x75, 0x20, // 4: jne 26
        0x4d, 0x8b, 0x57, 0x30, // 6: mov r10, [r15+0x30]
        0x41, 0x85, 0x02, // a: test [r10], eax
        0x31, 0xc0, // d: xor eax, eax
        0xf0, 0x41, 0x0f, 0xb1, 0x1e, // f: lock cmpxchg [r14], ebx
        0x40, 0x0f, 0x94, 0xc5, // 14: sete bpl
        0x40, 0x0f, 0xb6, 0xed, // 18: movzx ebp, bpl
        0x85, 0xed, // 1c: test ebp, ebp
        0x74, 0xe2, // 1e: je 2
        0xc6, 0x07, 0x00, // 20: mov byte [rdi], 0: after a success
        0xeb, 0xdd, // 23: jmp 2
        0x90, // 25
        0x48, 0xff, 0xc1, // 26: inc rcx: what the lock is for
        0x48, 0x89, 0x0e, // 29: mov [rsi], rcx
        0x48, 0x39, 0xd1, // 2c: cmp rcx, rdx
        0x75, 0xcf, // 2f: jne 0
        0xc3, // 31
    ];
    let code = x86(&bytes);
    let found = check_loop(&code, 0x14, LoopKind::BareLoad, None);
    assert_eq!((found.start, found.end), (0x1002, 0x1020));
    assert_eq!(found.locked, 1);
    // Code executed with the lock held is work.
    assert_eq!(loop_at(&code, 0x1029).unwrap().kind, LoopKind::Work);
}

#[test]
fn reading_the_clock_until_a_moment_is_a_wait() {
    let bytes = [
        0x0f, 0x31, // 0: rdtsc
        0x48, 0xc1, 0xe2, 0x20, // 2: shl rdx, 32
        0x48, 0x09, 0xd0, // 6: or rax, rdx
        0x48, 0x39, 0xf8, // 9: cmp rax, rdi
        0x72, 0xf2, // c: jb 0
        0xc3,
    ];
    let found = check_loop(&x86(&bytes), 9, LoopKind::BareLoad, None);
    assert_eq!(found.looks, 0);
    // With a hint as well.
    let mut hinting = vec![0xf3, 0x90];
    hinting.extend(bytes);
    hinting[15] = 0xf0;
    check_loop(&x86(&hinting), 11, LoopKind::Polling, Some(1));
    // Between two looks at a lock, a delay that does not see the lock.
    let mut delay = hinting.clone();
    // cmp dword [rsi], 0; je 0; ret
    delay.splice(16.., [0x83, 0x3e, 0x00, 0x74, 0xeb, 0xc3]);
    let found = check_loop(&x86(&delay), 11, LoopKind::BlindDelay, None);
    assert!(!found.has_deadline);
    check_loop(&x86(&delay), 16, LoopKind::Polling, None);
    // Computing until a moment is work.
    let mut work = vec![0x48, 0x01, 0x0e];
    work.extend(bytes);
    work[16] = 0xef;
    check_loop(&x86(&work), 12, LoopKind::Work, None);
    let arm = arm64(&[
        0xd53b_e041, // 0: mrs x1, cntvct_el0
        0xeb00_003f, // 4: cmp x1, x0
        0x54ff_ffc3, // 8: b.lo 0
        0xd65f_03c0,
    ]);
    check_loop(&arm, 4, LoopKind::BareLoad, None);
}

/// As compilers make `while (!q) _tpause(0, __rdtsc() + 1000);`.
#[test]
fn the_gap_of_a_hint_with_a_deadline_is_not_counted_in_hints() {
    let mut bytes = vec![
        0x0f, 0x31, // 0: rdtsc
        0x05, 0xe8, 0x03, 0x00, 0x00, // 2: add eax, 1000
        0x66, 0x0f, 0xae, 0xf1, // 7: tpause ecx
        0x83, 0x3f, 0x00, // b: cmp dword [rdi], 0
        0x74, 0xf0, // e: je 0
        0xc3,
    ];
    for prefix in [0x66, 0xf2] {
        bytes[7] = prefix;
        let found = check_loop(&x86(&bytes), 0xb, LoopKind::Polling, None);
        assert!(found.has_deadline && found.hints == 1, "{found:?}");
    }
    // Through a function that only hints.
    let called = [
        0xe8, 0x06, 0x00, 0x00, 0x00, // 0: call b
        0x83, 0x3f, 0x00, // 5: cmp dword [rdi], 0
        0x74, 0xf6, // 8: je 0
        0xc3, // a
        0x66, 0x0f, 0xae, 0xf1, 0xc3, // b: tpause ecx; ret
    ];
    let found = check_loop(&x86(&called), 5, LoopKind::Polling, None);
    assert!(found.has_deadline, "{found:?}");
    let arm = arm64(&[
        0xd503_1003, // 0: wfet x3
        0xb940_0001, // 4: ldr w1, [x0]
        0x34ff_ffc1, // 8: cbz w1, 0
        0xd65f_03c0,
    ]);
    let found = check_loop(&arm, 4, LoopKind::Polling, None);
    assert!(found.has_deadline, "{found:?}");
}

#[test]
fn an_atomic_count_until_a_flag_is_work() {
    let bytes = [
        0xf0, 0x48, 0x83, 0x07, 0x01, // 0: lock add qword [rdi], 1
        0x8b, 0x06, // 5: mov eax, [rsi]
        0x85, 0xc0, // 7: test eax, eax
        0x74, 0xf5, // 9: je 0
        0xc3,
    ];
    assert!(
        !check_loop(&x86(&bytes), 7, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
    // Trying a lock and counting the attempts is a wait.
    let bytes = [
        0x89, 0xd0, // 0: mov eax, edx
        0x48, 0xff, 0xc1, // 2: inc rcx
        0x87, 0x07, // 5: xchg [rdi], eax
        0x85, 0xc0, // 7: test eax, eax
        0x75, 0xf5, // 9: jne 0
        0xc3,
    ];
    assert!(
        check_loop(&x86(&bytes), 7, LoopKind::BareLoad, None)
            .hidden_progress
            .is_empty()
    );
}

/// `for (;;) (*counter)++;` and its like: the thread is seen at the addition, which waits for the
/// load, and its register only counts.
#[test]
fn a_result_that_is_stored_is_progress() {
    let stores_progress = |bytes: &[u8], at: u64| {
        let found = check_loop(&x86(bytes), at, LoopKind::Work, None);
        !found.hidden_progress.is_empty()
    };
    let bytes = [
        0x48, 0x8b, 0x07, // 0: mov rax, [rdi]
        0x48, 0x83, 0xc0, 0x01, // 3: add rax, 1
        0x48, 0x89, 0x07, // 7: mov [rdi], rax
        0xeb, 0xf4, // a: jmp 0
    ];
    assert!(stores_progress(&bytes, 3));
    let in_place = [
        0x48, 0x83, 0x07, 0x01, // 0: add qword [rdi], 1
        0x8b, 0x06, // 4: mov eax, [rsi]
        0x85, 0xc0, // 6: test eax, eax
        0x74, 0xf6, // 8: je 0
        0xc3,
    ];
    assert!(stores_progress(&in_place, 6));
    let count_of_turns = [
        0x48, 0xff, 0xc1, // 0: inc rcx
        0x48, 0x89, 0x0f, // 3: mov [rdi], rcx
        0x83, 0x3e, 0x00, // 6: cmp dword [rsi], 0
        0x74, 0xf5, // 9: je 0
        0xc3,
    ];
    assert!(stores_progress(&count_of_turns, 6));
    // A queue's poll keeps a copy of the index that it saw, and its state.
    let copy = [
        0x48, 0x8b, 0x07, // 0: mov rax, [rdi]
        0x48, 0x89, 0x06, // 3: mov [rsi], rax
        0xc6, 0x46, 0x08, 0x00, // 6: mov byte [rsi+8], 0
        0x48, 0x39, 0xc8, // a: cmp rax, rcx
        0x74, 0xf1, // d: je 0
        0xc3,
    ];
    assert!(!stores_progress(&copy, 0xa));
}

#[test]
fn a_walk_through_memory_goes_on() {
    let bytes = [
        0x48, 0xff, 0xc0, // 0: inc rax
        0x80, 0x38, 0x00, // 3: cmp byte [rax], 0
        0x75, 0xf8, // 6: jne 0
        0xc3,
    ];
    // The address shows it.
    assert!(
        check_loop(&x86(&bytes), 6, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
    let from_local = [
        0x48, 0x8b, 0x45, 0xf8, // 0: mov rax, [rbp-8]
        0x48, 0x83, 0x45, 0xf8, 0x01, // 4: add qword [rbp-8], 1
        0x80, 0x38, 0x00, // 9: cmp byte [rax], 0
        0x75, 0xf2, // c: jne 0
        0xc3,
    ];
    assert!(
        !check_loop(&x86(&from_local), 12, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
}

#[test]
fn arithmetic_of_locals_is_work() {
    let bytes = [
        0x48, 0x8b, 0x45, 0xf8, // 0: mov rax, [rbp-8]
        0x48, 0xc1, 0xe0, 0x0d, // 4: shl rax, 13
        0x48, 0x31, 0x45, 0xf8, // 8: xor [rbp-8], rax
        0x8b, 0x07, // c: mov eax, [rdi]
        0x85, 0xc0, // e: test eax, eax
        0x74, 0xee, // 10: je 0
        0xc3,
    ];
    assert!(
        !check_loop(&x86(&bytes), 14, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
}

#[test]
fn counted_hints_are_a_blind_delay() {
    let bytes = [
        0xb9, 0x1e, 0x00, 0x00, 0x00, // 0: mov ecx, 30
        0xf3, 0x90, // 5: pause
        0xff, 0xc9, // 7: dec ecx
        0x75, 0xfa, // 9: jne 5
        0xc3,
    ];
    let found = check_loop(&x86(&bytes), 7, LoopKind::BlindDelay, Some(30));
    assert_eq!(found.constants, [30]);
    // A count passed as an argument is unknown.
    check_loop(&x86(&bytes[5..]), 2, LoopKind::BlindDelay, None);
}

#[test]
fn counters_on_the_stack_are_not_looks() {
    let bytes = [
        0xc7, 0x45, 0xfc, 0x32, 0x00, 0x00, 0x00, // 0: mov dword [rbp-4], 50
        0xeb, 0x06, // 7: jmp f
        0xf3, 0x90, // 9: pause
        0x83, 0x6d, 0xfc, 0x01, // b: sub dword [rbp-4], 1
        0x83, 0x7d, 0xfc, 0x00, // f: cmp dword [rbp-4], 0
        0x75, 0xf4, // 13: jne 9
        0xc3,
    ];
    // The bytes before a function let the decoder resynchronise.
    let front = [0x90, 0x90, 0x90, 0x90, 0x90, 0x55, 0x48, 0x89, 0xe5];
    let code = x86(&[&front[..], &bytes[..]].concat());
    let found = check_loop(&code, 9 + 0xb, LoopKind::BlindDelay, Some(50));
    assert_eq!(found.looks, 0);
}

#[test]
fn unrolled_hints_count_one_by_one() {
    let bytes = [
        0xf3, 0x90, 0xf3, 0x90, 0xf3, 0x90, 0xf3, 0x90, // four times pause
        0x83, 0x3f, 0x00, // 8: cmp dword [rdi], 0
        0x75, 0xf3, // b: jne 0
        0xc3,
    ];
    check_loop(&x86(&bytes), 8, LoopKind::Polling, Some(4));
}

#[test]
fn a_delay_within_a_loop_that_looks_is_blind_and_its_lock_polls() {
    let bytes = [
        0xb9, 0x32, 0x00, 0x00, 0x00, // 0: mov ecx, 50
        0x83, 0x3f, 0x00, // 5: cmp dword [rdi], 0
        0x74, 0x17, // 8: je 21
        0x31, 0xc0, // a: xor eax, eax
        0xf3, 0x90, // c: pause
        0xff, 0xc0, // e: inc eax
        0x39, 0xc8, // 10: cmp eax, ecx
        0x72, 0xf8, // 12: jb c
        0x8d, 0x0c, 0x49, // 14: lea ecx, [rcx+rcx*2]
        0x81, 0xf9, 0x40, 0x9c, 0x00, 0x00, // 17: cmp ecx, 40000
        0x72, 0xe6, // 1d: jb 5
        0xeb, 0xdf, // 1f: jmp 0
        0xc3, // 21
    ];
    let code = x86(&bytes);
    let nest = loops_at(&code, 0x100e);
    let kinds: Vec<LoopKind> = nest.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [LoopKind::BlindDelay, LoopKind::Polling, LoopKind::Polling]
    );
    // The delay grows: no constant in the code is its length.
    assert!(nest.iter().all(|one| one.gap.is_none()), "{nest:?}");
    assert!(
        [3, 50, 40_000]
            .iter()
            .all(|n| nest[0].constants.contains(n))
    );
}

#[test]
fn functions_that_only_hint_are_reported() {
    let spin_pause = x86(&[
        0xf3, 0x90, // pause
        0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax, 1
        0xc3, // ret
    ]);
    assert!(is_hint_function(&spin_pause, 0x1000));
    assert!(is_hint_function(&spin_pause, 0x1002));
    assert!(!is_hint_function(&spin_pause, 0x1007));
    assert_eq!(loop_at(&spin_pause, 0x1002), None);
    // Its caller's loop counts the hint.
    let caller = x86(&[
        0xe8, 0x07, 0x00, 0x00, 0x00, // 0: call c
        0x83, 0x3f, 0x00, // 5: cmp dword [rdi], 0
        0x74, 0xf6, // 8: je 0
        0xc3, 0x90, // a
        0xf3, 0x90, 0xc3, // c: pause; ret
    ]);
    let found = check_loop(&caller, 5, LoopKind::Polling, Some(1));
    assert_eq!((found.hints, found.calls.len()), (1, 0));
    let other = x86(&[0x8b, 0x07, 0xc3]);
    assert!(!is_hint_function(&other, 0x1000));
}

#[test]
fn an_exchange_with_pause_polls_and_is_locked() {
    let bytes = [
        0xb8, 0x01, 0x00, 0x00, 0x00, // 0: mov eax, 1
        0x87, 0x07, // 5: xchg [rdi], eax
        0x85, 0xc0, // 7: test eax, eax
        0x74, 0x04, // 9: je f
        0xf3, 0x90, // b: pause
        0xeb, 0xf1, // d: jmp 0
        0xc3,
    ];
    assert_eq!(
        check_loop(&x86(&bytes), 0xd, LoopKind::Polling, Some(1)).locked,
        1
    );
}

#[test]
fn a_thread_yields_by_its_system_call() {
    let yields = [
        0xb8, 0x18, 0x00, 0x00, 0x00, // 0: mov eax, 24
        0x0f, 0x05, // 5: syscall
        0x83, 0x3f, 0x00, // 7: cmp dword [rdi], 0
        0x74, 0xf4, // a: je 0
        0xc3,
    ];
    assert_eq!(
        check_loop(&x86(&yields), 7, LoopKind::Yielding, None).system_calls,
        1
    );
    let mut writes = yields;
    writes[1] = 1;
    check_loop(&x86(&writes), 7, LoopKind::Work, None);
}

#[test]
fn loads_without_hints_wait_only_if_every_turn_is_alike() {
    let bare = [0x8b, 0x07, 0xa8, 0x01, 0x74, 0xfa, 0xc3]; // mov eax, [rdi]; test al, 1; je
    check_loop(&x86(&bare), 2, LoopKind::BareLoad, None);
    let search = [
        0x80, 0x3f, 0x00, // cmp byte [rdi], 0
        0x48, 0x8d, 0x7f, 0x01, // lea rdi, [rdi+1]
        0x75, 0xf7, // jne 0
        0xc3,
    ];
    check_loop(&x86(&search), 3, LoopKind::Work, None);
    let sum = [
        0x48, 0x03, 0x07, // add rax, [rdi]
        0x48, 0x83, 0xc7, 0x08, // add rdi, 8
        0x48, 0x39, 0xf7, // cmp rdi, rsi
        0x75, 0xf4, // jne 0
        0xc3,
    ];
    check_loop(&x86(&sum), 3, LoopKind::Work, None);
    // A counter's limit is not a lock.
    let counted = [
        0xff, 0xc0, // inc eax
        0x3b, 0x07, // cmp eax, [rdi]
        0x7c, 0xfa, // jl 0
        0xc3,
    ];
    assert_eq!(check_loop(&x86(&counted), 2, LoopKind::Work, None).looks, 0);
    // Counting primes until a flag is set.
    let prime = [
        0x8b, 0x07, // 0: mov eax, [rdi]
        0x83, 0xc6, 0x02, // 2: add esi, 2
        0x85, 0xc0, // 5: test eax, eax
        0x75, 0x17, // 7: jne 20
        0xb9, 0x03, 0x00, 0x00, 0x00, // 9: mov ecx, 3
        0x83, 0xc1, 0x02, // e: add ecx, 2
        0x89, 0xf0, // 11: mov eax, esi
        0x31, 0xd2, // 13: xor edx, edx
        0xf7, 0xf1, // 15: div ecx
        0x85, 0xd2, // 17: test edx, edx
        0x75, 0xf3, // 19: jne e
        0xeb, 0xe3, // 1b: jmp 0
        0x90, 0x90, 0x90, // 1d
        0xc3, // 20: ret
    ];
    check_loop(&x86(&prime), 2, LoopKind::Work, None);
}

#[test]
fn the_bound_of_a_delay_in_memory_is_not_a_look() {
    let bytes = [
        0xf3, 0x90, // pause
        0xff, 0xc0, // inc eax
        0x3b, 0x07, // cmp eax, [rdi]
        0x7c, 0xf8, // jl 0
        0xc3,
    ];
    check_loop(&x86(&bytes), 2, LoopKind::BlindDelay, None);
}

#[test]
fn arm64_waits_follow_the_same_rules() {
    let polling = arm64(&[
        0x88df_fc01, // ldar w1, [x0]
        0x3400_0061, // cbz w1, +12
        0xd503_203f, // yield
        0x17ff_fffd, // b -12
        0xd65f_03c0,
    ]);
    check_loop(&polling, 0xc, LoopKind::Polling, Some(1));
    let blind = arm64(&[
        0x5280_03c1, // mov w1, #30
        0xd503_3fdf, // isb
        0x7100_0421, // subs w1, w1, #1
        0x54ff_ffc1, // b.ne -8
        0xd65f_03c0,
    ]);
    check_loop(&blind, 8, LoopKind::BlindDelay, Some(30));
    // A repeated exclusive pair is one atomic operation; WFE waits.
    let exclusive = arm64(&[
        0xd503_205f, // 0: wfe
        0x885f_fc01, // 4: ldaxr w1, [x0]
        0x35ff_ffc1, // 8: cbnz w1, 0
        0x8801_7c02, // c: stxr w1, w2, [x0]
        0x35ff_ffa1, // 10: cbnz w1, 4
        0xd65f_03c0,
    ]);
    let found = check_loop(&exclusive, 4, LoopKind::Polling, Some(1));
    assert_eq!(found.instructions, 3, "{found:?}");
    let bare = arm64(&[0xb940_0001, 0x34ff_ffe1, 0xd65f_03c0]); // ldr w1, [x0]; cbz
    check_loop(&bare, 4, LoopKind::BareLoad, None);
    let polynomial = arm64(&[
        0xfd40_0be1, // ldr d1, [sp, #16]
        0xfd40_0fe0, // ldr d0, [sp, #24]
        0x1e60_0821, // fmul d1, d1, d0
        0x1e6e_9000, // fmov d0, #1.25
        0x1e60_2820, // fadd d0, d1, d0
        0xfd00_0be0, // str d0, [sp, #16]
        0xb940_0001, // ldr w1, [x0]
        0x34ff_ff21, // cbz w1, -28
        0xd65f_03c0,
    ]);
    assert!(
        !check_loop(&polynomial, 0x18, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_gone_through(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        offset in 0u64..600,
        is_arm in any::<bool>(),
    ) {
        let arch = if is_arm { Arch::Aarch64 } else { Arch::X86_64 };
        let code = Code { arch, start: u64::MAX - 700, bytes };
        let address = code.start + offset;
        for found in loops_at(&code, address) {
            prop_assert!(found.start <= address && address < found.end);
            prop_assert!(found.instructions > 0);
        }
        let _ = is_hint_function(&code, address);
        let _ = pinwise_code::disassemble(&code, 0, u64::MAX);
    }

    /// Random bytes with many backward branches and hints.
    #[test]
    fn loops_of_any_shape_are_gone_through(
        pieces in proptest::collection::vec(0usize..8, 1..40),
        jumps in proptest::collection::vec(any::<i8>(), 80),
    ) {
        let parts: [&[u8]; 8] = [
            &[0xf3, 0x90], &[0x8b, 0x07], &[0xff, 0xc9], &[0x75], &[0xeb],
            &[0x83, 0x7d, 0xfc, 0x00], &[0xb9, 9, 0, 0, 0], &[0xf0, 0x0f, 0xb1, 0x17],
        ];
        let mut bytes = Vec::new();
        for (piece, jump) in pieces.iter().zip(&jumps) {
            bytes.extend(parts[*piece]);
            if parts[*piece].len() == 1 {
                bytes.push(jump.to_le_bytes()[0]);
            }
        }
        let code = x86(&bytes);
        for address in code.start..code.end() {
            let nest = loops_at(&code, address);
            for pair in nest.windows(2) {
                prop_assert!(pair[0].instructions < pair[1].instructions);
            }
        }
    }
}

/// A build without optimisation keeps everything among its locals.
#[test]
fn progress_visible_in_a_register_is_not_hidden() {
    let retry = [
        0x48, 0x8b, 0x45, 0xf8, // 0: mov rax, [rbp-8]
        0x48, 0xc1, 0xe0, 0x0d, // 4: shl rax, 13
        0x48, 0x89, 0x45, 0xf8, // 8: mov [rbp-8], rax
        0x8b, 0x07, // c: mov eax, [rdi]
        0x85, 0xc0, // e: test eax, eax
        0x74, 0xee, // 10: je 0
        0xc3,
    ];
    assert!(
        check_loop(&x86(&retry), 14, LoopKind::Work, None)
            .hidden_progress
            .is_empty()
    );
}

/// The result of a compare-and-exchange is what memory held: the copy of it among the locals, which
/// builds without optimisation reach through a pointer, is no progress.
#[test]
fn a_copy_of_what_an_exchange_found_is_no_progress() {
    let bytes = [
        0xc7, 0x45, 0xf4, 0, 0, 0, 0, // 0: mov dword [rbp-12], 0
        0xb8, 0x80, 0x51, 0, 0, // 7: mov eax, taken
        0x48, 0x89, 0x45, 0xf8, // c: mov [rbp-8], rax
        0xb9, 0x01, 0, 0, 0, // 10: mov ecx, 1
        0x48, 0x8b, 0x75, 0xf8, // 15: mov rsi, [rbp-8]
        0x48, 0x8d, 0x55, 0xf4, // 19: lea rdx, [rbp-12]
        0x8b, 0x02, // 1d: mov eax, [rdx]
        0xf0, 0x0f, 0xb1, 0x0e, // 1f: lock cmpxchg [rsi], ecx
        0x89, 0xc1, // 23: mov ecx, eax
        0x0f, 0x94, 0xc0, // 25: sete al
        0x84, 0xc0, // 28: test al, al
        0x75, 0x02, // 2a: jne 2e
        0x89, 0x0a, // 2c: mov [rdx], ecx
        0x83, 0xf0, 0x01, // 2e: xor eax, 1
        0x84, 0xc0, // 31: test al, al
        0x75, 0xcb, // 33: jne 0
        0xc3,
    ];
    let code = x86(&bytes);
    let found = loop_at(&code, code.start + 0x23).unwrap();
    assert!(found.hidden_progress.is_empty(), "{found:?}");
}

/// Unoptimised loops are entered at their condition, after the body.
#[test]
fn progress_is_in_the_body_and_not_in_the_condition() {
    let bytes = [
        0xeb, 0x0e, // 0: jmp 10
        0x8b, 0x55, 0xfc, // 2: mov edx, [rbp-4]
        0x48, 0x8b, 0x04, 0xd6, // 5: mov rax, [rsi+rdx*8]
        0x48, 0x01, 0x07, // 9: add [rdi], rax
        0x83, 0x45, 0xfc, 0x01, // c: add dword [rbp-4], 1
        0x8b, 0x45, 0xfc, // 10: mov eax, [rbp-4]
        0x3b, 0x45, 0xe4, // 13: cmp eax, [rbp-1c]
        0x72, 0xea, // 16: jb 2
        0xc3,
    ];
    let found = check_loop(&x86(&bytes), 0x10, LoopKind::Work, None);
    assert_eq!(found.hidden_progress, [(0x1002, 0x1010)]);
    // The cost of an atomic instruction shows at the one after it.
    let bytes = [
        0xeb, 0x05, // 0: jmp 7
        0xf0, 0x48, 0x83, 0x07, 0x01, // 2: lock add qword [rdi], 1
        0x8b, 0x06, // 7: mov eax, [rsi]
        0x85, 0xc0, // 9: test eax, eax
        0x74, 0xf5, // b: je 2
        0xc3,
    ];
    let found = check_loop(&x86(&bytes), 7, LoopKind::Work, None);
    assert_eq!(found.hidden_progress, [(0x1002, 0x1009)]);
}

/// The path through the call is another loop that contains only the sampled address.
#[test]
fn a_thread_behind_its_hint_is_in_the_loop_of_the_hint() {
    let bytes = [
        0x83, 0xc3, 0x01, // 0: add ebx, 1
        0xf3, 0x90, // 3: pause
        0x0f, 0xb6, 0x07, // 5: movzx eax, byte [rdi]
        0x84, 0xc0, // 8: test al, al
        0x74, 0x0f, // a: je 1b
        0x81, 0xfb, 0x00, 0x00, 0x00, 0x10, // c: cmp ebx, 0x10000000
        0x76, 0xec, // 12: jbe 0
        0xe8, 0x02, 0x00, 0x00, 0x00, // 14: call 1b
        0xeb, 0xea, // 19: jmp 5
        0xc3,
    ];
    let found = check_loop(&x86(&bytes), 5, LoopKind::Polling, None);
    assert_eq!(found.hinting, [0x1003]);
}

#[test]
fn progress_of_an_inner_loop_is_work() {
    let walk_until_a_flag = [
        0x48, 0x8d, 0x06, // 0: lea rax, [rsi]
        0x0f, 0xb6, 0x08, // 3: movzx ecx, byte [rax]
        0x48, 0xff, 0xc0, // 6: inc rax
        0x48, 0x39, 0xf8, // 9: cmp rax, rdi
        0x75, 0xf5, // c: jne 3
        0x8b, 0x07, // e: mov eax, [rdi]
        0x85, 0xc0, // 10: test eax, eax
        0x74, 0xec, // 12: je 0
        0xc3,
    ];
    check_loop(&x86(&walk_until_a_flag), 0x10, LoopKind::Work, None);
    let x87_sum = [
        0xd8, 0xc1, // 0: fadd st0, st1
        0x8b, 0x06, // 2: mov eax, [rsi]
        0x85, 0xc0, // 4: test eax, eax
        0x74, 0xf8, // 6: je 0
        0xc3,
    ];
    let found = check_loop(&x86(&x87_sum), 4, LoopKind::Work, None);
    assert_eq!(found.hidden_progress, [(0x1000, 0x1008)]);
    let quotient_of_a_local = [
        0xf2, 0x0f, 0x10, 0x06, // 0: movsd xmm0, [rsi]
        0xf2, 0x0f, 0x5e, 0x45, 0xf8, // 4: divsd xmm0, [rbp-8]
        0xf2, 0x0f, 0x11, 0x45, 0xf8, // 9: movsd [rbp-8], xmm0
        0x8b, 0x07, // e: mov eax, [rdi]
        0x85, 0xc0, // 10: test eax, eax
        0x74, 0xec, // 12: je 0
        0xc3,
    ];
    check_loop(&x86(&quotient_of_a_local), 0x10, LoopKind::Work, None);
}
